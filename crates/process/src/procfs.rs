//! Reads `/proc`: the ids of all processes, whether one has ended, and whether a process of a group still runs.

use std::fs;

use nix::unistd::Pid;

/// Returns whether a process of the group still runs. Zombies stay in their group but do not count.
pub(super) fn is_group_running(group: Pid) -> bool {
    all_pids().into_iter().filter_map(ProcessStat::for_pid).any(|stat| stat.group == group && stat.is_running)
}

/// Returns whether a process has ended, also if it is a zombie.
pub(super) fn has_ended(id: Pid) -> bool {
    ProcessStat::for_pid(id).is_none_or(|stat| !stat.is_running)
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

    fn parse(text: &str) -> Option<Self> {
        // The process name before may contain anything.
        let mut words = text.rsplit_once(") ")?.1.split(' ');
        let (state, _parent, group) = (words.next()?, words.next()?, words.next()?);
        let threads: u64 = words.nth(14)?.parse().ok()?;
        let is_running = match state {
            "X" => false,
            "Z" => threads > 1,
            _ => true,
        };
        Some(Self { group: Pid::from_raw(group.parse().ok()?), is_running })
    }
}

/// Ids of all processes.
pub(super) fn all_pids() -> Vec<Pid> {
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
