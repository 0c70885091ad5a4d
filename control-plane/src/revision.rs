//! Revisions of the catalog: checked whole, numbered without gaps, never changed.

pub mod encoded;
pub mod head;

use common::catalog::{self, Fault};
use common::limits::SNAPSHOT_BYTES_MAX;
use common::snapshot::digest;

use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::{FullRevision, Revision};
use encoded::Encoded;

/// Longest message of a revision.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// How often an apply without an expected revision looks again after another one was faster.
const TRIES_MAX: usize = 10;

/// A document on its way to becoming the current revision.
#[derive(Debug)]
pub struct Apply<'a> {
    /// TOML or JSON.
    pub document: &'a [u8],
    /// What the author believes to be current; `None` to apply to any.
    pub expected: Option<u64>,
    /// What the author says about it.
    pub message: &'a str,
    /// Name of the token that applies it.
    pub author: &'a str,
}

/// What became of it.
#[derive(Debug)]
pub struct Applied {
    /// The current revision.
    pub revision: Revision,
    /// False when the document is that of the revision that was current already.
    pub changed: bool,
    /// What works but is probably not meant.
    pub warnings: Vec<Fault>,
}

/// Makes a document the current revision, and tells the nodes' streams.
pub async fn apply(plane: &Plane, ask: Apply<'_>) -> Result<Applied, Error> {
    if ask.message.len() > MESSAGE_BYTES_MAX {
        let message = format!("at most {MESSAGE_BYTES_MAX} bytes");
        return Err(Error::Argument { field: "message", message });
    }
    let checked = catalog::parse(ask.document).map_err(Error::Catalog)?;
    let sha256 = digest(ask.document);
    for _ in 0..TRIES_MAX {
        let head = plane.store.revisions(u64::MAX, 1).await?.into_iter().next();
        let current = head.as_ref().map_or(0, |revision| revision.number);
        if let Some(expected) = ask.expected
            && expected != current
        {
            return Err(Error::Conflict { expected, current });
        }
        if let Some(revision) = head
            && revision.sha256 == sha256
        {
            return Ok(Applied { revision, changed: false, warnings: checked.warnings });
        }
        let number = current + 1;
        let snapshot = compile(&checked.catalog, number)?;
        let revision = Revision {
            number,
            sha256,
            author: ask.author.to_owned(),
            message: ask.message.to_owned(),
            created_at_ms: plane.clock.now_ms(),
        };
        let new = FullRevision {
            revision: revision.clone(),
            document: ask.document.to_vec().into(),
            snapshot_sha256: snapshot.part.sha256,
            snapshot_zstd: snapshot.packed,
        };
        if plane.store.insert_revision(&new).await? {
            tracing::info!(revision = number, author = ask.author, "catalog revision {number} applied");
            plane.head.refresh(&plane.store).await?;
            return Ok(Applied { revision, changed: true, warnings: checked.warnings });
        }
    }
    Err(Error::Busy)
}

fn compile(catalog: &catalog::Catalog, number: u64) -> Result<Encoded, Error> {
    let snapshot = catalog.compile(number);
    let size = prost::Message::encoded_len(&snapshot);
    if size > SNAPSHOT_BYTES_MAX {
        let message =
            format!("the compiled catalog has {size} bytes; nodes take at most {SNAPSHOT_BYTES_MAX}");
        return Err(Error::Catalog(vec![Fault { line: 0, path: String::new(), message }]));
    }
    Encoded::of(number, &snapshot).map_err(|_| Error::Broken("the snapshot cannot be compressed"))
}

/// A revision with its document; 0 means the current one.
pub async fn find(plane: &Plane, number: u64) -> Result<FullRevision, Error> {
    let number = if number == 0 { plane.store.heads().await?.revision } else { number };
    let found = plane.store.revision(number).await?;
    found.ok_or_else(|| Error::NotFound { what: "revision", name: number.to_string() })
}
