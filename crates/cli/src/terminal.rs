//! Properties of the terminal, if there is one.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Width if it is unknown.
const DEFAULT_WIDTH: usize = 100;

/// Terminals among the standard streams, and their capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// The user may type.
    pub(crate) stdin: bool,
    /// The user reads our output.
    pub(crate) stdout: bool,
    /// The user reads our notes.
    pub(crate) stderr: bool,
    /// Colors are wanted and supported.
    pub(crate) has_color: bool,
    /// Lines can be overwritten.
    pub(crate) can_move_cursor: bool,
}

impl Terminal {
    /// The same terminal without colors and without overwriting lines.
    pub(crate) fn without_styles(self) -> Self {
        Self { has_color: false, can_move_cursor: false, ..self }
    }

    /// Inspects the standard streams; respects `NO_COLOR` and dumb terminals.
    pub(crate) fn detect(env: &BTreeMap<String, String>) -> Self {
        let set = |name: &str| env.get(name).is_some_and(|value| !value.is_empty());
        let dumb = env.get("TERM").is_none_or(|name| name == "dumb");
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            has_color: !set("NO_COLOR") && !dumb,
            can_move_cursor: !dumb,
        }
    }
}

/// Width of lines for the user.
pub(crate) fn output_width() -> usize {
    columns(io::stdout()).filter(|width| *width >= 40).unwrap_or(DEFAULT_WIDTH)
}

/// Number of columns of a terminal, if it reports one.
pub(crate) fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
