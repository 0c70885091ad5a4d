//! Documents on their way to the control plane, and what it finds in them: faults stand each on a line
//! of their own, `FILE:LINE: path: message`, as compilers write them.

use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use common::limits::CATALOG_BYTES_MAX;
use common::pb::admin as pb;

use crate::fault::Fault;
use crate::output::{Output, plural};

/// A document and what to call it in messages.
pub struct Document {
    /// The file's name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// A fault or a warning, for programs.
#[derive(Serialize)]
pub struct FindingJson<'a> {
    path: &'a str,
    line: u32,
    message: &'a str,
}

/// Reads a document; `-` is stdin.
pub fn read(path: &Path) -> Result<Document, Fault> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let limit = CATALOG_BYTES_MAX as u64 + 1;
    let reading = if is_stdin {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    reading.map_err(|cause| Fault::error(format!("cannot read {name}: {cause}")))?;
    if bytes.len() > CATALOG_BYTES_MAX {
        return Err(Fault::error(format!(
            "{name} is larger than a catalog may be ({CATALOG_BYTES_MAX} bytes)"
        )));
    }
    Ok(Document { name, bytes })
}

/// The fault of a document that has faults.
pub fn faulty(name: &str, faults: &[pb::Finding]) -> Fault {
    let lines = faults.iter().map(|fault| located(name, "", fault)).collect();
    Fault::error(format!("{name} has {}", plural(faults.len(), "fault", "faults"))).lines(lines)
}

fn located(name: &str, kind: &str, finding: &pb::Finding) -> String {
    let pb::Finding { path, line, message } = finding;
    let mut text = name.to_owned();
    if *line > 0 {
        text += &format!(":{line}");
    }
    text += &format!(": {kind}");
    if !path.is_empty() {
        text += &format!("{path}: ");
    }
    text + message
}

/// Says the warnings beside the result.
pub fn warn(name: &str, warnings: &[pb::Finding], output: &mut Output) -> std::io::Result<()> {
    warnings.iter().try_for_each(|warning| output.note(&located(name, "warning: ", warning)))
}

/// What to add to a good word.
pub fn with_warnings(warnings: &[pb::Finding]) -> String {
    match warnings.len() {
        0 => String::new(),
        count => format!(", with {}", plural(count, "warning", "warnings")),
    }
}

/// Faults or warnings, for programs.
pub fn findings(findings: &[pb::Finding]) -> Vec<FindingJson<'_>> {
    findings.iter().map(|f| FindingJson { path: &f.path, line: f.line, message: &f.message }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Exit;

    fn finding(path: &str, line: u32, message: &str) -> pb::Finding {
        pb::Finding { path: path.to_owned(), line, message: message.to_owned() }
    }

    #[test]
    fn each_fault_has_a_line_of_its_own_that_editors_understand() {
        let faults = [
            finding("models.gpt-4o.routes[1].channel", 12, "no such channel \"opnai\""),
            finding("", 0, "the document is empty"),
        ];
        let fault = faulty("catalog.toml", &faults);
        let lines = [
            "catalog.toml:12: models.gpt-4o.routes[1].channel: no such channel \"opnai\"",
            "catalog.toml: the document is empty",
        ];
        assert_eq!(fault.lines, lines);
        assert_eq!(fault.message, "catalog.toml has 2 faults");
        assert_eq!(fault.exit, Exit::Error);
    }

    #[test]
    fn a_warning_says_that_it_is_one() {
        assert_eq!(located("f", "warning: ", &finding("a.b", 3, "odd")), "f:3: warning: a.b: odd");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let fault = read(Path::new("/no/such/catalog.toml")).err().unwrap();
        assert!(fault.message.starts_with("cannot read /no/such/catalog.toml: "), "{}", fault.message);
    }

    #[test]
    fn a_file_above_the_limit_is_refused_before_it_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge.toml");
        std::fs::write(&path, vec![b'#'; CATALOG_BYTES_MAX + 1]).unwrap();
        assert!(read(&path).err().unwrap().message.contains("larger than a catalog may be"));
    }
}
