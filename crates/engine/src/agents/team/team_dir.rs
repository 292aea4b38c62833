//! Files of a team: configuration and mailboxes. They are a record for users and other programs; the agents
//! themselves exchange messages in memory.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_os::files::{self, FileHandle};

use super::message::TeamMessage;

const MAX_MAILBOX_BYTES: u64 = 16 * 1024 * 1024;

pub(super) enum MailboxChange {
    Received(Box<TeamMessage>),
    /// All messages were read.
    Read,
}

/// Directories of a team.
#[derive(Debug, Clone)]
pub(super) struct TeamDir {
    dir: PathBuf,
    tasks_dir: PathBuf,
    epoch: String,
}

impl TeamDir {
    pub(super) fn new(config: &Path, team: &str, epoch: &str) -> Self {
        Self {
            dir: config.join("teams").join(team),
            tasks_dir: config.join("tasks").join(team),
            epoch: epoch.to_owned(),
        }
    }

    /// The file that lists the members.
    pub(super) fn config_path(&self) -> PathBuf {
        self.dir.join("config.json")
    }

    /// The file that is locked while a session leads the team.
    pub(super) fn lock_path(&self) -> PathBuf {
        let mut path = self.dir.clone().into_os_string();
        path.push(".lock");
        path.into()
    }

    fn mailbox_path(&self, name: &str) -> PathBuf {
        self.dir.join("inboxes").join(format!("{name}.json"))
    }

    /// Removes files of an earlier run and creates the directories.
    pub(super) fn create(&self) -> io::Result<()> {
        self.remove()?;
        files::create_private_dir(&self.dir.join("inboxes"))?;
        files::create_private_dir(&self.tasks_dir)
    }

    pub(super) fn write_config(&self, config: &Value) -> io::Result<()> {
        write_atomically(&self.config_path(), &to_pretty_json(config))
    }

    /// Applies changes to a mailbox. An unreadable mailbox is renamed and started anew.
    pub(super) fn update_mailbox(&self, name: &str, changes: Vec<MailboxChange>) -> io::Result<()> {
        let mut messages = self.read_mailbox(name)?;
        for change in changes {
            match change {
                MailboxChange::Received(message) => {
                    messages.push(TeamMessage { epoch: self.epoch.clone(), ..*message });
                }
                MailboxChange::Read => messages.iter_mut().for_each(|message| message.read = true),
            }
        }
        self.write_mailbox(name, &messages)
    }

    /// Removes all files of the team.
    pub(super) fn remove(&self) -> io::Result<()> {
        for dir in [&self.dir, &self.tasks_dir] {
            match files::remove_dir(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn read_mailbox(&self, name: &str) -> io::Result<Vec<TeamMessage>> {
        let path = self.mailbox_path(name);
        let bytes = match files::read(&path, MAX_MAILBOX_BYTES) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(messages) => Ok(messages),
            Err(_) => {
                files::link_or_copy(&path, &path.with_extension(format!("json.unreadable-{}", self.epoch)))?;
                files::remove_file(&path)?;
                Ok(Vec::new())
            }
        }
    }

    fn write_mailbox(&self, name: &str, messages: &[TeamMessage]) -> io::Result<()> {
        write_atomically(&self.mailbox_path(name), &serde_json::to_vec_pretty(messages)?)
    }
}

fn to_pretty_json(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

/// Creates or atomically replaces a file.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match files::create(path, bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            FileHandle::for_path(path)?.replace(bytes)
        }
        created => created,
    }
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(text: &str) -> MailboxChange {
        MailboxChange::Received(Box::new(TeamMessage::new("m1", text, None)))
    }

    #[test]
    fn mailboxes_are_updated_and_unreadable_ones_set_aside() {
        let home = tempfile::tempdir().unwrap();
        let dir = TeamDir::new(home.path(), "crew", "e1");
        dir.create().unwrap();
        dir.update_mailbox("team-lead", vec![received("hello"), MailboxChange::Read, received("again")])
            .unwrap();
        let stored = dir.read_mailbox("team-lead").unwrap();
        let shown: Vec<_> = stored
            .iter()
            .map(|message| (message.text.as_str(), message.read, message.epoch.as_str()))
            .collect();
        assert_eq!(shown, [("hello", true, "e1"), ("again", false, "e1")]);
        std::fs::write(dir.mailbox_path("team-lead"), "[{").unwrap();
        for _ in 0..2 {
            dir.update_mailbox("team-lead", vec![received("after")]).unwrap();
        }
        assert_eq!(dir.read_mailbox("team-lead").unwrap().len(), 2);
        let names = files::entry_names(&dir.dir.join("inboxes"), 10);
        assert_eq!(names.iter().filter(|name| name.contains("unreadable")).count(), 1, "{names:?}");
        dir.remove().unwrap();
        assert!(!dir.dir.exists() && !dir.tasks_dir.exists());
        dir.remove().unwrap();
    }

    #[test]
    fn new_run_starts_with_empty_mailboxes() {
        let home = tempfile::tempdir().unwrap();
        let old = TeamDir::new(home.path(), "crew", "e1");
        old.create().unwrap();
        old.update_mailbox("m1", vec![received("old")]).unwrap();
        let new = TeamDir::new(home.path(), "crew", "e2");
        new.create().unwrap();
        assert_eq!(new.read_mailbox("m1").unwrap(), Vec::new());
    }
}
