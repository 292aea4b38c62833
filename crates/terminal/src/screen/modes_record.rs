//! A record of the modes that are on, in a file for each terminal. A program that was killed could not restore its
//! terminal, and its record stays: the next start puts the terminal right.

use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// Which screen the program draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenInUse {
    Main,
    Alternate,
}

/// The record of a terminal.
#[derive(Debug, Clone)]
pub(super) struct ModesRecord {
    path: PathBuf,
}

impl ModesRecord {
    /// The record of the terminal at the standard input, in a directory; none if its name is not known.
    pub(super) fn for_terminal(dir: &Path) -> Option<Self> {
        let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
        let name = name.to_str().ok()?.trim_start_matches("/dev/").replace('/', "-");
        Some(Self { path: dir.join(name) })
    }

    /// What a program that was killed had in use; none if the terminal was restored or the program still runs.
    pub(super) fn left_over(&self) -> Option<ScreenInUse> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let (screen, pid) = text.trim().split_once(' ')?;
        let pid = Pid::from_raw(pid.parse().ok()?)?;
        if rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH) {
            return None;
        }
        Some(if screen == "alternate" { ScreenInUse::Alternate } else { ScreenInUse::Main })
    }

    /// Records what is in use. Without a record, as on a full disk, only the repair after a kill is missing.
    pub(super) fn write(&self, screen: ScreenInUse) {
        let name = match screen {
            ScreenInUse::Main => "main",
            ScreenInUse::Alternate => "alternate",
        };
        if let Some(dir) = self.path.parent() {
            let _ = std::fs::create_dir_all(dir);
        }
        let _ = std::fs::write(&self.path, format!("{name} {}\n", std::process::id()));
    }

    /// The terminal is restored.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_record_of_a_program_that_is_gone_counts() {
        let dir = tempfile::tempdir().unwrap();
        let record = ModesRecord { path: dir.path().join("modes/pts-1") };
        assert_eq!(record.left_over(), None);
        record.write(ScreenInUse::Alternate);
        assert_eq!(record.left_over(), None, "the program runs");
        // No process has the largest id.
        for (screen, expected) in [("alternate", ScreenInUse::Alternate), ("main", ScreenInUse::Main)] {
            std::fs::write(&record.path, format!("{screen} {}\n", i32::MAX)).unwrap();
            assert_eq!(record.left_over(), Some(expected));
        }
        record.remove();
        assert_eq!(record.left_over(), None);
    }
}
