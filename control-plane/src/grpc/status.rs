//! `Error` → `tonic::Status`, only here: a code, a fixed text, and details where the caller can act on
//! them. The database's words go to the log.

use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;

use common::catalog::Fault;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use crate::error::Error;
use crate::store::backup::BackupFault;

/// Names us in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "sluice";
/// Details travel in one header, and clients bound those. What is beyond is counted in a last violation;
/// `ValidateCatalog` answers with all.
const DETAILS_BYTES_MAX: usize = 64 * 1024;

/// What a caller is told of an error.
pub fn of(error: Error) -> Status {
    let text = error.to_string();
    match error {
        Error::Catalog(faults) => {
            let details = ErrorDetails::with_bad_request(violations(&faults));
            Status::with_error_details(Code::InvalidArgument, text, details)
        }
        Error::Argument { field, message } => {
            let details = ErrorDetails::with_bad_request_violation(field, message);
            Status::with_error_details(Code::InvalidArgument, text, details)
        }
        Error::Conflict { current, expected } => {
            let numbers = [("revision", current), ("expected_revision", expected)];
            let metadata: HashMap<String, String> =
                numbers.into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect();
            let details = ErrorDetails::with_error_info("REVISION_CONFLICT", DOMAIN, metadata);
            Status::with_error_details(Code::Aborted, text, details)
        }
        Error::KeyTaken { revision } => {
            let metadata = HashMap::from([("revision".to_owned(), revision.to_string())]);
            let details = ErrorDetails::with_error_info("IDEMPOTENCY_KEY_TAKEN", DOMAIN, metadata);
            Status::with_error_details(Code::AlreadyExists, text, details)
        }
        Error::Denied(_) => Status::permission_denied(text),
        Error::NotFound { what, name } => {
            let details = ErrorDetails::with_resource_info(what, name, "", "");
            Status::with_error_details(Code::NotFound, text, details)
        }
        Error::Backup(BackupFault::NotSqlite) => Status::failed_precondition(text),
        Error::Backup(BackupFault::File(cause)) => {
            tracing::error!(error = %cause, "a copy of the database cannot be written or read");
            Status::internal(text)
        }
        Error::Backup(BackupFault::Store(cause)) => of(Error::Store(cause)),
        Error::Backup(_) => Status::invalid_argument(text),
        Error::Store(cause) => {
            let source = cause.source().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(error = %cause, source, "the store did not do what was asked for");
            // What the store says of itself has none of the database's words.
            unavailable(format!("{text}: {cause}"))
        }
        Error::Unauthenticated(_) => Status::unauthenticated(text),
        Error::Forbidden(_) => Status::permission_denied(text),
        Error::Precondition(_) | Error::Unfit(_) | Error::InUse { .. } | Error::Secret(_) => {
            Status::failed_precondition(text)
        }
        Error::NotReady | Error::Busy => unavailable(text),
        Error::Broken(_) => {
            tracing::error!(error = text, "an invariant is broken: {text}");
            Status::internal("internal error")
        }
    }
}

/// Come again after some time.
pub fn busy(text: &str, again: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(again));
    Status::with_error_details(Code::ResourceExhausted, text, details)
}

/// A time as the admin protocol has it.
pub fn time(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}

fn unavailable(text: String) -> Status {
    let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
    Status::with_error_details(Code::Unavailable, text, details)
}

fn violations(faults: &[Fault]) -> Vec<FieldViolation> {
    let mut violations = Vec::with_capacity(faults.len());
    let mut bytes = 0;
    for (told, fault) in faults.iter().enumerate() {
        let description = match fault.line {
            0 => fault.message.clone(),
            line => format!("line {line}: {}", fault.message),
        };
        bytes += fault.path.len() + description.len() + 16;
        if bytes > DETAILS_BYTES_MAX {
            let more = faults.len() - told;
            violations
                .push(FieldViolation::new("", format!("and {more} more; validate the document to see all")));
            break;
        }
        violations.push(FieldViolation::new(fault.path.clone(), description));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(n: u32) -> Fault {
        Fault { line: n, path: format!("channels.c{n}"), message: "x".repeat(100) }
    }

    #[test]
    fn every_fault_is_a_violation_with_path_and_line() {
        let status = of(Error::Catalog((1..=10).map(fault).collect()));
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = status.get_details_bad_request().unwrap();
        assert_eq!(details.field_violations.len(), 10);
        assert_eq!(details.field_violations[2].field, "channels.c3");
        assert!(details.field_violations[2].description.starts_with("line 3: "));
    }

    #[test]
    fn details_stay_small_enough_for_a_header_and_say_how_many_are_left_out() {
        let status = of(Error::Catalog((1..=5000).map(fault).collect()));
        assert!(status.details().len() < 100 * 1024);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        let left: usize = 5000 - (violations.len() - 1);
        assert_eq!(
            violations.last().unwrap().description,
            format!("and {left} more; validate the document to see all")
        );
    }

    #[test]
    fn a_conflict_names_the_current_revision() {
        let status = of(Error::Conflict { expected: 41, current: 43 });
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(status.get_details_error_info().unwrap().metadata["revision"], "43");
    }

    #[test]
    fn the_databases_words_stay_inside() {
        let status = of(Error::Store(sqlx::Error::Protocol("secret words".into()).into()));
        assert_eq!(status.code(), Code::Unavailable);
        assert!(!format!("{status:?}").contains("secret words"));
    }
}
