//! Process 1 of a command: gives up all privileges, starts the command, waits for it, and ends what is left.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, set_dumpable_behavior,
    set_parent_process_death_signal,
};

use super::privileges::ProcessLimit;
use super::{InLayer, LayerResult, file_rights, mounts, open_null, privileges, release_output, send_report};
use crate::control;
use crate::request::{
    Backend, CommandLine, ExitStatus, LayerError, Report, RunRequest, path_to_c_string, to_c_string,
};
use crate::sys::{self, Fork};

/// Confines this process, runs the command and returns the exit code of process 1.
pub(crate) fn run(
    control: &OwnedFd,
    lifeline: OwnedFd,
    request: RunRequest,
    input: Option<OwnedFd>,
) -> LayerResult<i32> {
    confine(&request, input.as_ref())?;
    drop(input);
    let command = PreparedCommand::new(&request.command).in_layer("command")?;
    let signals = SignalFd::with_flags(&child_signals()?, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
    let signals = signals.in_layer("signals")?;
    // A second line, should this process be stuck in a call.
    let lifeline = (request.backend == Backend::Launcher).then_some(lifeline);
    drop(request);
    let child = start(&command)?;
    drop(command);
    open_null().and_then(|null| release_streams(&null)).in_layer("output")?;
    let outcome = wait(child, control, lifeline.as_ref(), &signals);
    // Everything else in this process namespace. There may be nothing left.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), NixSignal::SIGKILL);
    if let Outcome::Ended(status) = outcome {
        // The caller is gone if this fails.
        let _ = send_report(control, &Report::Exited(status));
        return Ok(status.shell_code());
    }
    Ok(super::SETUP_FAILED)
}

/// Sets all layers up, in an order in which each may still do what it needs.
fn confine(request: &RunRequest, input: Option<&OwnedFd>) -> LayerResult<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).in_layer("process 1")?;
    let process_limit = ProcessLimit::for_request(request);
    if request.backend == Backend::Launcher {
        let limit = || match process_limit {
            ProcessLimit::PerNamespace => privileges::limit_processes(&request.limits),
            ProcessLimit::PerUser => Ok(()),
        };
        mounts::apply(request.files.as_ref(), request.proc_mount, limit)?;
    }
    rustix::process::chdir(&request.command.directory).map_err(|error| {
        LayerError::for_path("working directory", &request.command.directory, &error.into())
    })?;
    // It fails only for the first process of a session, which has no terminal of another one.
    let _ = rustix::process::setsid();
    privileges::set_limits(&request.limits, process_limit)?;
    if request.backend == Backend::Launcher {
        privileges::drop_capabilities()?;
    }
    privileges::forbid_new_privileges()?;
    file_rights::restrict(request)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).in_layer("process 1")?;
    match input {
        Some(input) => rustix::stdio::dup2_stdin(input).in_layer("input")?,
        None => rustix::stdio::dup2_stdin(open_null().in_layer("input")?).in_layer("input")?,
    }
    privileges::install_filter(request)
}

/// Closes the streams of the command: its end, and that of its input, must be seen by the other side.
fn release_streams(null: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    release_output(null)
}

fn child_signals() -> LayerResult<SigSet> {
    let mut signals = SigSet::empty();
    signals.add(NixSignal::SIGCHLD);
    signals.thread_block().in_layer("signals")?;
    Ok(signals)
}

/// A command as `execve` takes it.
struct PreparedCommand {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl PreparedCommand {
    fn new(command: &CommandLine) -> io::Result<Self> {
        let variable = |(name, value): &(crate::request::Bytes, crate::request::Bytes)| {
            to_c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        Ok(Self {
            program: path_to_c_string(&command.program)?,
            arguments: command
                .arguments
                .iter()
                .map(|argument| to_c_string(argument.as_bytes()))
                .collect::<Result<_, _>>()?,
            environment: command.environment.iter().map(variable).collect::<Result<_, _>>()?,
        })
    }
}

/// Starts the command and returns its process once its program runs.
fn start(command: &PreparedCommand) -> LayerResult<Pid> {
    let (failure, our_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).in_layer("command")?;
    match sys::fork().in_layer("command")? {
        Fork::Child => {
            let error = become_command(command);
            // Process 1 reports it.
            let _ = rustix::io::write(&our_end, &error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes());
            std::process::exit(super::SETUP_FAILED)
        }
        Fork::Parent(child) => {
            drop(our_end);
            let mut number = [0; 4];
            match rustix::io::read(&failure, &mut number).in_layer("command")? {
                0 => Ok(child),
                _ => {
                    let error = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
                    let path = std::path::PathBuf::from(command.program.to_string_lossy().into_owned());
                    Err(LayerError::for_path("command", &path, &error))
                }
            }
        }
    }
}

fn become_command(command: &PreparedCommand) -> io::Error {
    if let Err(error) = rustix::process::setsid() {
        return error.into();
    }
    sys::reset_signals();
    match nix::unistd::execve(&command.program, &command.arguments, &command.environment) {
        Ok(never) => match never {},
        Err(error) => error.into(),
    }
}

/// Why process 1 stops waiting.
enum Outcome {
    Ended(ExitStatus),
    /// The caller or the launcher is gone.
    Abandoned,
}

/// Waits for the end of the command, takes away processes that have lost their parent, and passes signals on.
fn wait(child: Pid, control: &OwnedFd, lifeline: Option<&OwnedFd>, signals: &SignalFd) -> Outcome {
    loop {
        if let Some(status) = reap(child) {
            return Outcome::Ended(status);
        }
        let mut sources = vec![
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN),
        ];
        sources.extend(lifeline.map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)));
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Outcome::Abandoned,
        }
        // One signal may stand for several ends; the next round takes them all.
        while let Ok(Some(_)) = signals.read_signal() {}
        let lost = PollFlags::HUP | PollFlags::ERR;
        if sources.get(2).is_some_and(|source| source.revents().intersects(lost)) {
            return Outcome::Abandoned;
        }
        if sources.get(1).is_some_and(|source| !source.revents().is_empty())
            && !pass_signal_on(child, control)
        {
            return Outcome::Abandoned;
        }
    }
}

/// Takes away all ended processes and returns how the command ended, if it is one of them.
fn reap(child: Pid) -> Option<ExitStatus> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == child {
            return Some(to_exit_status(status));
        }
    }
    None
}

fn to_exit_status(status: WaitStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Code(super::SETUP_FAILED),
    }
}

/// Sends the signal that the caller asks for to the process group of the command. Returns whether the caller is there.
fn pass_signal_on(child: Pid, control: &OwnedFd) -> bool {
    let Ok(Some(message)) = control::receive(control, RecvFlags::DONTWAIT) else { return false };
    if let [number] = message.data[..]
        && let Some(signal) = Signal::from_named_raw(i32::from(number))
    {
        // The command may have ended meanwhile.
        let _ = rustix::process::kill_process_group(child, signal);
    }
    true
}
