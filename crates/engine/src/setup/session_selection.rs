//! Selects the session: a new, a resumed or a forked one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use whimbrel_os::files::{self, FileKind};
use whimbrel_os::ids;
use whimbrel_policy::mode::is_kept_on_resume;
use whimbrel_session_store::load::LoadRange;
use whimbrel_session_store::lock::{self, LockError, TranscriptLock};
use whimbrel_session_store::paths::is_session_id;
use whimbrel_session_store::resume_error::ResumeError;
use whimbrel_session_store::summary::SessionSummary;
use whimbrel_session_store::{Durability, Mirror, Persistence, ResumedSession, TranscriptDir};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use crate::engine::Engine;
use crate::setup::session_request::{SessionPlace, working_directory};
use crate::setup::{SessionRequest, Setup, SetupError, store_resume};

/// Time to wait for another engine that holds the session.
const BUSY_TIMEOUT: Duration = lock::BUSY_TIMEOUT;

/// How a session started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A new session.
    #[default]
    New,
    /// Continues an existing session.
    Resumed,
    /// Continues a copy of another session.
    Forked,
}

impl SessionOrigin {
    /// Name for hooks (`source` of SessionStart).
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "startup",
            Self::Resumed => "resume",
            Self::Forked => "fork",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptWrites {
    /// Entries are written.
    Enabled,
    /// Nothing is written, by request or because it cannot be; an existing session can still be loaded.
    Disabled,
}

/// The selected session.
#[derive(Debug)]
pub(super) struct ResolvedSession {
    pub(super) session: String,
    /// Directory of its transcript; `None` if it is not stored.
    pub(super) transcript_dir: Option<TranscriptDir>,
    pub(super) resumed: Option<ResumedSession>,
    pub(super) origin: SessionOrigin,
    /// The session that it was forked from.
    pub(super) forked_from: Option<String>,
    /// Warning about damage in the loaded transcript.
    pub(super) warning: Option<String>,
}

/// Resolves a setup. If another engine holds the session, waits for it: hosts resume a session as soon as they have its
/// last result, while the old engine is still shutting down.
pub async fn resolve(engine: &Engine, request: SessionRequest) -> Result<Setup, SetupError> {
    if request.store.is_some() {
        return store_resume::resolve(engine, request).await;
    }
    match Setup::resolve(engine, request.clone()) {
        Err(SetupError::Busy { busy, .. }) => {
            busy.wait(BUSY_TIMEOUT).await;
            Setup::resolve(engine, request)
        }
        result => result,
    }
}

pub(super) fn resolve_persistence(
    options: &Options,
    env: &BTreeMap<String, String>,
) -> Result<Persistence, SetupError> {
    let durability = Durability::parse(env.get(Durability::VARIABLE).map(String::as_str));
    Ok(Persistence {
        durability: durability.map_err(SetupError::Invalid)?,
        mirror: match options.session_mirror {
            true => Mirror::for_host(env.get("CLAUDE_CODE_ENTRYPOINT").map(String::as_str)),
            false => Mirror::Off,
        },
        store_writer: None,
        unavailable: None,
    })
}

/// Permission mode of the resumed session, if it survives a resume.
pub(super) fn resumed_mode(resumed: Option<&ResumedSession>) -> Option<PermissionMode> {
    let name = resumed?.loaded.recorded.mode.clone()?;
    let mode = serde_json::from_value(serde_json::Value::String(name)).ok();
    mode.filter(|mode| is_kept_on_resume(*mode))
}

/// Selects the session and loads it if it is resumed. `transcript_dir` is the directory of the project's sessions.
pub(super) fn resolve_session(
    options: &Options,
    transcript_dir: Option<&TranscriptDir>,
    writes: TranscriptWrites,
    persistence: &Persistence,
) -> Result<ResolvedSession, SetupError> {
    check_options(options)?;
    let dir = transcript_dir.filter(|_| writes == TranscriptWrites::Enabled).cloned();
    match requested_session(options, transcript_dir)? {
        None => new_session(options, dir),
        Some(found) if options.fork_session => fork_session(options, &found, dir, persistence),
        Some(found) => {
            let FoundSession { session, transcript_dir } = &found;
            let resumed = match writes {
                TranscriptWrites::Enabled => {
                    ResumedSession::resume(transcript_dir, session, &load_range(options))
                }
                TranscriptWrites::Disabled => {
                    ResumedSession::read(transcript_dir, session, &load_range(options))
                }
            };
            let resumed = resumed.map_err(|error| to_setup_error(session, error))?;
            let FoundSession { session, transcript_dir } = found;
            let dir = (writes == TranscriptWrites::Enabled).then_some(transcript_dir);
            Ok(ResolvedSession {
                warning: repair_warning(&resumed),
                session,
                transcript_dir: dir,
                resumed: Some(resumed),
                origin: SessionOrigin::Resumed,
                forked_from: None,
            })
        }
    }
}

/// An existing session.
struct FoundSession {
    session: String,
    transcript_dir: TranscriptDir,
}

/// Checks for options that contradict each other.
pub(super) fn check_options(options: &Options) -> Result<(), SetupError> {
    let is_resume = options.resume.is_some() || options.continue_conversation;
    let has_range = options.resume_session_at.is_some() || options.resume_drops_turn.is_some();
    match options {
        Options { session_id: Some(_), fork_session: false, .. } if is_resume => {
            Err(SetupError::MissingOption {
                option: "session_id",
                required: "fork_session",
                reason: "a session that is resumed or continued keeps its id.",
            })
        }
        Options { resume: None, .. } if has_range => Err(SetupError::MissingOption {
            option: if options.resume_session_at.is_some() {
                "resume_session_at"
            } else {
                "resume_drops_turn"
            },
            required: "resume",
            reason: "it selects how much of that session is used.",
        }),
        _ => Ok(()),
    }
}

/// The session to resume, if one was requested.
fn requested_session(
    options: &Options,
    transcript_dir: Option<&TranscriptDir>,
) -> Result<Option<FoundSession>, SetupError> {
    let Some(session) = &options.resume else {
        let Some(transcript_dir) = transcript_dir.filter(|_| options.continue_conversation) else {
            return Ok(None);
        };
        return Ok(newest_session(transcript_dir, &working_directory(options)?));
    };
    if !is_session_id(session) {
        return find_by_title(session, transcript_dir, &working_directory(options)?).map(Some);
    }
    match transcript_dir.and_then(|dir| dir.find_session(session)) {
        Some((dir, session)) => Ok(Some(FoundSession { session, transcript_dir: dir })),
        None => Err(unknown_session_error(session)),
    }
}

/// The session of this directory with a title, whatever its case. Reads the ends of all transcripts.
fn find_by_title(
    title: &str,
    transcript_dir: Option<&TranscriptDir>,
    dir: &Path,
) -> Result<FoundSession, SetupError> {
    let wanted = title.trim().to_lowercase();
    let has_title = |transcript_dir: &TranscriptDir, session: &String| {
        let summary = SessionSummary::read(session, &transcript_dir.transcript(session)).ok().flatten();
        summary.and_then(|summary| summary.custom_title).is_some_and(|title| title.to_lowercase() == wanted)
            && !transcript_dir.belongs_to_other_dir(session, dir)
    };
    let find = |transcript_dir: &TranscriptDir| {
        let sessions = transcript_dir.sessions().into_iter();
        sessions.filter(|session| has_title(transcript_dir, session)).collect::<Vec<_>>()
    };
    let sessions = transcript_dir.filter(|_| !wanted.is_empty()).map(find).unwrap_or_default();
    match (transcript_dir, sessions.as_slice()) {
        (Some(transcript_dir), [session]) => {
            Ok(FoundSession { session: session.clone(), transcript_dir: transcript_dir.clone() })
        }
        (_, []) => Err(SetupError::Invalid(format!(
            "No conversation found with the title {title:?} in this directory, and it is no session ID. `whimbrel \
                sessions` lists all sessions."
        ))),
        (_, several) => Err(SetupError::Invalid(format!(
            "Several sessions of this directory have the title {title:?}: {}. Resume one by its ID.",
            several.join(", ")
        ))),
    }
}

/// Checks that `--resume` is a session id, by which alone a session in a store is found.
pub(super) fn check_id(session: &str) -> Result<(), SetupError> {
    let reason = || format!("must be the id of a session, a UUID, but is {session:?}.");
    if is_session_id(session) {
        Ok(())
    } else {
        Err(SetupError::InvalidOption { option: "resume", reason: reason() })
    }
}

pub(super) fn unknown_session_error(session: &str) -> SetupError {
    SetupError::NoSuchSession { session: session.to_owned() }
}

pub(super) fn id_taken_error(session: &str) -> SetupError {
    SetupError::SessionExists { session: session.to_owned(), place: SessionPlace::Here }
}

/// The newest session of this directory that has messages.
fn newest_session(transcript_dir: &TranscriptDir, dir: &Path) -> Option<FoundSession> {
    let is_candidate = |session: &String| {
        ResumedSession::has_messages(transcript_dir, session)
            && !transcript_dir.belongs_to_other_dir(session, dir)
    };
    let session = transcript_dir.sessions().into_iter().find(is_candidate)?;
    Some(FoundSession { session, transcript_dir: transcript_dir.clone() })
}

pub(super) fn load_range(options: &Options) -> LoadRange {
    LoadRange {
        last_message: options.resume_session_at.clone(),
        dropped_prompt: options.resume_drops_turn.clone(),
    }
}

fn new_session(
    options: &Options,
    transcript_dir: Option<TranscriptDir>,
) -> Result<ResolvedSession, SetupError> {
    let session = new_id(options)?;
    let resumed = match (&options.session_id, &transcript_dir) {
        (Some(_), Some(transcript_dir)) => {
            let lock = claim_id(transcript_dir, &session)?;
            check_id_unused_elsewhere(options, transcript_dir, &session)?;
            Some(ResumedSession { lock, ..ResumedSession::default() })
        }
        // A generated id is not in use.
        _ => None,
    };
    Ok(ResolvedSession {
        session,
        transcript_dir,
        resumed,
        origin: SessionOrigin::New,
        forked_from: None,
        warning: None,
    })
}

fn fork_session(
    options: &Options,
    found: &FoundSession,
    transcript_dir: Option<TranscriptDir>,
    persistence: &Persistence,
) -> Result<ResolvedSession, SetupError> {
    let session = new_id(options)?;
    let FoundSession { session: old, transcript_dir: from } = found;
    let mut resumed =
        ResumedSession::read(from, old, &load_range(options)).map_err(|error| to_setup_error(old, error))?;
    if let Some(transcript_dir) = &transcript_dir {
        check_id_unused_elsewhere(options, transcript_dir, &session)?;
        resumed =
            resumed.fork(from, old, transcript_dir, &session, persistence.mirror).map_err(
                |error| match error {
                    ResumeError::Copy(_, error) if error.kind() == ErrorKind::AlreadyExists => {
                        id_taken_error(&session)
                    }
                    error => to_setup_error(old, error),
                },
            )?;
    }
    Ok(ResolvedSession {
        warning: repair_warning(&resumed),
        session,
        transcript_dir,
        resumed: Some(resumed),
        origin: SessionOrigin::Forked,
        forked_from: Some(old.clone()),
    })
}

pub(super) fn new_id(options: &Options) -> Result<String, SetupError> {
    match &options.session_id {
        None => Ok(ids::new_uuid()),
        Some(id) if is_session_id(id) => Ok(id.clone()),
        Some(id) => Err(SetupError::InvalidOption {
            option: "session_id",
            reason: format!("must be a UUID, but is {id:?}."),
        }),
    }
}

/// Checks that a given id is not in use in another project.
fn check_id_unused_elsewhere(
    options: &Options,
    transcript_dir: &TranscriptDir,
    session: &str,
) -> Result<(), SetupError> {
    match options.session_id.is_some() && transcript_dir.find_id_conflict(session).is_some() {
        true => {
            Err(SetupError::SessionExists { session: session.to_owned(), place: SessionPlace::Elsewhere })
        }
        false => Ok(()),
    }
}

/// Reserves a given id with a lock; it must not be in use.
fn claim_id(transcript_dir: &TranscriptDir, session: &str) -> Result<Option<TranscriptLock>, SetupError> {
    let path = transcript_dir.transcript(session);
    match TranscriptLock::claim(&path) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(id_taken_error(session)),
        Err(LockError::Busy(busy)) => Err(SetupError::Busy { session: session.to_owned(), busy }),
        // If nothing can be written, the session runs without storage and reports it.
        Err(LockError::Io(_)) if matches!(files::file_kind(&path), Ok(FileKind::Missing) | Err(_)) => {
            Ok(None)
        }
        Err(LockError::Io(_)) => Err(id_taken_error(session)),
    }
}

pub(super) fn to_setup_error(session: &str, error: ResumeError) -> SetupError {
    match error {
        ResumeError::Busy(busy) => SetupError::Busy { session: session.to_owned(), busy },
        ResumeError::Load(_)
        | ResumeError::Copy(..)
        | ResumeError::Empty(_)
        | ResumeError::Title(_)
        | ResumeError::Store(_) => SetupError::Invalid(error.to_string()),
    }
}

pub(super) fn repair_warning(resumed: &ResumedSession) -> Option<String> {
    resumed.loaded.repairs.warning()
}

#[cfg(test)]
mod tests;
