//! A control plane over a store of its own, with a catalog and counts in it, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::clock::Clock;
use common::tasks::Tasks;
use common::window::Counts;
use tokio::sync::watch;

use crate::access::Caller;
use crate::access::known::Known;
use crate::alerts::deliver::Alerting;
use crate::alerts::receivers::Receivers;
use crate::beats::Beats;
use crate::identity::Identity;
use crate::leader::Leader;
use crate::metrics::Metrics;
use crate::nodes::{Connection, Facts, Nodes, Pause};
use crate::plane::Plane;
use crate::records::Keeping;
use crate::records::book::Book;
use crate::revision::head::Head;
use crate::revision::{self, Apply};
use crate::secrets::keyring::Keyring;
use crate::store::Store;
use crate::store::rows::{Claim, Replica};

/// What its clock says.
pub const NOW_MS: u64 = 1_796_046_279_000;

/// What it applies.
pub const CATALOG: &str = r#"
    [channels.direct]
    dialects = ["openai-chat"]
    base_url = "https://direct.example/v1"
    credential = "env:KEY"
    [channels.reseller]
    dialects = ["openai-chat"]
    base_url = "https://reseller.example/v1"
    credential = "env:KEY"
    [models."gpt-4o"]
    routes = [
      { channel = "direct", upstream_model = "gpt-4o", cost = { input = "2.50", output = "10.00" } },
      { channel = "reseller", upstream_model = "gpt-4o", cost = { input = "2.00", output = "8.00" } },
    ]
"#;

/// A control plane and the folder that it keeps things in.
pub struct Fixture {
    pub plane: Arc<Plane>,
    pub dir: tempfile::TempDir,
}

impl Fixture {
    /// A control plane that has just been started.
    pub async fn unread() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(NOW_MS);
        let key = dir.path().join("secret.key");
        crate::folder::write(dir.path(), "secret.key", &"5a".repeat(32), 0o600).unwrap();
        let keyring = Arc::new(Keyring::load(&[key]).unwrap());
        let store = Store::open_sqlite(dir.path(), NOW_MS).await.unwrap();
        let head = Head::unread(clock.clone(), keyring.clone());
        let plane = Plane { head, keyring, ..bare(store, clock) };
        Fixture { plane: Arc::new(plane), dir }
    }

    /// The same with a catalog.
    pub async fn with_catalog() -> Self {
        let fixture = Fixture::unread().await;
        let ask = Apply::of(CATALOG.as_bytes(), Caller::bootstrap());
        revision::apply(&fixture.plane, ask).await.unwrap();
        fixture
    }

    /// Another control plane over the same store, with other keys of secrets.
    pub async fn with_keyring(&self, keyring: Arc<Keyring>) -> Plane {
        let clock = Clock::manual(NOW_MS);
        let head = Head::unread(clock.clone(), keyring.clone());
        head.refresh(&self.plane.store).await.unwrap();
        Plane { head, keyring, ..bare(self.plane.store.clone(), clock) }
    }

    /// Does something to the database behind the store's back.
    pub async fn execute(&self, sql: &'static str) {
        use sqlx::Connection as _;
        let url = format!("sqlite://{}", self.dir.path().join("sluice.db").display());
        let mut conn = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
    }

    /// Counts a window that ended so long ago. First bytes came after 220 ms, and to callers after 330 ms.
    pub async fn count(
        &self,
        seq: u64,
        seconds_ago: u64,
        attempts: &[(&str, &str, u64)],
        requests: &[(&str, u64)],
    ) {
        let model = "gpt-4o".to_owned();
        let attempts =
            attempts.iter().map(|(c, end, n)| ((model.clone(), (*c).to_owned(), (*end).to_owned()), *n));
        let requests = requests.iter().map(|(outcome, n)| ((model.clone(), (*outcome).to_owned()), *n));
        let (attempts, requests): (BTreeMap<_, _>, BTreeMap<_, _>) = (attempts.collect(), requests.collect());
        let good = attempts.iter().filter(|((_, _, end), _)| end == "ok");
        let of_channels = good.map(|((model, channel, _), n)| ((model.clone(), channel.clone(), 220), *n));
        let served = requests.iter().filter(|((_, outcome), _)| outcome == "served");
        let of_callers = served.map(|((model, _), n)| ((model.clone(), String::new(), 330), *n));
        let first_bytes = of_channels.chain(of_callers).collect();
        let counts = Counts { attempts, requests, first_bytes };
        let claim = Claim {
            node_id: "node-a".to_owned(),
            boot_id: "boot".to_owned(),
            first_seq: seq,
            last_seq: seq,
            from_ms: NOW_MS - seconds_ago * 1000 - 10_000,
            until_ms: NOW_MS - seconds_ago * 1000,
            counts,
            totals: None,
            acknowledged_through: seq - 1,
        };
        self.plane.store.claim(&claim).await.unwrap();
    }

    pub fn connect(&self, id: &str, open: &[&str]) -> Connection {
        let open_channels = open.iter().map(|channel| (*channel).to_owned()).collect();
        self.plane.nodes.connect(id, Facts { open_channels, in_flight: 7, ..Facts::default() })
    }
}

/// A control plane that has read nothing yet and has no keys.
fn bare(store: Store, clock: Clock) -> Plane {
    let own = Replica { id: "p1".to_owned(), name: "one:7444".to_owned(), ..Replica::default() };
    Plane {
        store,
        head: Head::unread(clock.clone(), Arc::default()),
        keyring: Arc::default(),
        access: Known::default(),
        nodes: Nodes::new(&own, clock.clone()),
        identity: Identity::default(),
        metrics: Metrics::new(),
        leader: Leader::new(&own.id),
        own,
        alerting: Alerting::new(Receivers::default(), String::new()).unwrap(),
        beats: Beats::default(),
        keeping: Keeping::default(),
        book: Book::default(),
        listeners: Vec::new(),
        clock,
        streams: Tasks::new(),
        counted: watch::Sender::new(0),
    }
}

/// A channel whose balance has been spent for a minute, and that is asked again in another.
pub fn suspended(channel: &str) -> Pause {
    Pause {
        channel: channel.to_owned(),
        model: String::new(),
        what: "suspended".to_owned(),
        class: "balance".to_owned(),
        since_ms: NOW_MS - 60_000,
        until_ms: NOW_MS + 60_000,
    }
}
