//! Tells receivers what is to be told, until they take it or it is given up. A try is bounded, receivers do not wait for
//! each other, and what was told is noted at once: a leader that dies in between is followed by one that tells it again
//! under the same name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::snapshot::hex;
use http::header::CONTENT_TYPE;
use ring::hmac;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::Delivery;
use super::message::Message;
use super::receivers::{Receiver, Receivers, Shape};
use crate::config::Hidden;
use crate::error::Error;
use crate::plane::Plane;

/// Who does not answer by then is tried again.
const TRY_WITHIN: Duration = Duration::from_secs(8);
/// No further try is begun for a receiver after this, until the next look.
const LOOK_WITHIN: Duration = Duration::from_secs(8);
/// The first retry comes after this; each waits twice as long as the one before, …
const RETRY_FIRST_MS: u64 = 5_000;
/// … at most so long, …
const RETRY_MAX_MS: u64 = 10 * 60 * 1000;
/// … for about an hour in all.
const TRIES_MAX: u64 = 12;

/// What tells receivers.
pub struct Alerting {
    /// Whom, and when.
    pub receivers: Receivers,
    /// Where runbooks are.
    pub runbooks: String,
    /// Grows with everything that is to be told.
    pub news: watch::Sender<u64>,
    /// Since when the store has been read without a failure.
    pub(super) reading: super::run::Reading,
    client: Option<reqwest::Client>,
}

impl Alerting {
    /// Tells these receivers. Without any there is no client.
    pub fn new(receivers: Receivers, runbooks: String) -> Result<Self, reqwest::Error> {
        let client = (!receivers.all.is_empty()).then(|| {
            // What a receiver points to was not given by the operator.
            let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
            client.timeout(TRY_WITHIN).build()
        });
        let client = client.transpose()?;
        Ok(Alerting { receivers, runbooks, news: watch::Sender::new(0), reading: Default::default(), client })
    }

    /// Tells one receiver now. Returns why it was not taken, in words that hold no address and no secret.
    async fn tell(&self, receiver: &Receiver, message: &Message, now_ms: u64) -> Result<(), String> {
        let Receiver { url, shape, secret, .. } = receiver;
        let client = self.client.as_ref().ok_or("there is no client")?;
        let body = match shape {
            Shape::Json => serde_json::to_string(message),
            Shape::Slack => serde_json::to_string(&message.slack()),
        };
        let body = body.map_err(|_| "the message cannot be written".to_owned())?;
        let mut request = client.post(url.expose()).header(CONTENT_TYPE, "application/json");
        request = request.header("idempotency-key", &message.id);
        if let Some(secret) = secret {
            request = request.header("x-sluice-signature", signature(secret, &body, now_ms / 1000));
        }
        let sent = timeout(TRY_WITHIN, request.body(body).send()).await;
        let silent = || format!("no answer within {} s", TRY_WITHIN.as_secs());
        match sent {
            Err(_elapsed) => Err(silent()),
            Ok(Err(error)) if error.is_timeout() => Err(silent()),
            Ok(Err(error)) if error.is_connect() => Err("cannot be reached".to_owned()),
            Ok(Err(_)) => Err("the connection broke off".to_owned()),
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("answered {}", answer.status().as_u16())),
        }
    }

    /// Tells every receiver that this is a test: each name, and why it was not taken.
    pub async fn test(&self, who: &str, now_ms: u64) -> Vec<(String, Result<(), String>)> {
        let message = Message::test(format!("test-{now_ms}"), now_ms, who);
        let mut told = Vec::new();
        for receiver in &self.receivers.all {
            told.push((receiver.name.clone(), self.tell(receiver, &message, now_ms).await));
        }
        told
    }
}

/// `t=SECONDS,v1=HEX`: the HMAC-SHA256 of the seconds, a dot and the body.
fn signature(secret: &Hidden, body: &str, now_s: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let tag = hmac::sign(&key, format!("{now_s}.{body}").as_bytes());
    format!("t={now_s},v1={}", hex(tag.as_ref()))
}

/// Tells what is due, if this control plane leads.
pub async fn step(plane: &Arc<Plane>) -> Result<(), Error> {
    let Some(leader) = plane.leader.epoch() else { return Ok(()) };
    let mut by_receiver: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
    for due in plane.store.deliveries_due(plane.clock.now_ms()).await? {
        by_receiver.entry(due.receiver.clone()).or_default().push(due);
    }
    let until = Instant::now() + LOOK_WITHIN;
    let mut telling = JoinSet::new();
    for due in by_receiver.into_values() {
        telling.spawn(tell_in_order(plane.clone(), leader, due, until));
    }
    let mut done = Ok(());
    while let Some(ended) = telling.join_next().await {
        // A panic has been told of where it was.
        done = done.and(ended.unwrap_or(Ok(())));
    }
    done
}

/// Tells one receiver one thing after the other, the oldest first, until it does not take one.
async fn tell_in_order(
    plane: Arc<Plane>,
    leader: u64,
    due: Vec<Delivery>,
    until: Instant,
) -> Result<(), Error> {
    for delivery in due {
        if Instant::now() >= until {
            break;
        }
        let alerting = &plane.alerting;
        let receiver = alerting.receivers.all.iter().find(|receiver| receiver.name == delivery.receiver);
        let message: Option<Message> = serde_json::from_str(&delivery.body).ok();
        let told = match (receiver, message) {
            (Some(receiver), Some(message)) => {
                alerting.tell(receiver, &message, plane.clock.now_ms()).await.map_err(Failed::Now)
            }
            (None, _) => Err(Failed::Forever("the settings have no such receiver any more".to_owned())),
            (_, None) => Err(Failed::Forever("it was written by another version".to_owned())),
        };
        let is_taken = told.is_ok();
        let after = after(delivery, told, plane.clock.now_ms());
        log(&after);
        plane.metrics.alert_delivery(match (is_taken, after.done_at_ms) {
            (true, _) => "sent",
            (false, 0) => "failed",
            (false, _) => "given_up",
        });
        plane.store.keep_deliveries(leader, &[after]).await?;
        if !is_taken {
            break;
        }
    }
    Ok(())
}

/// How a try failed.
enum Failed {
    /// Another one may go well.
    Now(String),
    /// None will.
    Forever(String),
}

/// How far a delivery is after a try.
fn after(delivery: Delivery, told: Result<(), Failed>, now_ms: u64) -> Delivery {
    let tries = delivery.tries + 1;
    match told {
        Ok(()) => Delivery { tries, done_at_ms: now_ms.max(1), failure: String::new(), ..delivery },
        Err(Failed::Now(failure)) if tries < TRIES_MAX => {
            let pause = RETRY_FIRST_MS.saturating_mul(1 << delivery.tries.min(30)).min(RETRY_MAX_MS);
            Delivery { tries, next_at_ms: now_ms + pause, failure, ..delivery }
        }
        Err(Failed::Now(failure) | Failed::Forever(failure)) => {
            Delivery { tries, done_at_ms: now_ms.max(1), failure, ..delivery }
        }
    }
}

fn log(after: &Delivery) {
    let Delivery { notice, receiver, kind, tries, failure, .. } = after;
    match (failure.as_str(), after.done_at_ms) {
        ("", _) => tracing::info!(alert = notice, receiver, kind, "receiver {receiver} was told of {notice}"),
        (failure, 0) if *tries == 1 => {
            tracing::warn!(
                alert = notice,
                receiver,
                kind,
                failure,
                "receiver {receiver} did not take {notice} and is told again"
            );
        }
        (_, 0) => {}
        (failure, _) => {
            tracing::error!(
                alert = notice,
                receiver,
                kind,
                tries,
                failure,
                "receiver {receiver} did not take {notice}: given up"
            );
        }
    }
}

/// What is to be told to each receiver of the notices of a step.
pub(super) fn deliveries(alerting: &Alerting, step: &super::Step) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for notice in &step.notices {
        let message = Message::of(notice, &alerting.runbooks);
        let body = serde_json::to_string(&message).unwrap_or_default();
        deliveries.extend(alerting.receivers.all.iter().map(|receiver| Delivery {
            notice: notice.id.clone(),
            receiver: receiver.name.clone(),
            kind: notice.kind.to_string(),
            body: body.clone(),
            made_at_ms: notice.at_ms,
            tries: 0,
            next_at_ms: notice.at_ms,
            done_at_ms: 0,
            failure: String::new(),
        }));
    }
    deliveries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_over_the_time_and_the_body() {
        let signed = signature(&Hidden::new("key".to_owned()), "{}", 7);
        // printf '7.{}' | openssl dgst -sha256 -hmac key
        let want = "77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        assert_eq!(signed, format!("t=7,v1={want}"));
    }

    #[test]
    fn what_is_not_taken_is_told_again_less_and_less_often_and_given_up_after_an_hour() {
        let mut delivery = Delivery {
            notice: "n".to_owned(),
            receiver: "r".to_owned(),
            kind: String::new(),
            body: String::new(),
            made_at_ms: 0,
            tries: 0,
            next_at_ms: 0,
            done_at_ms: 0,
            failure: String::new(),
        };
        let mut tried = Vec::new();
        while delivery.done_at_ms == 0 {
            let now_ms = delivery.next_at_ms;
            tried.push(now_ms / 1000);
            delivery = after(delivery, Err(Failed::Now("answered 500".to_owned())), now_ms);
        }
        assert_eq!(tried[..6], [0, 5, 15, 35, 75, 155]);
        assert_eq!((tried.len() as u64, delivery.failure.as_str()), (TRIES_MAX, "answered 500"));
        assert!((2400..4800).contains(&tried[11]), "{tried:?}");
        let open = Delivery { done_at_ms: 0, tries: 3, ..delivery };
        let taken = after(open.clone(), Ok(()), 9);
        assert_eq!((taken.done_at_ms, taken.tries, taken.failure.as_str()), (9, 4, ""));
        assert_eq!(after(open, Err(Failed::Forever(String::new())), 9).done_at_ms, 9);
    }
}
