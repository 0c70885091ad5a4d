//! Layer 1 in front of a walk: which routes may be asked, why the others are out, and what an attempt
//! does to its channel when it ends. A trial's place that was taken is given back when dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use common::class::Effect;
use common::walk::Reason;
use common::walk::out::Out;

use crate::channel::pause::{self, Admission};
use crate::channel::{Channel, Pause, RouteState};
use crate::dialect::operation::Ability;
use crate::fault::Fault;
use crate::table::Route;
use crate::upstream::credential::Showing;

/// Why a route is out now, if it is. Takes nothing.
pub fn why_out(route: &Route, ability: Ability, now: Instant) -> Option<Out> {
    judge(route, ability, |pause| pause.look(now), now)
}

fn judge(
    route: &Route,
    ability: Ability,
    mut ask: impl FnMut(&Pause) -> Admission,
    now: Instant,
) -> Option<Out> {
    if let Some(until) = route.channel.open_until(now) {
        return Some(Out::BreakerOpen(until));
    }
    if let Some(until) = route.state.cooling_until(now).max(route.channel.cooling_until(now)) {
        return Some(Out::CoolingDown(until));
    }
    if matches!(route.channel.credential, Showing::Missing) {
        return Some(Out::NoCredential);
    }
    pauses(&route.channel, &route.state, ability).into_iter().find_map(|pause| match ask(pause) {
        Admission::Clear | Admission::Trial => None,
        Admission::Out(until) => Some(Out::Suspended(until)),
    })
}

fn pauses<'a>(channel: &'a Channel, route: &'a RouteState, ability: Ability) -> [&'a Pause; 3] {
    [&channel.state.credential_suspension, &channel.state.suspension, route.suspension(ability)]
}

/// Says how long until the first of the routes that are out comes back.
pub fn earliest_return(routes: &[Route], ability: Ability, now: Instant) -> Option<Duration> {
    let outs: Option<Vec<Out>> = routes.iter().map(|route| why_out(route, ability, now)).collect();
    let at = outs?.into_iter().filter_map(Out::returns_at).min()?;
    Some(at.saturating_duration_since(now))
}

/// Leave to ask a route; owns the places of the trials that it took. Dropped, it says that nothing became known.
pub struct Pass {
    channel: Arc<Channel>,
    route: Arc<RouteState>,
    ability: Ability,
    /// Of credential, channel and route, in the order of [`pauses`].
    is_trial: [bool; 3],
}

/// Takes leave to ask a route for something now.
pub fn admit(route: &Route, ability: Ability, now: Instant) -> Result<Pass, Out> {
    let (channel, state) = (route.channel.clone(), route.state.clone());
    let mut pass = Pass { channel, route: state, ability, is_trial: [false; 3] };
    let mut asked = 0;
    let out = judge(
        route,
        ability,
        |pause| {
            let admission = pause.admit(now);
            pass.is_trial[asked] = admission == Admission::Trial;
            asked += 1;
            admission
        },
        now,
    );
    match out {
        Some(out) => Err(out),
        None => Ok(pass),
    }
}

impl Pass {
    /// The channel that was asked.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// An answer that was committed ends the suspensions that it was the trial of, however long it still takes:
    /// credential, channel and route do what was in doubt. One that was on its way before they began says
    /// nothing of them.
    pub fn prove(&mut self) {
        let (channel, id) = (&self.channel, &self.channel.id);
        let named =
            pauses(channel, &self.route, self.ability).into_iter().zip(["credential", "whole", "route"]);
        for ((pause, what), _) in named.zip(self.is_trial).filter(|(_, is_trial)| *is_trial) {
            pause.succeed(what, id);
        }
        self.is_trial = [false; 3];
    }

    /// A failure does to the channel what the table says.
    pub fn fail(self, fault: &Fault, now: Instant) {
        let (channel, id) = (&self.channel, &self.channel.id);
        let why = fault.class.as_str();
        match fault.class.consequence().effect {
            Effect::None => {}
            Effect::Failure => channel.record_failure(now),
            Effect::Cooldown if fault.reason == Reason::SingleRequest => {}
            Effect::Cooldown => channel.cool_down(&self.route, now, pause::cooldown(fault.retry_after)),
            Effect::SuspendCredential => {
                channel.state.credential_suspension.suspend(now, "credential", id, why);
            }
            Effect::SuspendChannel => channel.state.suspension.suspend(now, "whole", id, why),
            Effect::SuspendRoute => self.route.suspension(self.ability).suspend(now, "route", id, why),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let pauses = pauses(&self.channel, &self.route, self.ability);
        for (pause, is_trial) in pauses.into_iter().zip(self.is_trial) {
            if is_trial {
                pause.release();
            }
        }
    }
}
