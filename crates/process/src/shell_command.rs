//! A shell command: what to run, how the shell receives it (as an argument or, beyond the argument limit, in an anonymous
//! file as stdin), and the call of the shell.

#![expect(clippy::disallowed_methods, reason = "this file calls the shell")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// Linux limits one argument to 128 KB including the final NUL.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Reads a command from stdin and evaluates it with empty stdin. Exits with 126 if it cannot be read.
const EVAL_FROM_STDIN: &str =
    r#"WHIMBREL_COMMAND=$(cat) || exit 126; exec </dev/null; eval "$WHIMBREL_COMMAND""#;

/// A command with its working directory and environment.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// The shell command.
    pub command: String,
    pub cwd: PathBuf,
    /// The complete environment.
    pub environment: BTreeMap<String, String>,
}

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
            let message = "it is longer than 128 KB; put it into a file and run the file";
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, message));
        }
        Ok(Self { argument: command, stdin: ShellStdin::Piped })
    }
}

/// The shell with the command, in its own process group and without a terminal.
pub(super) fn build_shell_command(spec: &CommandSpec, script: &str, setsid: Option<SetsidPath>) -> Command {
    let shell = find_shell(&spec.environment);
    let mut command = match setsid {
        Some(setsid) => {
            let mut command = Command::new(setsid);
            command.arg(shell);
            command
        }
        None => {
            let mut command = Command::new(shell);
            command.process_group(0);
            command
        }
    };
    command.args(["-c", "--", script]).env_clear().envs(&spec.environment);
    command
}

/// Finds bash, otherwise `/bin/sh`. An absolute path avoids a PATH search at each start.
pub(super) fn find_shell(environment: &BTreeMap<String, String>) -> PathBuf {
    let path = environment.get("PATH").map_or("", String::as_str);
    ["/bin", "/usr/bin"]
        .into_iter()
        .chain(path.split(':').filter(|dir| dir.starts_with('/')))
        .map(|dir| Path::new(dir).join("bash"))
        .find(|bash| bash.is_file())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// Path of the program `setsid`.
pub(super) type SetsidPath = &'static str;

/// If the engine has a terminal, returns `setsid` to detach the command from it: a password prompt would otherwise
/// block the command forever.
pub(super) fn find_setsid_if_terminal() -> Option<SetsidPath> {
    File::open("/dev/tty").ok()?;
    ["/usr/bin/setsid", "/bin/setsid"].into_iter().find(|program| Path::new(program).is_file())
}
