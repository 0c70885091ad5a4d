//! What changes from one revision to another, and the way back to an earlier one: its document becomes
//! a new revision, so that numbers only grow.

use bytes::Bytes;
use common::catalog::{self, Catalog, Change, Fault};

use super::{Applied, Apply, apply, find, read, read_knowing};
use crate::access::Caller;
use crate::error::Error;
use crate::plane::Plane;
use crate::rollout::Strategy;
use crate::secrets;

/// What a comparison leads to.
#[derive(Debug)]
pub enum To {
    /// A revision; 0 for the current one.
    Revision(u64),
    /// A document that was not applied.
    Document(Bytes),
}

/// How two catalogs differ.
#[derive(Debug)]
pub struct Compared {
    /// The revision that the changes lead away from; 0 when there is none yet.
    pub from: u64,
    /// The one that they lead to; 0 for a document.
    pub to: u64,
    /// Sorted by path; empty when both mean the same.
    pub changes: Vec<Change>,
    /// What of the document works but is probably not meant.
    pub warnings: Vec<Fault>,
}

/// Compares a revision (0: the current one) with another, or with a document.
pub async fn compare(plane: &Plane, from: u64, to: To) -> Result<Compared, Error> {
    let current = plane.store.heads().await?.revision;
    let number = |asked: u64| if asked == 0 { current } else { asked };
    let from = number(from);
    let (to, after, warnings) = match to {
        To::Revision(to) => (number(to), catalog_of(plane, number(to)).await?, vec![]),
        To::Document(document) => {
            let secrets = Some(secrets::names(plane).await?);
            let checked = read_knowing(document, secrets).await?.map_err(Error::Catalog)?;
            (0, checked.catalog, checked.warnings)
        }
    };
    let changes = catalog::diff(&catalog_of(plane, from).await?, &after);
    Ok(Compared { from, to, changes, warnings })
}

/// What a revision says; before the first one, nothing. A document that an earlier version of this
/// program took and this one does not is a fault.
async fn catalog_of(plane: &Plane, number: u64) -> Result<Catalog, Error> {
    if number == 0 {
        return Ok(Catalog::default());
    }
    let full = find(plane, number).await?;
    Ok(read(full.document).await?.map_err(Error::Catalog)?.catalog)
}

/// What a catalog changes against a revision. An apply does not depend on it: a revision that is gone, or
/// that this version of the program cannot read, draws a warning.
pub(super) async fn against(
    plane: &Plane,
    number: u64,
    catalog: &Catalog,
    warnings: &mut Vec<Fault>,
) -> Result<Vec<Change>, Error> {
    match catalog_of(plane, number).await {
        Ok(before) => Ok(catalog::diff(&before, catalog)),
        Err(error @ (Error::Catalog(_) | Error::NotFound { .. })) => {
            let message = format!("what changes against revision {number} cannot be told: {error}");
            warnings.push(Fault { line: 0, path: String::new(), message });
            Ok(vec![])
        }
        Err(error) => Err(error),
    }
}

/// The way back to an earlier revision.
#[derive(Debug)]
pub struct Rollback<'a> {
    /// Whose document becomes current again; 0 is none.
    pub revision: u64,
    /// As for an apply.
    pub expected: Option<u64>,
    /// Empty for one that says what was done.
    pub message: &'a str,
    /// Who asks for it.
    pub caller: Caller,
    /// As for an apply.
    pub idempotency_key: &'a str,
    /// As for an apply.
    pub strategy: Strategy,
    /// As for an apply.
    pub reason: &'a str,
}

/// Makes the document of an earlier revision the current one.
pub async fn roll_back(plane: &Plane, ask: Rollback<'_>) -> Result<Applied, Error> {
    if ask.revision == 0 {
        let message = "give the revision to go back to".to_owned();
        return Err(Error::Argument { field: "revision", message });
    }
    let earlier = find(plane, ask.revision).await?;
    let said = format!("rollback to revision {}", ask.revision);
    let message = if ask.message.is_empty() { &said } else { ask.message };
    let Rollback { expected, caller, idempotency_key, strategy, reason, .. } = ask;
    let back = Apply { action: "catalog.rollback", strategy, reason, ..Apply::of(earlier.document, caller) };
    apply(plane, Apply { expected, message, idempotency_key, ..back }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::fixture::{CATALOG, Fixture};

    fn applying<'a>(document: &str, idempotency_key: &'a str) -> Apply<'a> {
        Apply { idempotency_key, ..Apply::of(document.to_owned(), Caller::bootstrap()) }
    }

    fn rollback(revision: u64) -> Rollback<'static> {
        Rollback {
            revision,
            expected: None,
            message: "",
            caller: Caller::bootstrap(),
            idempotency_key: "",
            strategy: Strategy::Staged,
            reason: "",
        }
    }

    fn dearer() -> String {
        CATALOG.replace("output = \"8.00\"", "output = \"9.00\"")
    }

    #[tokio::test]
    async fn a_rollback_makes_a_new_revision_of_the_earlier_document() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        apply(plane, applying(&dearer(), "")).await.unwrap();
        let back = roll_back(plane, rollback(1)).await.unwrap();
        assert_eq!((back.revision.number, back.changed), (3, true));
        assert_eq!(back.revision.message, "rollback to revision 1");
        let [change] = &back.changes[..] else { panic!("{:?}", back.changes) };
        assert_eq!(change.path, "models.gpt-4o.routes[reseller].cost.output");
        assert_eq!(find(plane, 0).await.unwrap().document, CATALOG);
        assert_eq!(plane.wanted().unwrap().revision(), 3, "the nodes are told");

        let again = roll_back(plane, rollback(3)).await.unwrap();
        assert_eq!((again.revision.number, again.changed), (3, false), "it is current already");
        assert!(matches!(roll_back(plane, rollback(9)).await, Err(Error::NotFound { .. })));
        assert!(matches!(roll_back(plane, rollback(0)).await, Err(Error::Argument { .. })));
        let stale = Rollback { expected: Some(2), ..rollback(1) };
        assert!(matches!(roll_back(plane, stale).await, Err(Error::Conflict { current: 3, .. })));
    }

    #[tokio::test]
    async fn fr_043_what_was_applied_does_not_differ_from_its_document() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let document = Bytes::from(format!("# written anew\n{CATALOG}"));
        let compared = compare(plane, 0, To::Document(document)).await.unwrap();
        assert_eq!((compared.from, compared.to, compared.changes), (1, 0, vec![]));
        let compared = compare(plane, 0, To::Document(dearer().into())).await.unwrap();
        let [change] = &compared.changes[..] else { panic!("{:?}", compared.changes) };
        assert_eq!((change.before.as_deref(), change.after.as_deref()), (Some("8.00"), Some("9.00")));

        apply(plane, applying(&dearer(), "")).await.unwrap();
        let compared = compare(plane, 2, To::Revision(1)).await.unwrap();
        assert_eq!((compared.from, compared.to, compared.changes.len()), (2, 1, 1));
        assert_eq!(compare(plane, 0, To::Revision(0)).await.unwrap().changes, []);
        assert!(matches!(compare(plane, 7, To::Revision(0)).await, Err(Error::NotFound { .. })));
        let faulty = compare(plane, 0, To::Document("nonsense".into())).await;
        assert!(matches!(faulty, Err(Error::Catalog(_))));
    }

    #[tokio::test]
    async fn against_a_store_without_revisions_everything_is_new() {
        let fixture = Fixture::unread().await;
        let compared = compare(&fixture.plane, 0, To::Document(CATALOG.into())).await.unwrap();
        assert_eq!((compared.from, compared.to), (0, 0));
        assert!(compared.changes.iter().any(|c| c.path == "channels.direct.base_url" && c.before.is_none()));
    }

    #[tokio::test]
    async fn a_change_that_is_sent_again_under_its_key_is_made_once() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let first = apply(plane, applying(&dearer(), "job-17")).await.unwrap();
        roll_back(plane, rollback(1)).await.unwrap();
        let again = apply(plane, applying(&dearer(), "job-17")).await.unwrap();
        assert_eq!((&again.revision, again.changed), (&first.revision, true), "as the first time");
        assert_eq!(again.changes, first.changes);
        assert_eq!(plane.wanted().unwrap().revision(), 3, "and nothing was made again");
        let other = apply(plane, applying(CATALOG, "job-17")).await;
        assert!(matches!(other, Err(Error::KeyTaken { revision: 2 })), "{other:?}");
        let racing = [(); 4].map(|()| apply(plane, applying(&dearer(), "job-18")));
        let [a, b, c, d] = racing;
        let made = tokio::join!(a, b, c, d);
        for one in [made.0, made.1, made.2, made.3] {
            assert_eq!(one.unwrap().revision.number, 4);
        }
    }

    #[tokio::test]
    async fn a_dry_run_tells_what_an_apply_would_do_and_does_nothing() {
        let fixture = Fixture::with_catalog().await;
        let plane = &fixture.plane;
        let dry = Apply { dry_run: true, ..applying(&dearer(), "job") };
        let would = apply(plane, dry).await.unwrap();
        assert_eq!((would.revision.number, would.changed, would.changes.len()), (2, true, 1));
        assert_eq!(plane.store.heads().await.unwrap().revision, 1);
        assert_eq!(apply(plane, applying(&dearer(), "job")).await.unwrap().revision.number, 2);
        let dry = Apply { dry_run: true, expected: Some(1), ..applying(CATALOG, "") };
        assert!(matches!(apply(plane, dry).await, Err(Error::Conflict { current: 2, .. })));
    }
}
