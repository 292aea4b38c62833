//! Covers: empty folders and files in place of protected names that are missing, so that a command cannot create them.
//!
//! Covers are real entries of the file system, made when a session starts its first command and removed when it ends. A
//! `journal` per session notes each of them, so that the next session on this machine removes those of a session that
//! was killed. `place` keeps a swapped folder from leading elsewhere. Sessions that work in the same folder share covers: the last one removes them.

mod journal;
pub(crate) mod place;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::resolve::MissingName;
use journal::{Cover, FolderLock, Journal, Line};
use place::Place;

/// Returns the usual folder of the journals of a user; `None` if the environment names no home directory.
pub fn journal_folder<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("whimbrel/sandbox"))
}

/// The covers of a session. They are removed when the value is dropped.
#[derive(Debug)]
pub struct Covers {
    folder: PathBuf,
    journal: Journal,
    counter: u64,
}

impl Covers {
    /// Opens the covers of a new session and removes those that killed sessions left behind. `folder` is the folder of
    /// the journals of all sessions of this user; it is made if it is missing.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = &std::fs::canonicalize(folder)?;
        let lock = FolderLock::take(folder)?;
        for dead in Journal::find_dead(folder)? {
            remove_covers(&dead, &Journal::find_live(folder, &dead)?);
            dead.delete();
        }
        let journal = Journal::create(folder)?;
        drop(lock);
        Ok(Self { folder: folder.clone(), journal, counter: 0 })
    }

    /// The folder of the journals, by its real path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the entry at a path is a cover of this session.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.journal.covers().iter().any(|cover| cover.path == path && is_in_place(cover))
    }

    /// Removes the covers, which no command needs now.
    pub(crate) fn remove(&mut self) -> io::Result<()> {
        let _lock = FolderLock::take(&self.folder)?;
        remove_entries(&self.journal, &Journal::find_live(&self.folder, &self.journal)?);
        self.journal.forget_covers()
    }

    /// Covers missing names and returns the paths that exist now. A name for which no cover can be made, because the
    /// folder is not ours, is left out: the command cannot create it either.
    pub fn make(&mut self, names: &[MissingName]) -> io::Result<Vec<PathBuf>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = FolderLock::take(&self.folder)?;
        let mut made = Vec::new();
        for name in names {
            if self.make_one(name)? {
                made.push(name.path.clone());
            }
        }
        Ok(made)
    }

    /// Takes part in the covers of other live sessions among these paths, so that they stay until this session ends.
    pub fn share(&mut self, folder: &Path) -> io::Result<()> {
        let own = self.journal.covers();
        let _lock = FolderLock::take(&self.folder)?;
        for other in Journal::find_live(&self.folder, &self.journal)? {
            for cover in other.covers() {
                if cover.path.starts_with(folder) && !own.contains(&cover) && is_in_place(&cover) {
                    self.journal.append(&Line::Made(cover))?;
                }
            }
        }
        Ok(())
    }

    /// Makes the folder for temporary files of the session below `parent`. It is removed with the covers.
    pub fn make_scratch(&mut self, parent: &Path) -> io::Result<PathBuf> {
        let path = std::fs::canonicalize(parent)?.join(self.journal.scratch_name());
        self.journal.append(&Line::Scratch(path.clone()))?;
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// The entry is made under a name of its own and noted before it gets its final name: at no time is there an entry
    /// that no journal can tell from one of the user. An error of the file system means that there is no cover.
    fn make_one(&mut self, name: &MissingName) -> io::Result<bool> {
        let Some(place) = Place::open(&name.path) else { return Ok(false) };
        self.counter += 1;
        let own_name = format!("{}-{}", self.journal.temporary_prefix(), self.counter);
        let temporary = Place { name: own_name.into(), ..place };
        let path = name.path.with_file_name(&temporary.name);
        self.journal.append(&Line::Temporary(path))?;
        let Some(cover) = temporary.create(name.kind).and_then(|()| temporary.identify(&name.path)) else {
            return Ok(false);
        };
        self.journal.append(&Line::Made(cover))?;
        let is_named = temporary.rename(&name.path, name.kind).is_ok();
        if !is_named {
            temporary.remove_empty();
        }
        Ok(is_named)
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        // Without the lock the covers stay until the next session starts.
        let Ok(_lock) = FolderLock::take(&self.folder) else { return };
        let Ok(live) = Journal::find_live(&self.folder, &self.journal) else { return };
        remove_covers(&self.journal, &live);
        self.journal.delete();
    }
}

/// Returns whether the entry at the path is the one that was made.
fn is_in_place(cover: &Cover) -> bool {
    Place::open(&cover.path).and_then(|place| place.identify(&cover.path)).as_ref() == Some(cover)
}

/// Removes the covers of a session that has ended, and its folder for temporary files.
fn remove_covers(journal: &Journal, live: &[Journal]) {
    remove_entries(journal, live);
    for scratch in journal.scratch_folders() {
        // Its name is random and noted before it is made: nothing else has it. What stays takes only space.
        let _ = Place::open(&scratch).map(|place| place.remove());
    }
}

/// Removes the covers that are still what they were, and that no live session shares.
fn remove_entries(journal: &Journal, live: &[Journal]) {
    for temporary in journal.temporaries() {
        if let Some(place) = Place::open(&temporary) {
            place.remove_empty();
        }
    }
    let shared: Vec<Cover> = live.iter().flat_map(Journal::covers).collect();
    for cover in journal.covers().iter().filter(|cover| !shared.contains(cover)) {
        if is_in_place(cover)
            && let Some(place) = Place::open(&cover.path)
        {
            place.remove_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::CoverKind;

    fn name(path: &Path, kind: CoverKind) -> MissingName {
        MissingName { path: path.to_owned(), kind }
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn covers_are_removed_unless_they_were_used() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        let mut covers = Covers::open(&journals).unwrap();
        let names = [
            name(&work.join(".vscode"), CoverKind::Folder),
            name(&work.join(".idea"), CoverKind::Folder),
            name(&work.join("config"), CoverKind::File),
        ];
        assert_eq!(covers.make(&names).unwrap().len(), 3);
        assert_eq!(entries(&work), [".idea", ".vscode", "config"]);
        std::fs::write(work.join(".vscode/tasks.json"), "{}").unwrap();
        drop(covers);
        assert_eq!(entries(&work), [".vscode"]);
        assert_eq!(entries(&journals), ["lock"]);
    }

    #[test]
    fn dead_journal_is_worked_off_but_replaced_entries_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        let mut covers = Covers::open(&journals).unwrap();
        covers
            .make(&[name(&work.join("a"), CoverKind::Folder), name(&work.join("b"), CoverKind::Folder)])
            .unwrap();
        // The user replaces one, by an entry that is as empty. The other inode must stay in use, so that it is not given
        // to the new folder.
        std::fs::rename(work.join("b"), work.join("moved")).unwrap();
        std::fs::create_dir(work.join("b")).unwrap();
        let temporary = work.join(format!("{}-9", covers.journal.temporary_prefix()));
        covers.journal.append(&Line::Temporary(temporary.clone())).unwrap();
        std::fs::create_dir(temporary).unwrap();
        covers.journal.release_for_test();
        std::mem::forget(covers);

        drop(Covers::open(&journals).unwrap());
        assert_eq!(entries(&work), ["b", "moved"]);
    }

    #[test]
    fn folder_for_temporary_files_goes_with_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        for is_killed in [false, true] {
            let mut covers = Covers::open(&journals).unwrap();
            let scratch = covers.make_scratch(&work).unwrap();
            std::fs::create_dir_all(scratch.join("a/b")).unwrap();
            if is_killed {
                covers.journal.release_for_test();
                std::mem::forget(covers);
                drop(Covers::open(&journals).unwrap());
            } else {
                drop(covers);
            }
            assert!(entries(&work).is_empty(), "{is_killed}");
        }
    }

    #[test]
    fn forged_journals_remove_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir_all(work.join("kept/deep")).unwrap();
        std::fs::create_dir_all(work.join("whimbrel-x/deep")).unwrap();
        std::fs::create_dir(&journals).unwrap();
        for name in ["x.covers", "0123456789abcdef.covers"] {
            let line = |path: &str| serde_json::to_string(&Line::Scratch(work.join(path))).unwrap();
            let empty = serde_json::to_string(&Line::Temporary(work.join("kept/deep"))).unwrap();
            let text = format!("{}\n{}\n{empty}\n", line("kept"), line("whimbrel-x"));
            std::fs::write(journals.join(name), text).unwrap();
        }
        drop(Covers::open(&journals).unwrap());
        assert!(work.join("kept/deep").exists() && work.join("whimbrel-x/deep").exists());
        assert_eq!(entries(&journals), ["lock"]);
    }

    #[test]
    fn removed_covers_are_made_again_and_leave_a_short_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        let mut covers = Covers::open(&journals).unwrap();
        let scratch = covers.make_scratch(folder.path()).unwrap();
        for _ in 0..3 {
            covers.make(&[name(&work.join("a"), CoverKind::Folder)]).unwrap();
            assert_eq!((entries(&work), covers.journal.covers().len()), (vec!["a".to_owned()], 1));
            covers.remove().unwrap();
            assert!(entries(&work).is_empty() && covers.journal.covers().is_empty() && scratch.exists());
        }
        drop(covers);
        assert!(!scratch.exists());
    }

    #[test]
    fn shared_covers_stay_until_the_last_session_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, work) = (folder.path().join("journals"), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        let mut first = Covers::open(&journals).unwrap();
        first.make(&[name(&work.join("a"), CoverKind::Folder)]).unwrap();
        let mut second = Covers::open(&journals).unwrap();
        second.share(&work).unwrap();
        drop(first);
        assert_eq!(entries(&work), ["a"]);
        drop(second);
        assert!(entries(&work).is_empty());
    }
}
