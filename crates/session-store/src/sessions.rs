//! Stored sessions, on disk or in a store: list, read, search, rename, tag, fork and delete.

use std::io;
use std::path::{Path, PathBuf};

use whimbrel_os::links::resolve_links;
use whimbrel_os::{files, ids};
use whimbrel_wire::RawJson;

use crate::import::{self, ImportedMessage};
use crate::load::LoadRange;
use crate::lock::SessionLock;
use crate::metadata::MetadataEntry;
use crate::paths::{SUBAGENTS, is_session_id, project_key};
use crate::resume_error::ResumeError;
use crate::resumed_session::ResumedSession;
use crate::search::{SearchHit, SearchQuery};
use crate::session_files::{FindError, SessionFile, SessionFiles};
use crate::store::{FileStore, SessionStore, SharedStore, StoreError, StoreKey, SummarizedSession};
use crate::summary::{SessionSummary, unix_millis};
use crate::transcript_reader::{self, Message, TranscriptReader};

/// Stored sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions {
    backend: Backend,
}

#[derive(Debug, Clone)]
enum Backend {
    Disk { session_files: SessionFiles, project: Option<PathBuf> },
    Store { store: SharedStore, project: String },
}

/// A session that matches a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// Id of the session.
    pub session: String,
    /// Matching messages.
    pub hits: Vec<SearchHit>,
}

/// Options for forking a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// The last message to copy; `None` copies all.
    pub at: Option<String>,
    /// Title of the fork; `None` derives one from the session.
    pub title: Option<String>,
}

/// Error of an operation on stored sessions.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// No such session.
    #[error("{0}")]
    Find(#[from] FindError),
    /// I/O error, or an invalid title or tag.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Error of the store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The session cannot be loaded or forked.
    #[error("{0}")]
    Resume(#[from] ResumeError),
}

type SessionsResult<T> = Result<T, SessionsError>;

impl Sessions {
    /// Sessions on disk below a configuration directory such as `~/.claude`: all, or those of one working directory. A
    /// session can be named by a prefix of its id, and the newest by `last`.
    pub fn on_disk(config: impl Into<PathBuf>, project: Option<&Path>) -> Self {
        let session_files = SessionFiles::new(config.into());
        Self { backend: Backend::Disk { session_files, project: project.map(Path::to_owned) } }
    }

    /// Sessions of one working directory in a store.
    pub fn in_store(store: impl Into<SharedStore>, project: &Path) -> Self {
        let project = project_key(&resolve_links(project).to_string_lossy());
        Self { backend: Backend::Store { store: store.into(), project } }
    }

    /// Summaries, newest first. Sessions without anything to identify them are left out.
    pub async fn list(&self) -> SessionsResult<Vec<SessionSummary>> {
        match &self.backend {
            Backend::Store { store, project } => {
                let sessions = store.summaries(project).await?;
                Ok(sessions.into_iter().filter_map(to_session_summary).collect())
            }
            Backend::Disk { .. } => self.newest(usize::MAX).await,
        }
    }

    /// Summaries of the `count` newest sessions, newest first. Unlike [`Sessions::list`] it reads only these.
    pub async fn newest(&self, count: usize) -> SessionsResult<Vec<SessionSummary>> {
        self.list_while(|_| true, count).await
    }

    /// Summaries of the sessions that were written at this time or later, newest first. A host that repeats the call gives
    /// the greatest [`last_modified`](SessionSummary::last_modified) that it has seen, in milliseconds since 1970. Only
    /// these sessions are read. Deleted sessions are not reported.
    pub async fn changed_since(&self, unix_ms: u64) -> SessionsResult<Vec<SessionSummary>> {
        self.list_while(move |modified_ms| modified_ms >= unix_ms, usize::MAX).await
    }

    /// The summary of a session; `None` if it does not exist. Its text is empty if there is nothing to identify the
    /// session by.
    pub async fn find(&self, session: &str) -> SessionsResult<Option<SessionSummary>> {
        match &self.backend {
            Backend::Store { store, project } => {
                let Some(summary) = store.summary(project, session).await? else { return Ok(None) };
                let listed = store.list(project).await?.into_iter().find(|listed| listed.session == session);
                Ok(listed.map(|listed| SummarizedSession { listed, summary }).map(to_found_summary))
            }
            Backend::Disk { session_files, .. } => {
                let (session_files, session) = (session_files.clone(), session.to_owned());
                let found = files::run_blocking(move || match session_files.find(&session) {
                    Ok(stored) => Ok(Some(stored.found_summary()?)),
                    Err(FindError::Unknown(_)) => Ok(None),
                    Err(error) => Err(SessionsError::Find(error)),
                });
                found.await?
            }
        }
    }

    /// Whether an engine has a session open, and which. A store does not know.
    pub async fn lock(&self, session: &str) -> SessionsResult<SessionLock> {
        match &self.backend {
            Backend::Store { .. } => {
                Err(StoreError::Unsupported("tell which engine has a session open").into())
            }
            Backend::Disk { session_files, .. } => {
                let (session_files, session) = (session_files.clone(), session.to_owned());
                Ok(files::run_blocking(move || session_files.find(&session).map(|stored| stored.lock()))
                    .await??)
            }
        }
    }

    /// At most `count` summaries, newest first, as long as the time of the last write is accepted.
    async fn list_while(
        &self,
        is_listed: impl Fn(u64) -> bool + Send + 'static,
        count: usize,
    ) -> SessionsResult<Vec<SessionSummary>> {
        match &self.backend {
            Backend::Store { store, project } => {
                let mut found = Vec::new();
                for listed in store.list(project).await? {
                    if found.len() >= count || !is_listed(listed.modified_ms) {
                        break;
                    }
                    // It may have been deleted meanwhile.
                    let summary = store.summary(project, &listed.session).await?;
                    let session = summary.map(|summary| SummarizedSession { listed, summary });
                    found.extend(session.and_then(to_session_summary));
                }
                Ok(found)
            }
            Backend::Disk { session_files, project } => {
                let (session_files, project) = (session_files.clone(), project.clone());
                let read = move || {
                    let newest = session_files.newest_first(project.as_deref())?;
                    let listed = newest.take_while(|stored| is_listed(unix_millis(stored.modified)));
                    Ok(listed.filter_map(|stored| stored.summary().ok()?).take(count).collect())
                };
                files::run_blocking(read).await?
            }
        }
    }

    /// The messages of a session, in order.
    pub async fn messages(&self, session: &str) -> SessionsResult<Vec<Message>> {
        match &self.backend {
            Backend::Store { .. } => Ok(transcript_reader::messages_from_lines(&self.lines(session).await?)),
            Backend::Disk { session_files, .. } => {
                let path = session_files.find(session)?.path;
                let read = move || TranscriptReader::open(&path)?.messages().collect::<io::Result<_>>();
                Ok(files::run_blocking(read).await??)
            }
        }
    }

    /// The messages of a subagent of a session, in order; none if it left no transcript. The id is that in the structured
    /// result of the call that started it.
    pub async fn subagent_messages(&self, session: &str, agent: &str) -> SessionsResult<Vec<Message>> {
        let subpath = format!("{SUBAGENTS}/agent-{agent}");
        let lines = match &self.backend {
            Backend::Store { store, project } => {
                store.load(&StoreKey::session(project, session).with_subpath(subpath)).await?
            }
            Backend::Disk { session_files, .. } => {
                let (store, key) = store_of_file(&session_files.find(session)?);
                store.load(&key.with_subpath(subpath)).await?
            }
        };
        Ok(transcript_reader::subagent_messages_from_lines(&lines.unwrap_or_default()))
    }

    /// All lines of a session's transcript, verbatim.
    pub async fn lines(&self, session: &str) -> SessionsResult<Vec<RawJson>> {
        let unknown = || FindError::Unknown(session.to_owned());
        match &self.backend {
            Backend::Store { store, project } => {
                let key = StoreKey::session(project, session);
                Ok(store.load(&key).await?.ok_or_else(unknown)?)
            }
            Backend::Disk { session_files, .. } => {
                let (store, key) = store_of_file(&session_files.find(session)?);
                Ok(store.load(&key).await?.ok_or_else(unknown)?)
            }
        }
    }

    /// Searches all sessions and returns at most `max_hits` hits per session. A blank query matches nothing.
    pub async fn search(&self, words: &str, max_hits: usize) -> SessionsResult<Vec<SearchResult>> {
        let Some(query) = SearchQuery::new(words) else { return Ok(Vec::new()) };
        let mut results = Vec::new();
        match &self.backend {
            Backend::Store { store, project } => {
                for listed in store.list(project).await? {
                    let lines = store.load(&StoreKey::session(project, listed.session.as_str())).await?;
                    let hits = query.search_lines(&lines.unwrap_or_default(), max_hits);
                    results.push(SearchResult { session: listed.session, hits });
                }
            }
            Backend::Disk { .. } => {
                let all = self.disk_sessions()?;
                let search = move || {
                    let hits =
                        |stored: &SessionFile| query.search_file(&stored.path, max_hits).unwrap_or_default();
                    all.into_iter()
                        .map(|stored| SearchResult { hits: hits(&stored), session: stored.id })
                        .collect()
                };
                results = files::run_blocking(search).await?;
            }
        }
        results.retain(|result| !result.hits.is_empty());
        Ok(results)
    }

    /// Sets the title. Blank titles are an error.
    pub async fn rename(&self, session: &str, title: &str) -> SessionsResult<()> {
        match &self.backend {
            Backend::Disk { session_files, .. } => Ok(session_files.find(session)?.rename(title)?),
            Backend::Store { .. } => {
                self.append(session, &MetadataEntry::title(title, session)?.to_line()?).await
            }
        }
    }

    /// Sets or removes the tag.
    pub async fn tag(&self, session: &str, tag: Option<&str>) -> SessionsResult<()> {
        match &self.backend {
            Backend::Disk { session_files, .. } => Ok(session_files.find(session)?.tag(tag)?),
            Backend::Store { .. } => {
                self.append(session, &MetadataEntry::tag(tag, session)?.to_line()?).await
            }
        }
    }

    /// Copies the conversation to a new session and returns its id. The source is not changed.
    pub async fn fork(&self, session: &str, options: ForkOptions) -> SessionsResult<String> {
        match &self.backend {
            Backend::Disk { session_files, .. } => {
                let stored = session_files.find(session)?;
                let forked = move || stored.fork(options.at.as_deref(), options.title.as_deref());
                Ok(files::run_blocking(forked).await??.id)
            }
            Backend::Store { store, project } => {
                let (key, new) = (StoreKey::session(project, session), ids::new_uuid());
                let until = LoadRange { last_message: options.at, ..LoadRange::default() };
                let stored = ResumedSession::from_store(&**store, &key, &until).await?;
                let mut stored = stored.ok_or_else(|| FindError::Unknown(session.to_owned()))?;
                let untitled = stored.resumed.loaded.recorded.title.is_none();
                let mut lines = stored.fork_lines(session, &new)?;
                if lines.is_empty() {
                    return Err(ResumeError::Empty(session.to_owned()).into());
                }
                if let Some(title) = options.title.or_else(|| fork_title(&lines).filter(|_| untitled)) {
                    lines.push(MetadataEntry::title(&title, &new)?.to_line()?);
                }
                store.append(&StoreKey::session(project, new.as_str()), &lines).await?;
                Ok(new)
            }
        }
    }

    /// Stores a conversation of another program as a new session of a working directory, whose id must be a UUID. It can be
    /// resumed like any other. A session that exists is an error.
    pub async fn import(
        &self,
        cwd: &Path,
        session: &str,
        messages: Vec<ImportedMessage>,
    ) -> SessionsResult<()> {
        if !is_session_id(session) {
            return Err(FindError::InvalidName(session.to_owned()).into());
        }
        let cwd = resolve_links(cwd);
        let lines = import::render_lines(session, &cwd, messages).map_err(io::Error::from)?;
        let project = project_key(&cwd.to_string_lossy());
        let result = match &self.backend {
            Backend::Store { store, project } => {
                store.append_after(&StoreKey::session(project, session), None, &lines).await
            }
            Backend::Disk { session_files, .. } => {
                let store = FileStore::new(session_files.projects_dir());
                store.append_after(&StoreKey::session(project, session), None, &lines).await
            }
        };
        Ok(result?)
    }

    /// Deletes a session with its subagent transcripts, tool output and checkpoints.
    pub async fn delete(&self, session: &str) -> SessionsResult<()> {
        match &self.backend {
            Backend::Store { store, project } => {
                Ok(store.delete(&StoreKey::session(project, session)).await?)
            }
            Backend::Disk { session_files, .. } => {
                let (session_files, stored) = (session_files.clone(), session_files.find(session)?);
                Ok(files::run_blocking(move || session_files.delete(&stored)).await??)
            }
        }
    }

    fn disk_sessions(&self) -> SessionsResult<Vec<SessionFile>> {
        match &self.backend {
            Backend::Disk { session_files, project } => Ok(session_files.list(project.as_deref())?),
            Backend::Store { .. } => Ok(Vec::new()),
        }
    }

    /// Appends a line. A missing session is an error; it is not created.
    async fn append(&self, session: &str, line: &RawJson) -> SessionsResult<()> {
        let Backend::Store { store, project } = &self.backend else { return Ok(()) };
        let key = StoreKey::session(project, session);
        if store.load(&key).await?.is_none() {
            return Err(FindError::Unknown(session.to_owned()).into());
        }
        Ok(store.append(&key, std::slice::from_ref(line)).await?)
    }
}

/// The file store that contains a transcript, and the key in it.
fn store_of_file(stored: &SessionFile) -> (FileStore, StoreKey) {
    let dir = stored.path.parent().unwrap_or(Path::new("/"));
    let project = dir.file_name().unwrap_or_default().to_string_lossy();
    (FileStore::new(dir.parent().unwrap_or(dir)), StoreKey::session(project, stored.id.as_str()))
}

/// Title of a fork without a given title.
fn fork_title(lines: &[RawJson]) -> Option<String> {
    let mut summary = crate::store::StoredSummary::default();
    summary.add_lines(lines);
    summary.text().map(|text| format!("{text} (fork)"))
}

/// Converts the summary of a store to that of lists.
fn to_session_summary(session: SummarizedSession) -> Option<SessionSummary> {
    session.summary.text()?;
    Some(to_found_summary(session))
}

/// The same, also without anything to identify the session by.
fn to_found_summary(session: SummarizedSession) -> SessionSummary {
    let SummarizedSession { listed, summary } = session;
    SessionSummary {
        session_id: listed.session,
        summary: summary.text().unwrap_or_default().to_owned(),
        last_modified: listed.modified_ms,
        file_size: None,
        custom_title: summary.title().map(str::to_owned),
        first_prompt: summary.prompt().map(str::to_owned),
        git_branch: summary.git_branch.filter(|branch| !branch.is_empty()),
        cwd: summary.cwd,
        tag: summary.tag,
        created_at: summary.created_at,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, SystemTime};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    use super::*;

    fn id(number: u64) -> String {
        format!("{number:08x}-0000-4000-8000-000000000000")
    }

    /// Names of the files that were opened since the last call.
    fn opened(watch: &Inotify) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            match watch.read_events() {
                Ok(events) => names.extend(
                    events.into_iter().filter_map(|event| Some(event.name?.to_string_lossy().into_owned())),
                ),
                Err(Errno::EAGAIN) => break,
                Err(error) => panic!("{error}"),
            }
        }
        names.sort();
        names.dedup();
        names
    }

    #[tokio::test]
    async fn only_the_returned_sessions_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let time = |number: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + number);
        for number in 0..100 {
            let path = project.join(format!("{}.jsonl", id(number)));
            let prompt = r#"{"type":"user","message":{"role":"user","content":"hi"}}"#;
            std::fs::write(&path, prompt).unwrap();
            let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            file.set_modified(time(number)).unwrap();
        }
        let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        watch.add_watch(&project, AddWatchFlags::IN_OPEN).unwrap();
        let sessions = Sessions::on_disk(dir.path(), None);
        let files = |ids: &[SessionSummary]| {
            let mut files: Vec<String> =
                ids.iter().map(|found| format!("{}.jsonl", found.session_id)).collect();
            files.sort();
            files
        };

        let newest = sessions.newest(3).await.unwrap();
        assert_eq!(
            newest.iter().map(|found| &found.session_id).collect::<Vec<_>>(),
            [&id(99), &id(98), &id(97)]
        );
        assert_eq!(opened(&watch), files(&newest));

        let changed = sessions.changed_since(unix_millis(time(95))).await.unwrap();
        assert_eq!(changed.len(), 5);
        assert_eq!(opened(&watch), files(&changed));

        let found = sessions.find(&id(7)).await.unwrap().unwrap();
        assert_eq!(opened(&watch), files(&[found]));
    }
}
