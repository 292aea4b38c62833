//! A small process that starts a program, waits for it and for everything it left behind, and writes down what they used.
//!
//! It is a process of its own because the kernel counts by it: what all its children used, and the largest of them. It is also
//! small: a child's largest size is never told as less than that of whoever started it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::clock;

/// How long what was left behind may go on.
const ORPHAN_GRACE: Duration = Duration::from_secs(3);

/// What a program and all its children used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ResourceUsage {
    /// How the program ended; none if by a signal.
    pub(super) code: Option<i32>,
    /// From its start to its end, in milliseconds.
    pub(super) wall: f64,
    /// Time on a processor, in milliseconds.
    pub(super) cpu: f64,
    /// The largest process, in megabytes.
    pub(super) largest: f64,
}

/// Runs a program and writes what it used to a file: `FILE PROGRAM [ARGUMENT]...`.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let [file, program, arguments @ ..] = words else { bail!("the meter needs a file and a program") };
    set_child_subreaper(true)?;
    let began = clock::now();
    let mut child =
        command(program).args(arguments).spawn().with_context(|| format!("{program} cannot be started"))?;
    let code = child.wait()?.code();
    let wall = clock::to_ms(began.elapsed());
    reap_orphans();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = milliseconds(usage.user_time()) + milliseconds(usage.system_time());
    let used = ResourceUsage { code, wall, cpu, largest: usage.max_rss() as f64 / 1024.0 };
    fs::write(file, serde_json::to_vec(&used)?)?;
    Ok(())
}

/// Reads what a meter wrote.
pub(super) fn read_usage(file: &Path) -> Result<ResourceUsage> {
    Ok(serde_json::from_slice(&fs::read(file).context("the meter wrote nothing")?)?)
}

/// Waits for children that their parent left behind; whoever takes too long is ended.
fn reap_orphans() {
    let deadline = clock::now() + ORPHAN_GRACE;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::EINTR) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
            Ok(_) if clock::now() < deadline => clock::sleep(Duration::from_millis(1)),
            Ok(_) => {
                let Ok(left) = super::memory::first_child(std::process::id()) else { return };
                // Whoever has gone meanwhile needs no signal.
                let _ = kill(Pid::from_raw(left.cast_signed()), Signal::SIGKILL);
                clock::sleep(Duration::from_millis(1));
            }
            Err(_) => return,
        }
    }
}

fn milliseconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 * 1000.0 + time.tv_usec() as f64 / 1000.0
}

#[expect(clippy::disallowed_methods, reason = "starting a program is what a meter is for")]
fn command(program: &str) -> Command {
    Command::new(program)
}
