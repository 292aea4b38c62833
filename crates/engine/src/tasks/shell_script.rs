//! How the shell gets its command: as an argument, or, if it is too long for one, in a file without a name that it
//! reads as its input.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::Stdio;

/// The system takes no longer argument than 128 KB, with its end.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Reads a command from the input, then runs it without any. A shell that cannot read it says so by its exit code.
const EVAL_FROM_STDIN: &str = r#"WHIMBREL_COMMAND=$(cat) || exit 126; exec </dev/null; eval "$WHIMBREL_COMMAND""#;

/// What the shell is started with.
pub(super) struct ShellScript<'a> {
    /// The argument.
    pub(super) argument: &'a str,
    /// The input.
    pub(super) stdin: ShellStdin,
}

/// What the shell reads as its input.
pub(super) enum ShellStdin {
    /// Nothing.
    Empty,
    /// Its command.
    ScriptFile(File),
    /// What we write.
    Piped,
}

impl ShellStdin {
    /// For a process that is to be started.
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

    /// A command that we write the input of, so that it cannot come by that way itself.
    pub(super) fn with_piped_stdin(command: &'a str) -> io::Result<Self> {
        if command.len() > MAX_ARGUMENT_BYTES {
            let fault = "it is longer than 128 KB; put it into a file and run that";
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, fault));
        }
        Ok(Self { argument: command, stdin: ShellStdin::Piped })
    }
}
