//! The process groups of a session that are running now, and the promise that none outlives the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::process_tag::ProcessTag;
use super::procfs;
use super::reaper::Reaper;

/// How long a process that was asked to end may take.
pub(super) const KILL_GRACE: Duration = Duration::from_millis(500);

/// The running process groups of a session.
pub(super) struct ProcessGroups {
    groups: watch::Sender<Vec<Pid>>,
    supervision: Mutex<Option<Supervision>>,
    /// Fires when the session ends.
    pub(super) closed: CancellationToken,
}

/// A session that has run a command.
#[derive(Clone)]
pub(super) struct Supervision {
    reaper: Arc<Reaper>,
    /// What marks the session's processes.
    tag: Arc<ProcessTag>,
}

/// How a command is tied to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionBinding {
    /// For good: it carries the session's mark, and nothing that it starts survives the session.
    Tagged,
    /// Loosely: it is known by its group alone, so that it can be let go.
    Detachable,
}

impl Supervision {
    /// What a command carries in its environment.
    pub(super) fn tag_value(&self, tie: SessionBinding) -> Option<&str> {
        match tie {
            SessionBinding::Tagged => Some(self.tag.value()),
            SessionBinding::Detachable => None,
        }
    }

    /// Starts a process that is tied to the session.
    pub(super) fn spawn<T>(&self, tie: SessionBinding, start: impl FnOnce() -> T) -> T {
        match tie {
            SessionBinding::Tagged => self.tag.spawn_tagged(start),
            SessionBinding::Detachable => self.reaper.spawn_untagged(start),
        }
    }
}

/// A running process group. Dropped before its time, it is killed.
pub(super) struct ProcessGroup {
    id: Pid,
    groups: Arc<ProcessGroups>,
    reaper: Arc<Reaper>,
    state: GroupState,
}

#[derive(Clone, Copy, PartialEq)]
enum GroupState {
    /// Its first process has not been waited for, so the id is ours.
    HasLeader,
    /// Its first process is gone; others may be left.
    Leaderless,
    /// No longer our business.
    Released,
}

impl ProcessGroups {
    pub(super) fn new() -> Self {
        Self { groups: watch::Sender::default(), supervision: Mutex::default(), closed: CancellationToken::new() }
    }

    /// The session's mark. With the first call, the reaper watches over us.
    pub(super) fn supervision(&self) -> std::io::Result<Supervision> {
        let mut watched = self.lock_supervision();
        if let Some(watched) = &*watched {
            return Ok(watched.clone());
        }
        let reaper = Reaper::for_this_process()?;
        let mark = Arc::new(reaper.new_tag());
        Ok(watched.insert(Supervision { reaper, tag: mark }).clone())
    }

    /// Notes a group that has just been started.
    pub(super) fn add(self: &Arc<Self>, watched: Supervision, leader: Pid) -> ProcessGroup {
        watched.reaper.add_group(leader.as_raw());
        self.groups.send_modify(|groups| groups.push(leader));
        ProcessGroup { id: leader, groups: Arc::clone(self), reaper: watched.reaper, state: GroupState::HasLeader }
    }

    /// The session ends: whoever runs something ends it; what is then left is killed.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        let Some(mark) = self.lock_supervision().as_ref().map(|watched| Arc::clone(&watched.tag)) else {
            return;
        };
        self.wait_until_empty(KILL_GRACE * 2).await;
        self.kill_groups();
        self.wait_until_empty(KILL_GRACE).await;
        procfs::terminate_tagged(&mark, KILL_GRACE).await;
        // Only now: had we been dropped on the way, dropping the roster would have to do the work.
        self.lock_supervision().take();
    }

    /// A whole value is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn lock_supervision(&self) -> MutexGuard<'_, Option<Supervision>> {
        self.supervision.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_until_empty(&self, limit: Duration) {
        let mut groups = self.groups.subscribe();
        let gone = groups.wait_for(Vec::is_empty);
        let _ = tokio::time::timeout(limit, gone).await;
    }

    fn kill_groups(&self) {
        for group in self.groups.borrow().iter() {
            let _ = killpg(*group, Signal::SIGKILL);
        }
    }
}

/// The session's handles are gone and nobody closed it.
impl Drop for ProcessGroups {
    fn drop(&mut self) {
        if let Some(watched) = self.lock_supervision().take() {
            procfs::kill_tagged(&watched.tag);
        }
    }
}

impl ProcessGroup {
    /// Its number, which is that of its first process.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to every process of the group.
    pub(super) fn signal(&self, signal: Signal) {
        let missed = killpg(self.id, signal) == Err(Errno::ESRCH);
        // Between its start and its first step, the leader is still in our own group.
        if missed && self.state == GroupState::HasLeader {
            let _ = kill(self.id, signal);
        }
    }

    /// Whether a process of the group is still at work.
    pub(super) fn is_alive(&self) -> bool {
        killpg(self.id, None).is_ok() && procfs::is_group_running(self.id)
    }

    /// The first process has been waited for.
    pub(super) fn mark_leader_reaped(&mut self) {
        self.state = GroupState::Leaderless;
    }

    /// From now on the group is left alone until the session ends.
    pub(super) fn release(&mut self) {
        if self.state != GroupState::Released {
            self.state = GroupState::Released;
            self.reaper.remove_group(self.id.as_raw());
            self.groups.groups.send_modify(|groups| groups.retain(|other| *other != self.id));
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.state != GroupState::Released {
            self.signal(Signal::SIGKILL);
            self.release();
        }
    }
}
