//! The policies of this version and how their layers are merged: fleet < model < channel < route,
//! each key by itself, over the defaults of [`crate::limits`]. Where a key may stand is the table
//! of [`crate::catalog`]'s keys; layers that may not carry a key have none.

use std::time::Duration;

use crate::limits;

/// Layer 1, one per channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Failures inside the window that take the channel out.
    pub failures: u32,
    /// The sliding window.
    pub window: Duration,
    /// How long the channel stays out.
    pub cooldown: Duration,
}

/// Layer 3, one per route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// An undecided answer is committed this long after its response headers.
    pub timeout: Duration,
    /// What an answer is held for.
    pub until: Until,
}

/// What the gate holds an answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Until {
    /// The first decisive event.
    Content,
    /// The terminal frame.
    Complete,
}

impl Until {
    /// Every value.
    pub const ALL: [Until; 2] = [Until::Content, Until::Complete];

    /// The name in catalogs.
    pub fn as_str(self) -> &'static str {
        match self {
            Until::Content => "content",
            Until::Complete => "complete",
        }
    }
}

/// How long a route waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// DNS, TCP and TLS together.
    pub connect: Duration,
    /// From the start of an attempt to its response headers.
    pub headers: Duration,
    /// A committed stream without an event.
    pub idle: Duration,
}

/// The policy keys that one table of the catalog carries; what it leaves out comes from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer {
    /// `breaker.failures`
    pub breaker_failures: Option<u32>,
    /// `breaker.window`
    pub breaker_window: Option<Duration>,
    /// `breaker.cooldown`
    pub breaker_cooldown: Option<Duration>,
    /// `gate.timeout`
    pub gate_timeout: Option<Duration>,
    /// `gate.until`
    pub gate_until: Option<Until>,
    /// `timeouts.connect`
    pub timeouts_connect: Option<Duration>,
    /// `timeouts.headers`
    pub timeouts_headers: Option<Duration>,
    /// `timeouts.idle`
    pub timeouts_idle: Option<Duration>,
}

impl Layer {
    /// Lays `above` over this layer: what it gives wins.
    pub fn under(&self, above: &Layer) -> Layer {
        Layer {
            breaker_failures: above.breaker_failures.or(self.breaker_failures),
            breaker_window: above.breaker_window.or(self.breaker_window),
            breaker_cooldown: above.breaker_cooldown.or(self.breaker_cooldown),
            gate_timeout: above.gate_timeout.or(self.gate_timeout),
            gate_until: above.gate_until.or(self.gate_until),
            timeouts_connect: above.timeouts_connect.or(self.timeouts_connect),
            timeouts_headers: above.timeouts_headers.or(self.timeouts_headers),
            timeouts_idle: above.timeouts_idle.or(self.timeouts_idle),
        }
    }

    /// What applies to a route. The breaker is the channel's alone and is resolved by
    /// [`Layer::of_channel`].
    pub fn of_route(fleet: &Layer, model: &Layer, channel: &Layer, route: &Layer) -> Layer {
        fleet.under(model).under(channel).under(route)
    }

    /// What applies to a channel, whichever model it serves.
    pub fn of_channel(fleet: &Layer, channel: &Layer) -> Layer {
        fleet.under(channel)
    }

    /// The breaker, with defaults for what no layer gives.
    pub fn breaker(&self) -> Breaker {
        Breaker {
            failures: self.breaker_failures.unwrap_or(limits::BREAKER_FAILURES),
            window: self.breaker_window.unwrap_or(limits::BREAKER_WINDOW),
            cooldown: self.breaker_cooldown.unwrap_or(limits::BREAKER_COOLDOWN),
        }
    }

    /// The gate, with defaults for what no layer gives.
    pub fn gate(&self) -> Gate {
        Gate {
            timeout: self.gate_timeout.unwrap_or(limits::GATE_TIMEOUT),
            until: self.gate_until.unwrap_or(Until::Content),
        }
    }

    /// The timeouts, with defaults for what no layer gives.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.timeouts_connect.unwrap_or(limits::CONNECT_TIMEOUT),
            headers: self.timeouts_headers.unwrap_or(limits::HEADERS_TIMEOUT),
            idle: self.timeouts_idle.unwrap_or(limits::IDLE_TIMEOUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn gate(timeout: u32) -> Layer {
        Layer { gate_timeout: Some(S * timeout), ..Layer::default() }
    }

    #[test]
    fn no_layer_gives_the_defaults_of_the_design() {
        let none = Layer::default();
        assert_eq!(none.breaker(), Breaker { failures: 3, window: S * 300, cooldown: S * 60 });
        assert_eq!(none.gate(), Gate { timeout: S * 30, until: Until::Content });
        assert_eq!(none.timeouts(), Timeouts { connect: S * 10, headers: S * 240, idle: S * 300 });
    }

    #[test]
    fn a_route_wins_over_its_channel_over_its_model_over_the_fleet() {
        let none = Layer::default();
        let merged = |f: &Layer, m: &Layer, c: &Layer, r: &Layer| Layer::of_route(f, m, c, r).gate().timeout;
        assert_eq!(merged(&gate(1), &gate(2), &gate(3), &gate(4)), S * 4);
        assert_eq!(merged(&gate(1), &gate(2), &gate(3), &none), S * 3);
        assert_eq!(merged(&gate(1), &gate(2), &none, &none), S * 2);
        assert_eq!(merged(&gate(1), &none, &none, &none), S);
    }

    #[test]
    fn each_key_is_merged_by_itself() {
        let fleet = Layer { breaker_failures: Some(5), gate_timeout: Some(S), ..Layer::default() };
        let route = Layer { gate_until: Some(Until::Complete), ..Layer::default() };
        let merged = Layer::of_route(&fleet, &Layer::default(), &Layer::default(), &route);
        assert_eq!(merged.gate(), Gate { timeout: S, until: Until::Complete });
        let channel = Layer { breaker_cooldown: Some(S), ..Layer::default() };
        let breaker = Layer::of_channel(&fleet, &channel).breaker();
        assert_eq!(breaker, Breaker { failures: 5, window: S * 300, cooldown: S });
    }
}
