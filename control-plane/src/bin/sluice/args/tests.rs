//! What the command line takes and refuses.

use super::*;
use clap::CommandFactory as _;

fn parse(line: &str) -> Result<Args, clap::Error> {
    Args::try_parse_from(line.split_whitespace())
}

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn global_flags_may_stand_before_and_after_the_command() {
    for line in ["sluice -o json --server http://h:1 chains", "sluice chains --server http://h:1 -o json"] {
        let args = parse(line).unwrap();
        assert_eq!((args.output, args.connect.server.as_str()), (Format::Json, "http://h:1"));
    }
}

#[test]
fn a_usage_error_ends_with_code_2_and_help_with_0() {
    let lines = [
        "sluice",
        "sluice frobnicate",
        "sluice catalog apply",
        "sluice catalog get 0",
        "sluice catalog diff",
        "sluice catalog diff 1 2 -f catalog.toml",
        "sluice catalog rollback",
        "sluice catalog apply -f catalog.toml --strategy slow",
        "sluice rollout",
        "sluice catalog apply -f catalog.toml --probe 1",
        "sluice catalog apply -f catalog.toml --dry-run --probe 0",
        "sluice nodes list --label zone",
        "sluice nodes drain",
        "sluice nodes pin node-1",
        "sluice nodes pin node-1 --revision 0",
        "sluice status --window 0s",
        "sluice status --window 500ms",
        "sluice status --window 5",
        "sluice chain gpt-4o --dialect openai-chatt",
        "sluice --timeout 0s chains",
    ];
    for line in lines {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    assert_eq!(parse("sluice --help").unwrap_err().exit_code(), 0);
}

#[test]
fn a_window_without_a_unit_is_refused_with_an_example() {
    let text = parse("sluice status --window 5").unwrap_err().to_string();
    assert!(text.contains("write it with a unit: 30s, 5m, 1h, 24h"), "{text}");
}

/// Each `sluice …` of a text: in lines of its own, and between backticks.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().flat_map(|line| line.split('`')).map(str::trim);
    let begins = lines.filter(|part| part.starts_with("sluice ") && !part.contains('…'));
    begins.map(|part| part.split(['#', '|']).next().unwrap_or_default().trim()).collect()
}

#[test]
fn every_command_of_the_runbooks_is_one() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/runbooks");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        for line in commands(&std::fs::read_to_string(&path).unwrap()) {
            let parsed = parse(line);
            assert!(parsed.is_ok(), "{}: {line}: {}", path.display(), parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands");
    assert!(parse("sluice alerts frobnicate").is_err());
}
