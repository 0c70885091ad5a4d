//! What an operator or a profile says that an error of a channel means. Asked last and for every error alike, whether
//! it came with a status or inside a 200, whole or in a stream: what it says replaces the class and all that follows.

use common::class::FailureClass as F;
use common::profile::Override;
use common::walk::Reason;

use super::shown;
use crate::fault::Fault;

/// The fault as the first rule that matches it has it.
pub fn overridden(fault: Fault, rules: &[Override]) -> Fault {
    let Some(said) = &fault.said else { return fault };
    let names = || said.names.iter().map(String::as_str);
    let Some(rule) = rules.iter().find(|rule| rule.matches(said.status, names(), &said.message)) else {
        return fault;
    };
    // What is known of it besides stays, unless it says that nobody knows whose fault it is.
    if rule.class == fault.class && fault.reason != Reason::Unshaped {
        return fault;
    }
    let status = if rule.class == F::BadRequest { Some(shown(said.status)) } else { said.status };
    Fault { class: rule.class, reason: Reason::Plain, status, ..fault }
}
