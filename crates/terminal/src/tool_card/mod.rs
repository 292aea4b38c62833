//! Tool calls at a glance: while they run, when they are done, and in full when permission is asked.
//!
//! - `title`: the tool and the most telling part of its input
//! - `summary`: what came of a call, in a few words
//! - [`finished`], [`running`], [`request`]: the cards

mod card;
mod request;
mod summary;
mod title;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

pub(crate) use card::{finished, running};
pub(crate) use request::request;
pub(crate) use title::title;

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
    /// Paths below it are shown relative to it.
    pub(crate) cwd: &'a Path,
}

impl<'a> Call<'a> {
    /// A text field of the input.
    fn field(&self, name: &str) -> Option<&'a str> {
        self.input.get(name)?.as_str()
    }

    /// Shows a path relative to the working directory.
    fn short_path(&self, path: &'a str) -> &'a str {
        let below = self.cwd.to_str().and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
        below.filter(|below| !below.is_empty()).unwrap_or(path)
    }

    /// Server and tool of a call to an MCP server.
    fn mcp_names(&self) -> Option<(&'a str, &'a str)> {
        self.name.strip_prefix("mcp__")?.split_once("__")
    }
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<'a> {
    /// What the model reads.
    pub(crate) text: &'a str,
    pub(crate) is_error: bool,
    /// The tool's own result, for the host.
    pub(crate) structured: Option<&'a Value>,
    pub(crate) elapsed: Duration,
}

/// Frames of the sign that something runs.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// How long each frame stands.
pub(crate) const SPINNER_INTERVAL: Duration = Duration::from_millis(125);

/// The frame of the spinner after some time.
pub(crate) fn spinner_frame(elapsed: Duration) -> char {
    let frame = elapsed.as_millis() / SPINNER_INTERVAL.as_millis();
    SPINNER[usize::try_from(frame).unwrap_or(0) % SPINNER.len()]
}

/// A span of time for people: `0.4 s`, `12 s`, `3 min 5 s`.
pub(crate) fn format_elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", elapsed.as_secs_f64()),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests;
