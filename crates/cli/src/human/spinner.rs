//! A sign that something is going on, on stderr, with the time it has taken.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use whimbrel_engine::clock;

use super::Paint;
use crate::terminal::columns;

/// How often the sign turns.
pub(crate) const BEAT: Duration = Duration::from_millis(120);

/// Waiting is not worth a sign before this.
const SOON: Duration = Duration::from_millis(300);

/// The width where none is known, and the longest sign.
const USUAL_WIDTH: usize = 80;
const LONGEST: usize = 60;

const STEPS: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠴', '⠦', '⠧', '⠏'];

/// The sign. It owns its line: whoever writes anything else clears it first.
#[derive(Debug)]
pub(crate) struct Spinner {
    paint: Paint,
    /// Since when nothing else was written.
    since: Option<Instant>,
    step: usize,
    shown: bool,
}

impl Spinner {
    /// A sign that is not shown yet.
    pub(crate) fn new(paint: Paint) -> Self {
        Self { paint, since: None, step: 0, shown: false }
    }

    /// Turns the sign by one step.
    pub(super) fn turn(&mut self, what: &str) {
        let since = self.since.get_or_insert_with(clock::monotonic);
        let waited = clock::monotonic() - *since;
        if waited < SOON {
            return;
        }
        self.step = (self.step + 1) % STEPS.len();
        self.shown = true;
        let width = columns(io::stderr()).unwrap_or(USUAL_WIDTH);
        let sign = self.paint.dim(&sign(STEPS[self.step], what, waited.as_secs(), width));
        draw(&format!("\r\u{1b}[2K{sign}"));
    }

    /// Takes the sign away.
    pub(super) fn clear(&mut self) {
        self.since = None;
        if std::mem::take(&mut self.shown) {
            draw("\r\u{1b}[2K");
        }
    }
}

/// What the sign says. It must fit into one line, or it could not be taken away; letters that are not ASCII may be two
/// columns wide, and the last column stays free.
fn sign(step: char, what: &str, seconds: u64, width: usize) -> String {
    let time = if seconds == 0 { String::new() } else { format!("  {seconds} s") };
    let mut room = width.saturating_sub(3 + time.len()).min(LONGEST);
    let fits = |letter: &char| {
        let wide = if letter.is_ascii() { 1 } else { 2 };
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let what: String = what.chars().filter(|letter| !letter.is_control()).take_while(fits).collect();
    let sign = format!("{step} {what}{time}");
    sign.chars().take(width.saturating_sub(1)).collect()
}

/// A sign that cannot be drawn is no loss.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_fits_into_one_line() {
        let rows = [
            ("Bash  cargo test", 0, 80, "- Bash  cargo test"),
            ("Bash  cargo test", 7, 80, "- Bash  cargo test  7 s"),
            ("Bash  cargo test", 12, 20, "- Bash  cargo  12 s"),
            ("鷸鷸鷸鷸鷸鷸鷸鷸鷸鷸", 0, 20, "- 鷸鷸鷸鷸鷸鷸鷸鷸"),
            ("Bash", 100, 5, "-   "),
            ("Bash", 0, 0, ""),
        ];
        for (what, seconds, width, expected) in rows {
            assert_eq!(sign('-', what, seconds, width), expected, "{what} in {width} columns");
        }
    }
}
