//! A sign that something is going on, on stderr, with the time it has taken.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use whimbrel_engine::clock;

/// How often the sign turns.
pub(crate) const BEAT: Duration = Duration::from_millis(120);

/// Waiting is not worth a sign before this.
const SOON: Duration = Duration::from_millis(300);

const STEPS: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠴', '⠦', '⠧', '⠏'];

/// The sign. It owns its line: whoever writes anything else clears it first.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    /// Since when nothing else was written.
    since: Option<Instant>,
    step: usize,
    shown: bool,
}

impl Spinner {
    /// Turns the sign by one step.
    pub(super) fn turn(&mut self, what: &str) {
        let since = self.since.get_or_insert_with(clock::monotonic);
        let waited = clock::monotonic() - *since;
        if waited < SOON {
            return;
        }
        self.step = (self.step + 1) % STEPS.len();
        self.shown = true;
        let what: String = what.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let time = match waited.as_secs() {
            0 => String::new(),
            seconds => format!("  {seconds} s"),
        };
        draw(&format!("\r\u{1b}[2K\u{1b}[2m{} {what}{time}\u{1b}[0m", STEPS[self.step]));
    }

    /// Takes the sign away.
    pub(super) fn clear(&mut self) {
        self.since = None;
        if std::mem::take(&mut self.shown) {
            draw("\r\u{1b}[2K");
        }
    }
}

/// A sign that cannot be drawn is no loss.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
