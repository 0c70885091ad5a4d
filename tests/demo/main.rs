//! The demo as a program: it shows what it promises, ends by itself, and ends when it is told to.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::process::binary_path;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout};

/// From the start to the first block, on a busy machine.
const SHOWN: Duration = Duration::from_secs(30);
/// What the issue promises of Ctrl-C.
const ENDED: Duration = Duration::from_secs(5);

struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Demo {
    fn start(args: &[&str]) -> anyhow::Result<Demo> {
        let mut child = Command::new(binary_path("demo")?)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let out = child.stdout.take().context("no output")?;
        Ok(Demo { child, lines: BufReader::new(out).lines() })
    }

    /// Reads until a line with `text` in it; returns everything up to it.
    async fn says(&mut self, text: &str) -> anyhow::Result<String> {
        let mut said = String::new();
        let reading = async {
            while let Some(line) = self.lines.next_line().await? {
                said.push_str(&line);
                said.push('\n');
                if line.contains(text) {
                    return Ok(());
                }
            }
            anyhow::bail!("it ended before")
        };
        let read = timeout(SHOWN, reading).await.context("it took too long").and_then(|read| read);
        read.with_context(|| format!("the demo does not say {text:?}; it said:\n{said}"))?;
        Ok(said)
    }

    /// The rest of what it says, and its exit code.
    async fn ended(mut self, limit: Duration) -> anyhow::Result<(String, Option<i32>, String)> {
        let (mut rest, mut errors) = (String::new(), String::new());
        let ending = async {
            while let Some(line) = self.lines.next_line().await? {
                rest.push_str(&line);
                rest.push('\n');
            }
            self.child.stderr.take().context("no errors")?.read_to_string(&mut errors).await?;
            anyhow::Ok(self.child.wait().await?.code())
        };
        let code = timeout(limit, ending).await.with_context(|| format!("it runs on after {limit:?}"))??;
        Ok((rest, code, errors))
    }

    async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.child.id().context("it does not run")?;
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().await?;
        ensure!(sent.success(), "kill -{name} failed");
        Ok(())
    }
}

/// The value that stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or("", |(value, _)| value)
}

#[tokio::test]
async fn the_demo_shows_traffic_move_and_come_back_and_ends_by_itself() -> anyhow::Result<()> {
    let mut demo = Demo::start(&["--for", "8s"])?;
    let head = demo.says("nodes node-1 r1 in sync, node-2 r1 in sync").await?;
    for text in ["curl -N http://127.0.0.1:", "from openai import OpenAI", "--bin sluice -- status"] {
        assert!(head.contains(text), "{text:?} is missing:\n{head}");
    }
    for text in ["demo-large  alpha 1.5", "> bravo 3", "> charlie 4.375"] {
        assert!(head.contains(text), "{text:?} is missing:\n{head}");
    }
    let (rest, code, errors) = demo.ended(SHOWN).await?;
    assert_eq!(code, Some(0), "{errors}\n{rest}");
    assert_eq!(errors, "");
    for text in [
        "alpha answers 503 from now on",
        "takes alpha out: breaker open",
        "alpha is mended",
        "takes alpha in again",
        "In the end",
        "from openai import OpenAI",
    ] {
        assert!(rest.contains(text), "{text:?} is missing:\n{rest}");
    }
    for model in ["demo-large", "demo-small"] {
        let line = rest.lines().rev().find(|line| line.contains("seen by this demo") && line.contains(model));
        let line = line.with_context(|| format!("no summary of {model}:\n{rest}"))?;
        let seen = between(line, "seen by this demo: ", ";");
        assert!(line.ends_with(seen) && seen.ends_with("100 %"), "seen and counted differ: {line}");
    }
    Ok(())
}

#[tokio::test]
async fn ctrl_c_and_sigterm_end_the_demo_within_five_seconds() -> anyhow::Result<()> {
    for signal in ["INT", "TERM"] {
        let mut demo = Demo::start(&[])?;
        demo.says("in sync, node-2 r1 in sync").await?;
        demo.signal(signal).await?;
        let since = Instant::now();
        let (rest, code, errors) = demo.ended(ENDED).await?;
        assert_eq!(code, Some(0), "after {:?}: {errors}\n{rest}", since.elapsed());
        assert!(rest.contains("In the end") && errors.is_empty(), "{errors}\n{rest}");
    }
    Ok(())
}

/// On a terminal of its own, which `script` makes.
#[tokio::test]
async fn on_a_terminal_keys_break_a_provider_and_ctrl_c_gives_the_terminal_back() -> anyhow::Result<()> {
    let demo = binary_path("demo")?;
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command"])
        .arg(format!("stty rows 24 cols 80; exec {}", demo.display()))
        .arg("/dev/null")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("no `script` (package bsdutils) to make a terminal with")?;
    let mut keys = child.stdin.take().context("no input")?;
    let mut screen = child.stdout.take().context("no output")?;
    let mut drawn = String::new();
    see(&mut screen, &mut drawn, "CHANNELS").await?;
    assert!(drawn.contains(ALTERNATE_SCREEN), "{drawn:?}");
    keys.write_all(b"2h").await?;
    see(&mut screen, &mut drawn, "you: bravo sends no response headers").await?;
    see(&mut screen, &mut drawn, "takes bravo out").await?;
    keys.write_all(b"?").await?;
    see(&mut screen, &mut drawn, "from openai import OpenAI").await?;
    keys.write_all(b"\x03").await?;
    let since = Instant::now();
    see(&mut screen, &mut drawn, "In the end").await?;
    let status = timeout(ENDED, child.wait()).await.context("it runs on")??;
    assert!(status.success() && since.elapsed() < ENDED, "{status} after {:?}", since.elapsed());
    assert!(drawn.contains(MAIN_SCREEN) && drawn.contains(CURSOR_SHOWN), "{drawn:?}");
    Ok(())
}

const ALTERNATE_SCREEN: &str = "\x1b[?1049h";
const MAIN_SCREEN: &str = "\x1b[?1049l";
const CURSOR_SHOWN: &str = "\x1b[?25h";

/// Reads what is drawn from now on until `text` is in it.
async fn see(screen: &mut ChildStdout, drawn: &mut String, text: &str) -> anyhow::Result<()> {
    let from = drawn.len();
    let reading = async {
        let mut piece = [0; 8192];
        while !drawn[from..].contains(text) {
            let length = screen.read(&mut piece).await?;
            ensure!(length > 0, "it ended before");
            drawn.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        Ok(())
    };
    let read = timeout(SHOWN, reading).await.context("it took too long").and_then(|read| read);
    read.with_context(|| format!("{text:?} is not drawn; there was {:?}", &drawn[from..]))
}

#[tokio::test]
async fn a_kept_folder_serves_again_with_the_same_key_and_the_next_revision() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().to_string_lossy().into_owned();
    let mut keys = Vec::new();
    for revision in ["r1", "r2"] {
        let mut demo = Demo::start(&["--data-dir", &path, "--for", "3s"])?;
        let head = demo.says(&format!("node-1 {revision} in sync, node-2 {revision} in sync")).await?;
        keys.push(between(&head, "Bearer ", "'").to_owned());
        let (rest, code, errors) = demo.ended(SHOWN).await?;
        assert_eq!(code, Some(0), "{errors}\n{rest}");
    }
    assert!(keys[0].starts_with("sk-") && keys[0] == keys[1], "{keys:?}");
    assert!(Path::new(&path).join("control-plane").is_dir());
    Ok(())
}

#[tokio::test]
async fn a_faulty_catalog_ends_the_demo_with_every_fault() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("catalog.toml");
    std::fs::write(&file, "[channels.a]\nbase_url = \"nonsense\"\n[models.m]\nrouts = []\n")?;
    let demo = Demo::start(&["--catalog", &file.to_string_lossy()])?;
    let (_, code, errors) = demo.ended(SHOWN).await?;
    assert_eq!(code, Some(2), "{errors}");
    for text in ["the catalog has faults", "line 2: channels.a.base_url", "line 4: models.m.routs"] {
        assert!(errors.contains(text), "{text:?} is missing: {errors}");
    }
    Ok(())
}
