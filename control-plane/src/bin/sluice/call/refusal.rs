//! What an error of the wire means to an operator: exit code, words, advice.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::Duration;

use tonic::{Code, Status};

use crate::fault::{Exit, Fault};

/// Advice for whoever has no token, or the wrong one.
pub const WHERE_TOKENS_ARE: &str = "\
    the control plane writes the token to <data-dir>/admin.token at its first start; \
    name that file by --token-file or SLUICE_TOKEN_FILE, or put the token itself into SLUICE_TOKEN";

/// Who is spoken to and as whom, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address, as given.
    pub server: String,
    /// Where the token is from.
    pub token_from: String,
}

/// The table of what an error means: exit code, words, advice.
pub fn fault(status: &Status, peer: &Peer) -> Fault {
    let Peer { server, token_from } = peer;
    let said = status.message();
    match status.code() {
        Code::NotFound => Fault::error(said).exit(Exit::Different),
        Code::Unauthenticated => Fault::error(format!(
            "the control plane at {server} does not take the token from {token_from}: {said}"
        ))
        .help(WHERE_TOKENS_ARE),
        Code::PermissionDenied => Fault::error(format!("the token from {token_from} may not do it: {said}"))
            .help("use a token that has the role; an admin makes one by `sluice access create`"),
        Code::DeadlineExceeded => Fault::error(format!("the control plane at {server} is late: {said}"))
            .exit(Exit::Timeout)
            .help("allow more time by --timeout, or look at the control plane's log and /readyz"),
        Code::Unavailable => {
            Fault::error(format!("the control plane at {server} cannot answer now: {}", cause(status)))
                .help("look at its log and /readyz, and try again")
        }
        Code::Unimplemented => {
            Fault::error(format!("the server at {server} does not know this call: {said}")).help(format!(
                "is this its admin address? if so, it is another version than this sluice ({})",
                env!("CARGO_PKG_VERSION")
            ))
        }
        Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss | Code::Ok => {
            Fault::error(format!("the call to the control plane at {server} failed: {}", cause(status)))
                .help("is this its admin address, and does it serve http or https there? its log says more")
        }
        Code::InvalidArgument
        | Code::Aborted
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => Fault::error(said),
    }
}

/// Why there is no connection.
pub fn unreachable(server: &str, error: &tonic::transport::Error) -> Fault {
    let mut kind = None;
    let mut source = error.source();
    while let Some(link) = source {
        kind = link.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        source = link.source();
    }
    let cause = root_cause(error);
    if kind == Some(ErrorKind::TimedOut) {
        return Fault::error(format!("the control plane at {server} cannot be reached in time"))
            .exit(Exit::Timeout)
            .help(
                "check the address (--server or SLUICE_SERVER) and the network, or allow more by --timeout",
            );
    }
    let help = match kind {
        Some(ErrorKind::ConnectionRefused) => {
            "nothing listens there: is the control plane running? its log and <data-dir>/listen.json name \
             its admin address; pass that by --server or SLUICE_SERVER"
        }
        _ if cause.contains("certificate") => {
            "for a private authority pass its PEM file by --ca-file or SLUICE_CA_FILE, and use a host name \
             that the certificate carries"
        }
        _ => {
            "check the address (--server or SLUICE_SERVER): is it the admin listener, and does it serve \
             http or https?"
        }
    };
    Fault::error(format!("cannot connect to the control plane at {server}: {cause}")).help(help)
}

/// Nobody answered, not even to refuse.
pub fn silent(server: &str, timeout: Duration) -> Fault {
    let timeout = humantime::format_duration(timeout);
    Fault::error(format!("no connection to the control plane at {server} within {timeout}"))
        .exit(Exit::Timeout)
        .help("check the address (--server or SLUICE_SERVER) and the network, or allow more by --timeout")
}

/// The settings of an https connection do not hold together.
pub fn no_tls(error: &tonic::transport::Error) -> Fault {
    Fault::error(format!("cannot set up TLS: {}", root_cause(error)))
}

fn cause(status: &Status) -> String {
    match status.source() {
        Some(source) => root_cause(source),
        None if status.message().is_empty() => status.code().description().to_owned(),
        None => status.message().to_owned(),
    }
}

fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_ends_with_its_exit_code() {
        let peer = Peer { server: "http://h".to_owned(), token_from: "f".to_owned() };
        let table = [
            (Code::NotFound, 1),
            (Code::InvalidArgument, 2),
            (Code::Aborted, 2),
            (Code::Unauthenticated, 2),
            (Code::Unavailable, 2),
            (Code::Internal, 2),
            (Code::ResourceExhausted, 2),
            (Code::DeadlineExceeded, 4),
        ];
        for (code, exit) in table {
            assert_eq!(fault(&Status::new(code, "x"), &peer).exit.code(), exit, "{code:?}");
        }
    }

    #[test]
    fn a_refused_token_names_its_source_and_where_the_right_one_is() {
        let peer = Peer { server: "http://h:1".to_owned(), token_from: "/etc/token".to_owned() };
        let fault = fault(&Status::unauthenticated("no"), &peer);
        assert_eq!(
            fault.message,
            "the control plane at http://h:1 does not take the token from /etc/token: no"
        );
        assert!(fault.help.unwrap().contains("<data-dir>/admin.token"));
    }
}
