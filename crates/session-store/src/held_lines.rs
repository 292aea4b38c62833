//! Lines of a reply that is streaming, held back from a session store or a mirroring host: both keep the first line that
//! they get, and stop reason and usage are known only when the reply ends. The wait is bounded, so that a kill of the
//! engine loses little of what the host has seen.

use std::time::Duration;

use tokio::time::Instant;
use whimbrel_wire::RawJson;

use crate::open_reply::{OpenLine, ReplyEnd};

/// Longest wait for the end of a reply. A line that is passed on earlier keeps the usage of the beginning.
pub(crate) const MAX_HOLD: Duration = Duration::from_secs(1);

/// Lines in the order in which they were written.
#[derive(Debug, Default)]
pub(crate) struct HeldLines {
    lines: Vec<HeldLine>,
    /// When the first of the lines must be passed on.
    due: Option<Instant>,
}

#[derive(Debug)]
enum HeldLine {
    Open(OpenLine),
    Complete(RawJson),
}

impl HeldLines {
    /// Holds a line of the reply.
    pub(crate) fn push_open(&mut self, line: OpenLine) {
        self.due.get_or_insert_with(|| Instant::now() + MAX_HOLD);
        self.lines.push(HeldLine::Open(line));
    }

    /// Holds a complete line if it must follow held ones, else returns it.
    pub(crate) fn push_after(&mut self, line: RawJson) -> Option<RawJson> {
        if self.lines.is_empty() {
            return Some(line);
        }
        self.lines.push(HeldLine::Complete(line));
        None
    }

    /// Takes all lines, with the final values of the reply or those of its beginning.
    pub(crate) fn take(&mut self, end: Option<&ReplyEnd>) -> Vec<RawJson> {
        self.due = None;
        let complete = |line| match line {
            HeldLine::Open(line) => RawJson::parse(line.complete(end)).ok(),
            HeldLine::Complete(line) => Some(line),
        };
        std::mem::take(&mut self.lines).into_iter().filter_map(complete).collect()
    }

    /// When the lines must be passed on; `None` if there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}
