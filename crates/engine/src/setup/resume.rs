//! Which session it is: a new one, an older one that goes on, or a copy of one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use whimbrel_policy::mode::is_kept_on_resume;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use crate::engine::Engine;
use crate::files::{self, FileKind};
use crate::ids;
use crate::session::load::LoadRange;
use crate::session::lock::{self, TranscriptLock, LockError};
use crate::session::resume::ResumeError;
use crate::session::paths::is_session_id;
use crate::session::{Durability, Persistence, Mirror, ResumedSession, ProjectDir};
use crate::setup::start::working_directory;
use crate::setup::{Setup, SetupError, Start, store_resume};

/// How long an engine that still has the session may take to leave.
const BUSY_TIMEOUT: Duration = lock::BUSY_TIMEOUT;

/// How a session came to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionOrigin {
    /// It is new.
    #[default]
    New,
    /// It goes on from where it was left.
    Resumed,
    /// It goes on from a copy of another one.
    Forked,
}

impl SessionOrigin {
    /// The name that hooks know.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "startup",
            Self::Resumed => "resume",
            Self::Forked => "fork",
        }
    }
}

/// Whether a session writes down what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptWrites {
    /// It does.
    Enabled,
    /// It is not to, or cannot; it can go on from what is there all the same.
    Disabled,
}

/// What a session begins with.
#[derive(Debug)]
pub(super) struct ResolvedSession {
    pub(super) session: String,
    /// Where it is kept; none keeps nothing.
    pub(super) project_dir: Option<ProjectDir>,
    pub(super) resumed: Option<ResumedSession>,
    pub(super) origin: SessionOrigin,
    /// The session that it is a copy of, if it is one.
    pub(super) forked_from: Option<String>,
    /// What the host should know about the past.
    pub(super) warning: Option<String>,
}

/// Resolves what was asked for. Should another engine still have the session, it is given a moment to leave: hosts go on
/// with a session as soon as they have its last result.
pub async fn resolve(engine: &Engine, start: Start) -> Result<Setup, SetupError> {
    if start.store.is_some() {
        return store_resume::resolve(engine, start).await;
    }
    match Setup::resolve(engine, start.clone()) {
        Err(SetupError::Busy { busy, .. }) => {
            busy.wait(BUSY_TIMEOUT).await;
            Setup::resolve(engine, start)
        }
        done => done,
    }
}

/// How transcripts are kept.
pub(super) fn resolve_persistence(options: &Options, env: &BTreeMap<String, String>) -> Result<Persistence, SetupError> {
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

/// The mode of a session that goes on, if it may have it again.
pub(super) fn resumed_mode(past: Option<&ResumedSession>) -> Option<PermissionMode> {
    let name = past?.loaded.facts.mode.clone()?;
    let mode = serde_json::from_value(serde_json::Value::String(name)).ok();
    mode.filter(|mode| is_kept_on_resume(*mode))
}

/// Finds out which session it is and, if it goes on, reads it back. `kept` is where sessions of this folder are.
pub(super) fn resolve_session(
    options: &Options,
    kept: Option<&ProjectDir>,
    writes: TranscriptWrites,
    keeping: &Persistence,
) -> Result<ResolvedSession, SetupError> {
    check_options(options)?;
    let place = kept.filter(|_| writes == TranscriptWrites::Enabled).cloned();
    match requested_session(options, kept)? {
        None => new_session(options, place),
        Some(found) if options.fork_session => fork_session(options, &found, place, keeping),
        Some(found) => {
            let FoundSession { session, project_dir: kept } = &found;
            let past = match writes {
                TranscriptWrites::Enabled => ResumedSession::resume(kept, session, &load_range(options)),
                TranscriptWrites::Disabled => ResumedSession::read(kept, session, &load_range(options)),
            };
            let past = past.map_err(|error| to_setup_error(session, error))?;
            let FoundSession { session, project_dir: kept } = found;
            let place = (writes == TranscriptWrites::Enabled).then_some(kept);
            Ok(ResolvedSession {
                warning: repair_warning(&past),
                session,
                project_dir: place,
                resumed: Some(past),
                origin: SessionOrigin::Resumed,
                forked_from: None,
            })
        }
    }
}

/// A session that is there.
struct FoundSession {
    session: String,
    project_dir: ProjectDir,
}

/// Options that contradict each other.
pub(super) fn check_options(options: &Options) -> Result<(), SetupError> {
    let resumes = options.resume.is_some() || options.continue_conversation;
    let cuts = options.resume_session_at.is_some() || options.resume_drops_turn.is_some();
    let text = match options {
        Options { session_id: Some(_), fork_session: false, .. } if resumes => {
            "--session-id goes with --resume or --continue only if --fork-session is given too: a session keeps its id."
        }
        Options { resume: None, .. } if cuts => {
            "--resume-session-at and --resume-drops-turn go with --resume: they say how much of that session counts."
        }
        _ => return Ok(()),
    };
    Err(SetupError::Invalid(text.into()))
}

/// The session that is asked for, if one is.
fn requested_session(options: &Options, kept: Option<&ProjectDir>) -> Result<Option<FoundSession>, SetupError> {
    let Some(session) = &options.resume else {
        let Some(kept) = kept.filter(|_| options.continue_conversation) else { return Ok(None) };
        return Ok(newest_session(kept, &working_directory(options)?));
    };
    check_id(session)?;
    match kept.and_then(|place| place.find_session(session)) {
        Some((place, session)) => Ok(Some(FoundSession { session, project_dir: place })),
        None => Err(unknown_session_error(session)),
    }
}

/// What is to be resumed must be able to name a session.
pub(super) fn check_id(session: &str) -> Result<(), SetupError> {
    let text = || format!("--resume must be the id of a session, a UUID, but is {session:?}.");
    if is_session_id(session) { Ok(()) } else { Err(SetupError::Invalid(text())) }
}

pub(super) fn unknown_session_error(session: &str) -> SetupError {
    SetupError::Invalid(format!("No conversation found with session ID: {session}"))
}

pub(super) fn id_taken_error(session: &str) -> SetupError {
    SetupError::Invalid(format!(
        "The session {session} exists already. Choose another --session-id, or go on with it by --resume."
    ))
}

/// The last session of this folder in which anything was said.
fn newest_session(place: &ProjectDir, folder: &Path) -> Option<FoundSession> {
    let is_meant =
        |session: &String| ResumedSession::has_messages(place, session) && !place.belongs_to_other_dir(session, folder);
    let session = place.sessions().into_iter().find(is_meant)?;
    Some(FoundSession { session, project_dir: place.clone() })
}

pub(super) fn load_range(options: &Options) -> LoadRange {
    LoadRange { last_message: options.resume_session_at.clone(), dropped_prompt: options.resume_drops_turn.clone() }
}

fn new_session(options: &Options, place: Option<ProjectDir>) -> Result<ResolvedSession, SetupError> {
    let session = new_id(options)?;
    let past = match (&options.session_id, &place) {
        (Some(_), Some(place)) => {
            let lock = claim_id(place, &session)?;
            check_id_unused_elsewhere(options, place, &session)?;
            Some(ResumedSession { lock, ..ResumedSession::default() })
        }
        // Nobody else can know an id that was drawn just now.
        _ => None,
    };
    Ok(ResolvedSession { session, project_dir: place, resumed: past, origin: SessionOrigin::New, forked_from: None, warning: None })
}

fn fork_session(
    options: &Options,
    found: &FoundSession,
    place: Option<ProjectDir>,
    keeping: &Persistence,
) -> Result<ResolvedSession, SetupError> {
    let session = new_id(options)?;
    let FoundSession { session: old, project_dir: from } = found;
    let mut past = ResumedSession::read(from, old, &load_range(options)).map_err(|error| to_setup_error(old, error))?;
    if let Some(place) = &place {
        check_id_unused_elsewhere(options, place, &session)?;
        past = past.fork(from, old, place, &session, keeping.mirror).map_err(|error| match error {
            ResumeError::Copy(_, error) if error.kind() == ErrorKind::AlreadyExists => id_taken_error(&session),
            error => to_setup_error(old, error),
        })?;
    }
    Ok(ResolvedSession {
        warning: repair_warning(&past),
        session,
        project_dir: place,
        resumed: Some(past),
        origin: SessionOrigin::Forked,
        forked_from: Some(old.clone()),
    })
}

pub(super) fn new_id(options: &Options) -> Result<String, SetupError> {
    match &options.session_id {
        None => Ok(ids::new_uuid()),
        Some(id) if is_session_id(id) => Ok(id.clone()),
        Some(id) => Err(SetupError::Invalid(format!("--session-id must be a UUID, but is {id:?}."))),
    }
}

/// An id that was given must not be a session's of another folder.
fn check_id_unused_elsewhere(options: &Options, place: &ProjectDir, session: &str) -> Result<(), SetupError> {
    match options.session_id.is_some() && place.is_id_used_elsewhere(session) {
        true => Err(SetupError::Invalid(format!(
            "The session {session} exists already, in another folder or in other letters. Choose another --session-id."
        ))),
        false => Ok(()),
    }
}

/// Makes an id the new session's own, if it is nobody's.
fn claim_id(place: &ProjectDir, session: &str) -> Result<Option<TranscriptLock>, SetupError> {
    let path = place.transcript(session);
    match TranscriptLock::claim(&path) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(id_taken_error(session)),
        Err(LockError::Busy(busy)) => Err(SetupError::Busy { session: session.to_owned(), busy }),
        // Where nothing can be written, the session runs all the same, and says so.
        Err(LockError::Io(_)) if matches!(files::file_kind(&path), Ok(FileKind::Missing) | Err(_)) => Ok(None),
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

/// What was lost of a past.
pub(super) fn repair_warning(past: &ResumedSession) -> Option<String> {
    past.loaded.repairs.warning()
}

#[cfg(test)]
mod tests;
