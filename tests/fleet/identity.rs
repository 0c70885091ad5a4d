//! Who the nodes are, over TLS: enrolled once by a token, known by a certificate ever after, renewed, revoked; and what
//! a stolen or copied identity is good for.

mod secrets;
mod secure;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::pb::fleet as pb;
use harness::catalog::chain_of;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{SOON, with_token};
use harness::process::Process;
use harness::provider::Provider;
use pb::fleet_report_client::FleetReportClient;
use secure::Secure;
use tempfile::TempDir;
use tokio::time::Instant;
use tonic::Code;

/// A revoked node is turned out within this time, whichever control plane it is connected to.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_node_enrols_by_a_token_and_comes_back_by_its_certificate_alone() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Secure::start(&[]).await?;
    fleet.apply(&chain_of("m", &[&provider])).await?;
    let token = fleet.token("token", &["--uses", "1", "--label", "zone=eu"]).await?;
    let mut program = fleet.node("node-1", Some(&token));
    program.args.extend(["--label".to_owned(), "zone=us,rack=7".to_owned()]);
    let mut first = Process::start(program).await?;
    let shown = fleet.in_sync("node-1").await?;
    assert_eq!(shown["labels"], serde_json::json!({"rack": "7", "zone": "eu"}), "the token's label wins");
    assert_eq!(fleet.certificate("node-1")?.node_id.as_deref(), Some("node-1"));
    assert_eq!(fleet.json(&["tokens", "list"]).await?["tokens"][0]["uses"], 1);

    // The token is used up, and what it says is worth nothing to a second node.
    let second = Process::start(fleet.node("node-2", Some(&token))).await?;
    second.says("the node cannot enrol", SOON).await?;
    assert!(fleet.shown("node-2").await.is_err());
    drop(second);

    std::fs::remove_file(&token)?;
    first.kill().await?;
    first.start_again().await?;
    fleet.in_sync_after("node-1", &shown["boot_id"]).await?;
    fleet.control_plane.kill().await?;
    fleet.control_plane.start_again().await?;
    fleet.ready().await?;
    fleet.in_sync("node-1").await?;
    fleet.finish(&[&first])
}

#[tokio::test]
async fn a_certificate_is_renewed_while_the_node_runs_and_after_it_has_expired() -> anyhow::Result<()> {
    let fleet = Secure::start(&["--node-certificate-life", "6s"]).await?;
    let token = fleet.token("token", &[]).await?;
    let mut node = Process::start(fleet.node("node-1", Some(&token))).await?;
    let shown = fleet.in_sync("node-1").await?;
    let serial = fleet.certificate("node-1")?.serial;
    node.says("the node's certificate was renewed", SOON).await?;
    let renewed = fleet.certificate("node-1")?;
    assert_ne!(renewed.serial, serial);
    assert_eq!(fleet.shown("node-1").await?["boot_id"], shown["boot_id"]);

    node.kill().await?;
    std::fs::remove_file(&token)?;
    fleet.expired("node-1").await?;
    node.start_again().await?;
    fleet.in_sync_after("node-1", &shown["boot_id"]).await?;
    assert_eq!(fleet.certificate("node-1")?.key_sha256, renewed.key_sha256, "proven by its key");
    fleet.finish(&[&node])
}

#[tokio::test]
async fn who_is_no_node_or_another_one_is_not_heard() -> anyhow::Result<()> {
    let fleet = Secure::start(&[]).await?;
    let token = fleet.token("token", &["--uses", "2"]).await?;
    let nodes = [
        Process::start(fleet.node("node-1", Some(&token))).await?,
        Process::start(fleet.node("node-2", Some(&token))).await?,
    ];
    for node in &nodes {
        fleet.in_sync(node.label()).await?;
    }
    let report = |node_id: &str| pb::ReportRequest {
        node_id: node_id.to_owned(),
        boot_id: "b".to_owned(),
        window: Some(pb::Window { first_seq: 1, last_seq: 1, start_ms: 1, end_ms: 2, ..Default::default() }),
        ..Default::default()
    };
    let identity = fleet.dir().join("node-1/identity.pem");
    let mut own = FleetReportClient::new(fleet.dial(Some(&identity)).await?);
    own.report(report("node-1")).await?;
    let refused = own.report(report("node-2")).await.map(drop).map_err(|status| status.code());
    assert_eq!(refused, Err(Code::PermissionDenied), "the data of another node");

    // The token that all nodes share opens nothing over TLS but enrolment.
    let shared = std::fs::read_to_string(fleet.control_plane.data_dir().join("node.token"))?;
    let mut bare = FleetReportClient::with_interceptor(fleet.dial(None).await?, with_token(shared.trim())?);
    let refused = bare.report(report("node-1")).await.map(drop).map_err(|status| status.code());
    assert_eq!(refused, Err(Code::Unauthenticated));

    // A certificate of this name, by an authority of somebody else.
    let forged = fleet.dir().join("forged.pem");
    forge(&forged, "node-1")?;
    let forged = match fleet.dial(Some(&forged)).await {
        Ok(conn) => FleetReportClient::new(conn).report(report("node-1")).await.map(drop).ok(),
        Err(_) => None,
    };
    assert_eq!(forged, None);

    // A node that trusts another authority does not show its token to this control plane.
    let other = fleet.dir().join("other.crt");
    forge(&other, "authority")?;
    let mut program = fleet.node("node-3", Some(&token));
    program.args.extend(["--control-plane-ca".to_owned(), other.to_string_lossy().into_owned()]);
    let at = program.args.iter().position(|arg| arg == "--control-plane-ca").context("no flag")?;
    program.args.drain(at..at + 2);
    let distrustful = Process::start(program).await?;
    distrustful.says("no stream to the control plane", SOON).await?;
    assert_eq!(fleet.json(&["tokens", "list"]).await?["tokens"][0]["uses"], 2);
    assert!(fleet.shown("node-3").await.is_err());
    fleet.finish(&[&nodes[0], &nodes[1], &distrustful])
}

/// A key and a certificate that nobody trusts, in one file.
fn forge(path: &Path, node_id: &str) -> anyhow::Result<()> {
    let mut params = rcgen::CertificateParams::default();
    let uri = common::certificate::node_uri(node_id);
    params.subject_alt_names = vec![rcgen::SanType::URI(uri.try_into()?)];
    let key = rcgen::KeyPair::generate()?;
    std::fs::write(path, key.serialize_pem() + &params.self_signed(&key)?.pem())?;
    Ok(())
}

#[tokio::test]
async fn a_revoked_node_is_turned_out_by_every_control_plane_and_enrols_again_by_a_new_token()
-> anyhow::Result<()> {
    let cluster = Postgres::lend()?;
    let database = cluster.create(&format!("revoked_{}", std::process::id()))?;
    let dir = TempDir::with_prefix("sluice-secure-")?;
    authority(dir.path())?;
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (cert, key) = (at("ca.crt"), at("ca.key"));
    let flags =
        ["--database-url", &database, "--ca-cert", &cert, "--ca-key", &key, "--ca-server-names", "127.0.0.1"];
    let fleet = Secure::start_as(dir, &flags, "ca.crt").await?;
    let other = Secure::start_as(TempDir::with_prefix("sluice-secure-")?, &flags, &cert).await?;
    let token = fleet.token("token", &["--uses", "9"]).await?;
    let mut program = fleet.node("node-1", Some(&token));
    // Enrolled at the one, connected to the other, revoked at the first.
    let mut node = Process::start(program.clone()).await?;
    fleet.in_sync("node-1").await?;
    node.kill().await?;
    program.args.extend(["--control-plane".to_owned(), other.fleet_url.clone()]);
    let at = program.args.iter().position(|arg| arg == "--control-plane").context("no flag")?;
    program.args.drain(at..at + 2);
    *node.program_mut() = program.clone();
    node.start_again().await?;
    other.in_sync("node-1").await?;

    fleet.sluice(&["nodes", "revoke", "node-1"]).await?.with_code(0)?;
    let revoked_at = Instant::now();
    eventually("its stream ends", REVOKED_WITHIN, || async {
        let shown = other.shown("node-1").await?;
        ensure!(shown["connected"] == false, "{shown}");
        Ok(())
    })
    .await?;
    ensure!(revoked_at.elapsed() <= REVOKED_WITHIN, "{:?}", revoked_at.elapsed());
    let warned = fleet.shown("node-1").await?["warnings"].to_string();
    assert!(warned.contains("revoked"), "{warned}");
    // It waits for a minute before it tries again; a start does not.
    node.kill().await?;
    node.start_again().await?;
    node.says("the node cannot enrol", SOON).await?;
    assert_eq!(other.shown("node-1").await?["connected"], false);

    let new = fleet.token("new", &[]).await?;
    std::fs::copy(&new, &token)?;
    node.kill().await?;
    node.start_again().await?;
    other.in_sync("node-1").await?;
    other.finish(&[])?;
    fleet.finish(&[&node])
}

/// An authority in two files.
fn authority(dir: &Path) -> anyhow::Result<()> {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    params.distinguished_name.push(rcgen::DnType::CommonName, "an authority of the operator");
    let key = rcgen::KeyPair::generate()?;
    std::fs::write(dir.join("ca.crt"), params.self_signed(&key)?.pem())?;
    std::fs::write(dir.join("ca.key"), key.serialize_pem())?;
    Ok(())
}

#[tokio::test]
async fn the_authority_is_rotated_under_a_fleet_that_serves_on() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let mut fleet = Secure::start(&[]).await?;
    fleet.apply(&chain_of("m", &[&provider])).await?;
    let token = fleet.token("token", &["--uses", "2"]).await?;
    let mut nodes = vec![
        Process::start(fleet.node("node-1", Some(&token))).await?,
        Process::start(fleet.node("node-2", Some(&token))).await?,
    ];
    for node in &nodes {
        fleet.in_sync(node.label()).await?;
    }
    let before = fleet.json(&["ca", "list"]).await?;
    let old = before["authorities"][0]["id"].clone();
    assert_eq!(before["authorities"][0]["live_certificates"], 2);
    let rotated = fleet.json(&["ca", "rotate"]).await?;
    let new = rotated["authorities"][0]["id"].clone();
    ensure!(rotated["authorities"][1]["id"] == old && new != old, "{rotated}");
    eventually("all nodes have certificates of the new one, and the old one is gone", SOON, || async {
        let shown = fleet.json(&["ca", "list"]).await?;
        let authorities = shown["authorities"].as_array().context("no list")?;
        let is_over = authorities.len() == 1 && authorities[0]["id"] == new;
        ensure!(is_over && authorities[0]["live_certificates"] == 2, "{shown}");
        Ok(())
    })
    .await?;
    // Whatever is started again finds its way: the control plane shows a certificate of the new one by now.
    fleet.control_plane.kill().await?;
    fleet.control_plane.start_again().await?;
    fleet.ready().await?;
    for node in &mut nodes {
        let boot = fleet.in_sync(node.label()).await?["boot_id"].clone();
        node.kill().await?;
        node.start_again().await?;
        fleet.in_sync_after(node.label(), &boot).await?;
    }
    fleet.finish(&[&nodes[0], &nodes[1]])
}

#[tokio::test]
async fn a_cloned_identity_is_told_and_not_silently_passed_to_and_fro() -> anyhow::Result<()> {
    let fleet = Secure::start(&[]).await?;
    let token = fleet.token("token", &[]).await?;
    let mut node = Process::start(fleet.node("node-1", Some(&token))).await?;
    fleet.in_sync("node-1").await?;
    node.kill().await?;
    let mut copy = fleet.node("node-1", None);
    copy.data_dir = fleet.dir().join("copy");
    copy.label = "copy".to_owned();
    std::fs::create_dir(&copy.data_dir)?;
    std::fs::copy(fleet.dir().join("node-1/identity.pem"), copy.data_dir.join("identity.pem"))?;
    node.start_again().await?;
    let copy = Process::start(copy).await?;
    eventually("the clone is shown", SOON, || async {
        let warnings = fleet.shown("node-1").await?["warnings"].to_string();
        ensure!(warnings.contains("it was cloned"), "{warnings}");
        Ok(())
    })
    .await?;
    fleet.control_plane.says("its identity was cloned", SOON).await?;
    let listed = fleet.sluice(&["nodes", "list"]).await?.with_code(0)?;
    assert!(listed.out.contains("two processes speak as this node"), "{}", listed.out);
    fleet.finish(&[&node, &copy])
}

#[tokio::test]
async fn certificates_of_all_listeners_are_replaced_under_load_without_a_failed_request() -> anyhow::Result<()>
{
    let provider = Provider::start("p1").await?;
    let dir = TempDir::with_prefix("sluice-secure-")?;
    let signer = Signer::new(dir.path())?;
    signer.sign(dir.path())?;
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let files = ["--tls-cert".to_owned(), at("tls.crt"), "--tls-key".to_owned(), at("tls.key")];
    let flags: Vec<&str> = files.iter().map(String::as_str).collect();
    let fleet = Secure::start_as(dir, &flags, "signer.crt").await?;
    fleet.apply(&chain_of("m", &[&provider])).await?;
    let token = fleet.token("token", &[]).await?;
    let mut program = fleet.node("node-1", Some(&token));
    program.args.extend(files.clone());
    let node = Process::start(program).await?;
    fleet.in_sync("node-1").await?;

    let ca = reqwest::Certificate::from_pem(&std::fs::read(fleet.ca())?)?;
    let (http, data) = (fleet.control_plane.address("http")?, node.address("data")?);
    let metrics = async |client: &reqwest::Client| -> anyhow::Result<String> {
        Ok(client.get(format!("https://{http}/metrics")).send().await?.error_for_status()?.text().await?)
    };
    let fresh = || reqwest::Client::builder().no_proxy().tls_certs_only([ca.clone()]).build();
    let kept = fresh()?;
    let expiries = |text: &str| {
        let lines =
            text.lines().filter(|line| line.starts_with("sluice_certificate_expiry_timestamp_seconds{"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = expiries(&metrics(&kept).await?);
    assert_eq!(before.len(), 3, "{before:?}");
    signer.sign(fleet.dir())?;
    let deadline = Instant::now() + SOON;
    let mut asked = 0;
    loop {
        // Over a connection that stays, and over new ones, all the while; a failed request ends the test.
        for client in [&kept, &fresh()?] {
            for url in [format!("https://{http}/api/v1/status"), format!("https://{data}/v1/models")] {
                client.get(url).send().await?.error_for_status()?;
                asked += 1;
            }
        }
        fleet.sluice(&["status"]).await?.with_code(0)?;
        let now = expiries(&metrics(&fresh()?).await?);
        if now.len() == 3 && now.iter().all(|line| !before.contains(line)) {
            break;
        }
        ensure!(Instant::now() < deadline, "{now:?} after {asked} requests");
    }
    node.says("the certificate of the listeners was replaced", SOON).await?;
    kept.get(format!("https://{data}/v1/models")).send().await?.error_for_status()?;
    assert!(fleet.shown("node-1").await?["connected"] == true);
    let lost = node.log().into_iter().filter(|line| line.contains("no stream to the control plane"));
    assert_eq!(lost.count(), 0, "the node's stream stayed");
    fleet.finish(&[&node])
}

/// An authority of the operator, which signs certificates for listeners.
struct Signer {
    params: rcgen::CertificateParams,
    key: rcgen::KeyPair,
    made: std::cell::Cell<i32>,
}

impl Signer {
    fn new(dir: &Path) -> anyhow::Result<Self> {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
        params.distinguished_name.push(rcgen::DnType::CommonName, "whoever signs for listeners");
        let key = rcgen::KeyPair::generate()?;
        std::fs::write(dir.join("signer.crt"), params.self_signed(&key)?.pem())?;
        Ok(Signer { params, key, made: std::cell::Cell::new(0) })
    }

    /// Writes a new certificate, each of which ends a year later than the one before.
    fn sign(&self, dir: &Path) -> anyhow::Result<()> {
        let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.not_after = rcgen::date_time_ymd(2040 + self.made.get(), 1, 1);
        self.made.set(self.made.get() + 1);
        let key = rcgen::KeyPair::generate()?;
        let made = params.signed_by(&key, &rcgen::Issuer::from_params(&self.params, &self.key))?;
        for (name, text) in [("tls.crt", made.pem()), ("tls.key", key.serialize_pem())] {
            // Whole or not at all, as those do who replace certificates.
            std::fs::write(dir.join("half"), text)?;
            std::fs::rename(dir.join("half"), dir.join(name))?;
        }
        Ok(())
    }
}
