//! A real browser: looks at a page in both themes and at two widths, and says what it saw. Screenshots are kept in
//! `target/test-tools/screenshots`, so that somebody can look at them too.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use harness::tools::{package_path, tools_dir};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Wide as a desk's screen, and narrow as a phone's.
const WIDTHS: [u32; 2] = [1280, 400];
const THEMES: [&str; 2] = ["light", "dark"];
/// What stands beside the status of a fleet with a model `m`.
const DOCUMENTS: [&str; 2] = ["/incidents.atom", "/badge/m.svg"];
/// Where the browser is; `tests/run` says it.
const BROWSER: &str = "SLUICE_TEST_BROWSER";

/// What one look at a page saw.
#[derive(Debug)]
pub struct View {
    /// In which theme, and how wide.
    pub name: String,
    /// What went wrong, in words; empty on a page that is well.
    pub faults: Vec<String>,
    /// The colour of its paper.
    pub paper: String,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Everything that can be read on it.
    pub text: String,
    /// The XML documents beside it, each with its status and its root.
    pub documents: Vec<String>,
    /// Its pictures.
    pub pictures: Vec<Picture>,
}

/// A picture of bars.
#[derive(Debug)]
pub struct Picture {
    /// What is told to those who do not see it.
    pub label: String,
    /// Its bars: the class in the style sheet, and what is said when somebody points at it.
    pub bars: Vec<(String, String)>,
}

/// A table as it is read on the screen.
#[derive(Debug)]
pub struct Table {
    /// What stands above it.
    pub caption: String,
    /// The names of its columns.
    pub head: Vec<String>,
    /// Its rows; a cell's white space is one blank.
    pub rows: Vec<Vec<String>>,
}

impl View {
    /// The table of this caption.
    pub fn table(&self, caption: &str) -> anyhow::Result<&Table> {
        let found = self.tables.iter().find(|table| table.caption == caption);
        found.with_context(|| format!("no table {caption:?} in {}:\n{}", self.name, self.text))
    }
}

impl Table {
    /// The row that begins so, without its beginning.
    pub fn row(&self, name: &str) -> anyhow::Result<Vec<&str>> {
        let found = self.rows.iter().find(|row| row.first().is_some_and(|first| first == name));
        let row = found.with_context(|| format!("no row {name:?} in {self:?}"))?;
        Ok(row.iter().skip(1).map(String::as_str).collect())
    }

    /// The row below the heading that begins so, and the heading.
    pub fn below(&self, name: &str) -> anyhow::Result<(&str, Vec<&str>)> {
        let found = self.rows.windows(2).find_map(|rows| match rows {
            [heading, row] if heading.len() == 1 && heading[0].starts_with(name) => Some((&heading[0], row)),
            _ => None,
        });
        let (heading, row) = found.with_context(|| format!("no heading {name:?} in {self:?}"))?;
        Ok((heading, row.iter().map(String::as_str).collect()))
    }
}

/// Looks at a page of this listener, in every theme at every width; the screenshots are named after `name`.
pub async fn look(address: SocketAddr, path: &str, name: &str) -> anyhow::Result<Vec<View>> {
    look_as(None, address, path, name).await
}

/// The same, as somebody who shows this token when the browser is asked for a password.
pub async fn look_as(
    token: Option<&str>,
    address: SocketAddr,
    path: &str,
    name: &str,
) -> anyhow::Result<Vec<View>> {
    let views = THEMES
        .iter()
        .flat_map(|theme| WIDTHS.map(|width| json!({"theme": theme, "width": width})))
        .collect::<Vec<_>>();
    let plan = json!({
        "url": format!("http://{address}{path}"),
        "chromium": browser()?,
        "shots": shots()?.join(name),
        "views": views,
        "documents": DOCUMENTS,
        "token": token,
    });
    let seen = run("browser/look.mjs", &plan).await?;
    let views = seen["views"].as_array().context("no views")?;
    Ok(views.iter().map(|seen| view(seen, address)).collect())
}

/// A step of a walk: `go`, `to`, `write`, `press`, `follow`, `until` or `see`, and what.
pub type WalkStep<'a> = (&'static str, &'a str);

/// Walks through the pages of this listener by keyboard, in every theme at every width; gives what was seen at each stop.
pub async fn walk(address: SocketAddr, name: &str, steps: &[WalkStep<'_>]) -> anyhow::Result<Vec<View>> {
    let views = THEMES.iter().flat_map(|theme| WIDTHS.map(|width| json!({"theme": theme, "width": width})));
    walk_in(views.collect(), address, name, steps).await
}

/// The same once, in the dark on a phone: for what can be done only once.
pub async fn walk_once(address: SocketAddr, name: &str, steps: &[WalkStep<'_>]) -> anyhow::Result<Vec<View>> {
    walk_in(vec![json!({"theme": THEMES[1], "width": WIDTHS[1]})], address, name, steps).await
}

async fn walk_in(
    views: Vec<Value>,
    address: SocketAddr,
    name: &str,
    steps: &[WalkStep<'_>],
) -> anyhow::Result<Vec<View>> {
    let steps: Vec<_> = steps.iter().map(|(what, with)| json!({ *what: with })).collect();
    let plan = json!({
        "origin": format!("http://{address}"),
        "chromium": browser()?,
        "shots": shots()?.join(name),
        "views": views,
        "steps": steps,
    });
    let seen = run("browser/walk.mjs", &plan).await?;
    let stops = seen["stops"].as_array().context("no stops")?;
    Ok(stops.iter().map(|seen| view(seen, address)).collect())
}

/// A page that stands open in a browser, and is waited for to show something.
pub struct Open {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Open {
    /// Opens a page of this listener, puts the focus on `focus`, and will wait for it to show `until`.
    pub async fn page(address: SocketAddr, name: &str, focus: &str, until: &str) -> anyhow::Result<Self> {
        let plan = json!({
            "url": format!("http://{address}/"),
            "chromium": browser()?,
            "shot": shots()?.join(format!("{name}.png")),
            "focus": focus,
            "until": until,
        });
        let mut child = Command::new("node")
            .arg(package_path("browser/watch.mjs"))
            .arg(plan.to_string())
            .env("SLUICE_TEST_TOOLS", tools_dir()?)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("no node; tests/run installs it")?;
        let stdout = child.stdout.take().context("no output")?;
        let mut open = Open { child, lines: BufReader::new(stdout).lines() };
        let said = open.lines.next_line().await?;
        ensure!(said.as_deref() == Some("open"), "the page does not open: {said:?}");
        Ok(open)
    }

    /// Waits until it shows what it is waited for, and gives what the script saw.
    pub async fn shown(mut self) -> anyhow::Result<Value> {
        let said = self.lines.next_line().await?.context("the page never showed it")?;
        ensure!(self.child.wait().await?.success(), "the browser failed: {said}");
        Ok(serde_json::from_str(&said)?)
    }
}

async fn run(script: &str, plan: &Value) -> anyhow::Result<Value> {
    let output = Command::new("node")
        .arg(package_path(script))
        .arg(plan.to_string())
        .env("SLUICE_TEST_TOOLS", tools_dir()?)
        .kill_on_drop(true)
        .output()
        .await
        .context("no node; tests/run installs it")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Where screenshots are kept.
fn shots() -> anyhow::Result<PathBuf> {
    let shots = tools_dir()?.join("screenshots");
    std::fs::create_dir_all(&shots)?;
    Ok(shots)
}

fn view(seen: &Value, address: SocketAddr) -> View {
    let own = format!("http://{address}/");
    let elsewhere = texts(&seen["requests"]).into_iter().filter(|url| !url.starts_with(&own));
    let mut faults: Vec<String> = elsewhere.map(|url| format!("asked {url}")).collect();
    for (kind, what) in [("said", "console"), ("faults", "axe"), ("overflow", "overflow")] {
        faults.extend(texts(&seen[kind]).into_iter().map(|text| format!("{what}: {text}")));
    }
    let tables = seen["tables"].as_array().into_iter().flatten();
    let pictures = seen["pictures"].as_array().into_iter().flatten();
    View {
        name: format!("{} {} at {} px", text(&seen["stop"]), text(&seen["theme"]), seen["width"])
            .trim()
            .to_owned(),
        faults,
        paper: text(&seen["paper"]),
        tables: tables.map(table).collect(),
        text: text(&seen["text"]),
        pictures: pictures.map(picture).collect(),
        documents: texts(&seen["documents"]),
    }
}

fn picture(seen: &Value) -> Picture {
    let bars = seen["bars"].as_array().into_iter().flatten();
    Picture { label: text(&seen["label"]), bars: bars.map(|bar| (text(&bar[0]), text(&bar[1]))).collect() }
}

fn table(seen: &Value) -> Table {
    let rows = seen["rows"].as_array().into_iter().flatten();
    Table { caption: text(&seen["caption"]), head: texts(&seen["head"]), rows: rows.map(texts).collect() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// What `tests/run` found, or what stands where such programs stand.
fn browser() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(BROWSER) {
        return Ok(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        if let Some(found) = names.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
            return Ok(found);
        }
    }
    bail!("no Chromium; tests/run installs it")
}
