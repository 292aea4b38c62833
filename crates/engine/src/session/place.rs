//! Where transcripts lie: the same place and names as the official engine uses, so that its readers find them.

use std::path::{Path, PathBuf};

/// How long a folder name may be before it is cut.
const LONGEST: usize = 200;

/// The folder of all sessions of one working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

impl Place {
    /// The place for sessions that work in `cwd`, below the configuration folder.
    pub fn new(config: &Path, cwd: &Path) -> Self {
        Self { folder: config.join("projects").join(project_key(&cwd.to_string_lossy())) }
    }

    /// The transcript of a session.
    pub fn transcript(&self, session: &str) -> PathBuf {
        self.folder.join(format!("{session}.jsonl"))
    }

    /// The folder for the transcripts of a session's subagents.
    pub fn subagents(&self, session: &str) -> PathBuf {
        self.folder.join(session).join("subagents")
    }

    /// The folder for a session's long tool output.
    pub fn tool_results(&self, session: &str) -> PathBuf {
        self.folder.join(session).join("tool-results")
    }
}

/// The folder name for a working directory: everything but letters and digits becomes `-`; long names get a hash.
pub fn project_key(path: &str) -> String {
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if key.len() <= LONGEST {
        return key;
    }
    format!("{}-{}", &key[..LONGEST], base36(path_hash(path)))
}

/// The hash of the official SDKs: 32-bit `h * 31 + c` over UTF-16 units.
fn path_hash(path: &str) -> u32 {
    path.encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
        .unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_becomes_a_flat_name() {
        assert_eq!(project_key("/home/ann/my.app"), "-home-ann-my-app");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let (one, two) = ("/x".repeat(150), format!("{}/y", "/x".repeat(150)));
        let (one, two) = (project_key(&one), project_key(&two));
        assert!(one.len() < 210 && one[..200] == two[..200] && one != two);
    }
}
