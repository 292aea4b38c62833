//! How the shell gets its command: as an argument, or, if it is too long for one, in a file without a name that it
//! reads as its input.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::Stdio;

/// The system takes no longer argument than 128 KB, with its end.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// Reads a command from the input, then runs it without any. A shell that cannot read it says so by its exit code.
const FROM_INPUT: &str = r#"WHIMBREL_COMMAND=$(cat) || exit 126; exec </dev/null; eval "$WHIMBREL_COMMAND""#;

/// What the shell is started with.
pub(super) struct Script<'a> {
    /// The argument.
    pub(super) argument: &'a str,
    /// The input.
    pub(super) input: Input,
}

/// What the shell reads as its input.
pub(super) enum Input {
    /// Nothing.
    Nothing,
    /// Its command.
    Command(File),
    /// What we write.
    Ours,
}

impl Input {
    /// For a process that is to be started.
    pub(super) fn stdio(&self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Nothing => Stdio::null(),
            Self::Command(file) => file.try_clone()?.into(),
            Self::Ours => Stdio::piped(),
        })
    }
}

impl<'a> Script<'a> {
    /// A command of any length.
    pub(super) fn of(command: &'a str) -> io::Result<Self> {
        if command.len() <= LONGEST_ARGUMENT {
            return Ok(Self { argument: command, input: Input::Nothing });
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(command.as_bytes())?;
        file.rewind()?;
        Ok(Self { argument: FROM_INPUT, input: Input::Command(file) })
    }

    /// A command that we write the input of, so that it cannot come by that way itself.
    pub(super) fn with_input(command: &'a str) -> io::Result<Self> {
        if command.len() > LONGEST_ARGUMENT {
            let fault = "it is longer than 128 KB; put it into a file and run that";
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, fault));
        }
        Ok(Self { argument: command, input: Input::Ours })
    }
}
