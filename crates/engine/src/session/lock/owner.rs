//! Who has a file locked, as far as the system tells. Linux does; elsewhere nobody is named.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// How many ticks a second has where Linux counts in ticks. Programs see this number on every common machine.
const TICKS_PER_SECOND: i64 = 100;

/// How often the list of locks is read: it is read in pieces, and one may be missed or told twice while others come and go.
const MAX_READS: usize = 5;

/// A process that has a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockOwner {
    /// Its id.
    pub pid: u32,
    /// When it was started, if that can be known.
    pub started_at: Option<String>,
    /// What it does with it.
    pub mode: LockMode,
}

/// How a file is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// For one alone, as engines do.
    Exclusive,
    /// Beside others who only read. No engine does that.
    Shared,
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            LockMode::Exclusive => "in use by ",
            LockMode::Shared => "kept from being written by ",
        })?;
        write!(f, "process {}", self.pid)?;
        if let Some(started) = &self.started_at {
            write!(f, ", started {started}")?;
        }
        match self.mode {
            LockMode::Exclusive => Ok(()),
            LockMode::Shared => f.write_str(", which reads it and is no engine: a backup, say"),
        }
    }
}

impl LockOwner {
    /// The process that has a file locked.
    pub(super) fn for_file(file: &File) -> Option<Self> {
        let number = file.metadata().ok()?.ino();
        let (pid, hold) =
            (0..MAX_READS).find_map(|_| find_holder(&fs::read_to_string("/proc/locks").ok()?, number))?;
        Some(Self { pid, started_at: start_time(pid), mode: hold })
    }
}

/// The only process that has locked a file of this number. A file system may be known to the system by another number
/// than to programs, so that does not count.
fn find_holder(locks: &str, number: u64) -> Option<(u32, LockMode)> {
    let mut holders = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // One who waits has an arrow in the second place.
        let [_, "FLOCK", _, how, pid, place, ..] = words.as_slice() else { return None };
        let hold = match *how {
            "WRITE" => LockMode::Exclusive,
            "READ" => LockMode::Shared,
            _ => return None,
        };
        let (_, there) = place.rsplit_once(':')?;
        (there.parse() == Ok(number)).then(|| Some((pid.parse().ok()?, hold))).flatten()
    });
    match (holders.next(), holders.next()) {
        (Some((pid, hold)), None) if pid > 0 => Some((pid, hold)),
        _ => None,
    }
}

/// When a process was started.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let second = boot.checked_add(start_ticks(&stat)? / TICKS_PER_SECOND)?;
    Some(jiff::Timestamp::from_second(second).ok()?.to_string())
}

/// How long after the start of the machine a process was started.
fn start_ticks(stat: &str) -> Option<i64> {
    // The name before may hold anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_who_has_a_file_is_named_and_nobody_if_that_is_not_clear() {
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
    fn a_process_with_an_odd_name_was_started_when_it_was() {
        let stat = format!("5 (a) b) S {} 1234 0", vec!["1"; 18].join(" "));
        assert_eq!(start_ticks(&stat), Some(1234));
        assert_eq!(start_ticks("5"), None);
    }
}
