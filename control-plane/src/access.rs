//! Who may do what: three roles, each with all that the one below it may, and who calls.

pub mod known;
pub mod oidc;
pub mod tokens;

use std::fmt;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Changes what the fleet serves: catalog, rollouts, nodes, channels, keys.
    Operator,
    /// Everything, also who has access, secrets and the fleet's identity.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// The role of a name.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// By which the caller is shown; the author of a revision.
    pub name: String,
    /// What the caller may do.
    pub role: Role,
    /// What was shown to prove it: `admin.token`, a token's id, or `oidc:` and the subject. Never the secret itself.
    pub credential: String,
    /// When what was shown ends; `None` for never.
    pub expires_at_ms: Option<u64>,
    /// From which address.
    pub from: String,
}

impl Caller {
    /// Whoever holds the token that the control plane was started with.
    pub fn bootstrap() -> Self {
        Caller {
            name: "admin".to_owned(),
            role: Role::Admin,
            credential: "admin.token".to_owned(),
            expires_at_ms: None,
            from: String::new(),
        }
    }

    /// The control plane itself, for what it does unasked.
    pub fn sluice() -> Self {
        Caller {
            name: "sluice".to_owned(),
            role: Role::Admin,
            credential: String::new(),
            expires_at_ms: None,
            from: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_the_one_below_it_may() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(Role::named(role.as_str()), Some(role));
        }
        assert_eq!(Role::named("Admin"), None);
    }
}
