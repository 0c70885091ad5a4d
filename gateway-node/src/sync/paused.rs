//! What is out on this node for another reason than an open breaker: what is suspended, until when and why, and what
//! cools down. Told to the control plane, for people. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use common::pb::fleet as pb;
use tokio::time::Instant;

use crate::channel::Channel;
use crate::channel::pause::Standing;
use crate::table::{Route, Table};

/// What is out: (channel, model or nothing for all of the channel, what of it).
type What = (String, String, &'static str);

/// What is out now, and how it stands. Two answers that are the same say the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Paused(BTreeMap<What, Standing>);

impl Paused {
    /// What of this table is out.
    pub(super) fn of(table: &Table, now: Instant) -> Self {
        let mut paused = Paused::default();
        for channel in table.channels() {
            paused.channel(channel, now);
        }
        for (model, chains) in table.models() {
            for route in chains.iter().flat_map(|chain| &chain.routes) {
                paused.route(model.as_str(), route, now);
            }
        }
        paused
    }

    fn channel(&mut self, channel: &Channel, now: Instant) {
        let id = channel.id.as_str();
        let state = &channel.state;
        self.keep(id, "", "credential suspended", state.credential_suspension.standing());
        self.keep(id, "", "suspended", state.suspension.standing());
        self.keep(id, "", "cooling down", channel.cooling_until(now).map(Standing::cooling));
    }

    fn route(&mut self, model: &str, route: &Route, now: Instant) {
        let id = route.channel.id.as_str();
        for standing in route.state.standing() {
            self.keep(id, model, "suspended", Some(standing));
        }
        self.keep(id, model, "cooling down", route.state.cooling_until(now).map(Standing::cooling));
    }

    fn keep(&mut self, channel: &str, model: &str, what: &'static str, standing: Option<Standing>) {
        if let Some(standing) = standing {
            self.0.entry((channel.to_owned(), model.to_owned(), what)).or_insert(standing);
        }
    }

    /// As it is told, when the clocks say these.
    pub(super) fn told(self, now: Instant, now_ms: u64) -> pb::Pauses {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let pauses = self.0.into_iter().map(|((channel, model, what), standing)| pb::Pause {
            channel,
            model,
            what: what.to_owned(),
            class: standing.why.to_owned(),
            since_ms: standing
                .since
                .map_or(0, |since| now_ms.saturating_sub(ms(now.saturating_duration_since(since)))),
            until_ms: now_ms.saturating_add(ms(standing.until.saturating_duration_since(now))),
        });
        pb::Pauses { pauses: pauses.collect() }
    }
}
