//! A team on disk: who is in it, and what was written to whom. It is a record for people and other programs; the agents
//! themselves talk in memory.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::letter::Letter;
use crate::files::{self, Spot};

/// How large a mailbox may be that is read back.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What becomes of a mailbox.
pub(super) enum Change {
    /// A letter came.
    Came(Box<Letter>),
    /// Its reader has all that is in it.
    Read,
}

/// The folder of a team.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    team: PathBuf,
    tasks: PathBuf,
    epoch: String,
}

impl Folder {
    /// The folder of a team below the configuration folder.
    pub(super) fn new(config: &Path, team: &str, epoch: &str) -> Self {
        Self {
            team: config.join("teams").join(team),
            tasks: config.join("tasks").join(team),
            epoch: epoch.to_owned(),
        }
    }

    /// The file that says who is in the team.
    pub(super) fn config(&self) -> PathBuf {
        self.team.join("config.json")
    }

    /// The file that is locked while a session leads the team.
    pub(super) fn lock(&self) -> PathBuf {
        let mut path = self.team.clone().into_os_string();
        path.push(".lock");
        path.into()
    }

    fn mailbox(&self, name: &str) -> PathBuf {
        self.team.join("inboxes").join(format!("{name}.json"))
    }

    /// Begins anew: what an earlier run left is not this one's.
    pub(super) fn begin(&self) -> io::Result<()> {
        self.remove()?;
        files::private_folder(&self.team.join("inboxes"))?;
        files::private_folder(&self.tasks)
    }

    /// Writes who is in the team.
    pub(super) fn write_config(&self, config: &Value) -> io::Result<()> {
        put(&self.config(), &pretty(config))
    }

    /// Changes a mailbox. One that cannot be read is put aside, once, and a new one begun.
    pub(super) fn update(&self, name: &str, changes: Vec<Change>) -> io::Result<()> {
        let mut letters = self.letters(name)?;
        for change in changes {
            match change {
                Change::Came(letter) => letters.push(Letter { epoch: self.epoch.clone(), ..*letter }),
                Change::Read => letters.iter_mut().for_each(|letter| letter.read = true),
            }
        }
        self.write(name, &letters)
    }

    /// Removes everything about the team.
    pub(super) fn remove(&self) -> io::Result<()> {
        for folder in [&self.team, &self.tasks] {
            match files::remove_folder(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn letters(&self, name: &str) -> io::Result<Vec<Letter>> {
        let path = self.mailbox(name);
        let bytes = match files::read(&path, LARGEST) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(letters) => Ok(letters),
            Err(_) => {
                files::link(&path, &path.with_extension(format!("json.unreadable-{}", self.epoch)))?;
                files::remove(&path)?;
                Ok(Vec::new())
            }
        }
    }

    fn write(&self, name: &str, letters: &[Letter]) -> io::Result<()> {
        put(&self.mailbox(name), &serde_json::to_vec_pretty(letters)?)
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// Puts a whole file in place of what is there, so that nobody sees half of it.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match files::create(path, bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Spot::follow(path)?.replace(bytes),
        created => created,
    }
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(text: &str) -> Change {
        Change::Came(Box::new(Letter::new("m1", text, None)))
    }

    #[test]
    fn letters_are_kept_and_marked_and_a_spoilt_mailbox_is_put_aside_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path(), "crew", "e1");
        folder.begin().unwrap();
        folder.update("team-lead", vec![came("hello"), Change::Read, came("again")]).unwrap();
        let kept = folder.letters("team-lead").unwrap();
        let told: Vec<_> =
            kept.iter().map(|letter| (letter.text.as_str(), letter.read, letter.epoch.as_str())).collect();
        assert_eq!(told, [("hello", true, "e1"), ("again", false, "e1")]);
        std::fs::write(folder.mailbox("team-lead"), "[{").unwrap();
        for _ in 0..2 {
            folder.update("team-lead", vec![came("after")]).unwrap();
        }
        assert_eq!(folder.letters("team-lead").unwrap().len(), 2);
        let names = files::names(&folder.team.join("inboxes"), 10);
        assert_eq!(names.iter().filter(|name| name.contains("unreadable")).count(), 1, "{names:?}");
        folder.remove().unwrap();
        assert!(!folder.team.exists() && !folder.tasks.exists());
        folder.remove().unwrap();
    }

    #[test]
    fn a_new_run_does_not_find_the_letters_of_an_old_one() {
        let home = tempfile::tempdir().unwrap();
        let old = Folder::new(home.path(), "crew", "e1");
        old.begin().unwrap();
        old.update("m1", vec![came("old")]).unwrap();
        let new = Folder::new(home.path(), "crew", "e2");
        new.begin().unwrap();
        assert_eq!(new.letters("m1").unwrap(), Vec::new());
    }
}
