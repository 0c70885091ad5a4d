//! Who may serve a request: the chain of its model, or the one channel that made what it names or goes on from. Only
//! the key that made something may use it; what is said to all others is that there is no such thing.

use std::slice;
use std::time::Duration;

use common::code::Code;
use common::dialect::Dialect;
use common::id::{ChannelId, KeyId, Model};
use common::walk::Retry;

use super::Gateway;
use crate::bindings::{Name, Told};
use crate::dialect::operation::Operation;
use crate::fault::Detail;
use crate::table::{Lookup, Route, Table};
use crate::walk::Refusal;

/// A caller whom the control plane could not tell where to go comes back after this.
const UNCLEAR_AGAIN: Duration = Duration::from_secs(1);

/// Who may serve a request.
pub struct Chosen<'t> {
    /// Under which model it is counted.
    pub model: Model,
    /// Whom to ask, in this order.
    pub routes: &'t [Route],
    /// Nobody else could answer, also not a channel beyond these routes.
    pub is_alone: bool,
}

/// The routes of a model, or, of a request that goes on from a stored response, the one route whose channel has it.
pub async fn of_model<'t>(
    gateway: &Gateway,
    table: &'t Table,
    (model, dialect): (&str, Dialect),
    previous: Option<String>,
    key: &KeyId,
) -> Result<Chosen<'t>, Refusal> {
    let Lookup::Chain(model, routes) = table.chain(model, dialect) else {
        return Err(Refusal::of(Code::ModelNotFound, Retry::Unsaid));
    };
    let model = model.clone();
    let Some(previous) = previous else { return Ok(Chosen { model, routes, is_alone: false }) };
    let unknown = |message| refusal(Code::PreviousResponseNotFound, message, Some("previous_response_id"));
    let name = Name { dialect, id: previous.into(), key: key.clone() };
    let binding = match gateway.lookup.find(&gateway.bindings, &gateway.metrics, &name).await {
        Told::Found(binding) => binding,
        Told::Unknown => return Err(unknown(Code::PreviousResponseNotFound.text())),
        Told::Unclear => return Err(unclear()),
    };
    let has_it = |route: &Route| route.channel.id == binding.channel;
    match routes.iter().find(|route| has_it(route)) {
        Some(route) => Ok(Chosen { model, routes: slice::from_ref(route), is_alone: true }),
        None => Err(unknown(
            "the channel that has the previous response does not serve this model now: send the whole conversation as input",
        )),
    }
}

/// The channel that made what the path names.
pub async fn of_thing<'t>(
    gateway: &Gateway,
    table: &'t Table,
    operation: &Operation,
    id: &str,
    key: &KeyId,
) -> Result<Chosen<'t>, Refusal> {
    let name = Name { dialect: operation.dialect, id: id.into(), key: key.clone() };
    let binding = match gateway.lookup.find(&gateway.bindings, &gateway.metrics, &name).await {
        Told::Found(binding) => binding,
        Told::Unknown => return Err(no_such_thing(operation.dialect)),
        Told::Unclear => return Err(unclear()),
    };
    match table.thing_of(&binding.channel, operation.dialect) {
        Some(route) => Ok(Chosen { model: binding.model, routes: slice::from_ref(route), is_alone: true }),
        None => Err(gone(&binding.channel)),
    }
}

/// There is no such thing, as far as this caller is concerned.
pub fn no_such_thing(dialect: Dialect) -> Refusal {
    let message = match dialect {
        Dialect::OpenaiVideos => "there is no video with this id, or it was not made with this key",
        _ => "there is no response with this id, or it was not made with this key",
    };
    refusal(Code::NotFound, message, Some("id"))
}

/// The thing may be there all the same: who is told that it is not would forget it.
fn gone(channel: &ChannelId) -> Refusal {
    let message = format!("the channel \"{channel}\" that made it is not in the catalog now");
    let detail = Some(Detail::new(&message, None, None, None));
    Refusal { detail, ..Refusal::of(Code::NoAvailableChannel, Retry::Never) }
}

fn unclear() -> Refusal {
    Refusal::of(Code::BindingUnavailable, Retry::After(UNCLEAR_AGAIN))
}

fn refusal(code: Code, message: &str, param: Option<&str>) -> Refusal {
    let detail = Some(Detail::new(message, None, None, param));
    Refusal { detail, ..Refusal::of(code, Retry::Unsaid) }
}
