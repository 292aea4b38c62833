//! Commands in the sandbox: how a shell command is handed to the launcher, and the two ends of its control socket.
//!
//! The launcher is the first process of the group. The command ends with its control socket, whatever becomes of the
//! group, so it needs neither tag nor reaper.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use whimbrel_sandbox::child::{ControlEnd, ExitStatus, RunError};
use whimbrel_sandbox::session::{self, PreparedCommand};

/// Dropped when a confined command and all that it started are gone.
pub(crate) type ConfinedEnd = session::CommandEnd;

use crate::process_exit::ProcessExit;
use crate::shell_command::{CommandSpec, ShellScript, ShellStdin, find_shell};

/// A command that the sandbox has prepared.
#[derive(Debug)]
pub struct ConfinedCommand {
    prepared: PreparedCommand,
    stdin: Option<OwnedFd>,
}

/// Standard input of a confined command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinedStdin {
    Empty,
    Piped,
}

/// A shell command as the sandbox takes it, before it is prepared.
#[derive(Debug)]
pub struct SandboxRequest {
    /// What the sandbox prepares.
    pub spec: session::CommandSpec,
    stdin: Option<OwnedFd>,
}

impl SandboxRequest {
    /// Builds the request for a command. `id` names it in reports of the proxy.
    pub fn new(spec: &CommandSpec, id: &str, stdin: ConfinedStdin) -> io::Result<Self> {
        let (input, writer, script) = match stdin {
            ConfinedStdin::Empty => {
                let script = ShellScript::new(&spec.command)?;
                let input = match &script.stdin {
                    ShellStdin::ScriptFile(file) => Some(OwnedFd::from(file.try_clone()?)),
                    ShellStdin::Empty | ShellStdin::Piped => None,
                };
                (input, None, script)
            }
            ConfinedStdin::Piped => {
                let (reader, writer) = io::pipe()?;
                (Some(reader.into()), Some(writer.into()), ShellScript::with_piped_stdin(&spec.command)?)
            }
        };
        let shell = find_shell(&spec.environment);
        Ok(Self {
            spec: session::CommandSpec {
                program: shell,
                arguments: ["-c", "--", script.argument].map(Into::into).to_vec(),
                environment: spec
                    .environment
                    .iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                directory: spec.cwd.clone(),
                id: id.to_owned(),
                input: input.map(Arc::new),
            },
            stdin: writer,
        })
    }

    /// Returns the command that the sandbox has prepared for this request.
    pub fn into_command(self, prepared: PreparedCommand) -> ConfinedCommand {
        ConfinedCommand { prepared, stdin: self.stdin }
    }

    /// Takes what the sandbox prepares.
    pub fn take_spec(&mut self) -> session::CommandSpec {
        let empty = session::CommandSpec {
            program: PathBuf::new(),
            arguments: Vec::new(),
            environment: std::collections::BTreeMap::new(),
            directory: PathBuf::new(),
            id: String::new(),
            input: None,
        };
        std::mem::replace(&mut self.spec, empty)
    }
}

impl ConfinedCommand {
    /// Returns the launcher, what controls it once it is started, and what is dropped after its end.
    pub(crate) fn into_parts(mut self) -> (std::process::Command, ConfinedControl, ConfinedEnd) {
        let command = std::mem::replace(&mut self.prepared.command, unused_command());
        let stdin = self.stdin.map(std::process::ChildStdin::from);
        let (control, end) = self.prepared.into_control();
        (command, ConfinedControl { control, setup_error: None, stdin }, end)
    }
}

#[expect(clippy::disallowed_methods, reason = "a value that is never started")]
fn unused_command() -> std::process::Command {
    std::process::Command::new("")
}

/// Our end of a started command. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct ConfinedControl {
    control: ControlEnd,
    /// Why the command did not run.
    setup_error: Option<String>,
    stdin: Option<std::process::ChildStdin>,
}

impl ConfinedControl {
    /// Waits for the end of the command. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> ProcessExit {
        match self.control.wait().await {
            Ok(ExitStatus::Code(code)) => ProcessExit::Exited(code),
            Ok(ExitStatus::Signal(signal)) => ProcessExit::Killed(signal),
            Err(RunError::Killed) => ProcessExit::Killed(9),
            Err(error @ (RunError::Layer(_) | RunError::Io(_))) => {
                self.setup_error = Some(format!("{error}. The command did not run.\n"));
                ProcessExit::Exited(SETUP_FAILED)
            }
        }
    }

    /// Asks the command to end.
    pub(crate) fn terminate(&self) {
        // It may have ended.
        let _ = self.control.send_signal(nix::sys::signal::Signal::SIGTERM as u8);
    }

    pub(crate) fn take_setup_error(&mut self) -> Option<String> {
        self.setup_error.take()
    }

    /// Takes stdin, once, if it is piped.
    pub(crate) fn take_stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        tokio::process::ChildStdin::from_std(self.stdin.take()?).ok()
    }
}

/// Exit code of a command that could not be confined.
const SETUP_FAILED: i32 = 125;
