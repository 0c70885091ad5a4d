//! A pgbouncer between the tests and a PostgreSQL: three connections to each database, lent out by transaction or by
//! statement.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::database::{Postgres, is_root, said};

/// It listens at a socket named after this port, in a folder of its own.
const PORT: &str = "6432";
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// A running pgbouncer, which ends when this is dropped.
pub struct Bouncer {
    child: Child,
    dir: TempDir,
}

impl Bouncer {
    /// Starts one before a cluster, which lends connections out by `mode`: `transaction` or `statement`.
    pub fn start(postgres: &Postgres, mode: &str) -> anyhow::Result<Self> {
        let program = program().context("pgbouncer is not installed; tests/run does that")?;
        let dir = tempfile::Builder::new().prefix("slpb").tempdir_in("/tmp")?;
        let path = dir.path().display();
        // More clients than connections, so that they share them; what is idle makes room for the next database.
        let settings = format!(
            "[databases]\n* = host={cluster} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\n\
             unix_socket_dir = {path}\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 3\n\
             max_client_conn = 1000\nserver_idle_timeout = 2\nserver_check_delay = 0\nlogfile = {path}/log\n\
             pidfile = {path}/pid\n",
            cluster = postgres.socket_dir().display(),
        );
        std::fs::write(dir.path().join("ini"), settings)?;
        let mut command = Command::new(program);
        command.arg(dir.path().join("ini")).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        if is_root() {
            // It refuses to run as root.
            said(Command::new("chown").arg("-R").arg("postgres").arg(dir.path()))?;
            command.uid(id("-u")?).gid(id("-g")?);
        }
        let child = command.spawn().context("cannot run pgbouncer")?;
        let mut bouncer = Bouncer { child, dir };
        let begun = Instant::now();
        while UnixStream::connect(bouncer.dir.path().join(format!(".s.PGSQL.{PORT}"))).is_err() {
            let has_ended = bouncer.child.try_wait()?.is_some();
            if has_ended || begun.elapsed() > STARTS_WITHIN {
                let log = std::fs::read_to_string(bouncer.dir.path().join("log")).unwrap_or_default();
                bail!("pgbouncer does not start: {log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(bouncer)
    }

    /// The way through it to the database that `url` names.
    pub fn through(&self, url: &str) -> anyhow::Result<String> {
        let (_, name) = url.split_once("localhost/").context("no URL of the cluster")?;
        let name = name.split('?').next().unwrap_or(name);
        Ok(format!("postgres://postgres@localhost:{PORT}/{name}?host={}", self.dir.path().display()))
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where Debian puts it, which is in no path but root's.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.exists())
}

fn id(of: &str) -> anyhow::Result<u32> {
    let said = Command::new("id").args([of, "postgres"]).output()?;
    String::from_utf8(said.stdout)?.trim().parse().context("there is no user postgres")
}
