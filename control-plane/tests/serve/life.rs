//! Start, readiness, restart, shutdown.

use std::path::Path;
use std::time::Duration;

use common::pb::admin::NodeState;
use common::pb::fleet::sync_response::Message as Hears;
use control_plane::{Config, ServeError, Settings};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::support::{Node, Plane, SOON, Wire, connect, document, get, settings, with_token};

const SHUTDOWN_MAX: Duration = Duration::from_secs(15);

#[tokio::test]
async fn probes_and_metrics_answer_and_listen_json_tells_where() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let http = plane.addresses.http.port();
    for path in ["/healthz", "/readyz", "/metrics", "/", "/api/v1/status"] {
        assert_eq!(get(http, path, None).await.0, 200, "{path}");
    }
    assert_eq!(get(http, "/nothing", None).await.0, 404);
    let text = std::fs::read_to_string(dir.path().join("listen.json")).unwrap();
    let expected = format!(r#""http":"127.0.0.1:{http}""#);
    assert!(text.contains(&expected) && text.contains("\"admin\"") && text.contains("\"fleet\""), "{text}");
    plane.stop().await;
    assert!(!dir.path().join("listen.json").exists());
}

#[tokio::test]
async fn off_loopback_the_page_asks_for_the_admin_token_and_the_probes_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let everywhere = Settings {
        http_listen: Some("0.0.0.0:0".into()),
        insecure_plaintext: Some(true),
        ..settings(dir.path())
    };
    let plane = Plane::start_with(everywhere).await;
    let (http, token) = (plane.addresses.http.port(), plane.admin_token());
    for path in ["/", "/metrics", "/api/v1/status"] {
        assert_eq!(get(http, path, None).await.0, 401, "{path}");
        assert_eq!(get(http, path, Some("wrong")).await.0, 401, "{path}");
        assert_eq!(get(http, path, Some(&token)).await.0, 200, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(http, path, None).await.0, 200, "{path}");
    }
    plane.stop().await;
    let public = Settings {
        http_listen: Some("0.0.0.0:0".into()),
        insecure_plaintext: Some(true),
        public_status: Some(true),
        ..settings(dir.path())
    };
    let plane = Plane::start_with(public).await;
    let http = plane.addresses.http.port();
    for (path, status) in [("/", 200), ("/api/v1/status", 200), ("/metrics", 401)] {
        assert_eq!(get(http, path, None).await.0, status, "{path} where the status is public");
    }
    plane.stop().await;
}

#[tokio::test]
async fn with_a_certificate_every_listener_speaks_tls_and_may_stand_anywhere() {
    use tonic::transport::{Certificate, Channel, ClientTlsConfig};
    let dir = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, pair.cert.pem()).unwrap();
    std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    let everywhere = Settings {
        admin_listen: Some("0.0.0.0:0".into()),
        fleet_listen: Some("0.0.0.0:0".into()),
        http_listen: Some("0.0.0.0:0".into()),
        tls_cert: Some(cert),
        tls_key: Some(key),
        ..settings(&dir.path().join("data"))
    };
    let plane = Plane::start_with(everywhere).await;
    for port in [plane.addresses.admin.port(), plane.addresses.fleet.port()] {
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pair.cert.pem()));
        let endpoint = Channel::from_shared(format!("https://localhost:{port}")).unwrap();
        let conn = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
        let mut health = tonic_health::pb::health_client::HealthClient::new(conn);
        health.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap();
    }
    let plain = Channel::from_shared(format!("http://127.0.0.1:{}", plane.addresses.admin.port())).unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(plain.connect_lazy());
    assert!(health.check(tonic_health::pb::HealthCheckRequest::default()).await.is_err());
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_control_planes_on_one_postgresql_want_the_same() {
    let cluster = crate::database::Postgres::lend().expect("a PostgreSQL");
    let url = cluster.create(&format!("serve_{}", std::process::id())).unwrap();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let with_url = |dir: &Path| Settings { database_url: Some(url.clone()), ..settings(dir) };
    let first = Plane::start_with(with_url(dirs[0].path())).await;
    let second = Plane::start_with(with_url(dirs[1].path())).await;
    let (mut node, target) = Node::connected(&second, "n1").await;
    let revision = first.apply(&document(1)).await;
    let reached = node.reach(revision).await;
    assert_eq!(reached.epoch, target.epoch);
    assert_eq!(second.apply(&document(2)).await, 2);
    node.reach(2).await;
    first.stop().await;
    assert_eq!(second.apply(&document(3)).await, 3);
    node.reach(3).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_it_serves_nodes_from_memory_and_refuses_writes() {
    use common::pb::fleet::{ReportRequest, Window, fleet_report_client::FleetReportClient};
    use sqlx::Connection as _;
    let cluster = crate::database::Postgres::lend().expect("a PostgreSQL");
    let name = format!("gone_{}", std::process::id());
    let url = cluster.create(&name).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { database_url: Some(url.clone()), ..settings(dir.path()) };
    let plane = Plane::start_with(settings).await;
    plane.apply(&document(1)).await;
    let (_node, target) = Node::connected(&plane, "n1").await;

    let mut server = sqlx::PgConnection::connect(&url.replace(&name, "postgres")).await.unwrap();
    let drop_database = sqlx::AssertSqlSafe(format!("drop database {name} with (force)"));
    sqlx::raw_sql(drop_database).execute(&mut server).await.unwrap();

    let refused = plane.admin().await.apply(&document(2), None).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(!refused.message().contains(&name), "the database's words stay inside: {refused:?}");
    let window = Window { first_seq: 1, last_seq: 1, ..Default::default() };
    let report = ReportRequest {
        node_id: "n1".into(),
        boot_id: "b".into(),
        window: Some(window),
        ..Default::default()
    };
    let mut client = FleetReportClient::new(connect(plane.addresses.fleet.port()).await);
    let refused = client.report(with_token(&plane.node_token(), report)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);

    let mut node = plane.node("n2", Some(target)).await;
    node.welcome().await;
    assert!(matches!(node.hear().await, Ok(Some(Hears::UpToDate(_)))));
    assert_eq!(get(plane.addresses.http.port(), "/readyz", None).await.0, 200);
    let took = plane.stop().await;
    assert!(took < SHUTDOWN_MAX, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_falls_silent_holds_nobody_up() {
    let cluster = crate::database::Postgres::lend().expect("a PostgreSQL");
    let name = format!("silent_{}", std::process::id());
    let url = cluster.create(&name).unwrap();
    let folder = url.split("host=").nth(1).unwrap();
    let wire = Wire::to(format!("{folder}/.s.PGSQL.5432").into()).await;
    let dir = tempfile::tempdir().unwrap();
    let through = format!("postgres://postgres@127.0.0.1:{}/{name}", wire.port);
    let plane = Plane::start_with(Settings { database_url: Some(through), ..settings(dir.path()) }).await;
    plane.apply(&document(1)).await;

    wire.fall_silent();
    let refused = timeout(SOON, async { plane.admin().await.apply(&document(2), None).await });
    assert_eq!(refused.await.expect("an answer").unwrap_err().code(), Code::Unavailable);
    let took = plane.stop().await;
    assert!(took < SHUTDOWN_MAX, "{took:?}");
}

#[tokio::test]
async fn a_restart_keeps_revisions_tokens_epoch_and_the_nodes_that_were_there() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let token = plane.admin_token();
    plane.apply(&document(1)).await;
    let (mut node, target) = Node::connected(&plane, "n1").await;
    plane.nodes(|nodes| nodes[0].state() == NodeState::InSync).await;
    plane.stop().await;
    assert!(matches!(node.hear().await, Ok(Some(Hears::Drain(_)))));
    assert!(matches!(node.hear().await, Ok(None)));

    let plane = Plane::start(dir.path()).await;
    assert_eq!(plane.admin_token(), token);
    let shown = plane.nodes(|nodes| !nodes.is_empty()).await;
    assert_eq!((shown[0].id.as_str(), shown[0].connected, shown[0].applied_revision), ("n1", false, 1));
    let mut node = plane.node("n1", Some(target)).await;
    node.welcome().await;
    assert!(matches!(node.hear().await, Ok(Some(Hears::UpToDate(_)))));
    assert_eq!(plane.apply(&document(2)).await, 2);
    plane.stop().await;
}

#[tokio::test]
async fn two_control_planes_do_not_share_a_data_folder() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let config = Config::check(settings(dir.path())).unwrap();
    let second = control_plane::serve(config, CancellationToken::new()).await;
    assert!(matches!(second, Err(ServeError::Folder(_))));
    assert!(dir.path().join("listen.json").exists(), "the first one's addresses stay");
    plane.stop().await;
}

#[tokio::test]
async fn nodes_are_sent_a_restored_backup_whole_once_a_new_epoch_begins() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    plane.apply(&document(1)).await;
    let (_node, mut target) = Node::connected(&plane, "n1").await;
    plane.stop().await;
    // The node ran on to what the backup does not hold.
    target.catalog.as_mut().unwrap().version = 9;
    target.keys.as_mut().unwrap().version = 9;
    let plane = Plane::start_with(Settings { new_epoch: Some(true), ..settings(dir.path()) }).await;
    let mut node = plane.node("n1", Some(target.clone())).await;
    let welcome = node.welcome().await;
    let update = node.update().await;
    let sent = update.target.unwrap();
    assert!(sent.epoch > target.epoch && sent.epoch == welcome.epoch);
    assert_eq!((sent.catalog.unwrap().version, sent.keys.unwrap().version), (1, 1));
    assert!(!update.catalog_zstd.is_empty() && !update.keys_zstd.is_empty());
    plane.stop().await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let config = Config::check(Settings { fleet_listen: Some(at.clone()), ..settings(dir.path()) }).unwrap();
    let refused = control_plane::serve(config, CancellationToken::new()).await.unwrap_err();
    assert!(refused.to_string().contains(&at), "{refused}");
}

#[tokio::test]
async fn a_start_that_fails_or_is_broken_off_leaves_no_addresses_and_no_listener_behind() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sluice.db"), "no database").unwrap();
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = probe.local_addr().unwrap();
    drop(probe);
    let there = Settings { http_listen: Some(at.to_string()), ..settings(dir.path()) };
    let config = Config::check(there.clone()).unwrap();
    assert!(control_plane::serve(config, CancellationToken::new()).await.is_err());
    assert!(!dir.path().join("listen.json").exists());
    assert!(std::net::TcpListener::bind(at).is_ok(), "the listener is still there");

    let away = Some("postgres://nobody@127.0.0.1:1/none".into());
    let config = Config::check(Settings { database_url: away, ..there }).unwrap();
    let shutdown = CancellationToken::new();
    let stopping = async {
        while !dir.path().join("listen.json").exists() {
            sleep(Duration::from_millis(10)).await;
        }
        shutdown.cancel();
    };
    let serving = Box::pin(control_plane::serve(config, shutdown.clone()));
    let (served, ()) = timeout(SOON, async { tokio::join!(serving, stopping) }).await.unwrap();
    served.unwrap();
    assert!(!dir.path().join("listen.json").exists());
}

#[tokio::test]
async fn fr_017_shutdown_is_bounded_with_open_streams_and_silent_clients() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    plane.apply(&document(1)).await;
    // Nodes that never read, an operator that watches, connections that say nothing or half a request.
    let mut held = Vec::new();
    for n in 0..3 {
        held.push(plane.node(&format!("n{n}"), None).await);
    }
    let admin = plane.admin().await;
    let mut watching = common::pb::admin::node_service_client::NodeServiceClient::new(admin.conn.clone());
    let watch =
        watching.watch_nodes(admin.request(common::pb::admin::WatchNodesRequest::default())).await.unwrap();
    let mut silent = Vec::new();
    for port in [plane.addresses.admin, plane.addresses.fleet, plane.addresses.http].map(|a| a.port()) {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        let mut half = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        half.write_all(b"GET /readyz HTT").await.unwrap();
        silent.push(half);
    }
    let took = plane.stop().await;
    assert!(took < SHUTDOWN_MAX, "{took:?}");
    drop((held, watch, silent));
}

#[tokio::test]
async fn fr_027_before_it_is_ready_it_says_unavailable_and_never_that_a_token_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody answers there.
    let away =
        Settings { database_url: Some("postgres://nobody@127.0.0.1:1/none".into()), ..settings(dir.path()) };
    let config = Config::check(away).unwrap();
    let shutdown = CancellationToken::new();
    let serving = control_plane::serve(config, shutdown.clone());
    let asking = async {
        let file = dir.path().join("listen.json");
        let text = timeout(SOON, async {
            loop {
                match std::fs::read_to_string(&file) {
                    Ok(text) => break text,
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        });
        let text = text.await.unwrap();
        let port = |name: &str| -> u16 {
            let after = text.split(&format!("\"{name}\":\"127.0.0.1:")).nth(1).unwrap();
            after.split('"').next().unwrap().parse().unwrap()
        };
        for token in ["", "wrong"] {
            let conn = connect(port("fleet")).await;
            let refused = Node::connect_over(conn, token, "n", None).await.err().unwrap();
            assert_eq!(refused.code(), Code::Unavailable);
        }
        assert_eq!(get(port("http"), "/healthz", None).await.0, 200);
        assert_eq!(get(port("http"), "/readyz", None).await.0, 503);
        assert_eq!(get(port("http"), "/metrics", None).await.0, 503);
        shutdown.cancel();
    };
    let (served, ()) = timeout(SOON, Box::pin(async { tokio::join!(serving, asking) })).await.unwrap();
    served.unwrap();
}
