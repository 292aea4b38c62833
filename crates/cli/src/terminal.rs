//! What is known about the terminal, if there is one.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// The width where none is known.
const DEFAULT_WIDTH: usize = 100;

/// Which of our ends are at a terminal, and whether it may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Whether a person may type.
    pub(crate) stdin: bool,
    /// Whether a person reads what we print.
    pub(crate) stdout: bool,
    /// Whether a person reads our notes.
    pub(crate) stderr: bool,
    /// Whether colours are wanted.
    pub(crate) has_colour: bool,
    /// Whether it can write over what stands there.
    pub(crate) can_move_cursor: bool,
}

impl Terminal {
    /// Looks at our ends; `NO_COLOR` and a dumb terminal are respected.
    pub(crate) fn detect(env: &BTreeMap<String, String>) -> Self {
        let set = |name: &str| env.get(name).is_some_and(|value| !value.is_empty());
        let dumb = env.get("TERM").is_none_or(|name| name == "dumb");
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            has_colour: !set("NO_COLOR") && !dumb,
            can_move_cursor: !dumb,
        }
    }
}

/// How wide lines for a person may be.
pub(crate) fn output_width() -> usize {
    columns(io::stdout()).filter(|width| *width >= 40).unwrap_or(DEFAULT_WIDTH)
}

/// How wide a terminal is, if it says so.
pub(crate) fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
