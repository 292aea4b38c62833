//! Session files on disk: listing, finding, renaming, tagging and deleting them.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whimbrel_os::files::{self, FileKind};
use whimbrel_os::links::resolve_links;

use crate::lock::{self, LockError, SessionLock, TranscriptLock};
use crate::metadata::MetadataEntry;
use crate::paths::{MAX_KEY_LEN, has_other_cwd, is_session_id, project_key};
use crate::summary::{SessionSummary, unix_millis};
use crate::{append_file, checkpoint};

/// Name of the newest session.
pub(crate) const LAST_KEYWORD: &str = "last";
/// Shortest id prefix that is accepted.
const MIN_ID_PREFIX: usize = 4;

/// All sessions below a configuration directory.
#[derive(Debug, Clone)]
pub struct SessionFiles {
    config_dir: PathBuf,
}

/// A session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    pub id: String,
    /// Path of the transcript.
    pub path: PathBuf,
    pub modified: SystemTime,
    /// Size in bytes.
    pub size: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No session matches.
    #[error("There is no session {0}. `whimbrel sessions` lists all sessions.")]
    Unknown(String),
    /// Several sessions match.
    #[error("{0} matches several sessions: {1}. Give more of the id.")]
    Ambiguous(String, String),
    /// The name is neither an id, a prefix of one, nor `last`.
    #[error("{0:?} is not a session: give an id, at least its first four characters, or `last`.")]
    InvalidName(String),
    /// The directory cannot be read.
    #[error("The sessions cannot be read: {0}.")]
    Unreadable(#[from] io::Error),
}

impl SessionFiles {
    pub fn new(config_dir: PathBuf) -> Self {
        Self { config_dir }
    }

    /// The directory with one directory per project.
    pub(crate) fn projects_dir(&self) -> PathBuf {
        self.config_dir.join("projects")
    }

    /// All sessions, or those of one working directory; newest first. Of files with the same id the newest is listed.
    pub fn list(&self, project: Option<&Path>) -> io::Result<Vec<SessionFile>> {
        Ok(self.newest_first(project)?.collect())
    }

    /// The same one by one. Only times are read in advance; no file is opened before its turn.
    pub fn newest_first(
        &self,
        project: Option<&Path>,
    ) -> io::Result<impl Iterator<Item = SessionFile> + use<>> {
        let dirs = self.project_dirs(project)?;
        let mut files: Vec<SessionFile> = dirs.iter().flat_map(|dir| session_files_in(dir)).collect();
        files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        let (cwd, mut listed) = (project.map(resolve_links), HashSet::new());
        Ok(files.into_iter().filter(move |file| {
            let is_selected = cwd.as_ref().is_none_or(|cwd| !has_other_cwd(&file.path, cwd));
            is_selected && listed.insert(file.id.clone())
        }))
    }

    /// Directories of all projects, or of one.
    fn project_dirs(&self, project: Option<&Path>) -> io::Result<Vec<PathBuf>> {
        let root = self.projects_dir();
        let names = match files::file_kind(&root)? {
            FileKind::Missing => return Ok(Vec::new()),
            FileKind::Directory => files::entry_names(&root, usize::MAX),
            _ => return Err(io::Error::other(format!("{} is not a directory", root.display()))),
        };
        let key = project.map(|dir| project_key(&resolve_links(dir).to_string_lossy()));
        let is_selected = |name: &String| match &key {
            None => true,
            Some(key) if key.len() <= MAX_KEY_LEN => name == key,
            Some(key) => name.starts_with(&key[..=MAX_KEY_LEN]),
        };
        Ok(names.into_iter().filter(is_selected).map(|name| root.join(name)).collect())
    }

    /// Finds a session by its id, a prefix of it, or `last`.
    pub fn find(&self, name: &str) -> Result<SessionFile, FindError> {
        let name = name.trim().to_lowercase();
        let is_id = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if name != LAST_KEYWORD && (!is_id || name.len() < MIN_ID_PREFIX) {
            return Err(FindError::InvalidName(name));
        }
        if name == LAST_KEYWORD {
            let has_summary = |stored: &SessionFile| matches!(stored.summary(), Ok(Some(_)));
            return self.newest_first(None)?.find(has_summary).ok_or(FindError::Unknown(name));
        }
        if is_session_id(&name)
            && let Some(stored) = self.find_exact(&name)?
        {
            return Ok(stored);
        }
        let mut sessions = self.list(None)?;
        sessions.retain(|stored| stored.id.to_lowercase().starts_with(&name));
        match sessions.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(FindError::Unknown(name)),
            several => {
                let ids: Vec<&str> = several.iter().take(5).map(|stored| stored.id.as_str()).collect();
                Err(FindError::Ambiguous(name, ids.join(", ")))
            }
        }
    }

    /// Finds a session by its id in the usual capitalizations, without listing the others.
    fn find_exact(&self, id: &str) -> io::Result<Option<SessionFile>> {
        let dirs = self.project_dirs(None)?;
        let ids = [id.to_ascii_lowercase(), id.to_ascii_uppercase()];
        let files =
            dirs.iter().flat_map(|dir| ids.iter().filter_map(|id| session_file(dir, &format!("{id}.jsonl"))));
        Ok(files.max_by_key(|stored| stored.modified))
    }

    /// Deletes a session with its subagent transcripts, tool output and checkpoints. The transcript is deleted last, so
    /// that an interrupted deletion can be repeated. A locked session is an error.
    pub fn delete(&self, stored: &SessionFile) -> io::Result<()> {
        self.delete_within(stored, lock::BUSY_TIMEOUT)
    }

    fn delete_within(&self, stored: &SessionFile, timeout: Duration) -> io::Result<()> {
        let _lock = match files::file_kind(&stored.path)? {
            FileKind::File(_) => {
                Some(TranscriptLock::acquire_within(&stored.path, timeout).map_err(lock_error_to_io)?)
            }
            _ => None,
        };
        files::remove_dir(&checkpoint::checkpoint_dir(&self.config_dir, &stored.id))?;
        files::remove_dir(&stored.path.with_extension(""))?;
        files::remove_file(&stored.path)
    }
}

fn lock_error_to_io(error: LockError) -> io::Error {
    match error {
        LockError::Busy(busy) => {
            io::Error::new(io::ErrorKind::ResourceBusy, format!("it is {busy}; end that process first"))
        }
        LockError::Io(error) => error,
    }
}

fn session_files_in(dir: &Path) -> Vec<SessionFile> {
    files::entry_names(dir, usize::MAX).iter().filter_map(|name| session_file(dir, name)).collect()
}

/// The session file with this name, if it is one.
fn session_file(dir: &Path, name: &str) -> Option<SessionFile> {
    let id = name.strip_suffix(".jsonl").filter(|id| is_session_id(id))?;
    let path = dir.join(name);
    match files::file_kind(&path) {
        Ok(FileKind::File(stamp)) => {
            Some(SessionFile { id: id.to_owned(), path, modified: stamp.modified, size: stamp.size })
        }
        _ => None,
    }
}

impl SessionFile {
    /// Summary for lists; `None` if there is nothing to identify the session by.
    pub fn summary(&self) -> io::Result<Option<SessionSummary>> {
        SessionSummary::read(&self.id, &self.path)
    }

    /// Summary of a session that is named by its id; its text may be empty.
    pub(super) fn found_summary(&self) -> io::Result<SessionSummary> {
        Ok(self.summary()?.unwrap_or_else(|| SessionSummary {
            session_id: self.id.clone(),
            last_modified: unix_millis(self.modified),
            file_size: Some(self.size),
            ..SessionSummary::default()
        }))
    }

    /// Whether an engine has locked the session.
    pub fn lock(&self) -> SessionLock {
        lock::inspect(&self.path)
    }

    /// Sets the title. Blank titles are an error.
    pub fn rename(&self, title: &str) -> io::Result<()> {
        self.append(&MetadataEntry::title(title, &self.id)?)
    }

    /// Sets or removes the tag.
    pub fn tag(&self, tag: Option<&str>) -> io::Result<()> {
        self.append(&MetadataEntry::tag(tag, &self.id)?)
    }

    /// Appends an entry in one write. The file is never created: a deleted session stays deleted.
    fn append(&self, label: &MetadataEntry<'_>) -> io::Result<()> {
        let mut file = append_file::open_regular(OpenOptions::new().append(true), &self.path)?;
        let end = files::read_head_tail(&self.path, 1)?.tail;
        // The last line may be unterminated.
        let mut line = if end.is_empty() || end == b"\n" { Vec::new() } else { vec![b'\n'] };
        serde_json::to_writer(&mut line, label)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const ONE: &str = "11111111-2222-4333-8444-555555555555";
    const TWO: &str = "11111111-aaaa-4333-8444-555555555555";

    /// A configuration directory with sessions given as project, id, text and age.
    fn session_files(sessions: &[(&str, &str, &str, u64)]) -> (tempfile::TempDir, SessionFiles) {
        let dir = tempfile::tempdir().unwrap();
        for (project, id, text, age) in sessions {
            let path = dir.path().join("projects").join(project).join(format!("{id}.jsonl"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let time = fs::metadata(&path).unwrap().modified().unwrap() - Duration::from_secs(*age);
            OpenOptions::new().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        let session_files = SessionFiles::new(dir.path().to_path_buf());
        (dir, session_files)
    }

    fn prompt(text: &str) -> String {
        format!("{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n")
    }

    #[test]
    fn sessions_are_listed_newest_first_and_found_by_prefix() {
        let hi = prompt("hi");
        let (dir, session_files) = session_files(&[
            ("-w", ONE, &hi, 20),
            ("-x", TWO, &hi, 10),
            ("-x", ONE, &hi, 30),
            ("-w", "notes", "", 0),
        ]);
        symlink("gone", dir.path().join(format!("projects/-w/{}.jsonl", TWO.replace('1', "3")))).unwrap();
        let ids =
            |sessions: Vec<SessionFile>| sessions.into_iter().map(|stored| stored.id).collect::<Vec<_>>();
        assert_eq!(ids(session_files.list(None).unwrap()), [TWO, ONE]);
        assert_eq!(ids(session_files.list(Some(Path::new("/w"))).unwrap()), [ONE]);
        assert_eq!(ids(session_files.list(Some(Path::new("/gone"))).unwrap()), [""; 0]);
        assert_eq!(
            session_files.find(ONE).unwrap().path,
            dir.path().join(format!("projects/-w/{ONE}.jsonl"))
        );
        assert_eq!(session_files.find("11111111-A").unwrap().id, TWO);
        assert_eq!(session_files.find("last").unwrap().id, TWO);
        for (name, words) in [
            ("1111", "several"),
            ("9999", "no session"),
            ("11", "is not a session"),
            ("../x", "is not a session"),
        ] {
            let error = session_files.find(name).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        let missing = SessionFiles::new(dir.path().join("gone"));
        assert_eq!(missing.list(None).unwrap(), []);
    }

    #[test]
    fn no_file_is_read_before_its_turn() {
        let in_dir = |dir: &str| {
            format!(
                "{{\"type\":\"user\",\"cwd\":\"{dir}\",\"message\":{{\"role\":\"user\",\"content\":\"hi\"}}}}\n"
            )
        };
        let (_dir, session_files) =
            session_files(&[("-w-x", ONE, &in_dir("/w/x"), 20), ("-w-x", TWO, &in_dir("/w/x"), 10)]);
        let listed = || session_files.newest_first(Some(Path::new("/w/x"))).unwrap();
        assert_eq!(listed().count(), 2);
        let mut newest = listed();
        assert_eq!(newest.next().unwrap().id, TWO);
        let older = session_files.find(ONE).unwrap();
        // A directory with the same key.
        fs::write(&older.path, in_dir("/w-x")).unwrap();
        assert_eq!(newest.next(), None, "the working directory is read now");
    }

    #[test]
    fn title_and_tag_are_appended_after_unterminated_line() {
        let (_dir, session_files) =
            session_files(&[("-w", ONE, &format!("{}{{\"type\":\"assi", prompt("hi")), 0)]);
        let stored = session_files.find(ONE).unwrap();
        stored.rename("  My\n title\u{202e} ").unwrap();
        stored.tag(Some("work")).unwrap();
        let text = fs::read_to_string(&stored.path).unwrap();
        let expected = format!(
            "{{\"type\":\"custom-title\",\"customTitle\":\"My title\",\"sessionId\":\"{ONE}\"}}\n{{\"type\":\"tag\",\"tag\":\"work\",\"sessionId\":\"{ONE}\"}}\n"
        );
        assert!(text.ends_with(&format!("assi\n{expected}")), "{text}");
        let summary = stored.summary().unwrap().unwrap();
        assert_eq!((summary.summary.as_str(), summary.tag.as_deref()), ("My title", Some("work")));
        stored.tag(None).unwrap();
        assert_eq!(stored.summary().unwrap().unwrap().tag, None);
        for text in ["", " \n", "\u{200b}"] {
            assert_eq!(stored.rename(text).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        fs::remove_file(&stored.path).unwrap();
        assert_eq!(stored.rename("late").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!stored.path.exists());
    }

    #[test]
    fn fork_has_its_own_tool_output() {
        let (dir, session_files) = session_files(&[("-w", ONE, "", 0)]);
        let old = dir.path().join(format!("projects/-w/{ONE}/tool-results"));
        fs::create_dir_all(old.join("tasks")).unwrap();
        fs::write(old.join("o1.txt"), "long").unwrap();
        fs::write(old.join("tasks/b1.output"), "longer").unwrap();
        let line = serde_json::json!({"type": "user", "uuid": "a", "parentUuid": null,
            "message": {"role": "user", "content": format!("all of it is in {}", old.join("o1.txt").display())}});
        let stored = session_files.find(ONE).unwrap();
        fs::write(&stored.path, format!("{line}\n")).unwrap();
        let elsewhere =
            serde_json::json!({"type": "content-replacement", "sessionId": ONE, "replacements": [1]});
        fs::write(&stored.path, format!("{line}\n{elsewhere}\n")).unwrap();
        let copy = stored.fork(None, None).unwrap();
        session_files.delete(&stored).unwrap();
        let text = fs::read_to_string(&copy.path).unwrap();
        let line_of_copy = elsewhere.to_string().replace(ONE, &copy.id);
        assert!(text.contains(&line_of_copy), "content replacements are copied: {text}");
        let new = copy.path.with_extension("").join("tool-results");
        assert!(text.contains(new.join("o1.txt").to_str().unwrap()) && !text.contains(old.to_str().unwrap()));
        assert_eq!(fs::read_to_string(new.join("o1.txt")).unwrap(), "long");
        assert_eq!(fs::read_to_string(new.join("tasks/b1.output")).unwrap(), "longer");
    }

    #[test]
    fn locked_session_is_not_deleted() {
        let (_dir, session_files) = session_files(&[("-w", ONE, &prompt("hi"), 0)]);
        let stored = session_files.find(ONE).unwrap();
        let lock = TranscriptLock::acquire(&stored.path).unwrap();
        let error = session_files.delete_within(&stored, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert!(stored.path.exists() && lock.is_at_path());
        drop(lock);
        session_files.delete(&stored).unwrap();
        assert_eq!(files::entry_names(stored.path.parent().unwrap(), 9), [""; 0]);
    }

    #[test]
    fn delete_removes_everything_of_one_session() {
        let (dir, session_files) =
            session_files(&[("-w", ONE, &prompt("hi"), 0), ("-w", TWO, &prompt("ho"), 0)]);
        let below = [
            format!("projects/-w/{ONE}/subagents"),
            format!("file-history/{ONE}"),
            format!("file-history/{TWO}"),
        ];
        for name in &below {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("x"), "x").unwrap();
        }
        let stored = session_files.find(ONE).unwrap();
        session_files.delete(&stored).unwrap();
        session_files.delete(&stored).unwrap();
        let left: Vec<bool> = below.iter().map(|name| dir.path().join(name).exists()).collect();
        assert_eq!(left, [false, false, true]);
        assert_eq!(files::entry_names(&dir.path().join("projects/-w"), 9), [format!("{TWO}.jsonl")]);
    }
}
