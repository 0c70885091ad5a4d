//! A fault or warning of a catalog: where it is and what it is, in words for its author; and the
//! name that the author may have meant. Pure.

use std::fmt;

/// A fault, or a warning, of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Line in the document, from 1; 0 when the whole document is meant.
    pub line: u32,
    /// Where, in the words of the document: `models.gpt-4o.routes[1].channel`. Empty when the
    /// document cannot be read that far.
    pub path: String,
    /// What is wrong and, where it is not plain, what to do. Never holds a credential.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if self.line > 0 {
            write!(f, " (line {})", self.line)?;
        }
        Ok(())
    }
}

/// The candidate that is most like `name`: few letters differ, or it begins with something like it.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let tolerance = (name.len() / 4).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters: Vec<char> = candidate.to_lowercase().chars().collect();
        let (whole, beginning) = distances(&name, &letters);
        // A short name begins like everything.
        let score = if name.len() >= 4 { whole.min(beginning + 1) } else { whole };
        let is_near = whole <= tolerance + 1 || (name.len() >= 4 && beginning <= tolerance);
        let is_other = whole < name.len().max(letters.len());
        if is_near && is_other && best.is_none_or(|(s, c)| (score, candidate) < (s, c)) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`, and to the nearest
/// beginning of `b`.
fn distances(a: &[char], b: &[char]) -> (usize, usize) {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    let whole = last.last().copied().unwrap_or(0);
    (whole, last.into_iter().min().unwrap_or(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_path_then_message_then_line() {
        let fault =
            Fault { path: "models.m.routes[1].channel".into(), line: 7, message: "no such channel".into() };
        assert_eq!(fault.to_string(), "models.m.routes[1].channel: no such channel (line 7)");
        let whole = Fault { path: String::new(), line: 0, message: "too large".into() };
        assert_eq!(whole.to_string(), "too large");
    }

    #[test]
    fn the_name_that_was_meant_is_found() {
        let channels = ["openai-direct", "reseller", "azure-eu"];
        let table = [
            ("opnai", Some("openai-direct")),
            ("openai", Some("openai-direct")),
            ("reseler", Some("reseller")),
            ("resleler", Some("reseller")),
            ("Reseller", Some("reseller")),
            ("azure-us", Some("azure-eu")),
            ("vertex", None),
            ("x", None),
            ("", None),
        ];
        for (name, meant) in table {
            assert_eq!(did_you_mean(name, channels), meant, "{name}");
        }
        assert_eq!(did_you_mean("ab", ["cd", "xyz"]), None);
        assert_eq!(did_you_mean("time_out", ["timeout", "until"]), Some("timeout"));
    }
}
