//! Which session it is: a new one, an older one that goes on, or a copy of one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use whimbrel_policy::mode::survives_resume;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use crate::engine::Engine;
use crate::files::{self, Kind};
use crate::ids;
use crate::session::load::Until;
use crate::session::lock::{self, Lock, LockError};
use crate::session::past::PastError;
use crate::session::place::is_id;
use crate::session::{Durability, Keeping, Mirror, Past, Place};
use crate::setup::start::working_directory;
use crate::setup::{Setup, SetupError, Start, in_store};

/// How long an engine that still has the session may take to leave.
const PATIENCE: Duration = lock::PATIENCE;

/// How a session came to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// It is new.
    #[default]
    Fresh,
    /// It goes on from where it was left.
    Resumed,
    /// It goes on from a copy of another one.
    Forked,
}

impl Origin {
    /// The name that hooks know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "startup",
            Self::Resumed => "resume",
            Self::Forked => "fork",
        }
    }
}

/// Whether a session writes down what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// It does.
    Everything,
    /// It is not to, or cannot; it can go on from what is there all the same.
    Nothing,
}

/// What a session begins with.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) session: String,
    /// Where it is kept; none keeps nothing.
    pub(super) place: Option<Place>,
    pub(super) past: Option<Past>,
    pub(super) origin: Origin,
    /// The session that it is a copy of, if it is one.
    pub(super) forked_from: Option<String>,
    /// What the host should know about the past.
    pub(super) warning: Option<String>,
}

/// Resolves what was asked for. Should another engine still have the session, it is given a moment to leave: hosts go on
/// with a session as soon as they have its last result.
pub async fn resolve(engine: &Engine, start: Start) -> Result<Setup, SetupError> {
    if start.store.is_some() {
        return in_store::resolve(engine, start).await;
    }
    match Setup::resolve(engine, start.clone()) {
        Err(SetupError::Busy { busy, .. }) => {
            busy.wait(PATIENCE).await;
            Setup::resolve(engine, start)
        }
        done => done,
    }
}

/// How transcripts are kept.
pub(super) fn keeping(options: &Options, env: &BTreeMap<String, String>) -> Result<Keeping, SetupError> {
    let durability = Durability::read(env.get(Durability::VARIABLE).map(String::as_str));
    Ok(Keeping {
        durability: durability.map_err(SetupError::Invalid)?,
        mirror: match options.session_mirror {
            true => Mirror::for_host(env.get("CLAUDE_CODE_ENTRYPOINT").map(String::as_str)),
            false => Mirror::Off,
        },
        courier: None,
        lost: None,
    })
}

/// The mode of a session that goes on, if it may have it again.
pub(super) fn mode(past: Option<&Past>) -> Option<PermissionMode> {
    let name = past?.loaded.facts.mode.clone()?;
    let mode = serde_json::from_value(serde_json::Value::String(name)).ok();
    mode.filter(|mode| survives_resume(*mode))
}

/// Finds out which session it is and, if it goes on, reads it back. `kept` is where sessions of this folder are.
pub(super) fn begin(
    options: &Options,
    kept: Option<&Place>,
    writes: Writes,
    keeping: &Keeping,
) -> Result<Beginning, SetupError> {
    check(options)?;
    let place = kept.filter(|_| writes == Writes::Everything).cloned();
    match wanted(options, kept)? {
        None => fresh(options, place),
        Some(found) if options.fork_session => forked(options, &found, place, keeping),
        Some(found) => {
            let Found { session, place: kept } = &found;
            let past = match writes {
                Writes::Everything => Past::resume(kept, session, &until(options)),
                Writes::Nothing => Past::read(kept, session, &until(options)),
            };
            let past = past.map_err(|error| refused(session, error))?;
            let Found { session, place: kept } = found;
            let place = (writes == Writes::Everything).then_some(kept);
            Ok(Beginning {
                warning: warning(&past),
                session,
                place,
                past: Some(past),
                origin: Origin::Resumed,
                forked_from: None,
            })
        }
    }
}

/// A session that is there.
struct Found {
    session: String,
    place: Place,
}

/// Options that contradict each other.
pub(super) fn check(options: &Options) -> Result<(), SetupError> {
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
fn wanted(options: &Options, kept: Option<&Place>) -> Result<Option<Found>, SetupError> {
    let Some(session) = &options.resume else {
        let Some(kept) = kept.filter(|_| options.continue_conversation) else { return Ok(None) };
        return Ok(newest(kept, &working_directory(options)?));
    };
    check_id(session)?;
    match kept.and_then(|place| place.holding(session)) {
        Some((place, session)) => Ok(Some(Found { session, place })),
        None => Err(unknown(session)),
    }
}

/// What is to be resumed must be able to name a session.
pub(super) fn check_id(session: &str) -> Result<(), SetupError> {
    let text = || format!("--resume must be the id of a session, a UUID, but is {session:?}.");
    if is_id(session) { Ok(()) } else { Err(SetupError::Invalid(text())) }
}

pub(super) fn unknown(session: &str) -> SetupError {
    SetupError::Invalid(format!("No conversation found with session ID: {session}"))
}

pub(super) fn taken(session: &str) -> SetupError {
    SetupError::Invalid(format!(
        "The session {session} exists already. Choose another --session-id, or go on with it by --resume."
    ))
}

/// The last session of this folder in which anything was said.
fn newest(place: &Place, folder: &Path) -> Option<Found> {
    let is_meant =
        |session: &String| Past::is_spoken(place, session) && !place.is_of_another_folder(session, folder);
    let session = place.sessions().into_iter().find(is_meant)?;
    Some(Found { session, place: place.clone() })
}

pub(super) fn until(options: &Options) -> Until {
    Until { at: options.resume_session_at.clone(), drops: options.resume_drops_turn.clone() }
}

fn fresh(options: &Options, place: Option<Place>) -> Result<Beginning, SetupError> {
    let session = new_id(options)?;
    let past = match (&options.session_id, &place) {
        (Some(_), Some(place)) => {
            let lock = claim(place, &session)?;
            check_elsewhere(options, place, &session)?;
            Some(Past { lock, ..Past::default() })
        }
        // Nobody else can know an id that was drawn just now.
        _ => None,
    };
    Ok(Beginning { session, place, past, origin: Origin::Fresh, forked_from: None, warning: None })
}

fn forked(
    options: &Options,
    found: &Found,
    place: Option<Place>,
    keeping: &Keeping,
) -> Result<Beginning, SetupError> {
    let session = new_id(options)?;
    let Found { session: old, place: from } = found;
    let mut past = Past::read(from, old, &until(options)).map_err(|error| refused(old, error))?;
    if let Some(place) = &place {
        check_elsewhere(options, place, &session)?;
        past = past.fork(from, old, place, &session, keeping.mirror).map_err(|error| match error {
            PastError::Copy(_, error) if error.kind() == ErrorKind::AlreadyExists => taken(&session),
            error => refused(old, error),
        })?;
    }
    Ok(Beginning {
        warning: warning(&past),
        session,
        place,
        past: Some(past),
        origin: Origin::Forked,
        forked_from: Some(old.clone()),
    })
}

pub(super) fn new_id(options: &Options) -> Result<String, SetupError> {
    match &options.session_id {
        None => Ok(ids::uuid()),
        Some(id) if is_id(id) => Ok(id.clone()),
        Some(id) => Err(SetupError::Invalid(format!("--session-id must be a UUID, but is {id:?}."))),
    }
}

/// An id that was given must not be a session's of another folder.
fn check_elsewhere(options: &Options, place: &Place, session: &str) -> Result<(), SetupError> {
    match options.session_id.is_some() && place.is_taken_elsewhere(session) {
        true => Err(SetupError::Invalid(format!(
            "The session {session} exists already, in another folder or in other letters. Choose another --session-id."
        ))),
        false => Ok(()),
    }
}

/// Makes an id the new session's own, if it is nobody's.
fn claim(place: &Place, session: &str) -> Result<Option<Lock>, SetupError> {
    let path = place.transcript(session);
    match Lock::claim(&path) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(taken(session)),
        Err(LockError::Busy(busy)) => Err(SetupError::Busy { session: session.to_owned(), busy }),
        // Where nothing can be written, the session runs all the same, and says so.
        Err(LockError::Io(_)) if matches!(files::kind(&path), Ok(Kind::Missing) | Err(_)) => Ok(None),
        Err(LockError::Io(_)) => Err(taken(session)),
    }
}

pub(super) fn refused(session: &str, error: PastError) -> SetupError {
    match error {
        PastError::Busy(busy) => SetupError::Busy { session: session.to_owned(), busy },
        PastError::Load(_)
        | PastError::Copy(..)
        | PastError::Empty(_)
        | PastError::Title(_)
        | PastError::Store(_) => SetupError::Invalid(error.to_string()),
    }
}

/// What was lost of a past.
pub(super) fn warning(past: &Past) -> Option<String> {
    past.loaded.repairs.warning()
}

#[cfg(test)]
mod tests;
