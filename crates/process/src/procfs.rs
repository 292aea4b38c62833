//! Reads `/proc`: finds tagged processes of a session, and running processes of a group.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use whimbrel_os::clock;

use crate::process_tag::ProcessTag;

/// Sends SIGTERM to all tagged processes, and SIGKILL to those left after `grace`.
pub(super) async fn terminate_tagged(mark: &Arc<ProcessTag>, grace: Duration) {
    let asked = run_blocking(mark, find_tagged).await;
    if asked.is_empty() {
        return;
    }
    signal_all(&asked, Signal::SIGTERM);
    let deadline = clock::monotonic() + grace;
    let mut pause = Duration::from_millis(1);
    while asked.iter().any(|id| mark.is_carried_by(*id)) && clock::monotonic() < deadline {
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    run_blocking(mark, kill_tagged).await;
}

/// Runs a scan of `/proc` on a blocking thread: it takes some milliseconds.
async fn run_blocking<T: Send + 'static>(mark: &Arc<ProcessTag>, look: fn(&ProcessTag) -> T) -> T {
    let theirs = Arc::clone(mark);
    let looked = tokio::task::spawn_blocking(move || look(&theirs)).await;
    looked.unwrap_or_else(|_| look(mark))
}

/// Kills all tagged processes. Blocks.
pub(super) fn kill_tagged(mark: &ProcessTag) {
    // Processes that fork during the scan are found in the next round.
    for _ in 0..10 {
        let found = find_tagged(mark);
        if found.is_empty() {
            return;
        }
        signal_all(&found, Signal::SIGKILL);
    }
}

/// Returns whether a process of the group still runs. Zombies stay in their group but do not count.
pub(super) fn is_group_running(group: Pid) -> bool {
    all_pids()
        .into_iter()
        .filter_map(ProcessStat::for_pid)
        .any(|facts| facts.group == group && facts.is_running)
}

/// Returns whether a process has ended, also if it is a zombie.
pub(super) fn has_ended(id: Pid) -> bool {
    ProcessStat::for_pid(id).is_none_or(|facts| !facts.is_running)
}

/// The used fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    group: Pid,
    /// False for a zombie; one whose first thread has ended may have other threads.
    is_running: bool,
}

impl ProcessStat {
    fn for_pid(id: Pid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The process name before may contain anything.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        let (state, _parent, group) = (words.next()?, words.next()?, words.next()?);
        let threads: u64 = words.nth(14)?.parse().ok()?;
        let works = match state {
            "X" => false,
            "Z" => threads > 1,
            _ => true,
        };
        Some(Self { group: Pid::from_raw(group.parse().ok()?), is_running: works })
    }
}

fn signal_all(ids: &[Pid], signal: Signal) {
    for id in ids {
        // It may have ended meanwhile.
        let _ = kill(*id, signal);
    }
}

fn find_tagged(mark: &ProcessTag) -> Vec<Pid> {
    all_pids().into_iter().filter(|id| *id != Pid::this() && mark.is_carried_by(*id)).collect()
}

fn all_pids() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_as_long_as_one_thread_does() {
        for (state, threads, is_running) in
            [("S", 1, true), ("R", 3, true), ("T", 1, true), ("Z", 1, false), ("Z", 2, true), ("X", 0, false)]
        {
            let stat =
                format!("7 (a) S 1 (b) {state} 1 42 5733 0 -1 4227148 222 0 0 0 0 0 0 0 20 0 {threads} 0 18");
            assert_eq!(
                ProcessStat::parse(&stat),
                Some(ProcessStat { group: Pid::from_raw(42), is_running }),
                "{stat}"
            );
        }
        assert_eq!(ProcessStat::parse("7 (a) S 1"), None);
    }
}
