//! Looks into `/proc`: finds the processes of a session, wherever they have gone (each carries the session's mark), and
//! the living ones of a group.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::mark::Mark;
use crate::clock;

/// Asks all marked processes to end, and kills those that do not within `grace`.
pub(super) async fn end_all(mark: &Arc<Mark>, grace: Duration) {
    let asked = aside(mark, find).await;
    if asked.is_empty() {
        return;
    }
    signal_all(&asked, Signal::SIGTERM);
    let deadline = clock::monotonic() + grace;
    let mut pause = Duration::from_millis(1);
    while asked.iter().any(|id| mark.is_on(*id)) && clock::monotonic() < deadline {
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    aside(mark, kill_all).await;
}

/// A look at all processes takes some milliseconds: not on a thread that others need.
async fn aside<T: Send + 'static>(mark: &Arc<Mark>, look: fn(&Mark) -> T) -> T {
    let theirs = Arc::clone(mark);
    let looked = tokio::task::spawn_blocking(move || look(&theirs)).await;
    looked.unwrap_or_else(|_| look(mark))
}

/// Kills all marked processes. Blocks.
pub(super) fn kill_all(mark: &Mark) {
    // What forks while we look is found in the next round.
    for _ in 0..10 {
        let found = find(mark);
        if found.is_empty() {
            return;
        }
        signal_all(&found, Signal::SIGKILL);
    }
}

/// Whether a process of the group is still at work. One that has ended stays in its group until somebody waits for
/// it, which may be never.
pub(super) fn group_works(group: Pid) -> bool {
    all().into_iter().filter_map(Facts::of).any(|facts| facts.group == group && facts.works)
}

/// Whether a process has ended, even if nobody has waited for it yet.
pub(super) fn has_ended(id: Pid) -> bool {
    Facts::of(id).is_none_or(|facts| !facts.works)
}

/// What the system tells of a process.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    group: Pid,
    /// Whether it is still at work: one whose first thread has ended may have others.
    works: bool,
}

impl Facts {
    fn of(id: Pid) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        // The name before may hold anything.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        let (state, _parent, group) = (words.next()?, words.next()?, words.next()?);
        let threads: u64 = words.nth(14)?.parse().ok()?;
        let works = match state {
            "X" => false,
            "Z" => threads > 1,
            _ => true,
        };
        Some(Self { group: Pid::from_raw(group.parse().ok()?), works })
    }
}

fn signal_all(ids: &[Pid], signal: Signal) {
    for id in ids {
        // It may have ended meanwhile.
        let _ = kill(*id, signal);
    }
}

fn find(mark: &Mark) -> Vec<Pid> {
    all().into_iter().filter(|id| *id != Pid::this() && mark.is_on(*id)).collect()
}

fn all() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_works_as_long_as_one_of_its_threads_does() {
        for (state, threads, works) in
            [("S", 1, true), ("R", 3, true), ("T", 1, true), ("Z", 1, false), ("Z", 2, true), ("X", 0, false)]
        {
            let stat =
                format!("7 (a) S 1 (b) {state} 1 42 5733 0 -1 4227148 222 0 0 0 0 0 0 0 20 0 {threads} 0 18");
            assert_eq!(Facts::read(&stat), Some(Facts { group: Pid::from_raw(42), works }), "{stat}");
        }
        assert_eq!(Facts::read("7 (a) S 1"), None);
    }
}
