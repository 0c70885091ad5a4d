//! What a walk over a chain takes besides its decisions, which are `common::walk`'s: who may be asked at all
//! (`eligible`), the attempt itself (`attempt`), what goes into the record (`trace`), and the words of the refusal when no route served.

pub mod attempt;
pub mod eligible;
pub mod trace;

use common::code::Code;
use common::walk::{Ending, Reason, Retry};

use crate::fault::{Detail, Fault};

/// How the code is called that says that a request has more tokens than its model takes.
const CONTEXT_LENGTH_CODE: &str = "context_length_exceeded";

/// What the caller is told when no route served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// The status; of a bad request the upstream's.
    pub status: u16,
    /// What the upstream found wrong in the request; only of a bad request.
    pub detail: Option<Detail>,
    /// Whether coming back helps.
    pub retry: Retry,
}

impl Refusal {
    /// A refusal with the status of its code.
    pub fn of(code: Code, retry: Retry) -> Self {
        Refusal::from(Ending::of(code, retry))
    }

    /// How a walk ended, in the words of the failure that says it; `faults` are all of the walk, in order.
    pub fn told(ending: Ending, faults: &[Fault]) -> Self {
        let detail = ending.told_by.and_then(|at| faults.get(at)).and_then(shown);
        Refusal { detail, ..Refusal::from(ending) }
    }
}

impl From<Ending> for Refusal {
    fn from(Ending { code, status, retry, .. }: Ending) -> Self {
        Refusal { code, status, detail: None, retry }
    }
}

fn shown(fault: &Fault) -> Option<Detail> {
    let mut detail = fault.detail.clone()?;
    if fault.reason == Reason::ContextLength {
        // Servers of open models have a number there, or nothing; applications look for the name.
        detail.code.take_if(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
        detail.code.get_or_insert_with(|| CONTEXT_LENGTH_CODE.to_owned());
    }
    Some(detail)
}

#[cfg(test)]
mod tests {
    use common::class::FailureClass as F;
    use common::walk::{Hop, Walk};
    use tokio::time::Instant;

    use super::*;

    fn refused(fault: Fault) -> Refusal {
        let mut walk = Walk::new(vec![Hop::default()], Instant::now());
        walk.on_failure(0, fault.failure(), Instant::now());
        Refusal::told(walk.ending(None), &[fault])
    }

    #[tokio::test]
    async fn a_request_that_is_too_long_has_the_code_that_applications_look_for() {
        for (upstream, shown) in [
            (Some("400"), "context_length_exceeded"),
            (None, "context_length_exceeded"),
            (Some("string_above_max_length"), "string_above_max_length"),
        ] {
            let detail = Detail::new("too long", Some("exceed_context_size_error"), upstream, None);
            let fault = Fault::of(F::BadRequest).with_status(400).with_reason(Reason::ContextLength);
            let refusal = refused(fault.with_detail(Some(detail)));
            assert_eq!(refusal.detail.and_then(|detail| detail.code).as_deref(), Some(shown), "{upstream:?}");
        }
        let plain = Detail::new("no such thing", None, Some("400"), None);
        let refusal = refused(Fault::of(F::BadRequest).with_status(400).with_detail(Some(plain.clone())));
        assert_eq!(refusal.detail, Some(plain), "what is no matter of length is shown as it was said");
    }

    #[tokio::test]
    async fn no_words_of_an_upstream_are_shown_for_a_failure_of_its_own() {
        let detail = Detail::new("our database is down", None, None, None);
        for class in [F::UpstreamError, F::Overloaded, F::Credential, F::Balance] {
            assert_eq!(refused(Fault::of(class).with_detail(Some(detail.clone()))).detail, None, "{class}");
        }
        let page = Fault::of(F::BadRequest).with_reason(Reason::Unshaped).with_detail(Some(detail));
        assert_eq!(refused(page).detail, None);
    }
}
