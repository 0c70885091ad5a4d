//! Who may call the admin listener, and what: a caller is known by what it shows, its role decides.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Extensions, HeaderMap};
use tonic::Status;

use super::{Token, bearer, is_health, roles};
use crate::access::{Caller, Role};
use crate::listener::Peer;
use crate::metrics::Metrics;

/// Why somebody was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Nobody knows who calls.
    Unknown(&'static str),
    /// It is known, and this caller may not do it.
    Forbidden {
        /// Who.
        name: String,
        /// What the caller may do.
        role: Role,
        /// What would be needed.
        needed: Role,
    },
}

impl Refused {
    /// What the caller is told.
    pub fn said(&self) -> String {
        match self {
            Refused::Unknown(why) => (*why).to_owned(),
            Refused::Forbidden { name, role, needed } => {
                format!("this needs the role {needed}; {name} has the role {role}")
            }
        }
    }

    fn status(&self) -> Status {
        match self {
            Refused::Unknown(_) => Status::unauthenticated(self.said()),
            Refused::Forbidden { .. } => Status::permission_denied(self.said()),
        }
    }
}

/// What is asked of those who call.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    bootstrap: Token,
    metrics: Metrics,
}

impl Guard {
    /// Lets in who carries `bootstrap`.
    pub fn new(bootstrap: Token, metrics: Metrics) -> Self {
        Guard { inner: Arc::new(Inner { bootstrap, metrics }) }
    }

    /// Who calls, if the caller may do what needs this role. `what` is for the log.
    pub fn admit(&self, request: &Request, needed: Role, what: &str) -> Result<Caller, Refused> {
        let from = peer(request.extensions());
        let admitted = self.identify(request.headers()).and_then(|caller| match caller {
            caller if caller.role >= needed => Ok(Caller { from: from.clone(), ..caller }),
            Caller { name, role, .. } => Err(Refused::Forbidden { name, role, needed }),
        });
        match &admitted {
            Ok(_) => {}
            Err(Refused::Unknown(why)) => {
                self.inner.metrics.call_refused("unauthenticated");
                tracing::debug!(from, what, why, "a caller was not let in");
            }
            Err(Refused::Forbidden { name, role, needed }) => {
                self.inner.metrics.call_refused("permission_denied");
                tracing::warn!(
                    caller = name, %role, %needed, from, what,
                    "{name} may not do {what}: it needs the role {needed}"
                );
            }
        }
        admitted
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        let shown = bearer(headers).ok_or(Refused::Unknown("the token is missing"))?;
        if self.inner.bootstrap.is(shown) {
            return Ok(Caller::bootstrap());
        }
        Err(Refused::Unknown("the token is wrong"))
    }
}

/// From where a request came; empty where no listener has taken it.
fn peer(extensions: &Extensions) -> String {
    extensions.get::<Peer>().map(|Peer(address)| canonical(*address).to_string()).unwrap_or_default()
}

/// An IPv4 address stays one when it comes over an IPv6 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Lets in who may call this method, and names the caller.
pub async fn require(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if is_health(path) {
        return next.run(request).await;
    }
    match guard.admit(&request, roles::needed(path), path) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => refused.status().into_http(),
    }
}

impl Caller {
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
        assert_eq!(Refused::Unknown("the token is wrong").status().code(), tonic::Code::Unauthenticated);
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
