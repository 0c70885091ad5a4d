//! Enrolment, renewal and revocation over a store of their own.

use std::sync::Arc;
use std::time::Duration;

use common::label::Labels;
use common::snapshot::digest;
use rcgen::{CertificateParams, KeyPair};

use super::*;
use super::{enrol as enrol_from, revoke as revoke_by};
use crate::folder::Folder;
use crate::identity::{Identity, rotation, tokens};
use crate::observed::fixture::{Fixture, NOW_MS};

const LIFE: Duration = Duration::from_secs(3600);

struct World {
    fixture: Fixture,
    _folder: Folder,
}

impl World {
    async fn new() -> Self {
        let mut fixture = Fixture::unread().await;
        let folder = Folder::open(&fixture.dir.path().join("ca")).unwrap();
        let own = Authorities::own(&folder, LIFE, NOW_MS).unwrap();
        Arc::get_mut(&mut fixture.plane).unwrap().identity = Identity::new(Some(Arc::new(own)));
        World { fixture, _folder: folder }
    }

    fn plane(&self) -> &Plane {
        &self.fixture.plane
    }

    async fn token(&self, uses: u64, labels: &[(&str, &str)]) -> Shown {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let created =
            tokens::create(self.plane(), &Caller::bootstrap(), (60, uses), labels.collect()).await.unwrap();
        Shown::Token(digest(created.secret.as_bytes()))
    }

    fn later(&self, time: Duration) {
        self.plane().clock.set_ms(self.plane().clock.now_ms() + time.as_millis() as u64);
    }

    fn standing(&self, node_id: &str, key: &KeyPair) -> Standing {
        self.plane().identity.nodes.standing(node_id, &digest(&public(key)))
    }
}

async fn enrol(plane: &Plane, shown: Shown, node_id: &str, csr: &[u8]) -> Result<Given, Error> {
    enrol_from(plane, (shown, "127.0.0.1:1".to_owned()), node_id, csr).await
}

async fn revoke(plane: &Plane, node_id: &str) -> Result<(), Error> {
    revoke_by(plane, &Caller::bootstrap(), node_id).await
}

fn public(key: &KeyPair) -> Vec<u8> {
    rcgen::PublicKeyData::subject_public_key_info(key)
}

fn csr(key: &KeyPair) -> Vec<u8> {
    CertificateParams::default().serialize_request(key).unwrap().der().to_vec()
}

#[tokio::test]
async fn a_node_enrols_with_a_token_and_carries_its_labels() {
    let world = World::new().await;
    let token = world.token(1, &[("zone", "eu")]).await;
    let key = KeyPair::generate().unwrap();
    let given = enrol(world.plane(), token, "n1", &csr(&key)).await.unwrap();
    let chain = common::certificate::chain(given.certificate_pem.as_bytes()).unwrap();
    let facts = common::certificate::read(&chain[0]).unwrap();
    assert_eq!(facts.node_id.as_deref(), Some("n1"));
    assert_eq!(given.authorities_pem, world.plane().identity.authority.as_ref().unwrap().now().pem());
    assert_eq!(world.standing("n1", &key), Standing::Live);
    assert_eq!(world.standing("n2", &key), Standing::Unknown);
    assert_eq!(world.standing("n1", &KeyPair::generate().unwrap()), Standing::Unknown);
    let labels = Labels::from([("zone".to_owned(), "eu".to_owned())]);
    assert_eq!(world.plane().identity.nodes.labels("n1"), labels);
}

#[tokio::test]
async fn a_token_is_good_for_as_many_nodes_as_it_says_whoever_races_for_it() {
    let world = World::new().await;
    let token = world.token(3, &[]).await;
    let mut racing = tokio::task::JoinSet::new();
    for n in 0..10 {
        let (plane, token) = (world.fixture.plane.clone(), token.clone());
        racing.spawn(async move {
            let key = KeyPair::generate().unwrap();
            enrol(&plane, token, &format!("n{n}"), &csr(&key)).await.is_ok()
        });
    }
    let enrolled = racing.join_all().await.into_iter().filter(|is_enrolled| *is_enrolled).count();
    assert_eq!(enrolled, 3);
    assert_eq!(tokens::list(world.plane()).await.unwrap()[0].uses, 3);
    let over = enrol(world.plane(), token, "late", &csr(&KeyPair::generate().unwrap())).await;
    assert!(matches!(over, Err(Error::Unauthenticated(_))));
}

#[tokio::test]
async fn an_answer_that_was_lost_costs_no_second_use() {
    let world = World::new().await;
    let token = world.token(1, &[]).await;
    let key = KeyPair::generate().unwrap();
    for _ in 0..3 {
        enrol(world.plane(), token.clone(), "n1", &csr(&key)).await.unwrap();
    }
    assert_eq!(tokens::list(world.plane()).await.unwrap()[0].uses, 1);
}

#[tokio::test]
async fn a_token_that_is_over_revoked_or_none_enrols_nobody() {
    let world = World::new().await;
    let key = KeyPair::generate().unwrap();
    let refused = async |shown: Shown| {
        matches!(enrol(world.plane(), shown, "n1", &csr(&key)).await, Err(Error::Unauthenticated(_)))
    };
    assert!(refused(Shown::Nothing).await);
    assert!(refused(Shown::Token(digest(b"enrol-guessed"))).await);
    let over = world.token(1, &[]).await;
    world.later(Duration::from_secs(61));
    assert!(refused(over).await);
    let revoked = world.token(1, &[]).await;
    let id = tokens::list(world.plane()).await.unwrap()[1].id.clone();
    assert!(tokens::revoke(world.plane(), &Caller::bootstrap(), &id).await.unwrap().revoked_at_ms.is_some());
    assert!(refused(revoked).await);
    assert!(matches!(
        tokens::revoke(world.plane(), &Caller::bootstrap(), "token-0").await,
        Err(Error::NotFound { .. })
    ));
    assert_eq!(world.standing("n1", &key), Standing::Unknown);
}

#[tokio::test]
async fn a_key_renews_also_when_its_certificate_is_over_and_another_key_does_not() {
    let world = World::new().await;
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let unknown = renew(world.plane(), "n1", &csr(&key)).await;
    assert!(matches!(unknown, Err(Error::NotFound { .. })));
    enrol(world.plane(), Shown::Shared, "n1", &csr(&key)).await.unwrap();
    world.later(100 * LIFE);
    let given = renew(world.plane(), "n1", &csr(&key)).await.unwrap();
    let chain = common::certificate::chain(given.certificate_pem.as_bytes()).unwrap();
    let facts = common::certificate::read(&chain[0]).unwrap();
    assert_eq!(facts.expires_at_ms, NOW_MS + 101 * LIFE.as_millis() as u64);
    assert!(matches!(renew(world.plane(), "n1", &csr(&other)).await, Err(Error::NotFound { .. })));
    assert!(matches!(renew(world.plane(), "n2", &csr(&key)).await, Err(Error::NotFound { .. })));
    let nonsense = renew(world.plane(), "n1", b"nothing").await;
    assert!(matches!(nonsense, Err(Error::Argument { field: "csr", .. })));
    let nameless = renew(world.plane(), "a/b", &csr(&key)).await;
    assert!(matches!(nameless, Err(Error::Argument { field: "node_id", .. })));
}

#[tokio::test]
async fn a_revoked_node_comes_back_only_with_a_token_that_was_made_afterwards() {
    let world = World::new().await;
    let key = KeyPair::generate().unwrap();
    let old = world.token(2, &[]).await;
    enrol(world.plane(), old.clone(), "n1", &csr(&key)).await.unwrap();
    world.later(Duration::from_secs(1));
    let turned_out = world.plane().identity.nodes.revoked("n1");
    revoke(world.plane(), "n1").await.unwrap();
    turned_out.await;
    assert_eq!(world.standing("n1", &key), Standing::Revoked);
    for shown in [old, Shown::Shared] {
        let new = csr(&KeyPair::generate().unwrap());
        assert!(matches!(enrol(world.plane(), shown, "n1", &new).await, Err(Error::Forbidden(_))));
    }
    assert!(matches!(renew(world.plane(), "n1", &csr(&key)).await, Err(Error::Forbidden(_))));
    assert_eq!(tokens::list(world.plane()).await.unwrap()[0].uses, 1, "what was refused used nothing");
    world.later(Duration::from_secs(1));
    let new = world.token(1, &[]).await;
    enrol(world.plane(), new, "n1", &csr(&key)).await.unwrap();
    assert_eq!(world.standing("n1", &key), Standing::Live);
    assert!(matches!(revoke(world.plane(), "nobody").await, Err(Error::NotFound { .. })));
    drop(world.fixture.connect("plain", &[]));
    revoke(world.plane(), "plain").await.unwrap();
    assert!(world.plane().identity.nodes.is_revoked("plain"), "it never had a certificate");
}

#[tokio::test]
async fn another_authority_signs_what_is_new_and_the_old_one_goes_when_nothing_needs_it() {
    let world = World::new().await;
    let plane = world.plane();
    let keys = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
    for (n, key) in keys.iter().enumerate() {
        enrol(plane, Shown::Shared, &format!("n{n}"), &csr(key)).await.unwrap();
    }
    let before = plane.identity.authorities_sha256();
    rotation::rotate(plane, &Caller::bootstrap()).await.unwrap();
    assert_ne!(plane.identity.authorities_sha256(), before);
    let live =
        async || rotation::list(plane).await.unwrap().iter().map(|shown| shown.live).collect::<Vec<_>>();
    assert_eq!(live().await, [0, 2]);
    rotation::step(plane).await.unwrap();
    renew(plane, "n0", &csr(&keys[0])).await.unwrap();
    rotation::step(plane).await.unwrap();
    assert_eq!(live().await, [1, 1], "one still needs the old one");
    revoke(plane, "n1").await.unwrap();
    rotation::step(plane).await.unwrap();
    assert_eq!(live().await, [1]);
}

#[tokio::test]
async fn without_an_authority_nobody_enrols_and_it_says_what_is_missing() {
    let fixture = Fixture::unread().await;
    let key = KeyPair::generate().unwrap();
    let refused = enrol(&fixture.plane, Shown::Shared, "n1", &csr(&key)).await;
    assert!(matches!(refused, Err(Error::Precondition(text)) if text.contains("--ca-cert")));
}
