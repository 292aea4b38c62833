//! Brings back an agent of an earlier run: what it has said and heard is in its transcript, and what it was is in the file
//! beside that.

use std::path::{Path, PathBuf};

use whimbrel_wire::RawJson;

use super::sidecar::{self, Sidecar};
use super::{Agents, Definition};
use crate::files::{self, Kind};
use crate::session::store::StoreError;
use crate::session::{Courier, Past};
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
        let found = match (&self.home.keeping.courier, sidecar::place(&self.home)) {
            (Some(courier), _) => find_in_store(courier, &self.home.identity.session, to).await,
            (None, Some(folder)) => {
                let wanted = to.to_owned();
                let found = files::aside(move || find(&folder, &wanted)).await;
                found.unwrap_or_else(|error| Err(error.to_string()))
            }
            (None, None) => return Ok(None),
        };
        let refused = |why: String| Trouble::Refused(format!("The agent {to} cannot go on: {why}"));
        let Some(Found { id, about, past }) = found.map_err(refused)? else { return Ok(None) };
        if let Some(team) = about.team() {
            return Err(refused(format!(
                "it was a teammate in the team {team} and is gone. Start a new one."
            )));
        }
        let definition = self.kind(&about.agent_type)?.clone();
        // Without denials that it had, it would not be who it was.
        about.deny_again(&self.position.gate.rights.within(None)).map_err(refused)?;
        let unreadable = past.loaded.repairs.unreadable;
        if unreadable > 0 {
            let lines = if unreadable == 1 { "line" } else { "lines" };
            let told = format!(
                "{unreadable} unreadable {lines} of the transcript of the agent {id} were passed over."
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

/// The same for a session that a store keeps.
async fn find_in_store(courier: &Courier, session: &str, to: &str) -> Result<Option<Found>, String> {
    let failed = |error: StoreError| error.to_string();
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    if can_be_id && let Some(lines) = courier.load(session, &below(to)).await.map_err(failed)? {
        let (about, lines) = Sidecar::split(lines);
        let about = about.ok_or("the store does not say what it was. Start a new agent instead.")?;
        return read(to, about, &lines).map(Some);
    }
    // Of several that were called alike, the last is meant; a store does not tell which that is, so any will do.
    for subpath in courier.subkeys(session).await.map_err(failed)? {
        let Some(id) = subpath.strip_prefix(&below("")) else { continue };
        let lines = courier.load(session, &subpath).await.map_err(failed)?.unwrap_or_default();
        if let (Some(about), lines) = Sidecar::split(lines)
            && about.is_called(to)
        {
            return read(id, about, &lines).map(Some);
        }
    }
    Ok(None)
}

fn read(id: &str, about: Sidecar, lines: &[RawJson]) -> Result<Found, String> {
    let past = Past::of_subagent_lines(lines).map_err(|error| error.to_string())?;
    match past.loaded.has_begun() {
        true => Ok(Found { id: id.to_owned(), about, past }),
        false => Err("the store has nothing that it said. Start a new agent instead.".into()),
    }
}

/// Where a store has the transcript of an agent.
fn below(id: &str) -> String {
    format!("subagents/agent-{id}")
}

fn transcript(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("agent-{id}.jsonl"))
}
