//! The process groups of a session that are running now, and the promise that none outlives the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::mark::Mark;
use super::procfs;
use super::reaper::Reaper;

/// How long a process that was asked to end may take.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// The running process groups of a session.
pub(super) struct Roster {
    groups: watch::Sender<Vec<Pid>>,
    watched: Mutex<Option<Watched>>,
    /// Fires when the session ends.
    pub(super) closed: CancellationToken,
}

/// A session that has run a command.
#[derive(Clone)]
pub(super) struct Watched {
    reaper: Arc<Reaper>,
    /// What marks the session's processes.
    mark: Arc<Mark>,
}

/// How a command is tied to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie {
    /// For good: it carries the session's mark, and nothing that it starts survives the session.
    Marked,
    /// Loosely: it is known by its group alone, so that it can be let go.
    Loose,
}

impl Watched {
    /// What a command carries in its environment.
    pub(super) fn mark_of(&self, tie: Tie) -> Option<&str> {
        match tie {
            Tie::Marked => Some(self.mark.value()),
            Tie::Loose => None,
        }
    }

    /// Starts a process that is tied to the session.
    pub(super) fn start<T>(&self, tie: Tie, start: impl FnOnce() -> T) -> T {
        match tie {
            Tie::Marked => self.mark.start(start),
            Tie::Loose => self.reaper.start_unmarked(start),
        }
    }
}

/// A running process group. Dropped before its time, it is killed.
pub(super) struct Group {
    id: Pid,
    roster: Arc<Roster>,
    reaper: Arc<Reaper>,
    life: Life,
}

#[derive(Clone, Copy, PartialEq)]
enum Life {
    /// Its first process has not been waited for, so the id is ours.
    Led,
    /// Its first process is gone; others may be left.
    Leaderless,
    /// No longer our business.
    Over,
}

impl Roster {
    pub(super) fn new() -> Self {
        Self { groups: watch::Sender::default(), watched: Mutex::default(), closed: CancellationToken::new() }
    }

    /// The session's mark. With the first call, the reaper watches over us.
    pub(super) fn watched(&self) -> std::io::Result<Watched> {
        let mut watched = self.lock_watched();
        if let Some(watched) = &*watched {
            return Ok(watched.clone());
        }
        let reaper = Reaper::of_this_process()?;
        let mark = Arc::new(reaper.new_mark());
        Ok(watched.insert(Watched { reaper, mark }).clone())
    }

    /// Notes a group that has just been started.
    pub(super) fn enter(self: &Arc<Self>, watched: Watched, leader: Pid) -> Group {
        watched.reaper.enter(leader.as_raw());
        self.groups.send_modify(|groups| groups.push(leader));
        Group { id: leader, roster: Arc::clone(self), reaper: watched.reaper, life: Life::Led }
    }

    /// The session ends: whoever runs something ends it; what is then left is killed.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        let Some(mark) = self.lock_watched().as_ref().map(|watched| Arc::clone(&watched.mark)) else {
            return;
        };
        self.all_gone(GRACE * 2).await;
        self.kill_groups();
        self.all_gone(GRACE).await;
        procfs::end_all(&mark, GRACE).await;
        // Only now: had we been dropped on the way, dropping the roster would have to do the work.
        self.lock_watched().take();
    }

    /// A whole value is put in or taken out at once; a panic elsewhere cannot leave it half changed.
    fn lock_watched(&self) -> MutexGuard<'_, Option<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn all_gone(&self, limit: Duration) {
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
impl Drop for Roster {
    fn drop(&mut self) {
        if let Some(watched) = self.lock_watched().take() {
            procfs::kill_all(&watched.mark);
        }
    }
}

impl Group {
    /// Its number, which is that of its first process.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to every process of the group.
    pub(super) fn signal(&self, signal: Signal) {
        let missed = killpg(self.id, signal) == Err(Errno::ESRCH);
        // Between its start and its first step, the leader is still in our own group.
        if missed && self.life == Life::Led {
            let _ = kill(self.id, signal);
        }
    }

    /// Whether a process of the group is still at work.
    pub(super) fn is_alive(&self) -> bool {
        killpg(self.id, None).is_ok() && procfs::group_works(self.id)
    }

    /// The first process has been waited for.
    pub(super) fn lost_its_leader(&mut self) {
        self.life = Life::Leaderless;
    }

    /// From now on the group is left alone until the session ends.
    pub(super) fn let_go(&mut self) {
        if self.life != Life::Over {
            self.life = Life::Over;
            self.reaper.leave(self.id.as_raw());
            self.roster.groups.send_modify(|groups| groups.retain(|other| *other != self.id));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.life != Life::Over {
            self.signal(Signal::SIGKILL);
            self.let_go();
        }
    }
}
