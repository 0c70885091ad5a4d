//! Bindings come home, and are found again by other nodes. That there is no such id is said only when it can be known:
//! a node may be about to report it, or may have been lost with it a moment ago.

use std::collections::BTreeMap;
use std::time::Duration;

use common::limits::{
    BINDING_AGE_MAX, BINDING_DOUBT, BINDING_ID_BYTES_MAX, BINDING_WAIT, BINDINGS_IN_REPORT_MAX,
    HEARTBEAT_LOST,
};
use common::pb::fleet as pb;
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::Binding;

/// Longest name beside the id.
const NAME_BYTES_MAX: usize = 512;
/// How often it is looked for what may be reported any moment, here or to another control plane.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Keeps what a node has bound, as often as it says so.
pub async fn report(plane: &Plane, request: pb::ReportBindingsRequest) -> Result<(), Error> {
    let bindings = check(request, plane.clock.now_ms())?;
    if !bindings.is_empty() {
        plane.store.keep_bindings(&bindings).await?;
        plane.metrics.bindings_kept(bindings.len());
    }
    Ok(())
}

/// Finds a binding. What is not there is waited for a moment.
pub async fn find(plane: &Plane, request: pb::FindBindingRequest) -> Result<pb::FindBindingResponse, Error> {
    let pb::FindBindingRequest { dialect, id, key_id } = request;
    if !is_name(&dialect) || !is_name(&key_id) || !is_id(&id) {
        return Err(Error::Argument { field: "id", message: "no binding has such a name".to_owned() });
    }
    let until = Instant::now() + BINDING_WAIT;
    loop {
        // Looked at before the store: whoever is connected now and lost then has reported, or is found in doubt.
        let in_doubt = plane.nodes.may_have_unreported(BINDING_DOUBT, HEARTBEAT_LOST);
        if let Some(found) = plane.store.binding(&dialect, &id, &key_id).await? {
            plane.metrics.binding_lookup("found");
            return Ok(pb::FindBindingResponse { binding: Some(to_wire(found)), in_doubt: false });
        }
        if timeout_at(until, sleep(LOOK_EVERY)).await.is_err() {
            plane.metrics.binding_lookup(if in_doubt { "in_doubt" } else { "unknown" });
            return Ok(pb::FindBindingResponse { binding: None, in_doubt });
        }
    }
}

fn to_wire(row: Binding) -> pb::Binding {
    let Binding { dialect, id, key_id, channel, model, made_at_ms } = row;
    pb::Binding { dialect, id, key_id, channel, model, made_at_ms }
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && !name.contains('\0')
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= BINDING_ID_BYTES_MAX && !id.contains('\0')
}

/// Each name once, by name; of several the newest.
fn check(request: pb::ReportBindingsRequest, now_ms: u64) -> Result<Vec<Binding>, Error> {
    let fault = |field, message: &str| Err(Error::Argument { field, message: message.to_owned() });
    if request.node_id.is_empty() || !is_name(&request.node_id) {
        return fault("node_id", "must have 1 to 512 bytes");
    }
    if request.bindings.len() > BINDINGS_IN_REPORT_MAX {
        return fault("bindings", "are more than 1000");
    }
    let mut by_name = BTreeMap::new();
    for binding in request.bindings {
        let pb::Binding { dialect, id, key_id, channel, model, made_at_ms } = binding;
        if !is_id(&id) {
            return fault("bindings.id", "must have 1 to 512 bytes, and no zero");
        }
        if channel.is_empty() || ![&dialect, &key_id, &channel, &model].into_iter().all(|name| is_name(name))
        {
            return fault("bindings", "a name is missing, has more than 512 bytes, or a zero in it");
        }
        let made_at_ms = made_at(made_at_ms, now_ms);
        let binding = Binding { dialect, id, key_id, channel, model, made_at_ms };
        let name = (binding.id.clone(), binding.key_id.clone(), binding.dialect.clone());
        match by_name.get(&name) {
            Some(Binding { made_at_ms: known, .. }) if *known > made_at_ms => {}
            _ => drop(by_name.insert(name, binding)),
        }
    }
    Ok(by_name.into_values().collect())
}

/// A clock that runs ahead does not keep a binding for longer, and one that was never set does not have it forgotten at
/// once.
fn made_at(at_ms: u64, now_ms: u64) -> u64 {
    let forgotten_ms = now_ms.saturating_sub(BINDING_AGE_MAX.as_millis() as u64);
    if at_ms <= forgotten_ms { now_ms } else { at_ms.min(now_ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_796_046_279_000;

    fn binding(id: &str, channel: &str, made_at_ms: u64) -> pb::Binding {
        let (dialect, key_id) = ("openai-videos".into(), "k".into());
        pb::Binding { dialect, id: id.into(), key_id, channel: channel.into(), model: "m".into(), made_at_ms }
    }

    fn request(bindings: Vec<pb::Binding>) -> pb::ReportBindingsRequest {
        pb::ReportBindingsRequest { node_id: "n".into(), bindings }
    }

    #[test]
    fn each_name_is_kept_once_with_its_newest_channel_and_in_one_order() {
        let all = vec![binding("b", "x", NOW - 1), binding("a", "y", NOW - 5), binding("b", "z", NOW - 2)];
        let checked = check(request(all), NOW).unwrap();
        let seen: Vec<_> = checked.iter().map(|b| (b.id.as_str(), b.channel.as_str())).collect();
        assert_eq!(seen, [("a", "y"), ("b", "x")]);
    }

    #[test]
    fn what_cannot_be_a_binding_is_refused_with_its_field() {
        let long = "x".repeat(513);
        for (field, bindings) in [
            ("bindings.id", vec![binding("", "a", 1)]),
            ("bindings.id", vec![binding(&long, "a", 1)]),
            ("bindings.id", vec![binding("a\0", "a", 1)]),
            ("bindings", vec![binding("a", "", 1)]),
            ("bindings", vec![binding("a", &long, 1)]),
            ("bindings", vec![binding("a", "a", 1); BINDINGS_IN_REPORT_MAX + 1]),
        ] {
            match check(request(bindings), NOW) {
                Err(Error::Argument { field: found, .. }) => assert_eq!(found, field),
                other => panic!("{other:?}"),
            }
        }
        assert!(check(pb::ReportBindingsRequest { node_id: String::new(), bindings: vec![] }, NOW).is_err());
    }

    #[test]
    fn a_clock_that_cannot_be_right_is_not_believed() {
        let age = BINDING_AGE_MAX.as_millis() as u64;
        for (at, kept) in [(0, NOW), (NOW - age, NOW), (NOW - age + 1, NOW - age + 1), (NOW * 2, NOW)] {
            assert_eq!(made_at(at, NOW), kept, "{at}");
        }
    }
}
