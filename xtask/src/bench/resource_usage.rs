//! Meter: a small process that starts a program, waits for it and its orphans, and writes their resource usage to a
//! file.
//!
//! It is a separate process because the kernel counts per parent: the usage of all children, and the largest of them.
//! It is small because the reported peak size of a child is never below the size of its parent.

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

/// Time that orphaned children get to exit.
const ORPHAN_GRACE: Duration = Duration::from_secs(3);

/// Resource usage of a program and all its children.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ResourceUsage {
    /// Exit code; `None` if killed by a signal.
    pub(super) code: Option<i32>,
    /// Wall time in milliseconds.
    pub(super) wall: f64,
    /// CPU time in milliseconds.
    pub(super) cpu: f64,
    /// Peak resident size of the largest process, in megabytes.
    pub(super) largest: f64,
}

/// Runs a program and writes its usage to a file: `FILE PROGRAM [ARGUMENT]...`.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let [file, program, arguments @ ..] = words else { bail!("the meter needs a file and a program") };
    set_child_subreaper(true)?;
    let started_at = clock::now();
    let mut child =
        command(program).args(arguments).spawn().with_context(|| format!("cannot start {program}"))?;
    let code = child.wait()?.code();
    let wall = clock::to_ms(started_at.elapsed());
    reap_orphans();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = milliseconds(usage.user_time()) + milliseconds(usage.system_time());
    let resources = ResourceUsage { code, wall, cpu, largest: usage.max_rss() as f64 / 1024.0 };
    fs::write(file, serde_json::to_vec(&resources)?)?;
    Ok(())
}

/// Reads the usage that a meter wrote.
pub(super) fn read_usage(file: &Path) -> Result<ResourceUsage> {
    Ok(serde_json::from_slice(&fs::read(file).context("the meter wrote no usage")?)?)
}

/// Waits for orphaned children; kills them after [`ORPHAN_GRACE`].
fn reap_orphans() {
    let deadline = clock::now() + ORPHAN_GRACE;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::EINTR) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
            Ok(_) if clock::now() < deadline => clock::sleep(Duration::from_millis(1)),
            Ok(_) => {
                let Ok(orphan) = super::process_snapshot::first_child(std::process::id()) else { return };
                // Fails harmlessly if the process has exited.
                let _ = kill(Pid::from_raw(orphan.cast_signed()), Signal::SIGKILL);
                clock::sleep(Duration::from_millis(1));
            }
            Err(_) => return,
        }
    }
}

fn milliseconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 * 1000.0 + time.tv_usec() as f64 / 1000.0
}

#[expect(clippy::disallowed_methods, reason = "the meter starts the measured program")]
fn command(program: &str) -> Command {
    Command::new(program)
}
