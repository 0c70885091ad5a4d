//! The terminal: raw mode and the alternate screen while the view is open, given back whatever ends
//! it, a panic too; keys as they are pressed.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use anyhow::Context as _;
use common::tasks::Tasks;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use crossterm::style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use tokio::sync::mpsc;

use super::view::{Line, Tone};

/// The reader of keys looks this often whether the screen is still open.
const KEYS_EVERY: Duration = Duration::from_millis(100);

/// An open screen; closed when it is dropped.
pub(super) struct Screen {
    keys: mpsc::Receiver<KeyEvent>,
    is_closed: Arc<AtomicBool>,
    has_color: bool,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open(tasks: &Tasks) -> anyhow::Result<Screen> {
        restore_on_panic();
        terminal::enable_raw_mode().context("cannot take the terminal")?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let (tx, keys) = mpsc::channel(16);
        let has_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        // From here on it is given back by the drop, also when the next line fails.
        let screen = Screen { keys, is_closed: is_closed.clone(), has_color };
        execute!(io::stdout(), EnterAlternateScreen, Hide).context("cannot open the screen")?;
        tasks.spawn("keys", |_| async move {
            // A thread of its own, for reading a terminal blocks.
            let read = tokio::task::spawn_blocking(move || read_keys(&tx, &is_closed));
            let _ = read.await;
        });
        Ok(screen)
    }

    /// The next key; none when the terminal is gone.
    pub(super) async fn key(&mut self) -> Option<KeyEvent> {
        self.keys.recv().await
    }

    /// Draws lines, cut to the width, as many as there is room for; the last line always.
    pub(super) fn draw(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let (columns, rows) = (columns as usize, rows as usize);
        let mut out = Vec::with_capacity(8 * 1024);
        queue!(out, BeginSynchronizedUpdate, MoveTo(0, 0))?;
        let room = rows.saturating_sub(1).min(lines.len().saturating_sub(1));
        let shown = lines.iter().take(room).chain(lines.last());
        for (row, line) in shown.enumerate() {
            queue!(out, MoveTo(0, row as u16))?;
            self.put(&mut out, line, columns)?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        flush(&out)
    }

    /// Draws text as it is: the terminal wraps what is too long, so that it can be copied whole.
    pub(super) fn draw_text(&mut self, text: &str) -> anyhow::Result<()> {
        let mut out = Vec::with_capacity(8 * 1024);
        queue!(out, BeginSynchronizedUpdate, MoveTo(0, 0))?;
        for line in text.lines() {
            queue!(
                out,
                Clear(ClearType::UntilNewLine),
                Print(line),
                Clear(ClearType::UntilNewLine),
                Print("\r\n")
            )?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        flush(&out)
    }

    fn put(&self, out: &mut Vec<u8>, line: &Line, columns: usize) -> anyhow::Result<()> {
        let mut left = columns;
        for (tone, text) in &line.0 {
            let shown: String = text.chars().take(left).collect();
            left -= shown.chars().count();
            match tone {
                Tone::Plain => {}
                Tone::Dim => queue!(out, SetAttribute(Attribute::Dim))?,
                Tone::Title => queue!(out, SetAttribute(Attribute::Bold))?,
                Tone::Good if self.has_color => queue!(out, SetForegroundColor(Color::Green))?,
                Tone::Bad if self.has_color => queue!(out, SetForegroundColor(Color::Red))?,
                Tone::Good => {}
                Tone::Bad => queue!(out, SetAttribute(Attribute::Reverse))?,
            }
            queue!(out, Print(shown), SetAttribute(Attribute::Reset), ResetColor)?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        restore();
    }
}

fn flush(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot draw on the terminal")
}

/// Gives the terminal back. What fails here fails because it is gone.
fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

/// A panic would be written to the alternate screen and vanish with it.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

fn read_keys(tx: &mpsc::Sender<KeyEvent>, is_closed: &AtomicBool) {
    while !is_closed.load(Ordering::Acquire) {
        match event::poll(KEYS_EVERY) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if tx.blocking_send(key).is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            },
            Err(_) => return,
        }
    }
}
