//! Who is let in, over the real listeners: roles, revocation on every control plane, the end of what was open.

use common::pb::admin as pb;
use pb::access_service_client::AccessServiceClient;
use pb::node_service_client::NodeServiceClient;
use tokio::time::{Instant, timeout};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{Plane, SOON, connect, document, settings, with_token};

/// A revoked token is refused on every control plane after this.
const REVOKED_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

async fn access(plane: &Plane) -> AccessServiceClient<Channel> {
    AccessServiceClient::new(connect(plane.addresses.admin.port()).await)
}

async fn make(plane: &Plane, name: &str, role: pb::Role) -> pb::CreateAdminTokenResponse {
    let request = pb::CreateAdminTokenRequest { name: name.into(), role: role.into(), ttl_seconds: None };
    let request = with_token(&plane.admin_token(), request);
    access(plane).await.create_admin_token(request).await.unwrap().into_inner()
}

async fn revoke(plane: &Plane, id: &str) {
    let request = with_token(&plane.admin_token(), pb::RevokeAdminTokenRequest { id: id.into() });
    access(plane).await.revoke_admin_token(request).await.unwrap();
}

#[tokio::test]
async fn each_role_may_what_it_may_and_a_refusal_says_what_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let made = make(&plane, "grafana", pb::Role::Viewer).await;
    let viewer = crate::support::Admin { token: made.secret.clone(), ..plane.admin().await };
    let refused = viewer.apply(&document(1), None).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(refused.message(), "this needs the role operator; grafana has the role viewer");
    viewer.keys().list_keys(viewer.request(pb::ListKeysRequest {})).await.unwrap();
    let operator = make(&plane, "ci", pb::Role::Operator).await;
    let operator = crate::support::Admin { token: operator.secret, ..plane.admin().await };
    let applied = operator.apply(&document(1), None).await.unwrap();
    assert_eq!(applied.revision.unwrap().author, "ci");
    let request = operator.request(pb::ListAdminTokensRequest {});
    let refused = access(&plane).await.list_admin_tokens(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    plane.stop().await;
}

#[tokio::test]
async fn a_watch_ends_soon_after_its_token() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let made = make(&plane, "grafana", pb::Role::Viewer).await;
    let mut nodes = NodeServiceClient::new(connect(plane.addresses.admin.port()).await);
    let watch = nodes.watch_nodes(with_token(&made.secret, pb::WatchNodesRequest::default())).await.unwrap();
    let mut watch = watch.into_inner();
    assert!(watch.message().await.unwrap().is_some());
    revoke(&plane, &made.token.unwrap().id).await;
    let ended = timeout(REVOKED_WITHIN, watch.message()).await.expect("the watch ends");
    assert_eq!(ended.unwrap_err().code(), Code::Unauthenticated);
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_counts_at_once_and_is_refused_within_seconds_on_every_control_plane() {
    let cluster = crate::database::Postgres::lend().expect("a PostgreSQL");
    let url = cluster.create(&format!("access_{}", std::process::id())).unwrap();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let with_url = |dir: &std::path::Path| control_plane::Settings {
        database_url: Some(url.clone()),
        admin_token: Some("the-same-token-on-every-control-plane".into()),
        ..settings(dir)
    };
    let first = Plane::start_with(with_url(dirs[0].path())).await;
    let second = Plane::start_with(with_url(dirs[1].path())).await;
    assert!(!dirs[0].path().join("admin.token").exists(), "none is made where one is given");
    let bootstrap = "the-same-token-on-every-control-plane";
    let request =
        pb::CreateAdminTokenRequest { name: "ci".into(), role: pb::Role::Operator.into(), ttl_seconds: None };
    let made = access(&first).await.create_admin_token(with_token(bootstrap, request)).await.unwrap();
    let made = made.into_inner();
    let mut there = access(&second).await;
    let me = there.who_am_i(with_token(&made.secret, pb::WhoAmIRequest {})).await.unwrap().into_inner();
    assert_eq!((me.name.as_str(), me.role()), ("ci", pb::Role::Operator));
    let request = pb::RevokeAdminTokenRequest { id: made.token.unwrap().id };
    access(&first).await.revoke_admin_token(with_token(bootstrap, request)).await.unwrap();
    let revoked = Instant::now();
    let refused = timeout(SOON, async {
        loop {
            match there.who_am_i(with_token(&made.secret, pb::WhoAmIRequest {})).await {
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                Err(refused) => return refused,
            }
        }
    });
    let refused = refused.await.unwrap();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    assert!(revoked.elapsed() < REVOKED_WITHIN, "{:?}", revoked.elapsed());
    first.stop().await;
    second.stop().await;
}
