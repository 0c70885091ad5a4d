//! The demo: a whole fleet in one process, with traffic, and a view of what it does.
//!
//! `args` is what it was asked for. `stack` starts the real control plane, two real nodes and three
//! simulated providers; `traffic` calls the nodes like applications do and counts what it got; `look`
//! asks the fleet how it is; `picture` puts both together; `view` turns a picture into lines, and
//! `screen` draws them on a terminal. `paste` writes lines for the reader's own shell. This file runs
//! it all, takes keys and signals, and ends it in bounded time.

mod args;
mod look;
mod paste;
mod picture;
mod screen;
mod stack;
#[cfg(test)]
mod tests;
mod traffic;
mod view;

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use common::tasks::Tasks;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

pub use args::Args;
use look::{Look, Looker};
use picture::{Break, Picture, Story};
use screen::Screen;
use stack::Stack;
use traffic::Traffic;

/// Everything that runs is taken down within this time; Ctrl-C promises five seconds.
const ENDS_WITHIN: Duration = Duration::from_millis(4_500);
const REDRAW_EVERY: Duration = Duration::from_millis(250);
const BLOCK_EVERY: Duration = Duration::from_secs(1);

/// Runs the demo until it is told to end.
pub async fn run(args: Args) -> anyhow::Result<()> {
    match show(&args).await {
        // The reader went away, as `head` does: there is nobody to show an end to.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        shown => shown,
    }
}

async fn show(args: &Args) -> anyhow::Result<()> {
    crate::fleet::init();
    let mut signals = Signals::new()?;
    let screen_wanted = args.wants_screen();
    say("starting a control plane, two gateway nodes and their upstreams …")?;
    let (ended_tx, ended) = mpsc::channel(4);
    let stack = tokio::select! {
        stack = Stack::start(args, ended_tx) => stack?,
        () = signals.any() => return Ok(()),
    };
    say(&paste::greeting(&stack))?;
    let tasks = Tasks::new();
    let traffic = Traffic::start(&stack, &tasks)?;
    if args.no_traffic {
        traffic.toggle();
    }
    let mut looks = Looker::start(&stack, &tasks)?;
    // The first look is complete, so that the first block shows the chains.
    let first = tokio::select! {
        first = looks.recv() => first.context("nobody looks at the fleet")?,
        () = signals.any() => Look::default(),
    };
    let screen = if screen_wanted { Some(Screen::open(&tasks)?) } else { None };
    if screen.is_none() {
        say(&view::legend())?;
    }
    let shown = Show::new(args, stack, traffic, first, screen).run(looks, ended, &mut signals).await;
    let Ending { stack, traffic } = shown?;
    end(stack, traffic, &tasks, &mut signals).await
}

/// Takes everything down, says what was counted in the end, and the lines to paste once more.
async fn end(stack: Stack, traffic: Traffic, tasks: &Tasks, signals: &mut Signals) -> anyhow::Result<()> {
    let lines = paste::lines(&stack);
    let down = async {
        traffic.stop().await;
        tasks.stop(Duration::from_secs(1)).await;
        stack.stop().await
    };
    let down = tokio::select! {
        down = timeout(ENDS_WITHIN, down) => down.ok(),
        // Who asks twice does not want to wait.
        () = signals.any() => None,
    };
    let Some(counted) = down else {
        anyhow::bail!("not everything had ended when the process did");
    };
    say(&format!(
        "{}\nThe lines to paste were:\n{lines}",
        view::summary(&traffic.seen(Instant::now()), counted.as_ref())
    ))
}

fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("cannot write to standard output")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// SIGINT, SIGTERM and the terminal going away.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// The demo while it is shown.
struct Show {
    stack: Stack,
    traffic: Traffic,
    look: Look,
    screen: Option<Screen>,
    story: Story,
    started: Instant,
    until: Option<Instant>,
    /// Break and mend by itself at these moments: the first is where one watches without keys.
    script: Vec<(Instant, Break)>,
    chosen: usize,
    shows_lines: bool,
}

struct Ending {
    stack: Stack,
    traffic: Traffic,
}

enum Next {
    Go,
    End,
}

impl Show {
    fn new(args: &Args, stack: Stack, traffic: Traffic, look: Look, screen: Option<Screen>) -> Self {
        let started = Instant::now();
        let mut script = Vec::new();
        if let Some(time) = args.r#for
            && screen.is_none()
            && !stack.providers.is_empty()
        {
            script = vec![
                (started + time.mul_f64(0.5), Break::Mend),
                (started + time.mul_f64(0.3), Break::Status),
            ];
        }
        let story = Story::new(started);
        let until = args.r#for.map(|time| started + time);
        Show { stack, traffic, look, screen, story, started, until, script, chosen: 0, shows_lines: false }
    }

    async fn run(
        mut self,
        mut looks: mpsc::Receiver<Look>,
        mut ended: mpsc::Receiver<(String, anyhow::Result<()>)>,
        signals: &mut Signals,
    ) -> anyhow::Result<Ending> {
        let mut redraw = interval(if self.screen.is_some() { REDRAW_EVERY } else { BLOCK_EVERY });
        redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.script.last().map(|(at, _)| *at);
            tokio::select! {
                () = signals.any() => break,
                () = moment(self.until) => break,
                Some((name, end)) = ended.recv() => {
                    let error = end.err().unwrap_or_else(|| anyhow::anyhow!("it ended by itself"));
                    return Err(error.context(format!("{name} is down")));
                }
                () = moment(due) => {
                    if let Some((_, what)) = self.script.pop() {
                        self.change(what, "the demo by itself").await?;
                    }
                }
                Some(look) = looks.recv() => {
                    self.story.note(&self.look, &look);
                    self.look = look;
                    self.tell()?;
                }
                key = next_key(&mut self.screen) => {
                    if let Next::End = self.press(key).await? {
                        break;
                    }
                    self.draw()?;
                }
                _ = redraw.tick() => self.draw()?,
            }
        }
        let Show { stack, traffic, screen, .. } = self;
        drop(screen);
        Ok(Ending { stack, traffic })
    }

    async fn press(&mut self, key: Option<KeyEvent>) -> anyhow::Result<Next> {
        let Some(KeyEvent { code, modifiers, .. }) = key else { return Ok(Next::End) };
        let KeyCode::Char(letter) = code else {
            if code == KeyCode::Esc {
                self.shows_lines = false;
            }
            return Ok(Next::Go);
        };
        match (letter, modifiers.contains(KeyModifiers::CONTROL)) {
            ('c' | 'd', true) | ('q' | 'Q', false) => return Ok(Next::End),
            ('?', false) => self.shows_lines = !self.shows_lines,
            ('p', false) => self.traffic.toggle(),
            (digit @ '1'..='9', false) => {
                let index = digit as usize - '1' as usize;
                if index < self.stack.providers.len() {
                    self.chosen = index;
                }
            }
            (letter, false) => {
                if let Some(what) = Break::of_key(letter) {
                    self.change(what, "you").await?;
                }
            }
            _ => {}
        }
        Ok(Next::Go)
    }

    async fn change(&mut self, what: Break, who: &str) -> anyhow::Result<()> {
        if let Some(provider) = self.stack.providers.get(self.chosen) {
            provider.set(what.script()).await;
            self.story.tell(format!("{who}: {} {}", provider.name(), what.as_str()));
            self.tell()?;
        }
        Ok(())
    }

    /// Without a screen, news are lines of their own.
    fn tell(&mut self) -> anyhow::Result<()> {
        if self.screen.is_none() {
            for line in self.story.take_news() {
                say(&line)?;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let picture = Picture {
            uptime: now.saturating_duration_since(self.started),
            left: self.until.map(|until| until.saturating_duration_since(now)),
            look: &self.look,
            seen: self.traffic.seen(now),
            providers: &self.stack.providers,
            chosen: self.chosen,
            story: &self.story,
            dir: self.stack.dir(),
            is_paused: self.traffic.is_paused(),
        };
        match &mut self.screen {
            Some(screen) if self.shows_lines => screen.draw_text(&paste::page(&self.stack)),
            Some(screen) => screen.draw(&view::page(&picture)),
            None => say(&view::block(&picture)),
        }
    }
}

/// Waits for a moment; for ever when there is none.
async fn moment(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn next_key(screen: &mut Option<Screen>) -> Option<KeyEvent> {
    match screen {
        Some(screen) => screen.key().await,
        None => std::future::pending().await,
    }
}
