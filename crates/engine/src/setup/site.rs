//! Which session it is, where it works and where it is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use whimbrel_wire::options::Options;

use super::in_store::StoredBeginning;
use super::resume::{self, Origin, Writes};
use super::start::working_directory;
use super::{SetupError, history, home, tools};
use crate::agenda::Agenda;
use crate::session::{Durability, Keeping, Past, Place};
use crate::settings;
use crate::workspace::Workspace;

/// What a session stands on before anything is read for it.
pub(super) struct Site {
    pub(super) session: String,
    pub(super) workspace: Arc<Workspace>,
    pub(super) place: Option<Place>,
    pub(super) keeping: Keeping,
    pub(super) past: Option<Past>,
    pub(super) origin: Origin,
    pub(super) leaves_nothing: bool,
    pub(super) agenda: Agenda,
    pub(super) warnings: Vec<String>,
}

/// Finds it, for a session whose beginning may be known. Touches the disk.
pub(super) fn site(
    options: &Options,
    env: &BTreeMap<String, String>,
    stored: Option<StoredBeginning>,
) -> Result<Site, SetupError> {
    let root = working_directory(options)?;
    let mut keeping = resume::keeping(options, env)?;
    let home::Kept { place: kept, lost } = home::place(env, &root);
    let leaves_nothing = options.persist_session == Some(false) || stored.is_some();
    let writes = if leaves_nothing || lost.is_some() { Writes::Nothing } else { Writes::Everything };
    // Whoever names no place wants none, unless everything is to be recorded.
    let is_owed = kept.is_none() && keeping.durability == Durability::Strict;
    let nowhere = || is_owed.then(|| "neither HOME nor CLAUDE_CONFIG_DIR is set".into());
    let lost = lost.or_else(nowhere).filter(|_| !leaves_nothing);
    keeping.lost.clone_from(&lost);
    let resume::Beginning { session, place, past, origin, forked_from, warning } = match stored {
        Some(stored) => stored.take(&mut keeping),
        None => resume::begin(options, kept.as_ref(), writes, &keeping)?,
    };
    let spill = spill(place.as_ref(), env, &session);
    let config = settings::config_folder(env);
    let kept_in = config.as_deref().filter(|_| place.is_some());
    let checkpoints = history::checkpoints(options, kept_in, &spill, &session);
    let not_copied = history::inherit(forked_from.as_deref(), checkpoints.as_ref(), config.as_deref());
    let agenda = tools::agenda(kept_in, env, &session);
    let workspace = Arc::new(Workspace::new(root, spill, env.clone()).with_checkpoints(checkpoints));
    let warnings = lost.as_deref().map(home::warning).into_iter().chain(warning).chain(not_copied).collect();
    Ok(Site { session, workspace, place, keeping, past, origin, leaves_nothing, agenda, warnings })
}

/// Where long tool output goes: beside the transcript, or to the temporary folder when none is kept.
fn spill(place: Option<&Place>, env: &BTreeMap<String, String>, session: &str) -> PathBuf {
    match place {
        Some(place) => place.tool_results(session),
        None => home::temporary(env).join(format!("whimbrel-{session}")),
    }
}
