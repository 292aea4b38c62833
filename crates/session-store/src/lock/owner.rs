//! Finds the process that holds a file lock. Linux only; elsewhere no owner is reported.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Clock ticks per second in `/proc`; 100 on all common Linux systems.
const TICKS_PER_SECOND: i64 = 100;

/// Reads of `/proc/locks`: it is not read atomically, so entries can be missing or duplicated.
const MAX_READS: usize = 5;

/// The process that has a session open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockOwner {
    /// Its id, on the host.
    pub pid: u32,
    /// Name of the host, if known. It is always this one: the locks of other hosts are not visible.
    pub host: Option<String>,
    /// Name of the program, such as `whimbrel`, if known.
    pub program: Option<String>,
    /// Start time, if known.
    pub started_at: Option<String>,
    /// How it is locked.
    pub mode: LockMode,
}

/// How a session is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockMode {
    /// As engines lock.
    Exclusive,
    /// As a reader locks, for example a backup. Engines do not.
    Shared,
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            LockMode::Exclusive => "in use by ",
            LockMode::Shared => "locked against writing by ",
        })?;
        write!(f, "process {}", self.pid)?;
        if let Some(program) = &self.program {
            write!(f, " ({program})")?;
        }
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        if let Some(started) = &self.started_at {
            write!(f, ", started {started}")?;
        }
        match self.mode {
            LockMode::Exclusive => Ok(()),
            LockMode::Shared => f.write_str(", a reader that is not an engine, such as a backup"),
        }
    }
}

impl LockOwner {
    /// Finds the process that holds a lock on a file.
    pub(super) fn for_file(file: &File) -> Option<Self> {
        let number = file.metadata().ok()?.ino();
        let (pid, mode) =
            (0..MAX_READS).find_map(|_| find_holder(&fs::read_to_string("/proc/locks").ok()?, number))?;
        Some(Self { pid, host: host_name(), program: program_name(pid), started_at: start_time(pid), mode })
    }
}

/// The only process with a lock on an inode. Device numbers are not compared: on some filesystems they differ between
/// the kernel and `stat`.
fn find_holder(locks: &str, wanted: u64) -> Option<(u32, LockMode)> {
    let mut holders = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Waiting processes have `->` in the second column.
        let [_, "FLOCK", _, kind, pid, device_and_inode, ..] = words.as_slice() else { return None };
        let mode = match *kind {
            "WRITE" => LockMode::Exclusive,
            "READ" => LockMode::Shared,
            _ => return None,
        };
        let (_, inode) = device_and_inode.rsplit_once(':')?;
        (inode.parse() == Ok(wanted)).then(|| Some((pid.parse().ok()?, mode))).flatten()
    });
    match (holders.next(), holders.next()) {
        (Some((pid, mode)), None) if pid > 0 => Some((pid, mode)),
        _ => None,
    }
}

fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// File name of the program of a process, else the name that the kernel keeps of it.
fn program_name(pid: u32) -> Option<String> {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = file.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = name.or_else(|| fs::read_to_string(format!("/proc/{pid}/comm")).ok())?;
    // The file of a running program may have been replaced.
    let name = name.trim().trim_end_matches(" (deleted)").to_owned();
    (!name.is_empty()).then_some(name)
}

/// Start time of a process.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let second = boot.checked_add(start_ticks(&stat)? / TICKS_PER_SECOND)?;
    Some(jiff::Timestamp::from_second(second).ok()?.to_string())
}

/// Start time in ticks since boot, from `/proc/PID/stat`.
fn start_ticks(stat: &str) -> Option<i64> {
    // The process name before it may contain anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_lock_holder_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 08:01:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 08:01:42 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 10 08:01:43 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 11 08:01:44 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 12 08:02:44 0 EOF\n\
                     6: FLOCK  ADVISORY  WRITE 0 08:02:45 0 EOF\n\
                     garbage";
        let rows = [
            (42, Some((8, LockMode::Exclusive))),
            (43, Some((10, LockMode::Shared))),
            (44, None),
            (45, None),
            (46, None),
        ];
        for (number, expected) in rows {
            assert_eq!(find_holder(locks, number), expected, "{number}");
        }
    }

    #[test]
    fn start_time_is_parsed_after_odd_process_names() {
        let stat = format!("5 (a) b) S {} 1234 0", vec!["1"; 18].join(" "));
        assert_eq!(start_ticks(&stat), Some(1234));
        assert_eq!(start_ticks("5"), None);
    }
}
