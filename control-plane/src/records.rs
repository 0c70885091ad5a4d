//! Records of requests as they come home: what is searched by, what is counted of them, and the chain of a revision to
//! decide one over again. Pure, but for the [`book`] of catalogs.

pub mod book;
pub mod cost;

use std::time::Duration;

use common::day;
use common::limits::RECORDS_IN_UPLOAD_MAX;
use common::money::Amount;
use common::pb::fleet as pb;
use common::window::RequestOutcome;
use prost::Message as _;

use crate::error::Error;
use crate::store::rows::{FoundRecord, KeptRecord, RequestSummary, Used};
use book::Pages;
use cost::Sums;

/// Longest text of a record.
const TEXT_BYTES_MAX: usize = 512;
/// A record has at most so many attempts; a chain has three hops.
const ATTEMPTS_MAX: usize = 32;

/// Which records are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keeping {
    /// Older ones are forgotten.
    pub age: Duration,
    /// Of the requests that the first channel of their chain served at once, this share, 0 to 1. All others are kept.
    pub share: f64,
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping { age: Duration::from_secs(7 * 24 * 60 * 60), share: 1.0 }
    }
}

impl Keeping {
    /// Whether this one is kept. It is the same however often it comes, and at every control plane.
    fn keeps(&self, record: &pb::Record) -> bool {
        let is_plain = record.outcome == RequestOutcome::Served.as_str()
            && record.attempts.len() == 1
            && record.attempts.iter().all(|attempt| attempt.hop == 0);
        !is_plain || place(&record.request_id) < self.share
    }
}

/// Where the random end of a UUID lies, from 0 to 1.
fn place(request_id: &str) -> f64 {
    let random = uuid::Uuid::try_parse(request_id).map_or(0, |id| id.as_u128() as u32);
    f64::from(random) / (f64::from(u32::MAX) + 1.0)
}

/// What an upload brings, priced as far as its catalogs are known. Refused whole where something in it is no record. What
/// began before records are kept comes too late, and is left out.
pub fn rows(
    request: pb::UploadRecordsRequest,
    keeping: &Keeping,
    pages: &Pages,
    now_ms: u64,
) -> Result<Vec<KeptRecord>, Error> {
    let pb::UploadRecordsRequest { node_id, records } = request;
    if records.len() > RECORDS_IN_UPLOAD_MAX {
        let message = format!("are more than {RECORDS_IN_UPLOAD_MAX}");
        return Err(Error::Argument { field: "records", message });
    }
    let forgotten_ms = now_ms.saturating_sub(keeping.age.as_millis() as u64);
    let mut rows = Vec::with_capacity(records.len());
    for record in records {
        let is_kept = keeping.keeps(&record);
        let sums = pages.of(&record).map(|catalog| cost::of(&record, catalog)).unwrap_or_default();
        let row = row(&node_id, record, now_ms)?;
        if row.summary.began_at_ms >= forgotten_ms {
            rows.push(KeptRecord { is_kept, ..priced(row, sums) });
        }
    }
    Ok(rows)
}

/// The record itself.
pub fn read(found: &FoundRecord) -> Result<pb::Record, Error> {
    pb::Record::decode(&found.record[..]).map_err(|_| Error::Broken("the record cannot be read"))
}

fn priced(row: KeptRecord, Sums { cost, price }: Sums) -> KeptRecord {
    let (cost, price) = (cost.map(Amount::pico), price.map(Amount::pico));
    let is_unpriced = row.used.unpriced > 0 && (cost.is_none() || price.is_none());
    let used =
        Used { cost: cost.unwrap_or(0), price: price.unwrap_or(0), unpriced: is_unpriced.into(), ..row.used };
    KeptRecord { cost, price, used, ..row }
}

/// What is counted of a record before it is priced.
fn used(record: &pb::Record) -> Used {
    let has_answer =
        cost::answering(record).is_some() && !record.chain.is_empty() && !record.model.is_empty();
    let usage = record.usage.unwrap_or_default();
    Used {
        requests: 1,
        served: (record.outcome == RequestOutcome::Served.as_str()).into(),
        input: usage.input,
        cached_input: usage.cached_input,
        output: usage.output,
        searches: usage.searches,
        audio_ms: usage.audio_ms,
        cost: 0,
        price: 0,
        unpriced: has_answer.into(),
    }
}

fn row(node: &str, record: pb::Record, now_ms: u64) -> Result<KeptRecord, Error> {
    let fault = |message: &str| Error::Argument { field: "records", message: message.to_owned() };
    if uuid::Uuid::try_parse(&record.request_id).is_err() {
        return Err(fault("a request_id is no UUID"));
    }
    if record.attempts.len() > ATTEMPTS_MAX || record.chain.len() > ATTEMPTS_MAX {
        return Err(fault("a record has too many hops"));
    }
    let texts = [&record.client_request_id, &record.model, &record.dialect, &record.key_id, &record.outcome];
    let of_attempts = record.attempts.iter().map(|attempt| &attempt.class);
    let of_hops = record.chain.iter().map(|hop| &hop.channel);
    if texts.into_iter().chain(of_attempts).chain(of_hops).any(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(fault("a name has more than 512 bytes"));
    }
    let attempts: Vec<(String, String)> =
        record.attempts.iter().map(|attempt| (channel(&record, attempt), searched(&attempt.class))).collect();
    let summary = RequestSummary {
        request_id: record.request_id.clone(),
        node: node.to_owned(),
        // A clock that runs ahead does not keep a record for longer.
        began_at_ms: record.began_at_ms.min(now_ms),
        model: searched(&record.model),
        dialect: searched(&record.dialect),
        key: searched(&record.key_id),
        channel: attempts.last().map(|(channel, _)| channel.clone()).unwrap_or_default(),
        outcome: searched(&record.outcome),
        status: record.status,
        attempts: record.attempts.len() as u32,
        duration_us: record.ended_us,
    };
    // Only names of the catalog are counted by: whoever calls may ask for anything.
    let model = if record.chain.is_empty() { String::new() } else { summary.model.clone() };
    Ok(KeptRecord {
        used: used(&record),
        used_by: (day::of(summary.began_at_ms), summary.key.clone(), model),
        client_request_id: searched(&record.client_request_id),
        record: record.encode_to_vec(),
        summary,
        attempts,
        is_kept: true,
        cost: None,
        price: None,
    })
}

fn channel(record: &pb::Record, attempt: &pb::RecordAttempt) -> String {
    record.chain.get(attempt.hop as usize).map(|hop| searched(&hop.channel)).unwrap_or_default()
}

/// A text as it can be searched by: not every database keeps a zero.
fn searched(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The chain that a snapshot has for a request, with nothing decided of its hops.
pub fn chain_of(snapshot: &pb::Snapshot, model: &str, dialect: &str) -> Vec<pb::RecordHop> {
    let found = snapshot.models.iter().find(|entry| entry.name == model);
    let chain = found.and_then(|entry| entry.chains.iter().find(|chain| chain.dialect == dialect));
    let routes = chain.map_or(&[][..], |chain| &chain.routes);
    let credential = |route: &pb::Route| {
        let channel = snapshot.channels.iter().find(|channel| channel.id == route.channel)?;
        Some(channel.credential.as_str()).filter(|credential| !credential.is_empty())
    };
    let credentials: Vec<_> = routes.iter().map(credential).collect();
    let place = |shown: &str| credentials.iter().position(|other| *other == Some(shown));
    let hops = routes.iter().zip(&credentials).map(|(route, credential)| pb::RecordHop {
        channel: route.channel.clone(),
        upstream_model: route.upstream_model.clone(),
        credential: credential.and_then(place).map(|place| place as u32),
        context_window: Some(route.context_window).filter(|window| *window > 0),
        ..pb::RecordHop::default()
    });
    hops.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn record() -> pb::Record {
        let hop = |channel: &str| pb::RecordHop { channel: channel.to_owned(), ..Default::default() };
        let attempt =
            |hop, class: &str| pb::RecordAttempt { hop, class: class.to_owned(), ..Default::default() };
        pb::Record {
            request_id: ID.to_owned(),
            model: "m\0".to_owned(),
            began_at_ms: 99,
            chain: vec![hop("a"), hop("b")],
            attempts: vec![attempt(0, "connect"), attempt(1, "ok")],
            outcome: "served".to_owned(),
            status: 200,
            ended_us: 5,
            ..Default::default()
        }
    }

    fn upload(records: Vec<pb::Record>) -> Result<Vec<KeptRecord>, Error> {
        let request = pb::UploadRecordsRequest { node_id: "n".to_owned(), records };
        rows(request, &Keeping::default(), &Pages::default(), 50)
    }

    #[test]
    fn a_share_of_what_went_well_at_once_is_kept_and_all_that_did_not() {
        let keeping = Keeping { share: 0.25, ..Keeping::default() };
        let ids: Vec<String> = (0..2000).map(|_| uuid::Uuid::now_v7().to_string()).collect();
        let kept = |of: &dyn Fn(pb::Record) -> pb::Record| {
            let plain = |id: &String| pb::Record {
                request_id: id.clone(),
                attempts: vec![record().attempts[1].clone()],
                ..record()
            };
            ids.iter().filter(|id| keeping.keeps(&of(plain(id)))).cloned().collect::<Vec<_>>()
        };
        let first = |mut record: pb::Record| {
            record.attempts[0].hop = 0;
            record
        };
        let plain = kept(&first);
        assert!((400..600).contains(&plain.len()), "a quarter of 2000 is not {}", plain.len());
        assert_eq!(plain, kept(&first), "the same whenever they come");
        assert_eq!(kept(&|record| record).len(), ids.len(), "the first channel was out");
        assert_eq!(kept(&|failed| pb::Record { outcome: "exhausted".to_owned(), ..first(failed) }), ids);
        assert_eq!(kept(&|cut| pb::Record { outcome: "cut".to_owned(), ..first(cut) }), ids);
        assert_eq!(kept(&|over| pb::Record { attempts: record().attempts, ..over }), ids);
        assert!(keeping.keeps(&pb::Record { attempts: Vec::new(), ..record() }), "refused");
        let (none, all) = (Keeping { share: 0.0, ..keeping }, Keeping { share: 1.0, ..keeping });
        let extreme = ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"];
        for id in extreme {
            let plain = first(pb::Record {
                request_id: id.to_owned(),
                attempts: vec![record().attempts[1].clone()],
                ..record()
            });
            assert!(!none.keeps(&plain) && all.keeps(&plain), "{id}");
        }
    }

    #[test]
    fn a_record_is_kept_whole_with_what_it_is_searched_by() {
        let row = upload(vec![record()]).unwrap().remove(0);
        assert_eq!(pb::Record::decode(&row.record[..]).unwrap(), record());
        assert_eq!(row.attempts, [("a".to_owned(), "connect".to_owned()), ("b".to_owned(), "ok".to_owned())]);
        let summary = row.summary;
        assert_eq!((summary.node.as_str(), summary.channel.as_str(), summary.attempts), ("n", "b", 2));
        assert_eq!((summary.model.as_str(), summary.began_at_ms), ("m\u{fffd}", 50), "not in the future");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        for wrong in [
            pb::Record { request_id: "1".to_owned(), ..record() },
            pb::Record { model: long.clone(), ..record() },
            pb::Record { attempts: vec![pb::RecordAttempt::default(); ATTEMPTS_MAX + 1], ..record() },
            pb::Record {
                chain: vec![pb::RecordHop { channel: long.clone(), ..Default::default() }],
                ..record()
            },
        ] {
            assert!(matches!(upload(vec![record(), wrong]), Err(Error::Argument { field: "records", .. })));
        }
        assert!(upload(vec![record(); RECORDS_IN_UPLOAD_MAX + 1]).is_err());
    }

    #[test]
    fn a_chain_is_that_of_the_snapshot_and_equal_credentials_are_told() {
        let channel = |id: &str, credential: &str| pb::Channel {
            id: id.to_owned(),
            credential: credential.to_owned(),
            ..Default::default()
        };
        let route = |channel: &str, context_window| pb::Route {
            channel: channel.to_owned(),
            upstream_model: "up".to_owned(),
            context_window,
            ..Default::default()
        };
        let routes = vec![route("a", 0), route("b", 9), route("c", 0)];
        let chains = vec![pb::Chain { dialect: "openai-chat".to_owned(), routes }];
        let snapshot = pb::Snapshot {
            channels: vec![channel("a", "env:A"), channel("b", ""), channel("c", "env:A")],
            models: vec![pb::Model { name: "m".to_owned(), chains }],
            ..Default::default()
        };
        let chain = chain_of(&snapshot, "m", "openai-chat");
        let seen: Vec<_> =
            chain.iter().map(|hop| (hop.channel.as_str(), hop.credential, hop.context_window)).collect();
        assert_eq!(seen, [("a", Some(0), None), ("b", None, Some(9)), ("c", Some(0), None)]);
        assert!(
            chain_of(&snapshot, "m", "gemini").is_empty()
                && chain_of(&snapshot, "x", "openai-chat").is_empty()
        );
    }
}
