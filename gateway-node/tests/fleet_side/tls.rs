//! TLS both ways: to the control plane, and for callers.

use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use gateway_node::{Config, Settings};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tonic::transport::{Identity, ServerTlsConfig};

use crate::node::{Node, args, eventually};
use crate::plane::{Plane, snapshot, update};

struct Files {
    cert: String,
    key: String,
}

/// A certificate for this machine that is its own authority, in `dir`.
fn certificate(dir: &Path) -> Files {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    std::fs::write(dir.join("cert.pem"), &cert).unwrap();
    std::fs::write(dir.join("key.pem"), &key).unwrap();
    Files { cert, key }
}

type Https = Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<bytes::Bytes>>;

fn https(files: &Files) -> Https {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(files.cert.as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_all_versions().build();
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn https_get(files: &Files, url: String) -> (u16, http::Version, String) {
    let answer = https(files).get(url.parse().unwrap()).await.unwrap();
    let (status, version) = (answer.status().as_u16(), answer.version());
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, version, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn a_node_trusts_the_authority_that_it_is_given_and_serves_callers_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path());
    let identity = Identity::from_pem(&files.cert, &files.key);
    let plane =
        Plane::start_with(|server| server.tls_config(ServerTlsConfig::new().identity(identity)).unwrap())
            .await;
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let tls =
        ["--control-plane-ca", &at("cert.pem"), "--tls-cert", &at("cert.pem"), "--tls-key", &at("key.pem")];
    let url = format!("https://{}", plane.address);
    let tls = tls.map(str::to_owned).to_vec();
    let node = Node::start_with(dir.path(), &url, tls).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;

    let url = format!("https://{}/v1/models", node.addresses.data);
    let (status, version, body) = https_get(&files, url).await;
    assert_eq!((status, version), (200, http::Version::HTTP_2), "{body}");
    assert!(body.contains(r#""m""#), "{body}");
    assert_eq!(node.ops("/readyz").await.0, 200, "ops on loopback stays plaintext");
    node.stop().await;
}

#[tokio::test]
async fn a_certificate_that_is_none_stops_the_start_and_says_which_file() {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    std::fs::write(dir.path().join("cert.pem"), "nothing").unwrap();
    let mut args = args(dir.path(), "http://127.0.0.1:9");
    for (flag, file) in [("--tls-cert", "cert.pem"), ("--tls-key", "key.pem")] {
        args.extend([flag.to_owned(), dir.path().join(file).to_str().unwrap().to_owned()]);
    }
    let settings = Settings::parse_from([vec!["node".to_owned()], args].concat());
    let config = Config::check(settings).unwrap();
    let error = gateway_node::serve(config, std::future::pending()).await.unwrap_err();
    assert!(format!("{error:#}").contains("cert.pem"), "{error:#}");
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_to_new_callers_and_breaks_no_connection() {
    let dir = tempfile::tempdir().unwrap();
    let first = certificate(dir.path());
    let plane = Plane::start().await;
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let tls = ["--tls-cert", &at("cert.pem"), "--tls-key", &at("key.pem")].map(str::to_owned).to_vec();
    let node = Node::start_with(dir.path(), &plane.url(), tls).await;
    let (mut stream, _) = plane.welcomed().await;
    stream.update(update(1, &snapshot(1))).await;

    let url: http::Uri = format!("https://{}/v1/models", node.addresses.data).parse().unwrap();
    let get = async |client: &Https| client.get(url.clone()).await.map(|answer| answer.status().as_u16());
    let (old, kept) = (https(&first), https(&first));
    assert_eq!(get(&kept).await.unwrap(), 200);
    let second = certificate(dir.path());
    let new = https(&second);
    eventually("the new certificate is shown", || async {
        // Each of the others asks all the while: over its connection, or over a new one.
        assert_eq!(get(&kept).await.unwrap(), 200);
        matches!(get(&new).await, Ok(200))
    })
    .await;
    assert_eq!(get(&kept).await.unwrap(), 200, "an open connection stays");
    assert!(get(&old).await.is_err(), "the old certificate is shown to nobody new");

    // One that cannot be used changes nothing; it is looked at twice by then.
    std::fs::write(dir.path().join("key.pem"), "no key").unwrap();
    for _ in 0..20 {
        assert_eq!(get(&https(&second)).await.unwrap(), 200);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    let metrics = node.ops("/metrics").await.1;
    assert!(metrics.contains("sluice_certificate_expiry_timestamp_seconds{listener=\"data\"} "), "{metrics}");
    node.stop().await;
}
