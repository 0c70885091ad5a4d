//! Commands that the documentation gives, to be run as they stand there.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, ensure};

use crate::tools::package_path;

/// The block of shell commands below a heading of README.md.
pub fn commands_below(heading: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(package_path("../README.md"))?;
    let (_, below) = text.split_once(heading).with_context(|| format!("README.md has no {heading:?}"))?;
    let (_, block) = below.split_once("```sh\n").with_context(|| format!("no commands below {heading:?}"))?;
    let (block, _) = block.split_once("\n```").context("the block has no end")?;
    Ok(block.to_owned())
}

/// Runs a block with this environment and these folders before the path; each command must succeed.
pub fn run(block: &str, env: &[(&str, &str)], folders: &[PathBuf]) -> anyhow::Result<String> {
    let known = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.iter().cloned().chain(std::env::split_paths(&known)))?;
    let mut command = Command::new("sh");
    command.args(["-e", "-c", block]).env("PATH", path).envs(env.iter().copied());
    let Output { status, stdout, stderr } = command.output()?;
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{status} from\n{block}\n{out}\n{err}");
    Ok(out.into_owned())
}
