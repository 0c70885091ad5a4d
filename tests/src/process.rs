//! One child process: its binary found beside this executable, its data folder, its addresses from
//! `listen.json`, its log kept and shown when a test fails, signals, and the same again on the same
//! folder.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use common::tasks::Tasks;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::eventually::eventually;

/// How long a program may take until its listeners are open.
pub const START_LIMIT: Duration = Duration::from_secs(20);

/// What to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name of the binary.
    pub binary: &'static str,
    /// Name in the logs that are shown.
    pub label: String,
    /// Its folder, given as `--data-dir`.
    pub data_dir: PathBuf,
    /// Further flags.
    pub args: Vec<String>,
    /// Further environment.
    pub env: Vec<(String, String)>,
    /// The listener whose `/readyz` must say yes before it counts as started.
    pub ready_at: Option<&'static str>,
}

/// A program that runs, ran, or will run again. Killed when it is dropped.
pub struct Process {
    program: Program,
    child: Option<Child>,
    log: Arc<Mutex<Vec<String>>>,
    listen: BTreeMap<String, SocketAddr>,
    readers: Tasks,
    /// No file grows beyond this.
    file_limit: Option<u64>,
}

impl Process {
    /// Starts it and waits until it listens, and is ready where its program says so.
    pub async fn start(program: Program) -> anyhow::Result<Self> {
        let log = Arc::default();
        let mut process = Process {
            program,
            child: None,
            log,
            listen: BTreeMap::new(),
            readers: Tasks::new(),
            file_limit: None,
        };
        process.start_again().await?;
        Ok(process)
    }

    /// Starts it on the same folder with the same flags and waits as [`Process::start`] does.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.spawn()?;
        self.await_listening().await?;
        let Some(listener) = self.program.ready_at else { return Ok(()) };
        let address = self.address(listener)?;
        eventually(&format!("{} is ready", self.program.label), START_LIMIT, || async {
            let (status, text) = get(address, "/readyz").await?;
            ensure!(status == 200, "/readyz answers {status} {text}");
            Ok(())
        })
        .await
    }

    /// Starts it and does not wait.
    pub fn spawn(&mut self) -> anyhow::Result<()> {
        let Program { binary, label, data_dir, args, env, .. } = &self.program;
        std::fs::create_dir_all(data_dir)?;
        match std::fs::remove_file(self.listen_json()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let path = binary_path(binary)?;
        let mut command = match self.file_limit {
            Some(_) => {
                let mut command = Command::new("prlimit");
                command.arg(self.fsize()).arg(&path);
                command
            }
            None => Command::new(&path),
        };
        let mut child = command
            .arg("--data-dir")
            .arg(data_dir)
            .args(args)
            .env_remove("RUST_LOG")
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {label} ({})", path.display()))?;
        self.keep_log(child.stdout.take());
        self.keep_log(child.stderr.take());
        self.child = Some(child);
        Ok(())
    }

    fn keep_log(&self, stream: Option<impl AsyncRead + Send + Unpin + 'static>) {
        let Some(stream) = stream else { return };
        let log = self.log.clone();
        self.readers.spawn("log of a child", |_| async move {
            let mut lines = BufReader::new(stream).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
    }

    /// Waits for `listen.json`.
    pub async fn await_listening(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Ok(text) = std::fs::read_to_string(self.listen_json())
                && let Ok(listen) = serde_json::from_str(&text)
            {
                self.listen = listen;
                return Ok(());
            }
            let label = &self.program.label;
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
                bail!("{label} ended with {status} before it listened:\n{}", self.log().join("\n"));
            }
            if Instant::now() >= deadline {
                bail!("{label} does not listen after {START_LIMIT:?}:\n{}", self.log().join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn listen_json(&self) -> PathBuf {
        self.program.data_dir.join("listen.json")
    }

    /// The bound address of one of its listeners.
    pub fn address(&self, listener: &str) -> anyhow::Result<SocketAddr> {
        let known = || format!("{} has no listener {listener:?}: {:?}", self.program.label, self.listen);
        self.listen.get(listener).copied().with_context(known)
    }

    /// Its folder.
    pub fn data_dir(&self) -> &Path {
        &self.program.data_dir
    }

    /// Its name in what is shown.
    pub fn label(&self) -> &str {
        &self.program.label
    }

    /// The flags and environment of the next start.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Everything it has said so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it says a line with `text` in it.
    pub async fn says(&self, text: &str, limit: Duration) -> anyhow::Result<String> {
        eventually(&format!("{} says {text:?}", self.program.label), limit, || async {
            self.log().into_iter().find(|line| line.contains(text)).context("not said")
        })
        .await
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Fills its disk, as it were: from now on no file of it grows beyond so many bytes, also after another start;
    /// `None` gives it room again. A limit of the process, which asks for no rights.
    pub async fn limit_files(&mut self, bytes: Option<u64>) -> anyhow::Result<()> {
        self.file_limit = bytes;
        let Some(pid) = self.pid() else { return Ok(()) };
        let status =
            Command::new("prlimit").arg("--pid").arg(pid.to_string()).arg(self.fsize()).status().await?;
        ensure!(status.success(), "prlimit of {} failed", self.program.label);
        Ok(())
    }

    /// The soft limit; the hard one stays, so that it can be raised again.
    fn fsize(&self) -> String {
        match self.file_limit {
            Some(bytes) => format!("--fsize={bytes}:"),
            None => "--fsize=unlimited:".to_owned(),
        }
    }

    /// `kill -9`, and waits until it is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Sends a signal by name: `TERM`, `STOP`, `CONT`.
    pub async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("it does not run")?;
        let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().await?;
        anyhow::ensure!(status.success(), "kill -{name} of {} failed", self.program.label);
        Ok(())
    }

    /// SIGTERM, and waits for the end at most `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        self.signal("TERM").await?;
        self.ended(limit).await
    }

    /// Waits for its end.
    pub async fn ended(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let child = self.child.as_mut().context("it does not run")?;
        let waited = timeout(limit, child.wait()).await;
        let status =
            waited.with_context(|| format!("{} still runs after {limit:?}", self.program.label))??;
        self.child = None;
        Ok(status)
    }
}

/// The binary of this build, beside the executable that runs now.
pub fn binary_path(name: &str) -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("no {name} beside {}; build the workspace first", here.display()))
}

/// A free port of loopback below the range that outgoing connections take theirs from, so that a
/// program that was killed finds it free again.
pub fn free_port() -> anyhow::Result<u16> {
    for _ in 0..200 {
        let port = fastrand::u16(15_000..32_000);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between 15000 and 32000")
}

/// What a path of a listener answers.
pub async fn get(address: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    crate::fleet::init();
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let response = client.get(format!("http://{address}{path}")).send().await?;
    Ok((response.status().as_u16(), response.text().await?))
}
