//! Settings that hold together, and all that does not.

use super::*;

fn given(args: &[&str]) -> Settings {
    let token = ["gateway-node", "--node-token-file", "t"];
    <Settings as clap::Parser>::parse_from([&token[..], args].concat())
}

fn faults(args: &[&str]) -> Vec<String> {
    match Config::check(given(args)) {
        Err(ConfigFault::Faulty(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_defaults_are_those_of_the_design() {
    let config = Config::check(given(&[])).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.ops_listen.to_string(), "127.0.0.1:9090");
    assert_eq!(config.control_planes, ["http://127.0.0.1:7444"]);
    assert_eq!((config.shutdown_grace, config.window), (Duration::from_secs(30), Duration::from_secs(10)));
    assert!(config.node_id.is_none() && config.tls.is_none() && !config.allow_anonymous);
}

#[test]
fn every_fault_is_reported_at_once() {
    let faults = faults(&[
        "--listen=nowhere",
        "--ops-listen=0.0.0.0:9090",
        "--tls-cert=c",
        "--control-plane=http://cp.example:7444,ftp://x,https://ok:1",
        "--shutdown-grace=30",
        "--window=1h",
        "--drain-delay=6m",
        "--node-id=a b",
        "--label=zone=a,zone=b",
        "--label=zone",
    ]);
    assert_eq!(faults.len(), 11, "{faults:#?}");
    let all = faults.join("\n");
    for part in [
        "nowhere",
        "--tls-key",
        "0.0.0.0:9090",
        "cp.example",
        "ftp://x",
        "30s",
        "5m",
        "a b",
        "two values",
        "name=value",
    ] {
        assert!(all.contains(part), "{part} is missing in {all}");
    }
}

#[test]
fn the_token_goes_in_clear_to_loopback_alone() {
    for url in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://cp.example"] {
        assert_eq!(Config::check(given(&["--control-plane", url])).unwrap().control_planes, [url]);
    }
    assert!(faults(&["--control-plane=http://10.0.0.1:7444"])[0].contains("--insecure-plaintext"));
    Config::check(given(&["--control-plane=http://10.0.0.1:7444", "--insecure-plaintext"])).unwrap();
}

#[test]
fn anonymous_callers_are_for_loopback() {
    assert!(Config::check(given(&["--allow-anonymous"])).unwrap().allow_anonymous);
    let off = ["--allow-anonymous", "--listen=0.0.0.0:80", "--insecure-plaintext"];
    assert!(faults(&off)[0].contains("--allow-anonymous"));
}

#[test]
fn several_control_planes_are_given_with_commas_or_as_a_list_in_the_file() {
    let flags = Config::check(given(&["--control-plane", "http://127.0.0.1:1,http://127.0.0.1:2"])).unwrap();
    assert_eq!(flags.control_planes.len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let text = "control-plane = [\"http://127.0.0.1:3\"]\nnode-token-file = \"t\"\nwindow = \"1s\"\n";
    std::fs::write(&file, text).unwrap();
    let args = ["gateway-node", "--window", "2s", "--config"].map(OsString::from);
    let config = Config::load(args.into_iter().chain([file.into_os_string()])).unwrap();
    assert_eq!(config.control_planes, ["http://127.0.0.1:3"]);
    assert_eq!(config.window, Duration::from_secs(2), "a flag wins over the file");
}

#[test]
fn without_a_token_file_it_says_where_to_find_one() {
    let Err(ConfigFault::Faulty(faults)) = Config::check(Settings::default()) else { panic!() };
    assert!(faults[0].contains("node.token"));
}

#[test]
fn labels_come_one_by_one_by_commas_and_from_the_file() {
    let labels = |settings| Config::check(settings).unwrap().labels.into_iter().collect::<Vec<_>>();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(labels(given(&[])), []);
    let expected = [pair("canary", "yes"), pair("rack", "7"), pair("zone", "eu")];
    assert_eq!(labels(given(&["--label", "zone=eu", "--label=rack=7, canary=yes"])), expected);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.toml");
    std::fs::write(&file, "labels = [\"zone=eu\"]\nnode-token-file = \"t\"\n").unwrap();
    let args = ["gateway-node".into(), "--config".into(), file.into_os_string()];
    let config = Config::load(args).unwrap();
    assert_eq!(config.labels.into_iter().collect::<Vec<_>>(), [pair("zone", "eu")]);
}
