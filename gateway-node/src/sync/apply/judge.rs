//! Whether a part that was sent can be served: is it newer, is it what its digest says, and does
//! everything in it make sense. Changes nothing.

use common::feature;
use common::limits::SNAPSHOT_SCHEMA;
use common::pb::fleet as pb;
use common::sealed::{self, Secrets};
use common::snapshot::{Sha, SnapshotFault, decode, unpack};

use crate::api::Gateway;
use crate::api::auth::Keys;
use crate::metrics::Metrics;
use crate::sync::certificate::Certificates;
use crate::table::Table;
use crate::table::build::build;
use crate::table::keep::{Kept, Kind};
use crate::upstream::Connections;

/// Why a part is not taken.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub blame: Blame,
    pub violations: Vec<pb::Violation>,
}

/// What is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// The content, and it would be again.
    Content,
    /// The way or the time in which it was sent; the same content may be good another time.
    Sending,
    /// This node.
    Node,
}

impl Refusal {
    pub(super) fn of(blame: Blame, path: &str, message: impl Into<String>) -> Self {
        let violations = vec![pb::Violation { path: path.to_owned(), message: message.into() }];
        Refusal { blame, violations }
    }
}

/// A part that the node runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Runs {
    pub epoch: u64,
    pub part: pb::Part,
}

impl Runs {
    /// What is named by a part that is kept. Secrets are named by what the control plane keeps, not by what is sealed
    /// for this node.
    pub(super) fn of(kind: Kind, kept: &Kept) -> Self {
        let sealed = match kind {
            Kind::Secrets => decode::<pb::SealedSecrets>(&kept.encoded).ok(),
            Kind::Catalog | Kind::Keys => None,
        };
        let sha256 = sealed.map_or_else(|| kept.sha256.to_vec(), |sealed| sealed.sha256);
        Runs { epoch: kept.epoch, part: pb::Part { version: kept.version, sha256 } }
    }
}

/// A part that only has to be swapped in.
pub(super) enum Ready {
    Catalog(Table),
    Keys(Keys),
    /// With the digest of the key that opened them.
    Secrets(Secrets, Sha),
}

/// Checks a sent part against what runs, and unpacks it.
pub(super) fn judge(
    kind: Kind,
    epoch: u64,
    part: &pb::Part,
    packed: &[u8],
    runs: Option<&Runs>,
) -> Result<Kept, Refusal> {
    if let Some(runs) = runs
        && let Some(message) = staleness(kind, epoch, part.version, runs)
    {
        return Err(Refusal::of(Blame::Sending, path(kind), message));
    }
    let encoded = match kind {
        Kind::Catalog | Kind::Keys => {
            unpack(packed, &part.sha256).map_err(|fault| Refusal::of(Blame::Sending, "", describe(&fault)))?
        }
        Kind::Secrets => {
            let is_it = decode(packed).is_ok_and(|sealed: pb::SealedSecrets| sealed.sha256 == part.sha256);
            if !is_it {
                let message = "what was sent is not what the target names";
                return Err(Refusal::of(Blame::Sending, "sha256", message));
            }
            packed.to_vec()
        }
    };
    Ok(Kept::new(epoch, part.version, encoded))
}

/// Within an epoch versions only grow; a higher epoch is obeyed, whatever its versions.
fn staleness(kind: Kind, epoch: u64, version: u64, runs: &Runs) -> Option<String> {
    let Runs { epoch: ours, part } = runs;
    if epoch < *ours {
        return Some(format!("epoch {epoch} is over; the node obeys epoch {ours}"));
    }
    let is_older = epoch == *ours && version < part.version;
    is_older
        .then(|| format!("{} {version} is older than {}, which the node runs", kind.as_str(), part.version))
}

/// Decodes a part and builds what serves it; or everything that is wrong with it.
pub(super) fn prepare(
    kind: Kind,
    kept: &Kept,
    gateway: &Gateway,
    certificates: &Certificates,
) -> Result<Ready, Vec<pb::Violation>> {
    match kind {
        Kind::Catalog => {
            let snapshot = read(kept)?;
            let previous = gateway.tables.load();
            let ways = (&gateway.connections, &gateway.sources);
            build(&snapshot, kept.epoch, previous.as_deref(), ways, &gateway.metrics).map(Ready::Catalog)
        }
        Kind::Keys => {
            let keys: pb::KeySet = decode(&kept.encoded).map_err(|fault| undecodable(&fault))?;
            same_version(kind, keys.version, kept.version)?;
            Keys::build(&keys).map(Ready::Keys)
        }
        Kind::Secrets => {
            let sealed: pb::SealedSecrets = decode(&kept.encoded).map_err(|fault| undecodable(&fault))?;
            same_version(kind, sealed.version, kept.version)?;
            let violation = |message: String| vec![pb::Violation { path: "ciphertext".to_owned(), message }];
            let (key, key_sha256) = certificates
                .opening_key()
                .ok_or_else(|| violation("this node has no certificate whose key opens it".to_owned()))?;
            let secrets = sealed::open(&key, certificates.node_id(), &sealed);
            let secrets = secrets.map_err(|fault| violation(fault.to_string()))?;
            Ok(Ready::Secrets(secrets, key_sha256))
        }
    }
}

/// Builds a catalog beside everything that serves, and lets it go: its digest and what wants a person, or why it would
/// be refused.
pub(super) fn try_out(
    part: &pb::Part,
    packed: &[u8],
    gateway: &Gateway,
) -> Result<(Sha, Vec<pb::Violation>), Refusal> {
    let kept = judge(Kind::Catalog, 0, part, packed, None)?;
    let refused = |violations| Refusal { blame: Blame::Content, violations };
    let snapshot = read(&kept).map_err(refused)?;
    let previous = gateway.tables.load();
    // What it opens and counts is its own.
    let (connections, metrics) = (Connections::new(), Metrics::new());
    let ways = (&connections, &gateway.sources);
    let built = build(&snapshot, 0, previous.as_deref(), ways, &metrics).map_err(refused);
    // Files that only this catalog names are of no concern any more.
    gateway.watch_credentials_of(previous.as_deref());
    Ok((kept.sha256, built?.warnings().to_vec()))
}

/// The snapshot in a kept part, if this version knows all that it needs.
fn read(kept: &Kept) -> Result<pb::Snapshot, Vec<pb::Violation>> {
    let snapshot: pb::Snapshot = decode(&kept.encoded).map_err(|fault| undecodable(&fault))?;
    same_version(Kind::Catalog, snapshot.revision, kept.version)?;
    let unknown = feature::unknown(&snapshot);
    if unknown.is_empty() { Ok(snapshot) } else { Err(unknown) }
}

fn same_version(kind: Kind, inside: u64, outside: u64) -> Result<(), Vec<pb::Violation>> {
    if inside == outside {
        return Ok(());
    }
    let message = format!("the content says {inside}, its envelope {outside}");
    Err(vec![pb::Violation { path: path(kind).to_owned(), message }])
}

fn path(kind: Kind) -> &'static str {
    match kind {
        Kind::Catalog => "revision",
        Kind::Keys | Kind::Secrets => "version",
    }
}

fn undecodable(fault: &SnapshotFault) -> Vec<pb::Violation> {
    let message = format!("{}; the node knows schema {SNAPSHOT_SCHEMA}", describe(fault));
    vec![pb::Violation { path: String::new(), message }]
}

fn describe(fault: &SnapshotFault) -> String {
    match std::error::Error::source(fault) {
        Some(cause) => format!("{fault}: {cause}"),
        None => fault.to_string(),
    }
}
