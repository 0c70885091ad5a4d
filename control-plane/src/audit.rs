//! The audit log, read: entries by page, and the chain walked to see that nobody has altered it. Entries are written
//! by the changes themselves: [`Plane::entry`], then a method of the store that takes it.

use common::snapshot::Sha;
use serde_json::json;

use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::store::entry::{BEFORE_ALL, Entry, Kept, LogHead};

/// So many entries are read at once, …
const PAGE: u32 = 500;
/// … and so many in one call.
pub const CALL_ENTRIES_MAX: u64 = 20_000;

/// What the log will say of a change: who does it, from where, when, what, to what. It goes with the change into the
/// store. `action` is a word for the thing and one for what is done to it: `catalog.apply`.
pub fn entry(caller: &Caller, at_ms: u64, action: &str, object: impl Into<String>) -> Entry {
    Entry {
        at_ms,
        actor: caller.name.clone(),
        role: caller.role.to_string(),
        credential: caller.credential.clone(),
        origin: caller.from.clone(),
        action: action.to_owned(),
        object: object.into(),
        ..Entry::default()
    }
}

/// The same of a new epoch, which the control plane begins by itself.
pub fn epoch_entry(at_ms: u64, over: u64, next: u64) -> Entry {
    let entry = entry(&Caller::sluice(), at_ms, "epoch.begin", next.to_string());
    entry.with(&json!({"epoch": over}), &json!({"epoch": next}))
}

/// How far the chain was walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// The last entry that is right.
    pub through: LogHead,
    /// The end of the log.
    pub head: LogHead,
    /// What is wrong behind `through`.
    pub broken: Option<Broken>,
}

/// What is wrong with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// This entry is not there.
    Missing(u64),
    /// This entry is not what was written.
    Altered(u64),
    /// The log ends otherwise than the last change has left it.
    End(u64),
}

impl Broken {
    /// The first entry that cannot be relied on, and why.
    pub fn said(self) -> (u64, &'static str) {
        match self {
            Broken::Missing(seq) => (seq, "it was removed"),
            Broken::Altered(seq) => (seq, "it, or the entry before it, was altered"),
            Broken::End(seq) => (seq, "the log does not end as its last entry does"),
        }
    }
}

/// Walks the chain from behind an entry that is known to be right; from the beginning without one.
pub async fn walk(plane: &Plane, from: Option<LogHead>) -> Result<Walked, Error> {
    // Read first: what is appended meanwhile is beyond it.
    let head = plane.store.log_head().await?;
    let mut through = from.unwrap_or(LogHead { seq: 0, sha256: BEFORE_ALL });
    let last = head.seq.min(through.seq.saturating_add(CALL_ENTRIES_MAX));
    let mut broken = None;
    while through.seq < last && broken.is_none() {
        let page = plane.store.walk_log(through.seq, last, PAGE).await?;
        let was = through.seq;
        broken = check(&mut through, &page);
        if broken.is_none() && through.seq == was {
            broken = Some(Broken::Missing(was + 1));
        }
    }
    if broken.is_none() && through.seq >= head.seq && !is_end(plane, &through, &head).await? {
        broken = Some(Broken::End(head.seq + 1));
    }
    Ok(Walked { through, head, broken })
}

/// Follows the chain over entries that come after `through`.
fn check(through: &mut LogHead, page: &[Kept]) -> Option<Broken> {
    for kept in page {
        let seq = through.seq + 1;
        if kept.seq != seq {
            return Some(Broken::Missing(seq));
        }
        let sha256: Sha = kept.entry.sha256(seq, &through.sha256);
        if sha256 != kept.sha256 {
            return Some(Broken::Altered(seq));
        }
        *through = LogHead { seq, sha256 };
    }
    None
}

/// Whether the log ends there: with the digest that the last change has left, and nothing behind it but what was
/// appended since.
async fn is_end(plane: &Plane, through: &LogHead, head: &LogHead) -> Result<bool, Error> {
    if through != head {
        return Ok(false);
    }
    let now = plane.store.log_head().await?;
    let beyond = plane.store.walk_log(now.seq, u64::MAX, 1).await?;
    Ok(beyond.is_empty() || plane.store.log_head().await?.seq > now.seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::fixture::Fixture;

    async fn with_three() -> Fixture {
        let fixture = Fixture::unread().await;
        for name in ["a", "b", "c"] {
            crate::keys::create(&fixture.plane, &Caller::bootstrap(), name).await.unwrap();
        }
        fixture
    }

    #[tokio::test]
    async fn a_log_that_nobody_touched_is_right_to_its_end() {
        let fixture = with_three().await;
        let walked = walk(&fixture.plane, None).await.unwrap();
        assert_eq!((walked.through.seq, walked.broken), (3, None));
        assert_eq!(walked.through, walked.head);
        let none = walk(&Fixture::unread().await.plane, None).await.unwrap();
        assert_eq!((none.through.seq, none.broken), (0, None));
    }

    #[tokio::test]
    async fn whatever_is_altered_removed_or_put_in_is_found_where_it_is() {
        for (sql, broken) in [
            ("update audit set actor = 'mallory' where seq = 2", Broken::Altered(2)),
            ("update audit set after_value = null where seq = 1", Broken::Altered(1)),
            ("update audit set sha256 = x'00' where seq = 3", Broken::Altered(3)),
            ("delete from audit where seq = 1", Broken::Missing(1)),
            ("delete from audit where seq = 2", Broken::Missing(2)),
            ("delete from audit where seq = 3", Broken::Missing(3)),
            ("delete from audit where seq = 3; update audit_head set seq = 2", Broken::End(3)),
            (
                "insert into audit select 4, at_ms, actor, role, credential, origin, action, object, before_value,
                 after_value, revision, sha256 from audit where seq = 3",
                Broken::End(4),
            ),
            ("delete from audit; update audit_head set seq = 0", Broken::End(1)),
        ] {
            let fixture = with_three().await;
            fixture.execute(sql).await;
            let walked = walk(&fixture.plane, None).await.unwrap();
            assert_eq!(walked.broken, Some(broken), "{sql}");
        }
    }

    #[tokio::test]
    async fn a_walk_goes_on_from_where_another_has_ended() {
        let fixture = with_three().await;
        let first = walk(&fixture.plane, None).await.unwrap();
        crate::keys::create(&fixture.plane, &Caller::bootstrap(), "d").await.unwrap();
        let on = walk(&fixture.plane, Some(first.through)).await.unwrap();
        assert_eq!((on.through.seq, on.broken), (4, None));
        let wrong = LogHead { seq: 3, sha256: [1; 32] };
        let on = walk(&fixture.plane, Some(wrong)).await.unwrap();
        assert_eq!(on.broken, Some(Broken::Altered(4)), "what was relied on is another log");
        let beyond = LogHead { seq: 9, sha256: [1; 32] };
        assert_eq!(walk(&fixture.plane, Some(beyond)).await.unwrap().broken, Some(Broken::End(5)));
    }

    #[tokio::test]
    async fn an_entry_says_who_did_what_and_never_the_secret() {
        let fixture = Fixture::unread().await;
        let caller =
            Caller { name: "ann".to_owned(), from: "192.0.2.7:4711".to_owned(), ..Caller::bootstrap() };
        let created = crate::keys::create(&fixture.plane, &caller, "app").await.unwrap();
        crate::keys::revoke(&fixture.plane, &caller, &created.key.id).await.unwrap();
        crate::keys::revoke(&fixture.plane, &caller, &created.key.id).await.unwrap();
        let ask = crate::store::entry::Ask { before: u64::MAX, limit: 10, ..Default::default() };
        let log = fixture.plane.store.log(&ask).await.unwrap();
        let [revoked, made] = &log[..] else { panic!("what changes nothing is no entry: {log:?}") };
        assert_eq!(
            (made.entry.action.as_str(), made.entry.object.as_str()),
            ("key.create", &*created.key.id)
        );
        assert_eq!((made.entry.actor.as_str(), made.entry.origin.as_str()), ("ann", "192.0.2.7:4711"));
        assert_eq!((&made.entry.before, made.entry.after.as_deref()), (&None, Some("{\"name\":\"app\"}")));
        assert_eq!(revoked.entry.action, "key.revoke");
        assert!(!format!("{log:?}").contains(&created.secret));
    }
}
