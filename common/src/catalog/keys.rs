//! Which keys a catalog has: where each may stand, and which of them this version does not have
//! yet. `check` refuses every other; `docs/catalog.md` explains every one of them. Pure.

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Keys {
    /// The table, in words.
    pub what: &'static str,
    /// Keys that work.
    pub now: &'static [&'static str],
    /// Keys of the design that this version does not have yet.
    pub later: &'static [&'static str],
    /// The policy keys that may stand here as well, by where the table stands.
    pub level: Option<Level>,
}

/// A layer of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Fleet,
    Model,
    Channel,
    Route,
}

impl Level {
    /// The table that carries this layer, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Fleet => "[policy]",
            Level::Model => "models",
            Level::Channel => "channels",
            Level::Route => "routes",
        }
    }
}

/// A policy key and where it may stand.
#[derive(Debug)]
pub(super) struct PolicyKey {
    pub name: &'static str,
    pub levels: &'static [Level],
    /// Whether this version has it.
    pub is_now: bool,
}

const FLEET_CHANNEL: &[Level] = &[Level::Fleet, Level::Channel];
const FLEET_MODEL: &[Level] = &[Level::Fleet, Level::Model];
const EVERYWHERE: &[Level] = &[Level::Fleet, Level::Model, Level::Channel, Level::Route];

/// Every policy key.
pub(super) const POLICIES: &[PolicyKey] = &[
    PolicyKey { name: "breaker", levels: FLEET_CHANNEL, is_now: true },
    PolicyKey { name: "gate", levels: EVERYWHERE, is_now: true },
    PolicyKey { name: "timeouts", levels: EVERYWHERE, is_now: true },
    PolicyKey { name: "max_in_flight", levels: FLEET_CHANNEL, is_now: false },
    PolicyKey { name: "queue", levels: FLEET_CHANNEL, is_now: false },
    PolicyKey { name: "order", levels: FLEET_MODEL, is_now: false },
    PolicyKey { name: "when_none", levels: FLEET_MODEL, is_now: false },
    PolicyKey { name: "retry", levels: EVERYWHERE, is_now: false },
    PolicyKey { name: "checks", levels: EVERYWHERE, is_now: false },
    PolicyKey { name: "preset", levels: EVERYWHERE, is_now: false },
];

pub(super) const TOP: Keys = Keys {
    what: "the top level",
    now: &["policy", "rollout", "channels", "models"],
    later: &["alerts"],
    level: None,
};
pub(super) const ROLLOUT: Keys =
    Keys { what: "[rollout]", now: &["stages", "bake"], later: &[], level: None };
pub(super) const POLICY: Keys = Keys { what: "[policy]", now: &[], later: &[], level: Some(Level::Fleet) };
pub(super) const BREAKER: Keys = Keys {
    what: "breaker",
    now: &["failures", "window", "cooldown"],
    later: &["recovery", "successes", "min_failure_ratio", "min_requests", "counts"],
    level: None,
};
pub(super) const GATE: Keys =
    Keys { what: "gate", now: &["timeout", "until"], later: &["keepalive"], level: None };
pub(super) const TIMEOUTS: Keys = Keys {
    what: "timeouts",
    now: &["connect", "headers", "idle"],
    later: &["first_byte", "first_content", "total"],
    level: None,
};
pub(super) const CHANNEL: Keys = Keys {
    what: "a channel",
    now: &[
        "dialects",
        "base_url",
        "credential",
        "enabled",
        "headers",
        "query",
        "tls",
        "include_usage",
        "profile",
        "auth",
        "path",
        "overrides",
        "limits",
    ],
    later: &[],
    level: Some(Level::Channel),
};
pub(super) const AUTH: Keys =
    Keys { what: "auth", now: &["header", "prefix", "query"], later: &[], level: None };
pub(super) const OVERRIDE: Keys =
    Keys { what: "an override", now: &["status", "code", "message", "class"], later: &[], level: None };
pub(super) const TLS: Keys = Keys { what: "tls", now: &["ca"], later: &[], level: None };
pub(super) const MODEL: Keys = Keys {
    what: "a model",
    now: &["price", "routes", "max_output_tokens"],
    later: &[],
    level: Some(Level::Model),
};
pub(super) const PRICE: Keys =
    Keys { what: "price", now: &["input", "output", "cached_input", "unit"], later: &[], level: None };
pub(super) const ROUTE: Keys = Keys {
    what: "a route",
    now: &["channel", "upstream_model", "cost", "enabled", "context_window"],
    later: &[],
    level: Some(Level::Route),
};
pub(super) const COST: Keys = Keys {
    what: "cost",
    now: &["input", "output", "cached_input", "unit", "order"],
    later: &[],
    level: None,
};

/// Every kind of table, for the test that the reference is complete.
#[cfg(test)]
pub(super) const TABLES: [&Keys; 14] = [
    &TOP, &ROLLOUT, &POLICY, &BREAKER, &GATE, &TIMEOUTS, &CHANNEL, &AUTH, &OVERRIDE, &TLS, &MODEL, &PRICE,
    &ROUTE, &COST,
];

/// What a key is to a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Now,
    Later,
    /// A policy key that may stand in these layers only.
    Elsewhere(&'static [Level]),
    Unknown,
}

impl Keys {
    /// What `key` is to this table.
    pub fn standing(&self, key: &str) -> Standing {
        if self.now.contains(&key) {
            return Standing::Now;
        }
        if self.later.contains(&key) {
            return Standing::Later;
        }
        let is_top = self.now.contains(&"policy");
        match (self.level, POLICIES.iter().find(|policy| policy.name == key)) {
            (Some(level), Some(policy)) if !policy.levels.contains(&level) => {
                Standing::Elsewhere(policy.levels)
            }
            (None, Some(policy)) if is_top => Standing::Elsewhere(policy.levels),
            (Some(_), Some(policy)) if policy.is_now => Standing::Now,
            (Some(_), Some(_)) => Standing::Later,
            _ => Standing::Unknown,
        }
    }

    /// Every key that may stand here, for did-you-mean.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let policies =
            POLICIES.iter().filter(|policy| self.level.is_some_and(|l| policy.levels.contains(&l)));
        self.now.iter().chain(self.later).copied().chain(policies.map(|policy| policy.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_keys_stand_where_the_design_says() {
        assert_eq!(POLICY.standing("breaker"), Standing::Now);
        assert_eq!(CHANNEL.standing("breaker"), Standing::Now);
        assert_eq!(MODEL.standing("breaker"), Standing::Elsewhere(FLEET_CHANNEL));
        assert_eq!(ROUTE.standing("breaker"), Standing::Elsewhere(FLEET_CHANNEL));
        for keys in [POLICY, CHANNEL, MODEL, ROUTE] {
            assert_eq!(keys.standing("gate"), Standing::Now);
            assert_eq!(keys.standing("timeouts"), Standing::Now);
            assert_eq!(keys.standing("retry"), Standing::Later);
        }
        assert_eq!(ROUTE.standing("queue"), Standing::Elsewhere(FLEET_CHANNEL));
        assert_eq!(CHANNEL.standing("order"), Standing::Elsewhere(FLEET_MODEL));
        assert_eq!(MODEL.standing("order"), Standing::Later);
        assert_eq!(TOP.standing("breaker"), Standing::Elsewhere(FLEET_CHANNEL));
        assert_eq!(TLS.standing("breaker"), Standing::Unknown);
        assert_eq!(COST.standing("order"), Standing::Now);
    }
}
