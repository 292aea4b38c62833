//! The launcher: a process that confines itself step by step and then becomes the command.
//!
//! It is a hidden verb of a program that calls [`run_if_requested`] first in its `main`: a process with one thread, no
//! runtime and an empty environment. It gets a request over its stdin and reports how the command ended.
//!
//! Three processes take part. The launcher makes the namespaces and stays as their parent; it ends when the second one
//! ends. The second is process 1 of the command: it makes the mounts, gives up all privileges, starts the command, ends
//! everything that is left when the command ends, and ends itself when the caller is gone. The third is the command.
//!
//! - `namespaces`: namespaces and identity maps; `network`: loopback device and listening socket
//! - `mounts`: the plan of mounts; `mount_calls`: the calls for it; `devices`, `proc_mount`: fresh `/dev`, `/proc`
//! - `privileges`: capabilities, limits, filter; `file_rights`: Landlock
//! - `init`: process 1; `session`: namespaces that commands share

mod devices;
mod file_rights;
mod init;
mod mount_calls;
mod mounts;
mod namespaces;
mod network;
mod privileges;
mod proc_mount;
mod session;

pub(crate) use file_rights::SOCKET_PATHS_VERSION;

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::net::RecvFlags;
use rustix::process::{Pid, WaitOptions};

use crate::control;
use crate::request::{Backend, Input, LayerError, Report, Request, RunRequest, read_request};
use crate::sys::{self, Fork};

/// First argument that makes a program the launcher.
pub const VERB: &str = "__sandbox-launcher";
/// Exit status if a layer could not be set up.
pub const SETUP_FAILED: i32 = 125;

/// Result of a step of the confinement.
pub(crate) type LayerResult<T> = Result<T, LayerError>;

/// Names the layer in an error.
pub(crate) trait InLayer<T> {
    fn in_layer(self, layer: &str) -> LayerResult<T>;
}

impl<T, E: Into<io::Error>> InLayer<T> for Result<T, E> {
    fn in_layer(self, layer: &str) -> LayerResult<T> {
        self.map_err(|error| LayerError::new(layer, &error.into()))
    }
}

/// Becomes the launcher, or the tunnel for ssh, if the first argument asks for it. A program whose file is used as the
/// launcher calls this first in its `main`, before it starts threads.
pub fn run_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    let Some(verb) = arguments.next() else { return };
    if verb == VERB {
        main();
    }
    if verb == crate::connect::VERB {
        crate::connect::main(arguments);
    }
}

/// Runs the launcher with the request that arrives on stdin.
pub fn main() -> ! {
    let code = match take_control() {
        // Started by hand: there is no socket to report to.
        Err(_) => SETUP_FAILED,
        Ok(control) => match serve(&control) {
            Ok(code) => code,
            Err(error) => {
                // The caller is gone if this fails.
                let _ = send_report(&control, &Report::Failed(error));
                SETUP_FAILED
            }
        },
    };
    std::process::exit(code)
}

/// Closes inherited descriptors and moves the socket away from stdin.
fn take_control() -> io::Result<OwnedFd> {
    sys::close_from(3)?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(open_null()?)?;
    Ok(control)
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn serve(control: &OwnedFd) -> LayerResult<i32> {
    let message = control::receive(control, RecvFlags::empty()).in_layer("request")?;
    let mut descriptors = message.map(|message| message.descriptors).unwrap_or_default().into_iter();
    let file = descriptors.next().ok_or_else(|| {
        LayerError::new("request", &io::Error::new(io::ErrorKind::UnexpectedEof, "the caller sent none"))
    })?;
    let mut descriptors: Vec<OwnedFd> = descriptors.collect();
    match read_request(file).in_layer("request")? {
        Request::MakeSession { network } => session::make(control, network).map(|()| 0),
        Request::Run(request) => {
            let input = match request.input {
                Input::Nothing => None,
                Input::Passed => descriptors.pop(),
            };
            run(control, *request, &descriptors, input)
        }
    }
}

/// Makes the namespaces and waits for process 1.
fn run(
    control: &OwnedFd,
    request: RunRequest,
    descriptors: &[OwnedFd],
    input: Option<OwnedFd>,
) -> LayerResult<i32> {
    let (lifeline, our_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).in_layer("pipe")?;
    rustix::process::chdir("/").in_layer("working directory")?;
    if request.backend == Backend::Launcher {
        namespaces::enter(&request, descriptors)?;
    }
    if let Some(listener) = network::prepare(request.backend, request.network)? {
        let data = encode(&Report::Listener).in_layer("network")?;
        control::send(control, &data, &[std::os::fd::AsFd::as_fd(&listener)]).in_layer("network")?;
    }
    if request.backend == Backend::Bwrap {
        // This is process 1 already.
        return init::run(control, lifeline, request, input);
    }
    // Opened before the fork: process 1 replaces `/dev` in the same mount namespace.
    let null = open_null().in_layer("output")?;
    match sys::fork().in_layer("process 1")? {
        Fork::Child => {
            drop(our_end);
            init::run(control, lifeline, request, input)
        }
        Fork::Parent(child) => {
            drop((lifeline, input));
            release_output(&null).and_then(|()| wait_for(child)).in_layer("process 1")
        }
    }
}

/// Waits for process 1 and returns its exit code.
fn wait_for(child: Pid) -> io::Result<i32> {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status.exit_status().unwrap_or(SETUP_FAILED)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Closes stdout and stderr: their readers must see the end of the output when the command ends.
fn release_output(null: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

fn encode(report: &Report) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(report)?)
}

fn send_report(control: &OwnedFd, report: &Report) -> io::Result<()> {
    control::send(control, &encode(report)?, &[])
}
