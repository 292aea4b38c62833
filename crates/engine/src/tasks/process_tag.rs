//! The mark by which the processes of a session are known, wherever they have gone.
//!
//! Each carries a variable in its environment. A daemon may clear that; its resource limits it keeps, for they pass to
//! every child and through every `exec`. So a program that allows it ([`follow_daemons`]) also marks its commands by a
//! limit that nobody needs: the time that a real-time process may run without a pause, a hundred thousand years and
//! some odd microseconds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::resource::rlim_t;
#[cfg(target_os = "linux")]
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use super::procfs;
use crate::ids;

/// The variable in the environment.
pub(super) const TAG_VARIABLE: &str = "WHIMBREL_SESSION";

/// How the system calls the limit where it lists those of a process.
const LIMIT_NAME: &str = "Max realtime timeout";

/// The limits of all marks lie above this.
const MIN_TAG_LIMIT: rlim_t = 4_000_000_000_000_000_000;

/// So many processes of one number are told apart, and so many sessions of one process.
const PROCESS_SLOTS: rlim_t = 100_000;
const SESSION_SLOTS: rlim_t = 10_000_000;

/// Whether commands are marked by a limit, too. The limit belongs to the whole process, and so does this.
static TAG_BY_LIMIT: AtomicBool = AtomicBool::new(false);

/// Held while the limit of this process is another one.
static RLIMIT_LOCK: Mutex<()> = Mutex::new(());

/// Finds, from now on, also such daemons that have left their group and cleared their environment, and ends them with
/// their session. Must be called before the first command of the process: a session that has already run one, and all
/// sessions beside it, know their commands by the variable only. For programs that belong to the engine: while a
/// command is being started, `RLIMIT_RTTIME` of this process is another one.
pub fn track_daemons() {
    TAG_BY_LIMIT.store(true, Ordering::Relaxed);
}

/// The marks that this process gives.
pub(super) struct TagGenerator {
    /// How the values of the variable begin.
    prefix: String,
    /// How the limits begin; none if there are none.
    limit_base: Option<rlim_t>,
    next_number: AtomicU64,
}

/// The mark of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessTag {
    value: String,
    limit: Option<rlim_t>,
}

impl TagGenerator {
    /// Marks unlike those of any other process.
    pub(super) fn for_this_process() -> Self {
        let prefix = ids::new_uuid();
        let chance = prefix.bytes().fold(0, |sum: rlim_t, byte| (sum * 31 + rlim_t::from(byte)) % PROCESS_SLOTS);
        let process = rlim_t::from(std::process::id()) * PROCESS_SLOTS + chance;
        let limit_base = TAG_BY_LIMIT.load(Ordering::Relaxed).then_some(MIN_TAG_LIMIT + process * SESSION_SLOTS);
        Self { prefix, limit_base, next_number: AtomicU64::new(0) }
    }

    /// A mark for a new session.
    pub(super) fn next_tag(&self) -> ProcessTag {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        ProcessTag {
            value: format!("{}.{number}", self.prefix),
            limit: self.limit_base.map(|first| first + number % SESSION_SLOTS),
        }
    }

    /// Patterns for `grep` that match every mark of this process, in an environment and in a list of limits.
    pub(super) fn grep_patterns(&self) -> [String; 2] {
        let variable = format!("{TAG_VARIABLE}={}", self.prefix);
        let limit = self.limit_base.map(|first| format!("{LIMIT_NAME}  *{}[0-9]\\{{7\\}} ", first / SESSION_SLOTS));
        [variable.clone(), limit.unwrap_or(variable)]
    }

    /// Starts a process that carries no mark, not even one that this process was given itself.
    pub(super) fn spawn_untagged<T>(&self, start: impl FnOnce() -> T) -> T {
        match self.limit_base {
            Some(_) => under(rlim_t::MAX, start),
            None => start(),
        }
    }
}

impl ProcessTag {
    /// The value of the variable.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Starts a process that carries the limit.
    pub(super) fn spawn_tagged<T>(&self, start: impl FnOnce() -> T) -> T {
        match self.limit {
            Some(limit) => under(limit, start),
            None => start(),
        }
    }

    /// Whether a process carries it. One of somebody else shows its limits only. So does one that has ended, until
    /// somebody waits for it, which may be never: it does not count.
    pub(super) fn is_carried_by(&self, id: Pid) -> bool {
        self.is_in_environment_of(id) || self.is_in_limits_of(id) && !procfs::has_ended(id)
    }

    fn is_in_environment_of(&self, id: Pid) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{id}/environ")) else { return false };
        let wanted = format!("{TAG_VARIABLE}={}", self.value);
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    }

    fn is_in_limits_of(&self, id: Pid) -> bool {
        let Some(limit) = self.limit else { return false };
        let Ok(limits) = std::fs::read_to_string(format!("/proc/{id}/limits")) else { return false };
        let values = limits.lines().find_map(|line| line.strip_prefix(LIMIT_NAME));
        let soft = values.and_then(|values| values.split_whitespace().next());
        soft.and_then(|soft| soft.parse().ok()) == Some(limit)
    }
}

/// Starts something while the soft limit of this process is another one, or the highest that is allowed.
#[cfg(target_os = "linux")]
fn under<T>(limit: rlim_t, start: impl FnOnce() -> T) -> T {
    let _alone = RLIMIT_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_RTTIME) else { return start() };
    // Where a limit cannot be had, the variable is still there.
    let changed = setrlimit(Resource::RLIMIT_RTTIME, limit.min(hard), hard).is_ok();
    let started = start();
    if changed {
        let _ = setrlimit(Resource::RLIMIT_RTTIME, soft, hard);
    }
    started
}

/// Elsewhere there is no such limit.
#[cfg(not(target_os = "linux"))]
fn under<T>(_limit: rlim_t, start: impl FnOnce() -> T) -> T {
    start()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a process to look at")]
mod tests {
    use std::process::Command;

    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    #[test]
    fn marks_differ_by_session_and_are_found_by_their_process() {
        track_daemons();
        let (ours, others) = (TagGenerator::for_this_process(), TagGenerator::for_this_process());
        let (one, two) = (ours.next_tag(), ours.next_tag());
        assert!(one.value != two.value && one.limit != two.limit);
        let [variable, limit] = ours.grep_patterns();
        let begins = |mark: &ProcessTag| format!("{TAG_VARIABLE}={}", mark.value).starts_with(&variable);
        assert!(begins(&one) && begins(&two) && !begins(&others.next_tag()));
        let digits = (one.limit.unwrap() / SESSION_SLOTS).to_string();
        assert!(limit.contains(&digits) && one.limit.unwrap().to_string().len() == digits.len() + 7);
    }

    #[test]
    fn only_what_is_started_has_the_limit() {
        track_daemons();
        let mark = TagGenerator::for_this_process().next_tag();
        let before = getrlimit(Resource::RLIMIT_RTTIME).unwrap();
        assert!(mark.spawn_tagged(|| mark.is_in_limits_of(Pid::this())));
        assert_eq!(getrlimit(Resource::RLIMIT_RTTIME).unwrap(), before);
        assert!(!mark.is_carried_by(Pid::this()));
    }

    #[test]
    fn a_process_that_nobody_waits_for_is_not_marked_any_more() {
        track_daemons();
        let mark = TagGenerator::for_this_process().next_tag();
        for (name, variable) in [("by both", Some(mark.value())), ("by its limit", None)] {
            let mut command = Command::new("/bin/sleep");
            command.arg("300").env_clear().envs(variable.map(|value| (TAG_VARIABLE, value)));
            let mut child = mark.spawn_tagged(|| command.spawn()).unwrap();
            let id = Pid::from_raw(child.id().try_into().unwrap());
            assert!(mark.is_carried_by(id), "{name}");
            child.kill().unwrap();
            waitid(Id::Pid(id), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
            assert!(mark.is_in_limits_of(id) && !mark.is_carried_by(id), "{name}");
            child.wait().unwrap();
        }
    }
}
