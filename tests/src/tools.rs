//! Where the tools of other languages are that `tests/run` installs: the official SDKs.

use std::path::PathBuf;

use anyhow::Context as _;

/// `target/test-tools`, or what `SLUICE_TEST_TOOLS` says.
pub fn tools_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("SLUICE_TEST_TOOLS") {
        return Ok(dir.into());
    }
    let here = std::env::current_exe()?;
    let target = here.ancestors().find(|folder| folder.join("test-tools").is_dir());
    Ok(target.context("no SDKs are installed; tests/run does that")?.join("test-tools"))
}

/// A folder or file of this package.
pub fn package_path(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}
