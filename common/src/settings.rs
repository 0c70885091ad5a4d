//! Settings in layers: flags over environment over the file of `--config` over defaults.
//! What a setting means, and its default, is its service's matter.

mod check;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use check::{ConfigFault, Faults, TlsFiles};

/// A settings struct: every field an `Option`, kebab-case, unknown keys denied, parsed by clap
/// from flags and environment and by serde from the file.
pub trait Layered: clap::Parser + Serialize + DeserializeOwned {
    /// The file that `--config` names.
    fn config(&self) -> Option<&Path>;
}

/// Why settings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFault {
    /// Flags or environment.
    #[error(transparent)]
    Args(#[from] clap::Error),
    /// The file is not there or not readable.
    #[error("cannot read the settings file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML, or holds a key or value that is no setting; the source says the line.
    #[error("faulty settings file {}", path.display())]
    Faulty {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: toml::de::Error,
    },
    /// A value that cannot be written again: a fault of the program.
    #[error("settings cannot be merged")]
    Merge(#[source] toml::ser::Error),
}

/// Reads the settings of `args` (the first is the program's name) and of the file that they name.
pub fn load<T: Layered>(args: impl IntoIterator<Item = OsString>) -> Result<T, SettingsFault> {
    let given = T::try_parse_from(args)?;
    let Some(path) = given.config().map(Path::to_path_buf) else { return Ok(given) };
    let text = std::fs::read_to_string(&path)
        .map_err(|source| SettingsFault::Unreadable { path: path.clone(), source })?;
    merge(given, &path, &text)
}

fn merge<T: Layered>(given: T, path: &Path, file: &str) -> Result<T, SettingsFault> {
    let faulty = |source| SettingsFault::Faulty { path: path.to_path_buf(), source };
    let below: T = toml::from_str(file).map_err(faulty)?;
    let mut table = toml::Table::try_from(&below).map_err(SettingsFault::Merge)?;
    table.extend(toml::Table::try_from(&given).map_err(SettingsFault::Merge)?);
    table.try_into().map_err(faulty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Settings {
        #[arg(long)]
        data_dir: Option<PathBuf>,
        #[arg(long)]
        max_bodies: Option<u32>,
        #[arg(long)]
        #[serde(skip)]
        config: Option<PathBuf>,
    }

    impl Layered for Settings {
        fn config(&self) -> Option<&Path> {
            self.config.as_deref()
        }
    }

    fn flags(args: &[&str]) -> Settings {
        <Settings as clap::Parser>::parse_from([&["x"], args].concat())
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_fills_what_no_flag_gives() {
        let merged =
            merge(flags(&["--max-bodies", "2"]), Path::new("f"), "max-bodies = 1\ndata-dir = \"d\"").unwrap();
        assert_eq!((merged.max_bodies, merged.data_dir), (Some(2), Some("d".into())));
    }

    #[test]
    fn an_unknown_key_in_the_file_is_a_fault_with_its_line() {
        let fault = merge(flags(&[]), Path::new("f"), "max-bodies = 1\nmax-bodys = 2").unwrap_err();
        let cause = std::error::Error::source(&fault).unwrap().to_string();
        assert!(cause.contains("line 2") && cause.contains("max-bodys"), "{cause}");
    }
}
