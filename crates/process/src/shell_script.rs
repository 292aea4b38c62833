//! How the shell receives its command: as an argument or, beyond the argument limit, in an anonymous file as stdin.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::Stdio;

/// Linux limits one argument to 128 KB including the final NUL.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Reads a command from stdin and evaluates it with empty stdin. Exits with 126 if it cannot be read.
const EVAL_FROM_STDIN: &str =
    r#"WHIMBREL_COMMAND=$(cat) || exit 126; exec </dev/null; eval "$WHIMBREL_COMMAND""#;

/// Argument and stdin of the shell.
pub(super) struct ShellScript<'a> {
    pub(super) argument: &'a str,
    pub(super) stdin: ShellStdin,
}

pub(super) enum ShellStdin {
    Empty,
    /// The file with the command.
    ScriptFile(File),
    /// A pipe that we write to.
    Piped,
}

impl ShellStdin {
    pub(super) fn to_stdio(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Empty => Stdio::null(),
            Self::ScriptFile(file) => file.try_clone()?.into(),
            Self::Piped => Stdio::piped(),
        })
    }
}

impl<'a> ShellScript<'a> {
    /// A command of any length.
    pub(super) fn new(command: &'a str) -> io::Result<Self> {
        if command.len() <= MAX_ARGUMENT_BYTES {
            return Ok(Self { argument: command, stdin: ShellStdin::Empty });
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(command.as_bytes())?;
        file.rewind()?;
        Ok(Self { argument: EVAL_FROM_STDIN, stdin: ShellStdin::ScriptFile(file) })
    }

    /// A command with piped stdin, which is then not available for the command itself.
    pub(super) fn with_piped_stdin(command: &'a str) -> io::Result<Self> {
        if command.len() > MAX_ARGUMENT_BYTES {
            let fault = "it is longer than 128 KB; put it into a file and run that";
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, fault));
        }
        Ok(Self { argument: command, stdin: ShellStdin::Piped })
    }
}
