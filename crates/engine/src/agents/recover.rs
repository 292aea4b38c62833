//! Brings back an agent of an earlier run: what it has said and heard is in its transcript, and what it was is in the file
//! beside that.

use std::path::{Path, PathBuf};

use super::sidecar::{self, Sidecar};
use super::{Agents, Definition};
use crate::files::{self, Kind};
use crate::session::Past;
use crate::tools::Trouble;

/// An agent that can go on.
pub(super) struct Recovered {
    /// Its name.
    pub(super) id: String,
    /// Its kind, as it is now.
    pub(super) definition: Definition,
    /// What was said so far.
    pub(super) past: Past,
    /// What else is known of it.
    pub(super) about: Sidecar,
}

/// What the files say of an agent.
struct Found {
    id: String,
    about: Sidecar,
    past: Past,
}

impl Agents {
    /// The agent of this id or name that an earlier run of this session has left; none if there was no such agent.
    pub(super) async fn recover(&self, to: &str) -> Result<Option<Recovered>, Trouble> {
        let Some(folder) = sidecar::place(&self.home) else { return Ok(None) };
        let wanted = to.to_owned();
        let found = files::aside(move || find(&folder, &wanted)).await;
        let found = found.unwrap_or_else(|error| Err(error.to_string()));
        let refused = |why: String| Trouble::Refused(format!("The agent {to} cannot go on: {why}"));
        let Some(Found { id, about, past }) = found.map_err(refused)? else { return Ok(None) };
        let definition = self.kind(&about.agent_type)?.clone();
        let unreadable = past.loaded.repairs.unreadable;
        if unreadable > 0 {
            let told = format!(
                "{unreadable} unreadable lines of the transcript of the agent {id} were passed over."
            );
            self.home.outbox.warn(told).await;
        }
        Ok(Some(Recovered { id, definition, past, about }))
    }
}

/// Reads what is kept of an agent. Touches the disk.
fn find(folder: &Path, to: &str) -> Result<Option<Found>, String> {
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    let is_kept = |id: &str| !matches!(files::kind(&transcript(folder, id)), Ok(Kind::Missing));
    let id = match can_be_id && is_kept(to) {
        true => to.to_owned(),
        false => match Sidecar::id_named(folder, to) {
            Some(id) => id,
            None => return Ok(None),
        },
    };
    let about = Sidecar::read(folder, &id)?;
    let path = transcript(folder, &id);
    let past = Past::of_subagent(&path).map_err(|error| error.to_string())?;
    match past.loaded.has_begun() {
        true => Ok(Some(Found { id, about, past })),
        false => Err(format!(
            "its transcript {} has nothing in it that can be read. Start a new agent instead.",
            path.display()
        )),
    }
}

fn transcript(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("agent-{id}.jsonl"))
}
