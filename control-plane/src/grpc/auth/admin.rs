//! Who may call the admin listener, and what: a caller is known by what it shows, its role decides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Extensions, HeaderMap};
use tokio::time::sleep;
use tonic::Status;

use super::until::Until;
use super::{Token, bearer, is_health, roles};
use crate::access::known::Found;
use crate::access::oidc::jwt::Jwt;
use crate::access::oidc::{self, Oidc};
use crate::access::{Caller, Role};
use crate::listener::Peer;
use crate::plane::Plane;

/// A watch ends this soon after its caller's token.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why somebody was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Nobody knows who calls, or no longer.
    Unknown(String),
    /// It is known, and this caller may not do it.
    Forbidden {
        /// Who.
        name: String,
        /// What the caller may do.
        role: Role,
        /// What would be needed.
        needed: Role,
    },
    /// An issuer vouches for the caller, and gives it no role here.
    NoRole {
        /// Who.
        name: String,
    },
    /// Who calls cannot be found out at the moment.
    Away,
}

impl Refused {
    /// What the caller is told.
    pub fn said(&self) -> String {
        match self {
            Refused::Unknown(why) => why.clone(),
            Refused::NoRole { name } => format!("the token of {name} is good and gives no role here"),
            Refused::Away => "it cannot be told at the moment who calls".to_owned(),
            Refused::Forbidden { name, role, needed } => {
                format!("this needs the role {needed}; {name} has the role {role}")
            }
        }
    }

    fn status(&self) -> Status {
        match self {
            Refused::Unknown(_) => Status::unauthenticated(self.said()),
            Refused::Forbidden { .. } | Refused::NoRole { .. } => Status::permission_denied(self.said()),
            Refused::Away => Status::unavailable(self.said()),
        }
    }
}

/// What is asked of those who call.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    plane: Arc<Plane>,
    bootstrap: Token,
    oidc: Option<Oidc>,
}

impl Inner {
    fn is_over(&self, caller: &Caller) -> bool {
        let has_expired = caller.expires_at_ms.is_some_and(|at| self.plane.clock.now_ms() >= at);
        has_expired || self.plane.access.is_revoked(&caller.credential)
    }
}

fn over() -> Refused {
    Refused::Unknown("the token has expired or was revoked".to_owned())
}

impl Guard {
    /// Lets in who carries `bootstrap`, a token that the plane knows, or one of an issuer that is trusted.
    pub fn new(plane: Arc<Plane>, bootstrap: Token, oidc: Option<Oidc>) -> Self {
        Guard { inner: Arc::new(Inner { plane, bootstrap, oidc }) }
    }

    /// Who calls, if the caller may do what needs this role. `what` is for the log.
    pub async fn admit(
        &self,
        shown: Option<Vec<u8>>,
        from: String,
        needed: Role,
        what: &str,
    ) -> Result<Caller, Refused> {
        let admitted = match self.identify(shown).await {
            Ok(caller) => caller.may(needed).map(|()| caller),
            Err(refused) => Err(refused),
        };
        match admitted {
            Ok(caller) => Ok(Caller { from, ..caller }),
            Err(refused) => {
                self.note(&refused, &from, what);
                Err(refused)
            }
        }
    }

    /// Whether a caller that was let in before may do what needs this role, still. `what` is for the log.
    pub fn admit_again(&self, caller: &Caller, needed: Role, what: &str) -> Result<(), Refused> {
        let admitted = if self.inner.is_over(caller) { Err(over()) } else { caller.may(needed) };
        admitted.inspect_err(|refused| self.note(refused, &caller.from, what))
    }

    /// Whether what a caller showed has ended since.
    pub fn is_over(&self, caller: &Caller) -> bool {
        self.inner.is_over(caller)
    }

    /// Counts and tells that somebody was not let in.
    fn note(&self, refused: &Refused, from: &str, what: &str) {
        match refused {
            Refused::Unknown(why) => {
                self.inner.plane.metrics.call_refused("unauthenticated");
                tracing::debug!(from, what, why, "a caller was not let in");
            }
            Refused::Forbidden { name, role, needed } => {
                self.inner.plane.metrics.call_refused("permission_denied");
                tracing::warn!(
                    caller = name, %role, %needed, from, what,
                    "{name} may not do {what}: it needs the role {needed}"
                );
            }
            Refused::NoRole { name } => {
                self.inner.plane.metrics.call_refused("permission_denied");
                tracing::warn!(caller = name, from, what, "{name} has no role and may not do {what}");
            }
            Refused::Away => self.inner.plane.metrics.call_refused("unavailable"),
        }
    }

    /// Comes when a caller may no longer have what it was given.
    fn gone(&self, caller: &Caller) -> impl Future<Output = Status> + Send + use<> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        async move {
            loop {
                sleep(LOOK_EVERY).await;
                if inner.is_over(&caller) {
                    return over().status();
                }
            }
        }
    }

    async fn identify(&self, shown: Option<Vec<u8>>) -> Result<Caller, Refused> {
        let shown = shown.ok_or_else(|| Refused::Unknown("the token is missing".to_owned()))?;
        let Inner { plane, bootstrap, oidc } = &*self.inner;
        if bootstrap.is(&shown) {
            return Ok(Caller::bootstrap());
        }
        if let Some(oidc) = oidc.as_ref().filter(|_| Jwt::is_likely(&shown)) {
            return oidc.identify(&shown, plane.clock.now_ms()).await.map_err(|refused| match refused {
                oidc::Refused::Wrong(why) => Refused::Unknown(why.to_owned()),
                oidc::Refused::NoRole { name } => Refused::NoRole { name },
                oidc::Refused::Away => Refused::Away,
            });
        }
        match plane.access.find(&plane.store, &shown, plane.clock.now_ms()).await {
            Ok(Found::Valid(caller)) => Ok(caller),
            Ok(Found::Unknown) => Err(Refused::Unknown("the token is wrong".to_owned())),
            Ok(Found::Expired(name)) => Err(Refused::Unknown(format!("the token of {name} has expired"))),
            Ok(Found::Revoked(name)) => Err(Refused::Unknown(format!("the token of {name} was revoked"))),
            Err(error) => {
                tracing::warn!(%error, "who calls cannot be found out");
                Err(Refused::Away)
            }
        }
    }
}

/// What a request shows, as bytes that outlive it.
pub fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    bearer(headers).map(<[u8]>::to_vec)
}

/// From where a request came; empty where no listener has taken it.
pub fn peer(extensions: &Extensions) -> String {
    extensions.get::<Peer>().map(|Peer(address)| canonical(*address).to_string()).unwrap_or_default()
}

/// An IPv4 address stays one when it comes over an IPv6 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Lets in who may call this method, and names the caller.
pub async fn require(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    if is_health(&path) {
        return next.run(request).await;
    }
    let (shown, from) = (shown(request.headers()), peer(request.extensions()));
    match guard.admit(shown, from, roles::needed(&path), &path).await {
        Ok(caller) => {
            let gone = guard.gone(&caller);
            request.extensions_mut().insert(caller);
            let answer = next.run(request).await;
            answer.map(|body| Body::new(Until::new(body, gone)))
        }
        Err(refused) => refused.status().into_http(),
    }
}

impl Caller {
    fn may(&self, needed: Role) -> Result<(), Refused> {
        let Caller { name, role, .. } = self;
        if *role >= needed {
            return Ok(());
        }
        Err(Refused::Forbidden { name: name.clone(), role: *role, needed })
    }

    /// Who sent a request that was let in.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        request.extensions().get().cloned().ok_or_else(|| Status::internal("nobody let this call in"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_told_which_role_is_needed() {
        let refused =
            Refused::Forbidden { name: "ann".to_owned(), role: Role::Viewer, needed: Role::Operator };
        assert_eq!(refused.said(), "this needs the role operator; ann has the role viewer");
        assert_eq!(refused.status().code(), tonic::Code::PermissionDenied);
        assert_eq!(Refused::Unknown(String::new()).status().code(), tonic::Code::Unauthenticated);
    }

    #[test]
    fn an_address_is_told_as_people_know_it() {
        let told = |text: &str| {
            let mut extensions = Extensions::new();
            extensions.insert(Peer(text.parse().unwrap()));
            peer(&extensions)
        };
        assert_eq!(told("[::ffff:192.0.2.7]:4711"), "192.0.2.7:4711");
        assert_eq!(told("[2001:db8::1]:1"), "[2001:db8::1]:1");
        assert_eq!(peer(&Extensions::new()), "");
    }
}
