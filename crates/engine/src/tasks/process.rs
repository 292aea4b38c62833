//! One command as a process: started in a group of its own, read until it has ended, never left behind.

#![expect(clippy::disallowed_methods, reason = "this file starts the commands")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::mark::VARIABLE;
use super::output::Capture;
use super::pipe::{Drain, Pipe};
use super::plain;
use super::roster::{GRACE, Group, Roster, Tie};
use super::script::Script;
use crate::clock;

/// A command, and where and in which surroundings it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What the shell is told.
    pub command: String,
    /// The folder.
    pub cwd: PathBuf,
    /// All variables that it sees.
    pub environment: BTreeMap<String, String>,
}

/// A command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// Its folder is gone.
    #[error("the folder {} does not exist any more", .0.display())]
    NoFolder(PathBuf),
    /// Its variables are too many or too long.
    #[error(
        "the variables of its environment are too long for the system, which takes about 128 KB for one and 2 MB for \
         all; let the user unset or shorten some"
    )]
    LargeEnvironment,
    /// The session has ended meanwhile.
    #[error("the session has ended")]
    SessionEnded,
    /// A limit of the system, mostly.
    #[error("the command could not be started: {0}")]
    Io(#[from] io::Error),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// We ended it, because its time was up.
    TimedOut,
    /// In a way that the system did not tell us.
    Unknown,
}

/// Whether a command left something behind that still holds its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing.
    Nothing,
    /// A process that goes on; what it prints is dropped.
    Running,
}

/// A running command. Dropped, it ends with all its children.
pub(super) struct Process {
    output: Pipe,
    body: Body,
}

/// The processes of a command, until they have ended. Dropped before, they are ended.
pub(super) struct Body(Option<Alive>);

/// A command's first process, and the group of all.
struct Alive {
    child: Child,
    group: Group,
}

impl Process {
    /// Starts a command. Both its outputs go into one pipe, so that they stay in order.
    pub(super) fn spawn(order: &Order, roster: &Arc<Roster>) -> Result<Self, StartFault> {
        let script = Script::of(&order.command).map_err(|error| start_fault(error, &order.cwd))?;
        let (output, writer) = Pipe::open()?;
        let body = Body::start(order, &script, roster, writer.try_clone()?, writer)?;
        Ok(Self { output, body })
    }

    /// Starts a command that prints into a file itself, and that may be released.
    pub(super) fn spawn_loose(order: &Order, roster: &Arc<Roster>, file: &File) -> Result<Self, StartFault> {
        let script = Script::of(&order.command).map_err(|error| start_fault(error, &order.cwd))?;
        // Nothing comes by way of us: nobody holds the other end.
        let (output, _) = Pipe::open()?;
        let streams = [file.try_clone()?.into(), file.try_clone()?.into()];
        let body = Body::spawn(order, &script, roster, streams, Tie::Loose)?;
        Ok(Self { output, body })
    }

    /// Lets the command go on without us, and gives its process id.
    pub(super) fn release(mut self) -> Option<i32> {
        let mut alive = self.body.0.take()?;
        alive.group.let_go();
        Some(alive.group.id().as_raw())
    }

    /// Reads output until the command has ended. What it left running stays so until the session ends.
    pub(super) async fn finish(&mut self, capture: &mut Capture) -> (Ending, Leftover) {
        let ending = loop {
            tokio::select! {
                biased;
                ending = self.body.ended() => break ending,
                () = read(&mut self.output, capture), if self.output.open => {}
            }
        };
        (ending, self.drain(capture).await)
    }

    /// Ends the command and all its children, and reads what they say until then.
    pub(super) async fn stop(mut self, capture: &mut Capture) {
        {
            let mut end = std::pin::pin!(self.body.end());
            loop {
                tokio::select! {
                    biased;
                    () = &mut end => break,
                    () = read(&mut self.output, capture), if self.output.open => {}
                }
            }
        }
        self.drain(capture).await;
    }

    /// Reads what is left.
    async fn drain(&mut self, capture: &mut Capture) -> Leftover {
        let drain = Drain::begin();
        while self.output.open && drain.goes_on(read(&mut self.output, capture)).await {}
        if self.output.open { Leftover::Running } else { Leftover::Nothing }
    }

    /// Keeps taking what is printed by something that the command left running, so that printing does not kill it.
    pub(super) fn keep_open(self, closed: CancellationToken) {
        tokio::spawn(async move { closed.run_until_cancelled(self.output.discard()).await });
    }
}

impl Body {
    /// Starts a command with these streams.
    pub(super) fn start(
        order: &Order,
        script: &Script<'_>,
        roster: &Arc<Roster>,
        stdout: impl Into<OwnedFd>,
        stderr: impl Into<OwnedFd>,
    ) -> Result<Self, StartFault> {
        Self::spawn(order, script, roster, [stdout.into(), stderr.into()], Tie::Marked)
    }

    fn spawn(
        order: &Order,
        script: &Script<'_>,
        roster: &Arc<Roster>,
        [stdout, stderr]: [OwnedFd; 2],
        tie: Tie,
    ) -> Result<Self, StartFault> {
        if roster.closed.is_cancelled() {
            return Err(StartFault::SessionEnded);
        }
        let watched = roster.watched()?;
        let start = |mut command: Command| {
            command
                .envs(watched.mark_of(tie).map(|mark| (VARIABLE, mark)))
                .current_dir(&order.cwd)
                .stdin(script.input.stdio()?)
                .stdout(stdout.try_clone()?)
                .stderr(stderr.try_clone()?);
            watched.start(tie, || command.spawn())
        };
        let terminal = leave_terminal();
        // What the system does not start, the shell may: it also knows best what to say about it.
        let plainly = plainly(order, script.argument, terminal).and_then(|command| start(command).ok());
        let child = plainly.map_or_else(|| start(shell(order, script.argument, terminal)), Ok);
        let child = child.map_err(|error| start_fault(error, &order.cwd))?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = leader.ok_or_else(|| io::Error::other("it has no process id"))?;
        let group = roster.enter(watched, Pid::from_raw(leader));
        Ok(Self(Some(Alive { child, group })))
    }

    /// The input of the command, once, if it is ours to write.
    pub(super) fn input(&mut self) -> Option<ChildStdin> {
        self.0.as_mut()?.child.stdin.take()
    }

    /// Waits until the first process has ended. What it left running stays so until the session ends.
    pub(super) async fn ended(&mut self) -> Ending {
        let Some(alive) = &mut self.0 else { return Ending::Unknown };
        let status = alive.child.wait().await;
        alive.group.let_go();
        self.0 = None;
        status.map_or(Ending::Unknown, Ending::of)
    }

    /// Ends all processes and waits until they are gone.
    pub(super) async fn end(&mut self) {
        if let Some(alive) = &mut self.0 {
            alive.end().await;
        }
        self.0 = None;
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let Some(mut alive) = self.0.take() else { return };
        // Without a runtime, dropping the group kills at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { alive.end().await });
        }
    }
}

impl Alive {
    /// Asks all processes of the group to end, kills those that do not, and waits for the first.
    async fn end(&mut self) {
        let deadline = clock::monotonic() + GRACE;
        self.group.signal(Signal::SIGTERM);
        if timeout(GRACE, self.child.wait()).await.is_ok() {
            self.group.lost_its_leader();
        }
        let mut pause = Duration::from_millis(1);
        while self.group.is_alive() && clock::monotonic() < deadline {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.group.signal(Signal::SIGKILL);
        let _ = timeout(GRACE, self.child.wait()).await;
        self.group.let_go();
    }
}

/// Takes what is there; waits if nothing is.
async fn read(output: &mut Pipe, capture: &mut Capture) {
    if output.fill().await {
        capture.take(&output.buffer);
    }
}

impl Ending {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Killed(signal),
            (None, None) => Self::Unknown,
        }
    }
}

/// The command without a shell, if it needs none. In a terminal, `setsid` starts what is to be started, and would hide
/// whether it could be.
fn plainly(order: &Order, script: &str, terminal: Option<Leave>) -> Option<Command> {
    let mut command = terminal.is_none().then(|| plain::command(script, order)).flatten()?;
    command.process_group(0);
    Some(command)
}

/// The shell with the command, in a process group of its own and without a terminal.
fn shell(order: &Order, script: &str, terminal: Option<Leave>) -> Command {
    let shell = find_shell(&order.environment);
    let mut command = match terminal {
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
    command.args(["-c", "--", script]).env_clear().envs(&order.environment);
    command
}

/// Bash if there is one. An absolute path makes starting it cheap.
fn find_shell(environment: &BTreeMap<String, String>) -> PathBuf {
    let path = environment.get("PATH").map_or("", String::as_str);
    ["/bin", "/usr/bin"]
        .into_iter()
        .chain(path.split(':').filter(|folder| folder.starts_with('/')))
        .map(|folder| Path::new(folder).join("bash"))
        .find(|bash| bash.is_file())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// The program by which a command leaves our terminal.
type Leave = &'static str;

/// If we were started in a terminal, the program that lets a command leave it: a question for a password would
/// otherwise appear there, and stop the command for ever.
fn leave_terminal() -> Option<Leave> {
    File::open("/dev/tty").ok()?;
    ["/usr/bin/setsid", "/bin/setsid"].into_iter().find(|program| Path::new(program).is_file())
}

fn start_fault(error: io::Error, cwd: &Path) -> StartFault {
    if !cwd.is_dir() {
        StartFault::NoFolder(cwd.to_path_buf())
    } else if error.kind() == io::ErrorKind::ArgumentListTooLong {
        StartFault::LargeEnvironment
    } else {
        StartFault::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_is_started_as_it_is_unless_there_is_a_terminal_to_leave() {
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let order = Order { command: String::new(), cwd: "/".into(), environment };
        let programs = |script, terminal| {
            let plainly = plainly(&order, script, terminal);
            let program = |command: &Command| command.as_std().get_program().to_string_lossy().into_owned();
            (plainly.as_ref().map(program), program(&shell(&order, script, terminal)))
        };
        assert_eq!(programs("env", None), (Some("/usr/bin/env".into()), "/bin/bash".into()));
        assert_eq!(programs("env; env", None), (None, "/bin/bash".into()));
        assert_eq!(programs("env", Some("/bin/setsid")), (None, "/bin/setsid".into()));
    }
}
