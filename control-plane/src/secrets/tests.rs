use super::*;
use crate::observed::fixture::{CATALOG, Fixture};
use crate::revision::{Apply, apply};

const VALUE: &str = "sk-quite-a-secret-value";

fn me() -> Caller {
    Caller::bootstrap()
}

fn value(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

fn catalog(secret: &str) -> String {
    CATALOG.replacen("env:KEY", &format!("secret:{secret}"), 1)
}

async fn set_one(plane: &Plane, name: &str, text: &str) -> Known {
    set(plane, &me(), name, &value(text)).await.unwrap()
}

#[tokio::test]
async fn a_value_is_kept_sealed_and_is_in_no_file_and_no_answer() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    let first = set_one(plane, "direct", VALUE).await;
    let second = set_one(plane, "direct", &format!("{VALUE}2")).await;
    assert!(second.kept.version > first.kept.version);
    assert_eq!(
        plane.wanted().unwrap().target.secrets.part.version,
        second.kept.version,
        "it is told at once"
    );
    let told = format!(
        "{second:?} {:?}",
        plane
            .store
            .log(&crate::store::entry::Ask { before: 99, limit: 99, ..Default::default() })
            .await
            .unwrap()
    );
    assert!(told.contains("secret.set") && !told.contains(VALUE), "{told}");
    for file in std::fs::read_dir(fixture.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes()));
    }
    let opened = plane.keyring.open(&second.kept).unwrap();
    assert_eq!(opened.expose(), format!("{VALUE}2"));
}

#[tokio::test]
async fn names_and_sizes_that_cannot_be_are_refused() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    for name in ["", "a b", "ä"] {
        let refused = set(plane, &me(), name, &value("x")).await;
        assert!(matches!(refused, Err(Error::Argument { field: "name", .. })), "{refused:?}");
    }
    let others: Vec<SealedSecret> = (0..SECRETS_MAX)
        .map(|n| SealedSecret { name: n.to_string(), sealed: vec![1], ..SealedSecret::default() })
        .collect();
    assert!(has_room(&others, "7", 1).is_ok(), "it takes the place of one");
    assert!(has_room(&others, "new", 1).is_err());
    assert!(has_room(&[], "a", SECRETS_BYTES_MAX + 1).is_err());
}

#[tokio::test]
async fn a_document_names_no_secret_that_there_is_not_and_the_way_back_is_never_barred() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    let asked = |document: &str| Apply::of(document.to_owned(), me());
    let Err(Error::Catalog(faults)) = apply(plane, asked(&catalog("direct"))).await else {
        panic!("it was applied")
    };
    assert_eq!((faults[0].path.as_str(), faults[0].line), ("channels.direct.credential", 5));
    assert!(faults[0].message.contains("sluice secret set direct"), "{faults:?}");
    set_one(plane, "direct", VALUE).await;
    assert_eq!(apply(plane, asked(&catalog("direct"))).await.unwrap().revision.number, 2);

    let by = list(plane).await.unwrap();
    assert_eq!(by[0].used_by, [Use { channel: "direct".to_owned(), revision: 2 }]);
    let kept = delete(plane, &me(), "direct", InUse::Keep).await.unwrap_err().to_string();
    assert_eq!(kept, "the secret direct is used by direct (revision 2)");
    delete(plane, &me(), "direct", InUse::Delete).await.unwrap();
    assert!(matches!(delete(plane, &me(), "direct", InUse::Delete).await, Err(Error::NotFound { .. })));
    assert!(list(plane).await.unwrap().is_empty());
    let back =
        Apply { replaces: crate::revision::Replaces::Undone("test".to_owned()), ..asked(&catalog("direct")) };
    assert_eq!(apply(plane, back).await.unwrap().revision.number, 3, "an undoing goes through");
}

#[tokio::test]
async fn nodes_without_a_certificate_of_their_own_are_named_where_a_secret_is() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    set_one(plane, "direct", VALUE).await;
    let _connected: Vec<_> = (1..=7).map(|n| fixture.connect(&format!("n{n}"), &[])).collect();
    let certified = crate::nodes::Facts { is_certified: true, ..Default::default() };
    let _certified = plane.nodes.connect("sound", certified);
    let dry = Apply { dry_run: true, ..Apply::of(catalog("direct"), me()) };
    let warnings = apply(plane, dry).await.unwrap().warnings;
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!((warning.path.as_str(), warning.line), ("channels.direct.credential", 5));
    assert_eq!(
        warning.message,
        "secret:direct: n1, n2, n3, n4, n5 and 2 more will not get it and suspend the channel: they lack a \
         certificate of their own (mutual TLS)"
    );
    let plain = Apply { dry_run: true, ..Apply::of(CATALOG.replace("2.50", "2.60"), me()) };
    assert_eq!(apply(plane, plain).await.unwrap().warnings, [], "nothing is said where none is named");
}

#[tokio::test]
async fn a_new_key_takes_over_when_all_is_sealed_anew() {
    use keyring::Keyring;

    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    set_one(plane, "a", "sk-a").await;
    let old = fixture.dir.path().join("secret.key");
    let new = fixture.dir.path().join("new.key");
    crate::folder::write(fixture.dir.path(), "new.key", &"6b".repeat(32), 0o600).unwrap();
    let (_, rows) = plane.store.secrets().await.unwrap();
    let alone = Keyring::load(std::slice::from_ref(&new)).unwrap();
    assert!(matches!(alone.open(&rows[0]), Err(keyring::OpenFault::OtherKey { .. })));
    let both = std::sync::Arc::new(Keyring::load(&[new, old]).unwrap());
    let rotating = fixture.with_keyring(both).await;
    let (count, key_id) = rekey(&rotating, &me()).await.unwrap();
    assert_eq!((count, Some(key_id.as_str())), (1, alone.sealing_id()));
    let (_, rows) = plane.store.secrets().await.unwrap();
    assert_eq!(alone.open(&rows[0]).unwrap().expose(), "sk-a", "the old one is of no use any more");
    assert_eq!(rekey(&rotating, &me()).await.unwrap().0, 0, "there is nothing left to do");
    plane.head.refresh(&plane.store).await.unwrap();
    assert!(plane.wanted().unwrap().target.secrets.fault().is_some(), "who lacks the new key says so");
}

#[tokio::test]
async fn what_is_sealed_for_a_node_holds_every_value_and_says_which_list_it_is() {
    let fixture = Fixture::with_catalog().await;
    let plane = &fixture.plane;
    set_one(plane, "a", "sk-a").await;
    set_one(plane, "b", "sk-b").await;
    let held = plane.wanted().unwrap().target.secrets.clone();
    let pair = rcgen::KeyPair::generate().unwrap();
    let key = common::hpke::OpeningKey::of_pkcs8(&pair.serialize_der()).unwrap();
    let sealed = held.seal_for(&plane.keyring, &key.recipient(), "n1").unwrap();
    assert_eq!((sealed.version, &sealed.sha256[..]), (3, &held.part.sha256[..]));
    let opened = common::sealed::open(&key, "n1", &sealed).unwrap();
    assert_eq!(
        opened.iter().map(|(name, one)| (name.as_str(), one.expose())).collect::<Vec<_>>(),
        [("a", "sk-a"), ("b", "sk-b")]
    );
    set_one(plane, "b", "sk-b").await;
    assert_ne!(
        plane.wanted().unwrap().target.secrets.part.sha256,
        held.part.sha256,
        "it says nothing of values"
    );
}

#[tokio::test]
async fn another_control_plane_has_a_changed_secret_at_its_next_look_and_of_two_that_set_at_once_both_are_kept()
 {
    let fixture = Fixture::with_catalog().await;
    let here = &fixture.plane;
    let there = fixture.with_keyring(here.keyring.clone()).await;
    set_one(here, "a", "sk-1").await;
    there.head.refresh(&there.store).await.unwrap();
    let [ours, theirs] = [here, &there].map(|plane| plane.wanted().unwrap().target.secrets.clone());
    assert_eq!(ours, theirs, "and calls it alike, so that a node that moves over is sent nothing");
    let (one, other) = tokio::join!(set_one(here, "a", "sk-2"), set_one(&there, "b", "sk-3"));
    assert_ne!(one.kept.version, other.kept.version);
    let kept = list(here).await.unwrap();
    let opened: Vec<_> =
        kept.iter().map(|known| here.keyring.open(&known.kept).unwrap().expose().to_owned()).collect();
    assert_eq!(opened, ["sk-2", "sk-3"]);
}
