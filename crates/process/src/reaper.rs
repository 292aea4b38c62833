//! The reaper: a small shell that survives a killed engine for a moment and kills the commands it was running.
//!
//! All sessions of a process share one. It starts with the first command and ends with the last session that ran one.
//! While the engine lives it sleeps: running groups are written to a pipe that it reads only after the engine's death.

#![expect(clippy::disallowed_methods, reason = "this file starts the reaper")]

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::process_tags::{ProcessTag, TagGenerator};

/// Log size that fits into every pipe buffer.
const MAX_LOG_BYTES: usize = 2048;

/// The reaper of this process. Shared, because the death of a process affects all its sessions.
static REAPER: Mutex<Weak<Reaper>> = Mutex::new(Weak::new());

/// The reaper and its log.
pub(super) struct Reaper {
    tags: TagGenerator,
    log: Mutex<GroupLog>,
    shell: Option<Child>,
    /// Stdin of the shell; closed by the system when the engine dies.
    _liveness_pipe: PipeWriter,
}

/// The running process groups, and the pipe that holds their log.
struct GroupLog {
    groups: Vec<i32>,
    write: PipeWriter,
    read: PipeReader,
    /// Number of bytes in the pipe.
    buffered: usize,
}

impl Reaper {
    /// Returns the reaper of this process; starts it if necessary.
    pub(super) fn for_this_process() -> std::io::Result<Arc<Self>> {
        let mut current = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = current.upgrade() {
            return Ok(reaper);
        }
        let reaper = Arc::new(Self::start()?);
        *current = Arc::downgrade(&reaper);
        Ok(reaper)
    }

    fn start() -> std::io::Result<Self> {
        let tags = TagGenerator::for_this_process();
        let (liveness_read, liveness_write) = pipe()?;
        let (read, write) = pipe()?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // Without `/bin/sh`, or at the process limit, commands run without a reaper.
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", include_str!("reaper.sh"), "whimbrel-reaper"])
            .args(tags.grep_patterns())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .current_dir("/")
            .stdin(liveness_read)
            .stdout(read.try_clone()?)
            .stderr(Stdio::null())
            .process_group(0);
        // The reaper must not carry a tag of an outer engine: it has to survive this process.
        let shell = tags.spawn_untagged(|| shell.spawn()).ok();
        let log = Mutex::new(GroupLog { groups: Vec::new(), write, read, buffered: 0 });
        Ok(Self { tags, log, shell, _liveness_pipe: liveness_write })
    }

    pub(super) fn new_tag(&self) -> ProcessTag {
        self.tags.next_tag()
    }

    pub(super) fn spawn_untagged<T>(&self, start: impl FnOnce() -> T) -> T {
        self.tags.spawn_untagged(start)
    }

    pub(super) fn add_group(&self, group: i32) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.groups.push(group);
        log.append('+', group);
    }

    /// Removes a group that has ended or is detached.
    pub(super) fn remove_group(&self, group: i32) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.groups.retain(|other| *other != group);
        log.append('-', group);
    }
}

impl GroupLog {
    fn append(&mut self, change: char, group: i32) {
        let line = format!("{change}{group}\n");
        if self.buffered + line.len() > MAX_LOG_BYTES || self.write_line(&line).is_err() {
            self.rewrite();
        }
    }

    fn write_line(&mut self, line: &str) -> std::io::Result<()> {
        self.write.write_all(line.as_bytes())?;
        self.buffered += line.len();
        Ok(())
    }

    /// Replaces the log by one line for each group. If the engine dies meanwhile, processes are still found by their
    /// tags.
    fn rewrite(&mut self) {
        let mut old = vec![0; self.buffered];
        if self.read.read_exact(&mut old).is_ok() {
            self.buffered = 0;
        }
        let mut lines = String::new();
        for line in self.groups.iter().map(|group| format!("+{group}\n")) {
            if lines.len() + line.len() <= MAX_LOG_BYTES {
                lines += &line;
            }
        }
        // Hundreds of groups do not fit; the rest is found by tags.
        let _ = self.write_line(&lines);
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let Some(shell) = &mut self.shell {
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_reaper_is_shared_and_ends_with_its_last_user() {
        let reaper = Reaper::for_this_process().unwrap();
        let shell = reaper.shell.as_ref().unwrap().id();
        assert!(Arc::ptr_eq(&reaper, &Reaper::for_this_process().unwrap()));
        drop(reaper);
        assert!(!Path::new(&format!("/proc/{shell}")).exists());
    }

    #[test]
    fn the_log_stays_small_and_correct() {
        let reaper = Reaper::start().unwrap();
        reaper.add_group(7);
        for group in 1_000_000..1_001_000 {
            reaper.add_group(group);
            reaper.remove_group(group);
        }
        let mut log = reaper.log.lock().unwrap();
        let mut lines = vec![0; log.buffered];
        log.read.read_exact(&mut lines).unwrap();
        let mut running = Vec::new();
        for line in String::from_utf8(lines).unwrap().lines() {
            match line.split_at(1) {
                ("+", id) => running.push(id.to_owned()),
                (_, id) => running.retain(|other| other != id),
            }
        }
        assert_eq!(running, ["7"]);
    }
}
