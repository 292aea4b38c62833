//! Session store in files, with the layout of the official engine: `<project>/<session>.jsonl`, and
//! `<project>/<session>/<subpath>.jsonl` for subagents.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use whimbrel_os::files;
use whimbrel_wire::RawJson;

use crate::append_file::{self, AppendFile};
use crate::entry::{IdKey, TranscriptEntry};
use crate::line_appender::{Durability, LineAppender};
use crate::line_reader::{LineReader, ScannedLine};
use crate::lock::{self, TranscriptLock};
use crate::store::{
    ListedSession, SessionStore, StoreError, StoreKey, StoredSummary, SummarizedSession, check_last_entry,
    to_single_line, uuid_of,
};

/// Bytes read of head and tail for a summary.
const SUMMARY_BYTES: u64 = 64 * 1024;

/// Bytes at the end that are searched first for the last line with a uuid.
const TAIL_BYTES: u64 = 64 * 1024;

/// Stores transcripts in files.
#[derive(Debug, Clone)]
pub struct FileStore {
    /// Directory of all projects.
    projects: PathBuf,
}

impl FileStore {
    /// Creates a store in a directory such as `~/.claude/projects`.
    pub fn new(projects: impl Into<PathBuf>) -> Self {
        Self { projects: projects.into() }
    }

    fn project_dir(&self, project: &str) -> Result<PathBuf, StoreError> {
        Ok(self.projects.join(check_component(project)?))
    }

    /// Directory of the subpaths of a session.
    fn session_dir(&self, project: &str, session: &str) -> Result<PathBuf, StoreError> {
        Ok(self.project_dir(project)?.join(check_component(session)?))
    }

    fn path(&self, key: &StoreKey) -> Result<PathBuf, StoreError> {
        let mut path = self.session_dir(&key.project, &key.session)?;
        if let Some(subpath) = &key.subpath {
            let parts = Path::new(subpath).components();
            if subpath.is_empty() || !parts.clone().all(|part| matches!(part, Component::Normal(_))) {
                return Err(StoreError::BadKey(subpath.clone()));
            }
            path.extend(parts);
        }
        // Not `set_extension`, because a name may contain dots.
        path.as_mut_os_string().push(".jsonl");
        Ok(path)
    }
}

/// Checks that a name is a single path component.
fn check_component(name: &str) -> Result<&str, StoreError> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(StoreError::BadKey(name.to_owned())),
    }
}

#[async_trait]
impl SessionStore for FileStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if entries.is_empty() {
            return Ok(());
        }
        let entries = entries.to_vec();
        files::run_blocking(move || append_lines(LineAppender::new(path, Durability::Turn), &entries))
            .await??;
        Ok(())
    }

    async fn append_after(
        &self,
        key: &StoreKey,
        last: Option<&str>,
        entries: &[RawJson],
    ) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if entries.is_empty() {
            return Ok(());
        }
        let (last, entries) = (last.map(str::to_owned), entries.to_vec());
        files::run_blocking(move || append_locked(&path, last.as_deref(), &entries)).await?
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        let path = self.path(key)?;
        let read =
            files::run_blocking(move || append_file::open_for_reading(&path).and_then(read_lines)).await?;
        match read {
            Ok(lines) => Ok(Some(lines)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&self, project: &str) -> Result<Vec<ListedSession>, StoreError> {
        let dir = self.project_dir(project)?;
        Ok(files::run_blocking(move || list_sessions(&dir)).await??)
    }

    async fn summaries(&self, project: &str) -> Result<Vec<SummarizedSession>, StoreError> {
        let dir = self.project_dir(project)?;
        let sessions = files::run_blocking(move || {
            let summarize = |listed: ListedSession| {
                let file = append_file::open_for_reading(&dir.join(format!("{}.jsonl", listed.session)))?;
                Ok(SummarizedSession { listed, summary: read_summary(file)? })
            };
            list_sessions(&dir)?.into_iter().map(summarize).collect::<io::Result<Vec<_>>>()
        });
        Ok(sessions.await??)
    }

    async fn summary(&self, project: &str, session: &str) -> Result<Option<StoredSummary>, StoreError> {
        let path = self.path(&StoreKey::session(project, session))?;
        let read = files::run_blocking(move || append_file::open_for_reading(&path).and_then(read_summary));
        match read.await? {
            Ok(summary) => Ok(Some(summary)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let below =
            key.subpath.is_none().then(|| self.session_dir(&key.project, &key.session)).transpose()?;
        files::run_blocking(move || {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            below.map_or(Ok(()), |dir| files::remove_dir(&dir))
        })
        .await??;
        Ok(())
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>, StoreError> {
        let dir = self.session_dir(project, session)?;
        Ok(files::run_blocking(move || list_subpaths(&dir)).await??)
    }
}

fn append_lines(mut file: LineAppender, entries: &[RawJson]) -> io::Result<()> {
    for entry in entries {
        file.append(format!("{}\n", to_single_line(entry)).into_bytes())?;
    }
    file.end_turn()
}

/// Appends under the lock of the transcript, if its last line is the expected one.
fn append_locked(path: &Path, last: Option<&str>, entries: &[RawJson]) -> Result<(), StoreError> {
    let mut lock =
        TranscriptLock::acquire_or_create_within(path, lock::BUSY_TIMEOUT).map_err(io::Error::from)?;
    // After a conflict a deleted transcript stays deleted.
    lock.remove_if_empty();
    let last_stored = last_uuid(append_file::open_for_reading(path)?)?;
    let mut stored = None;
    let is_stored = |uuid: &str| {
        let uuids = match &mut stored {
            Some(uuids) => uuids,
            None => stored.insert(read_uuids(path)?),
        };
        Ok::<_, StoreError>(uuids.contains(uuid))
    };
    check_last_entry(entries, last, last_stored.as_deref(), is_stored)?;
    let mut lock = Some(lock);
    let open = move |_: &Path| {
        let lock = lock.take().ok_or_else(|| io::Error::other("the transcript cannot be opened again"))?;
        Ok(Box::new(lock) as Box<dyn AppendFile>)
    };
    Ok(append_lines(LineAppender::with_opener(path.to_owned(), Durability::Turn, Box::new(open)), entries)?)
}

fn read_uuids(path: &Path) -> io::Result<HashSet<String>> {
    let lines = append_file::open_for_reading(path).and_then(read_lines)?;
    Ok(lines.iter().filter_map(uuid_of).collect())
}

/// The uuid of the last line that has one, searched from the end.
fn last_uuid(mut file: fs::File) -> io::Result<Option<String>> {
    let length = file.metadata()?.len();
    let mut size = TAIL_BYTES;
    loop {
        let start = length.saturating_sub(size);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        // The first line may be cut.
        let first =
            if start == 0 { 0 } else { tail.iter().position(|byte| *byte == b'\n').unwrap_or(tail.len()) };
        let found = read_lines(&tail[first..])?.iter().rev().find_map(uuid_of);
        if found.is_some() || start == 0 {
            return Ok(found);
        }
        size *= 4;
    }
}

/// Reads the valid lines; exact duplicates of a line with a uuid are dropped.
fn read_lines(file: impl Read) -> io::Result<Vec<RawJson>> {
    let mut lines = LineReader::new(BufReader::new(file));
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while let Some(step) = lines.read_line()? {
        let (ScannedLine::Complete(_, bytes) | ScannedLine::Unterminated(_, bytes)) = step else { continue };
        let whole = TranscriptEntry::parse(bytes).and_then(|(_, at)| std::str::from_utf8(&bytes[at..]).ok());
        let line = whole.and_then(|text| RawJson::parse(text).ok());
        let is_new = |line: &RawJson| uuid_of(line).is_none() || seen.insert(IdKey::new(line.as_str()));
        found.extend(line.filter(is_new));
    }
    Ok(found)
}

/// Summarizes a transcript by its head and tail.
fn read_summary(mut file: fs::File) -> io::Result<StoredSummary> {
    let length = file.metadata()?.len();
    let mut summary = StoredSummary::default();
    summary.add_lines(&read_lines(Read::by_ref(&mut file).take(SUMMARY_BYTES))?);
    if length > SUMMARY_BYTES {
        file.seek(SeekFrom::Start(length.saturating_sub(SUMMARY_BYTES).max(SUMMARY_BYTES)))?;
        summary.add_lines(&read_lines(file)?);
    }
    Ok(summary)
}

fn list_sessions(dir: &Path) -> io::Result<Vec<ListedSession>> {
    let mut found = Vec::new();
    for entry in dir_entries(dir)? {
        let Some(session) =
            entry.file_name().to_str().and_then(|name| name.strip_suffix(".jsonl")).map(str::to_owned)
        else {
            continue;
        };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            found.push(ListedSession {
                session,
                modified_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
    found.sort_by(|one, other| (other.modified_ms, &other.session).cmp(&(one.modified_ms, &one.session)));
    Ok(found)
}

/// Lists the transcripts below a directory, at any depth.
fn list_subpaths(dir: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in dir_entries(&next)? {
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file()
                && let Some(name) = path.strip_prefix(dir).ok().and_then(Path::to_str)
            {
                found.extend(name.strip_suffix(".jsonl").map(str::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Entries of a directory; none if it does not exist.
fn dir_entries(dir: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}
