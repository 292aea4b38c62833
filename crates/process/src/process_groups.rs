//! Running process groups of a session; none outlives the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use whimbrel_os::clock;

use crate::process_tags::ProcessTag;
use crate::procfs;
use crate::reaper::Reaper;

/// Time a process gets to exit after SIGTERM.
pub const KILL_GRACE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct ProcessGroups {
    groups: watch::Sender<Vec<Pid>>,
    supervision: Mutex<Option<Supervision>>,
    /// Fires when the session ends.
    pub closed: CancellationToken,
}

/// Reaper and tag of a session that has run a command.
#[derive(Clone)]
pub struct Supervision {
    reaper: Arc<Reaper>,
    tag: Arc<ProcessTag>,
}

/// How a command is bound to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionBinding {
    /// Carries the session's tag; no descendant survives the session.
    Tagged,
    /// Known by its process group only, so that it can be detached.
    Detachable,
}

impl Supervision {
    /// Value of the tag variable in the command's environment.
    pub fn tag_value(&self, binding: SessionBinding) -> Option<&str> {
        match binding {
            SessionBinding::Tagged => Some(self.tag.value()),
            SessionBinding::Detachable => None,
        }
    }

    pub fn spawn<T>(&self, binding: SessionBinding, start: impl FnOnce() -> T) -> T {
        match binding {
            SessionBinding::Tagged => self.tag.spawn_tagged(start),
            SessionBinding::Detachable => self.reaper.spawn_untagged(start),
        }
    }
}

/// A running process group. Dropping it before its release kills it.
pub struct ProcessGroup {
    id: Pid,
    groups: Arc<ProcessGroups>,
    reaper: Arc<Reaper>,
    state: GroupState,
}

#[derive(Clone, Copy, PartialEq)]
enum GroupState {
    /// The first process has not been reaped, so the id cannot be reused.
    HasLeader,
    /// The first process was reaped; others may remain.
    Leaderless,
    /// Ended or detached.
    Released,
}

impl ProcessGroups {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns reaper and tag; the first call starts the reaper.
    pub fn supervision(&self) -> std::io::Result<Supervision> {
        let mut supervision = self.lock_supervision();
        if let Some(supervision) = &*supervision {
            return Ok(supervision.clone());
        }
        let reaper = Reaper::for_this_process()?;
        let tag = Arc::new(reaper.new_tag());
        Ok(supervision.insert(Supervision { reaper, tag }).clone())
    }

    /// Adds a group that has just been started.
    pub fn add(self: &Arc<Self>, supervision: Supervision, leader: Pid) -> ProcessGroup {
        supervision.reaper.add_group(leader.as_raw());
        self.groups.send_modify(|groups| groups.push(leader));
        ProcessGroup {
            id: leader,
            groups: Arc::clone(self),
            reaper: supervision.reaper,
            state: GroupState::HasLeader,
        }
    }

    /// Ends the session: owners stop their commands, then remaining processes are killed.
    pub async fn close(&self) {
        self.closed.cancel();
        let Some(tag) = self.lock_supervision().as_ref().map(|supervision| Arc::clone(&supervision.tag))
        else {
            return;
        };
        self.wait_until_empty(KILL_GRACE * 2).await;
        self.kill_groups();
        self.wait_until_empty(KILL_GRACE).await;
        tag.terminate_all(KILL_GRACE).await;
        // Last: if this future is dropped before, dropping the value must do the cleanup.
        self.lock_supervision().take();
    }

    /// The value is replaced as a whole, so a poisoned lock holds valid data.
    fn lock_supervision(&self) -> MutexGuard<'_, Option<Supervision>> {
        self.supervision.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_until_empty(&self, limit: Duration) {
        let mut groups = self.groups.subscribe();
        let empty = groups.wait_for(Vec::is_empty);
        let _ = timeout(limit, empty).await;
    }

    fn kill_groups(&self) {
        for group in self.groups.borrow().iter() {
            let _ = killpg(*group, Signal::SIGKILL);
        }
    }
}

/// All handles are gone without `close`.
impl Drop for ProcessGroups {
    fn drop(&mut self) {
        if let Some(supervision) = self.lock_supervision().take() {
            supervision.tag.kill_all();
        }
    }
}

impl ProcessGroup {
    /// The group id, which is the id of its first process.
    pub fn id(&self) -> Pid {
        self.id
    }

    pub fn signal(&self, signal: Signal) {
        let is_missing = killpg(self.id, signal) == Err(Errno::ESRCH);
        // Between fork and setpgid the leader is still in our own group.
        if is_missing && self.state == GroupState::HasLeader {
            let _ = kill(self.id, signal);
        }
    }

    /// Sends SIGTERM to the group, SIGKILL after the grace period, and waits for the first process.
    pub async fn terminate(&mut self, leader: &mut Child) {
        let deadline = clock::monotonic() + KILL_GRACE;
        self.signal(Signal::SIGTERM);
        if timeout(KILL_GRACE, leader.wait()).await.is_ok() {
            self.mark_leader_reaped();
        }
        let mut pause = Duration::from_millis(1);
        while self.is_alive() && clock::monotonic() < deadline {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.signal(Signal::SIGKILL);
        let _ = timeout(KILL_GRACE, leader.wait()).await;
        self.release();
    }

    /// Returns whether a process of the group still runs.
    fn is_alive(&self) -> bool {
        killpg(self.id, None).is_ok() && procfs::is_group_running(self.id)
    }

    /// The first process was reaped.
    fn mark_leader_reaped(&mut self) {
        self.state = GroupState::Leaderless;
    }

    /// Releases the group: it is left alone until the session ends.
    pub fn release(&mut self) {
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
