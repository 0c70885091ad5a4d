//! A PostgreSQL of one's own: the private cluster that `tests/run` started (`SLUICE_TEST_POSTGRES`
//! names its socket folder), or one started here and thrown away.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

/// The environment variable with the socket folder of a running private cluster.
pub const SOCKET_DIR_ENV: &str = "SLUICE_TEST_POSTGRES";

/// A cluster that listens on a socket in its folder, without TCP.
pub struct Postgres {
    /// Where its programs lie.
    pub bin: PathBuf,
    /// Where its socket is and, if it is one's own, its data.
    pub socket_dir: PathBuf,
    own: Option<TempDir>,
}

impl Postgres {
    /// The cluster of `tests/run`, or a new one that ends when this is dropped.
    pub fn lend() -> anyhow::Result<Self> {
        match std::env::var_os(SOCKET_DIR_ENV) {
            Some(dir) => Ok(Postgres { bin: bin_dir()?, socket_dir: dir.into(), own: None }),
            None => Postgres::own(),
        }
    }

    /// A new cluster that ends when this is dropped.
    pub fn own() -> anyhow::Result<Self> {
        let bin = bin_dir()?;
        // Short, because the path of a socket is limited to about a hundred bytes.
        let dir = tempfile::Builder::new().prefix("slpg").tempdir_in("/tmp")?;
        if is_root() {
            said(Command::new("chown").arg("postgres").arg(dir.path()))?;
        }
        let postgres = Postgres { bin, socket_dir: dir.path().to_path_buf(), own: Some(dir) };
        let data = postgres.socket_dir.join("data");
        postgres.run(
            "initdb",
            &["-A", "trust", "-U", "postgres", "--no-sync", "--locale=C", "-E", "UTF8", "-D"],
            &data,
        )?;
        postgres.begin()?;
        Ok(postgres)
    }

    /// Starts the server of one's own cluster and waits until it answers.
    pub fn begin(&self) -> anyhow::Result<()> {
        let options = format!(
            "-c listen_addresses='' -c fsync=off -c max_connections=200 -k {}",
            self.socket_dir.display()
        );
        let log = self.socket_dir.join("log");
        let args = ["-w", "-s", "-o", &options, "-l", &log.to_string_lossy(), "start", "-D"];
        self.run("pg_ctl", &args, &self.socket_dir.join("data"))
    }

    /// Makes an empty database and returns its URL.
    pub fn create(&self, name: &str) -> anyhow::Result<String> {
        let dir = self.socket_dir().to_string_lossy();
        said(Command::new(self.bin.join("createdb")).args(["-U", "postgres", "-h", &dir, name]))?;
        Ok(format!("postgres://postgres@localhost/{name}?host={dir}"))
    }

    /// Where its socket is.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// Runs one of its programs. The server refuses to run as root, so root runs it as the system's `postgres`.
    pub fn run(&self, program: &str, args: &[&str], data: &Path) -> anyhow::Result<()> {
        let path = self.bin.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        said(command.args(args).arg(data).current_dir("/"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.own.is_some() {
            let data = self.socket_dir.join("data");
            // What remains is a folder in /tmp; nothing more can be done about it here.
            let _ = self.run("pg_ctl", &["-m", "immediate", "-s", "stop", "-D"], &data);
        }
    }
}

fn bin_dir() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let has_all =
        |folder: &PathBuf| ["initdb", "pg_ctl", "createdb"].iter().all(|tool| folder.join(tool).exists());
    folders.into_iter().find(has_all).context("PostgreSQL is not installed; tests/run does that")
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

pub(crate) fn said(command: &mut Command) -> anyhow::Result<()> {
    // A server that pg_ctl leaves behind would keep a pipe open, so what it says goes to its log.
    let Output { status, stderr, .. } = command
        .stdout(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&stderr));
    }
    Ok(())
}
