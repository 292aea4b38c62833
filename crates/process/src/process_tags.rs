//! Process tags: identify the processes of a session, wherever they have moved.
//!
//! Each process carries an environment variable. A daemon may clear its environment, but resource limits are inherited
//! across `fork` and `exec`. So a program that calls [`track_daemons`] also tags its commands by an otherwise unused
//! limit: `RLIMIT_RTTIME`, set to a distinctive value of about a hundred thousand years.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::resource::rlim_t;
#[cfg(target_os = "linux")]
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use whimbrel_os::{clock, ids};

use crate::procfs;

pub(super) const TAG_VARIABLE: &str = "WHIMBREL_SESSION";

/// Name of the limit in `/proc/PID/limits`.
const LIMIT_NAME: &str = "Max realtime timeout";

/// All tag limits are above this value.
const MIN_TAG_LIMIT: rlim_t = 4_000_000_000_000_000_000;

/// Number of engine processes, and of sessions per process, that tags distinguish.
const PROCESS_SLOTS: rlim_t = 100_000;
const SESSION_SLOTS: rlim_t = 10_000_000;

/// Whether commands are also tagged by a limit. Limits are per process, and so is this flag.
static TAG_BY_LIMIT: AtomicBool = AtomicBool::new(false);

/// Held while the limit of this process is changed.
static RLIMIT_LOCK: Mutex<()> = Mutex::new(());

/// Also finds daemons that left their process group and cleared their environment, and ends them with their session.
/// Call it before the first command of the process: sessions that have already run a command are known by the variable
/// only. Only for programs that own the process: while a command is being started, `RLIMIT_RTTIME` of this process is
/// changed.
pub fn track_daemons() {
    TAG_BY_LIMIT.store(true, Ordering::Relaxed);
}

/// Creates the tags of this process.
pub(super) struct TagGenerator {
    /// Prefix of the variable's values.
    prefix: String,
    /// Base of the limits; `None` if tagging by limit is off.
    limit_base: Option<rlim_t>,
    next_number: AtomicU64,
}

/// The tag of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessTag {
    value: String,
    limit: Option<rlim_t>,
}

impl TagGenerator {
    /// Creates a generator whose tags differ from those of other processes.
    pub(super) fn for_this_process() -> Self {
        let prefix = ids::new_uuid();
        let suffix =
            prefix.bytes().fold(0, |sum: rlim_t, byte| (sum * 31 + rlim_t::from(byte)) % PROCESS_SLOTS);
        let process = rlim_t::from(std::process::id()) * PROCESS_SLOTS + suffix;
        let limit_base =
            TAG_BY_LIMIT.load(Ordering::Relaxed).then_some(MIN_TAG_LIMIT + process * SESSION_SLOTS);
        Self { prefix, limit_base, next_number: AtomicU64::new(0) }
    }

    pub(super) fn next_tag(&self) -> ProcessTag {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        ProcessTag {
            value: format!("{}.{number}", self.prefix),
            limit: self.limit_base.map(|first| first + number % SESSION_SLOTS),
        }
    }

    /// Patterns for `grep` that match every tag of this process, in `environ` and in `limits`.
    pub(super) fn grep_patterns(&self) -> [String; 2] {
        let variable = format!("{TAG_VARIABLE}={}", self.prefix);
        let limit =
            self.limit_base.map(|first| format!("{LIMIT_NAME}  *{}[0-9]\\{{7\\}} ", first / SESSION_SLOTS));
        [variable.clone(), limit.unwrap_or(variable)]
    }

    /// Spawns a process without a tag, not even one inherited by this process.
    pub(super) fn spawn_untagged<T>(&self, start: impl FnOnce() -> T) -> T {
        match self.limit_base {
            Some(_) => with_soft_limit(rlim_t::MAX, start),
            None => start(),
        }
    }
}

impl ProcessTag {
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Spawns a process with the tag's limit.
    pub(super) fn spawn_tagged<T>(&self, start: impl FnOnce() -> T) -> T {
        match self.limit {
            Some(limit) => with_soft_limit(limit, start),
            None => start(),
        }
    }

    /// Returns whether a process carries the tag. Processes of other users show only their limits; so do zombies, which
    /// do not count.
    pub(super) fn is_carried_by(&self, id: Pid) -> bool {
        self.is_in_environment_of(id) || self.is_in_limits_of(id) && !procfs::has_ended(id)
    }

    fn is_in_environment_of(&self, id: Pid) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{id}/environ")) else { return false };
        let expected = format!("{TAG_VARIABLE}={}", self.value);
        environment.split(|byte| *byte == 0).any(|variable| variable == expected.as_bytes())
    }

    fn is_in_limits_of(&self, id: Pid) -> bool {
        let Some(limit) = self.limit else { return false };
        let Ok(limits) = std::fs::read_to_string(format!("/proc/{id}/limits")) else { return false };
        let values = limits.lines().find_map(|line| line.strip_prefix(LIMIT_NAME));
        let soft = values.and_then(|values| values.split_whitespace().next());
        soft.and_then(|soft| soft.parse().ok()) == Some(limit)
    }
}

impl ProcessTag {
    /// Sends SIGTERM to all tagged processes, and SIGKILL to those left after `grace`.
    pub(super) async fn terminate_all(self: &Arc<Self>, grace: Duration) {
        let signaled = self.scan_processes(Self::find_all).await;
        if signaled.is_empty() {
            return;
        }
        signal_all(&signaled, Signal::SIGTERM);
        let deadline = clock::monotonic() + grace;
        let mut pause = Duration::from_millis(1);
        while signaled.iter().any(|id| self.is_carried_by(*id)) && clock::monotonic() < deadline {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.scan_processes(Self::kill_all).await;
    }

    /// Kills all tagged processes. Blocks.
    pub(super) fn kill_all(&self) {
        // Processes that fork during the scan are found in the next round.
        for _ in 0..10 {
            let found = self.find_all();
            if found.is_empty() {
                return;
            }
            signal_all(&found, Signal::SIGKILL);
        }
    }

    /// Runs a scan of `/proc` on a blocking thread: it takes some milliseconds.
    async fn scan_processes<T: Send + 'static>(self: &Arc<Self>, scan: fn(&Self) -> T) -> T {
        let tag = Arc::clone(self);
        tokio::task::spawn_blocking(move || scan(&tag)).await.unwrap_or_else(|_| scan(self))
    }

    fn find_all(&self) -> Vec<Pid> {
        procfs::all_pids().into_iter().filter(|id| *id != Pid::this() && self.is_carried_by(*id)).collect()
    }
}

fn signal_all(ids: &[Pid], signal: Signal) {
    for id in ids {
        // It may have ended meanwhile.
        let _ = kill(*id, signal);
    }
}

/// Runs `start` while the soft limit of this process is changed, capped by the hard limit.
#[cfg(target_os = "linux")]
fn with_soft_limit<T>(limit: rlim_t, start: impl FnOnce() -> T) -> T {
    let _guard = RLIMIT_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_RTTIME) else { return start() };
    // If the limit cannot be set, the variable remains.
    let changed = setrlimit(Resource::RLIMIT_RTTIME, limit.min(hard), hard).is_ok();
    let started = start();
    if changed {
        let _ = setrlimit(Resource::RLIMIT_RTTIME, soft, hard);
    }
    started
}

/// Other systems have no such limit.
#[cfg(not(target_os = "linux"))]
fn with_soft_limit<T>(_limit: rlim_t, start: impl FnOnce() -> T) -> T {
    start()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests spawn processes")]
mod tests {
    use std::process::Command;

    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    #[test]
    fn tags_differ_by_session_and_share_a_prefix() {
        track_daemons();
        let (ours, others) = (TagGenerator::for_this_process(), TagGenerator::for_this_process());
        let (one, two) = (ours.next_tag(), ours.next_tag());
        assert!(one.value != two.value && one.limit != two.limit);
        let [variable, limit] = ours.grep_patterns();
        let has_prefix = |tag: &ProcessTag| format!("{TAG_VARIABLE}={}", tag.value).starts_with(&variable);
        assert!(has_prefix(&one) && has_prefix(&two) && !has_prefix(&others.next_tag()));
        let digits = (one.limit.unwrap() / SESSION_SLOTS).to_string();
        assert!(limit.contains(&digits) && one.limit.unwrap().to_string().len() == digits.len() + 7);
    }

    #[test]
    fn only_spawned_processes_get_the_limit() {
        track_daemons();
        let tag = TagGenerator::for_this_process().next_tag();
        let before = getrlimit(Resource::RLIMIT_RTTIME).unwrap();
        assert!(tag.spawn_tagged(|| tag.is_in_limits_of(Pid::this())));
        assert_eq!(getrlimit(Resource::RLIMIT_RTTIME).unwrap(), before);
        assert!(!tag.is_carried_by(Pid::this()));
    }

    #[test]
    fn a_zombie_does_not_carry_the_tag() {
        track_daemons();
        let tag = TagGenerator::for_this_process().next_tag();
        for (name, variable) in [("by both", Some(tag.value())), ("by its limit", None)] {
            let mut command = Command::new("/bin/sleep");
            command.arg("300").env_clear().envs(variable.map(|value| (TAG_VARIABLE, value)));
            let mut child = tag.spawn_tagged(|| command.spawn()).unwrap();
            let id = Pid::from_raw(child.id().try_into().unwrap());
            assert!(tag.is_carried_by(id), "{name}");
            child.kill().unwrap();
            waitid(Id::Pid(id), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
            assert!(tag.is_in_limits_of(id) && !tag.is_carried_by(id), "{name}");
            child.wait().unwrap();
        }
    }
}
