//! What operators see.

use common::pb::admin as pb;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::support::{Node, Plane, connect, document, with_token};

#[tokio::test]
async fn a_document_becomes_a_revision_with_author_message_and_digest() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let admin = plane.admin().await;
    let applied = admin.apply(&document(1), Some(0)).await.unwrap();
    let revision = applied.revision.unwrap();
    assert!(applied.changed && revision.created_at_ms > 0);
    assert_eq!(
        (revision.number, revision.author.as_str(), revision.message.as_str()),
        (1, "admin", "by a test")
    );
    assert_eq!(revision.sha256.len(), 64);
    assert_eq!(admin.apply(&document(2), Some(1)).await.unwrap().revision.unwrap().number, 2);

    let get = |revision| admin.request(pb::GetCatalogRequest { revision });
    let current = admin.catalog().get_catalog(get(0)).await.unwrap().into_inner();
    assert_eq!(current.document, document(2).into_bytes());
    let first = admin.catalog().get_catalog(get(1)).await.unwrap().into_inner();
    assert_eq!((first.revision.unwrap(), first.document), (revision, document(1).into_bytes()));
    assert_eq!(admin.catalog().get_catalog(get(3)).await.unwrap_err().code(), Code::NotFound);

    let list = admin.request(pb::ListRevisionsRequest::default());
    let listed = admin.catalog().list_revisions(list).await.unwrap().into_inner().revisions;
    assert_eq!(listed.iter().map(|r| r.number).collect::<Vec<_>>(), [2, 1]);
    plane.stop().await;
}

#[tokio::test]
async fn fr_043_the_same_document_again_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let admin = plane.admin().await;
    let first = admin.apply(&document(1), None).await.unwrap();
    let again = admin.apply(&document(1), Some(1)).await.unwrap();
    assert!(!again.changed);
    assert_eq!(again.revision, first.revision);
    plane.stop().await;
}

#[tokio::test]
async fn a_stale_expected_revision_is_refused_with_the_current_number() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let admin = plane.admin().await;
    for n in 1..=3 {
        admin.apply(&document(n), None).await.unwrap();
    }
    let refused = admin.apply(&document(4), Some(1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    assert_eq!(refused.get_details_error_info().unwrap().metadata["revision"], "3");
    plane.stop().await;
}

#[tokio::test]
async fn of_many_who_apply_to_the_same_revision_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let mut applying = tokio::task::JoinSet::new();
    for n in 1..=10 {
        let admin = plane.admin().await;
        applying.spawn(async move { admin.apply(&document(n), Some(0)).await.is_ok() });
    }
    assert_eq!(applying.join_all().await.into_iter().filter(|ok| *ok).count(), 1);
    // Without an expected revision all of them find their place.
    let mut applying = tokio::task::JoinSet::new();
    for n in 11..=14 {
        let admin = plane.admin().await;
        applying
            .spawn(async move { admin.apply(&document(n), None).await.unwrap().revision.unwrap().number });
    }
    let mut numbers = applying.join_all().await;
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5]);
    plane.stop().await;
}

#[tokio::test]
async fn every_fault_of_a_document_is_told_with_path_and_line_and_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let admin = plane.admin().await;
    let faulty =
        document(1).replace("openai-chat", "openai-chit").replace("channel = \"a\"", "channel = \"b\"");
    let refused = admin.apply(&faulty, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let violations = refused.get_details_bad_request().unwrap().field_violations;
    assert!(violations.len() >= 2, "{violations:#?}");
    let channel = violations.iter().find(|v| v.field == "models.m.routes[0].channel").unwrap();
    assert!(channel.description.starts_with("line 8: "), "{channel:?}");

    let validate = pb::ValidateCatalogRequest { document: faulty.into_bytes() };
    let validated = admin.catalog().validate_catalog(admin.request(validate)).await.unwrap().into_inner();
    assert_eq!(validated.faults.len(), violations.len());
    let none = admin.catalog().get_catalog(admin.request(pb::GetCatalogRequest::default())).await;
    assert_eq!(none.unwrap_err().code(), Code::NotFound);
    plane.stop().await;
}

#[tokio::test]
async fn hundreds_of_faults_fit_into_one_answer() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let faulty: String = (0..500).map(|n| format!("[channels.c{n}]\nbase_url = 7\n")).collect();
    let refused = plane.admin().await.apply(&faulty, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.get_details_bad_request().unwrap().field_violations.len() > 100);
    plane.stop().await;
}

#[tokio::test]
async fn a_document_above_the_limit_is_refused_and_not_swallowed() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let large = "#".repeat(common::limits::CATALOG_BYTES_MAX + 1);
    let refused = plane.admin().await.apply(&large, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    plane.stop().await;
}

#[tokio::test]
async fn a_key_is_shown_once_and_its_digest_goes_to_the_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let (mut node, _) = Node::connected(&plane, "n1").await;
    let admin = plane.admin().await;
    let create = admin.request(pb::CreateKeyRequest { name: "app".into() });
    let created = admin.keys().create_key(create).await.unwrap().into_inner();
    assert!(created.secret.starts_with("sk-") && created.secret.len() >= 50);

    let update = node.update().await;
    let keys = update.target.as_ref().unwrap().keys.clone().unwrap();
    let unpacked = common::snapshot::unpack(&update.keys_zstd, &keys.sha256).unwrap();
    let set: common::pb::fleet::KeySet = common::snapshot::decode(&unpacked).unwrap();
    assert!(set.keys_exist && set.version == keys.version);
    assert_eq!(set.keys[0].sha256, common::snapshot::digest(created.secret.as_bytes()));
    assert!(update.catalog_zstd.is_empty());
    node.apply(&update).await;

    let id = created.key.unwrap().id;
    let revoke = admin.request(pb::RevokeKeyRequest { id: id.clone() });
    let revoked = admin.keys().revoke_key(revoke).await.unwrap().into_inner().key.unwrap();
    assert!(revoked.revoked_at_ms > 0);
    let update = node.update().await;
    let keys = update.target.as_ref().unwrap().keys.clone().unwrap();
    let unpacked = common::snapshot::unpack(&update.keys_zstd, &keys.sha256).unwrap();
    let set: common::pb::fleet::KeySet = common::snapshot::decode(&unpacked).unwrap();
    assert!(set.keys_exist && set.keys.is_empty(), "once there was a key, nobody calls without one");

    let listed = admin.keys().list_keys(admin.request(pb::ListKeysRequest {})).await.unwrap().into_inner();
    assert_eq!(listed.keys, [revoked]);
    let unknown = admin.request(pb::RevokeKeyRequest { id: "key-x".into() });
    assert_eq!(admin.keys().revoke_key(unknown).await.unwrap_err().code(), Code::NotFound);
    let nameless = admin.request(pb::CreateKeyRequest { name: " ".into() });
    assert_eq!(admin.keys().create_key(nameless).await.unwrap_err().code(), Code::InvalidArgument);
    plane.stop().await;
}

#[tokio::test]
async fn without_the_right_token_nothing_but_health_answers() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let conn = connect(plane.addresses.admin.port()).await;
    let node_token = plane.node_token();
    for token in ["", "wrong", &node_token] {
        let mut keys = pb::key_service_client::KeyServiceClient::new(conn.clone());
        let refused = keys.list_keys(with_token(token, pb::ListKeysRequest {})).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        let mut reflection = ServerReflectionClient::new(conn.clone());
        let refused = reflection.server_reflection_info(with_token(token, tokio_stream::empty())).await;
        assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    }
    let mut catalog = pb::catalog_service_client::CatalogServiceClient::new(conn.clone());
    let refused =
        catalog.list_revisions(Request::new(pb::ListRevisionsRequest::default())).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.details().is_empty());

    let fleet = connect(plane.addresses.fleet.port()).await;
    let refused = Node::connect_over(fleet.clone(), &plane.admin_token(), "n", None).await;
    assert_eq!(refused.err().unwrap().code(), Code::Unauthenticated);

    for conn in [conn, fleet] {
        let mut health = tonic_health::pb::health_client::HealthClient::new(conn);
        let check = tonic_health::pb::HealthCheckRequest::default();
        let status = health.check(check).await.unwrap().into_inner().status();
        assert_eq!(status, tonic_health::pb::health_check_response::ServingStatus::Serving);
    }
    plane.stop().await;
}

#[tokio::test]
async fn reflection_names_every_service() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let admin = plane.admin().await;
    let list = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(admin.conn.clone());
    let asked = admin.request(tokio_stream::once(list));
    let mut answers = client.server_reflection_info(asked).await.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(services)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list of services")
    };
    let names: Vec<&str> = services.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["Catalog", "Chain", "Key", "Node", "Status"] {
        let name = format!("sluice.admin.v1.{name}Service");
        assert!(names.contains(&name.as_str()), "{name} is not among {names:?}");
    }
    plane.stop().await;
}
