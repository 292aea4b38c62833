//! One command as a process group: started, read until exit, never left behind.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, Command};
use tokio_util::sync::CancellationToken;

use crate::ProcessGroups;
use crate::bounded_output::OutputCapture;
use crate::confined::{ConfinedCommand, ConfinedControl, ConfinedEnd};
use crate::direct_exec;
use crate::pipe::{DrainWindow, OutputPipe};
use crate::process_exit::ProcessExit;
use crate::process_groups::{KILL_GRACE, ProcessGroup, SessionBinding, Supervision};
use crate::process_tags::TAG_VARIABLE;
use crate::shell_command::{
    CommandSpec, SetsidPath, ShellScript, build_shell_command, find_setsid_if_terminal,
};

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("the working directory {} no longer exists", .0.display())]
    MissingDir(PathBuf),
    #[error(
        "the environment is too large: the system allows about 128 KB for one variable and 2 MB in total; ask the user to \
         unset or shorten some variables"
    )]
    EnvironmentTooLarge,
    #[error("the session has ended")]
    SessionEnded,
    /// Usually a limit of the system.
    #[error("the command could not be started: {0}")]
    Io(#[from] io::Error),
}

/// Whether a command left a process behind that holds its output open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    Nothing,
    /// A process still runs; its output is dropped.
    Running,
}

/// A running command with captured output. Dropping it kills the command and its children.
pub struct CapturedCommand {
    output: OutputPipe,
    tree: ProcessTree,
}

/// The processes of a command. Dropping it before the exit kills them.
pub(crate) struct ProcessTree {
    running: Option<RunningGroup>,
    /// Why a confined command did not run.
    setup_error: Option<String>,
}

/// The first process of a command, and its process group.
struct RunningGroup {
    child: Child,
    group: ProcessGroup,
    /// Set for a command in the sandbox, whose first process is the launcher.
    confined: Option<ConfinedControl>,
    /// Dropped last, when the processes are gone.
    _confined_end: Option<ConfinedEnd>,
}

/// A command to start, as it is or in the sandbox.
#[derive(Debug)]
pub enum Launch<'a> {
    Unconfined(&'a CommandSpec),
    Confined(&'a CommandSpec, Box<ConfinedCommand>),
}

impl<'a> From<&'a CommandSpec> for Launch<'a> {
    fn from(spec: &'a CommandSpec) -> Self {
        Self::Unconfined(spec)
    }
}

impl<'a> Launch<'a> {
    /// The command as it is outside of the sandbox.
    pub fn spec(&self) -> &'a CommandSpec {
        match self {
            Self::Unconfined(spec) | Self::Confined(spec, _) => spec,
        }
    }
}

impl CapturedCommand {
    /// Starts a command. Stdout and stderr share one pipe, so that their order is kept.
    pub fn spawn<'a>(launch: impl Into<Launch<'a>>, groups: &Arc<ProcessGroups>) -> Result<Self, SpawnError> {
        let (output, writer) = OutputPipe::create()?;
        let error_writer = writer.try_clone()?;
        let tree = match launch.into() {
            Launch::Unconfined(spec) => {
                let script =
                    ShellScript::new(&spec.command).map_err(|error| spawn_error(error, &spec.cwd))?;
                ProcessTree::spawn_tagged(spec, &script, groups, error_writer, writer)?
            }
            Launch::Confined(spec, command) => {
                ProcessTree::spawn_confined(spec, *command, groups, [error_writer.into(), writer.into()])?
            }
        };
        Ok(Self { output, tree })
    }

    /// Starts a command that writes into a file directly and may be detached.
    pub fn spawn_detachable(
        spec: &CommandSpec,
        groups: &Arc<ProcessGroups>,
        file: &File,
    ) -> Result<Self, SpawnError> {
        let script = ShellScript::new(&spec.command).map_err(|error| spawn_error(error, &spec.cwd))?;
        // No output arrives here: the write end is closed at once.
        let (output, _) = OutputPipe::create()?;
        let streams = [file.try_clone()?.into(), file.try_clone()?.into()];
        let tree = ProcessTree::spawn_with(spec, &script, groups, streams, SessionBinding::Detachable)?;
        Ok(Self { output, tree })
    }

    /// Detaches the command from the session and returns its process id.
    pub fn detach(mut self) -> Option<i32> {
        let mut running = self.tree.running.take()?;
        running.group.release();
        Some(running.group.id().as_raw())
    }

    /// Reads output until the command exits. Leftover processes run until the session ends.
    pub async fn run_to_end(&mut self, capture: &mut OutputCapture) -> (ProcessExit, Leftover) {
        let exit = loop {
            tokio::select! {
                biased;
                exit = self.tree.wait() => break exit,
                () = read_into(&mut self.output, capture), if self.output.is_open => {}
            }
        };
        let leftover = self.drain(capture).await;
        if let Some(error) = self.tree.take_setup_error() {
            capture.push(error.as_bytes());
        }
        (exit, leftover)
    }

    /// Stops the command and its children, reading their output until then.
    pub async fn stop(mut self, capture: &mut OutputCapture) {
        {
            let mut terminated = std::pin::pin!(self.tree.terminate());
            loop {
                tokio::select! {
                    biased;
                    () = &mut terminated => break,
                    () = read_into(&mut self.output, capture), if self.output.is_open => {}
                }
            }
        }
        self.drain(capture).await;
    }

    async fn drain(&mut self, capture: &mut OutputCapture) -> Leftover {
        let drain = DrainWindow::start();
        while self.output.is_open && drain.wait_for_more(read_into(&mut self.output, capture)).await {}
        if self.output.is_open { Leftover::Running } else { Leftover::Nothing }
    }

    /// Keeps reading the output of a leftover process, so that it does not die of a broken pipe.
    pub fn discard_output(self, closed: CancellationToken) {
        tokio::spawn(async move { closed.run_until_cancelled(self.output.discard()).await });
    }
}

impl ProcessTree {
    pub(crate) fn spawn_tagged(
        spec: &CommandSpec,
        script: &ShellScript<'_>,
        groups: &Arc<ProcessGroups>,
        stdout: impl Into<OwnedFd>,
        stderr: impl Into<OwnedFd>,
    ) -> Result<Self, SpawnError> {
        Self::spawn_with(spec, script, groups, [stdout.into(), stderr.into()], SessionBinding::Tagged)
    }

    fn spawn_with(
        spec: &CommandSpec,
        script: &ShellScript<'_>,
        groups: &Arc<ProcessGroups>,
        [stdout, stderr]: [OwnedFd; 2],
        binding: SessionBinding,
    ) -> Result<Self, SpawnError> {
        if groups.closed.is_cancelled() {
            return Err(SpawnError::SessionEnded);
        }
        let supervision = groups.supervision()?;
        let start = |mut command: Command| {
            command
                .envs(supervision.tag_value(binding).map(|value| (TAG_VARIABLE, value)))
                .current_dir(&spec.cwd)
                .stdin(script.stdin.to_stdio()?)
                .stdout(stdout.try_clone()?)
                .stderr(stderr.try_clone()?);
            supervision.spawn(binding, || command.spawn())
        };
        let setsid = find_setsid_if_terminal();
        // If the direct exec fails, the shell is tried: it may succeed, or print the proper error.
        let direct = direct_command(spec, script.argument, setsid).and_then(|command| start(command).ok());
        let child = direct.map_or_else(|| start(build_shell_command(spec, script.argument, setsid)), Ok);
        let child = child.map_err(|error| spawn_error(error, &spec.cwd))?;
        Self::new(child, supervision, groups, None)
    }

    /// Starts a command whose stdin is a pipe.
    pub(crate) fn spawn_piped(
        launch: Launch<'_>,
        groups: &Arc<ProcessGroups>,
        streams: [OwnedFd; 2],
    ) -> Result<Self, SpawnError> {
        match launch {
            Launch::Unconfined(spec) => {
                let script = ShellScript::with_piped_stdin(&spec.command)?;
                Self::spawn_with(spec, &script, groups, streams, SessionBinding::Tagged)
            }
            Launch::Confined(spec, command) => Self::spawn_confined(spec, *command, groups, streams),
        }
    }

    /// Starts the launcher of a confined command. Its environment is that of the launcher: empty.
    pub(crate) fn spawn_confined(
        spec: &CommandSpec,
        command: ConfinedCommand,
        groups: &Arc<ProcessGroups>,
        [stdout, stderr]: [OwnedFd; 2],
    ) -> Result<Self, SpawnError> {
        if groups.closed.is_cancelled() {
            return Err(SpawnError::SessionEnded);
        }
        let supervision = groups.supervision()?;
        let (launcher, control, end) = command.into_parts();
        let mut launcher = Command::from(launcher);
        launcher.process_group(0).stdout(stdout).stderr(stderr);
        let child = supervision.spawn(SessionBinding::Tagged, || launcher.spawn());
        // It holds the launcher's end of the control socket, which must be closed here.
        drop(launcher);
        let child = child.map_err(|error| spawn_error(error, &spec.cwd))?;
        Self::new(child, supervision, groups, Some((control, end)))
    }

    fn new(
        child: Child,
        supervision: Supervision,
        groups: &Arc<ProcessGroups>,
        confined: Option<(ConfinedControl, ConfinedEnd)>,
    ) -> Result<Self, SpawnError> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = leader.ok_or_else(|| io::Error::other("the process has no id"))?;
        let group = groups.add(supervision, Pid::from_raw(leader));
        let (confined, end) = confined.unzip();
        let running = RunningGroup { child, group, confined, _confined_end: end };
        Ok(Self { running: Some(running), setup_error: None })
    }

    /// Takes the reason why a confined command did not run.
    pub(crate) fn take_setup_error(&mut self) -> Option<String> {
        self.setup_error.take()
    }

    /// Takes stdin, once, if it is piped.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        let running = self.running.as_mut()?;
        match &mut running.confined {
            Some(confined) => confined.take_stdin(),
            None => running.child.stdin.take(),
        }
    }

    /// Waits for the first process. Leftover processes run until the session ends.
    pub(crate) async fn wait(&mut self) -> ProcessExit {
        let Some(running) = &mut self.running else { return ProcessExit::Unknown };
        let exit = match &mut running.confined {
            // Without waiting until the system has removed the namespaces; the runtime reaps the launcher.
            Some(confined) => {
                let exit = confined.wait().await;
                self.setup_error = confined.take_setup_error();
                exit
            }
            None => running.child.wait().await.map_or(ProcessExit::Unknown, ProcessExit::from_status),
        };
        running.group.release();
        self.running = None;
        exit
    }

    /// Stops all processes and waits until they are gone.
    pub(crate) async fn terminate(&mut self) {
        if let Some(running) = &mut self.running {
            running.terminate().await;
        }
        self.running = None;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        // Without a runtime, dropping the group kills it at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { running.terminate().await });
        }
    }
}

impl RunningGroup {
    /// Stops the group and waits for the first process.
    async fn terminate(&mut self) {
        if let Some(mut confined) = self.confined.take() {
            confined.terminate();
            let _ = tokio::time::timeout(KILL_GRACE, confined.wait()).await;
            // Closes the control socket, which ends what is left.
        }
        self.group.terminate(&mut self.child).await;
    }
}

/// Reads what is available; waits if there is nothing.
async fn read_into(output: &mut OutputPipe, capture: &mut OutputCapture) {
    if output.fill().await {
        capture.push(&output.buffer);
    }
}

/// The command without a shell, if it needs none. Not if `setsid` is used, which would hide that the program could not
/// be started.
fn direct_command(spec: &CommandSpec, script: &str, setsid: Option<SetsidPath>) -> Option<Command> {
    let mut command = setsid.is_none().then(|| direct_exec::build_command(script, spec)).flatten()?;
    command.process_group(0);
    Some(command)
}

fn spawn_error(error: io::Error, cwd: &Path) -> SpawnError {
    if !cwd.is_dir() {
        SpawnError::MissingDir(cwd.to_path_buf())
    } else if error.kind() == io::ErrorKind::ArgumentListTooLong {
        SpawnError::EnvironmentTooLarge
    } else {
        SpawnError::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_literal_command_runs_directly_unless_setsid_is_used() {
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let spec = CommandSpec { command: String::new(), cwd: "/".into(), environment };
        let programs = |script, setsid| {
            let direct = direct_command(&spec, script, setsid);
            let program = |command: &Command| command.as_std().get_program().to_string_lossy().into_owned();
            (direct.as_ref().map(program), program(&build_shell_command(&spec, script, setsid)))
        };
        assert_eq!(programs("env", None), (Some("/usr/bin/env".into()), "/bin/bash".into()));
        assert_eq!(programs("env; env", None), (None, "/bin/bash".into()));
        assert_eq!(programs("env", Some("/bin/setsid")), (None, "/bin/setsid".into()));
    }
}
