//! One confined command, from start to end.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Arc, OnceLock};

use rustix::net::RecvFlags;

use crate::control::{self, Message};
use crate::proxy::{Listening, Proxy};
use crate::request::Report;
pub use crate::request::{ExitStatus, LayerError};
use crate::session::{CommandEnd, PreparedCommand};
use crate::sys::watch_readable;

/// A command did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the sandbox could not be set up: {0}")]
    Layer(#[from] LayerError),
    #[error("the confined command was ended from outside")]
    Killed,
    #[error("the launcher cannot be reached: {0}")]
    Io(#[from] io::Error),
}

/// A running confined command. Dropping it ends the command and everything that it started.
#[derive(Debug)]
pub struct ConfinedChild {
    control: ControlEnd,
    launcher: LauncherProcess,
    /// Dropped after the others, when the command has ended.
    end: Option<CommandEnd>,
    /// Takes the output of the command, if it is piped.
    pub stdout: Option<std::process::ChildStdout>,
    pub stderr: Option<std::process::ChildStderr>,
}

/// The caller's end of the socket to a launcher. While it is open, the command lives. For callers that start the process
/// themselves.
#[derive(Debug)]
pub struct ControlEnd {
    socket: OwnedFd,
    proxy: Option<Arc<Proxy>>,
    /// Set once the launcher has handed over the listening socket in the command's network.
    listening: OnceLock<Listening>,
}

impl PreparedCommand {
    /// Starts the command.
    pub fn spawn(mut self) -> io::Result<ConfinedChild> {
        let mut launcher = self.command.spawn()?;
        let (stdout, stderr) = (launcher.stdout.take(), launcher.stderr.take());
        let (control, end) = self.into_control();
        Ok(ConfinedChild {
            control,
            launcher: LauncherProcess(Some(launcher)),
            end: Some(end),
            stdout,
            stderr,
        })
    }

    /// Returns the socket, after the caller has started the command, and what is to be dropped after its end.
    pub fn into_control(self) -> (ControlEnd, CommandEnd) {
        // The command holds the other end, which must be closed here for the end of the launcher to be noticed.
        drop(self.command);
        (ControlEnd { socket: self.control, proxy: self.proxy, listening: OnceLock::new() }, self.end)
    }
}

impl ControlEnd {
    /// Waits until the command has ended or could not be started. Dropping the future loses nothing.
    pub async fn wait(&self) -> Result<ExitStatus, RunError> {
        let socket = watch_readable(self.socket.as_fd())?;
        loop {
            let mut ready = socket.readable().await?;
            let received = ready.try_io(|socket| control::receive(socket.get_ref(), RecvFlags::DONTWAIT));
            if let Ok(message) = received
                && let Some(ended) = self.handle(message?)
            {
                return ended;
            }
        }
    }

    /// As [`Self::wait`], without a runtime.
    pub fn wait_blocking(&self) -> Result<ExitStatus, RunError> {
        loop {
            if let Some(ended) = self.handle(control::receive(&self.socket, RecvFlags::empty())?) {
                return ended;
            }
        }
    }

    /// Sends a signal to the process group of the command.
    pub fn send_signal(&self, signal: u8) -> io::Result<()> {
        control::send(&self.socket, &[signal], &[])
    }

    fn handle(&self, message: Option<Message>) -> Option<Result<ExitStatus, RunError>> {
        let Some(message) = message else { return Some(Err(RunError::Killed)) };
        match serde_json::from_slice(&message.data).map_err(io::Error::from) {
            Ok(Report::Exited(status)) => Some(Ok(status)),
            Ok(Report::Failed(error)) => Some(Err(error.into())),
            Ok(Report::Session) => Some(Err(io::Error::other("unexpected report").into())),
            Ok(Report::Listener) => self.serve(message).err().map(|error| Err(error.into())),
            Err(error) => Some(Err(error.into())),
        }
    }

    fn serve(&self, message: Message) -> io::Result<()> {
        let listener = message.descriptors.into_iter().next().map(TcpListener::from);
        match (&self.proxy, listener) {
            (Some(proxy), Some(listener)) => {
                let listening = proxy.serve(listener)?;
                self.listening.set(listening).map_err(|_| io::Error::other("unexpected report"))
            }
            _ => Err(io::Error::other("no descriptor came with the report")),
        }
    }
}

impl ConfinedChild {
    /// Waits until the command has ended.
    pub async fn wait(&mut self) -> Result<ExitStatus, RunError> {
        let ended = self.control.wait().await;
        self.launcher.release();
        self.end = None;
        ended
    }

    /// As [`Self::wait`], without a runtime.
    pub fn wait_blocking(&mut self) -> Result<ExitStatus, RunError> {
        let ended = self.control.wait_blocking();
        self.launcher.release();
        self.end = None;
        ended
    }

    /// Sends a signal to the process group of the command.
    pub fn send_signal(&self, signal: u8) -> io::Result<()> {
        self.control.send_signal(signal)
    }

    /// Process id of the launcher.
    pub fn launcher_id(&self) -> Option<u32> {
        self.launcher.0.as_ref().map(Child::id)
    }
}

/// The launcher, which must not stay as a zombie.
#[derive(Debug)]
struct LauncherProcess(Option<Child>);

impl LauncherProcess {
    /// Lets the launcher end, which takes as long as the kernel takes to remove the namespaces.
    fn release(&mut self) {
        let Some(mut launcher) = self.0.take() else { return };
        // A failure means that another part of the program has taken the exit status.
        std::thread::spawn(move || launcher.wait());
    }
}

impl Drop for LauncherProcess {
    fn drop(&mut self) {
        if let Some(launcher) = &mut self.0 {
            // It has ended already if this fails.
            let _ = launcher.kill();
            let _ = launcher.wait();
        }
    }
}
