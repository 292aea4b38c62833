//! Restores a subagent of an earlier run from its transcript and its metadata file.

use std::path::{Path, PathBuf};

use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::store::StoreError;
use whimbrel_session_store::{ResumedSession, StoreWriter};
use whimbrel_wire::RawJson;

use super::metadata::{self, AgentMetadata};
use super::{AgentSpawner, Definition};
use crate::tools::ToolError;

/// A stored agent that can be continued.
pub(super) struct RestorableAgent {
    pub(super) id: String,
    /// The current definition of its type.
    pub(super) definition: Definition,
    pub(super) resumed: ResumedSession,
    pub(super) metadata: AgentMetadata,
}

struct StoredAgent {
    id: String,
    metadata: AgentMetadata,
    resumed: ResumedSession,
}

impl AgentSpawner {
    /// Loads the agent with this id or name that an earlier run of the session left; none if there is none.
    pub(super) async fn load_stored(&self, to: &str) -> Result<Option<RestorableAgent>, ToolError> {
        let found = match (&self.context.persistence.store_writer, metadata::transcripts_dir(&self.context)) {
            (Some(courier), _) => load_from_store(courier, &self.context.identity.session, to).await,
            (None, Some(folder)) => {
                let wanted = to.to_owned();
                let found = files::run_blocking(move || load_from_disk(&folder, &wanted)).await;
                found.unwrap_or_else(|error| Err(error.to_string()))
            }
            (None, None) => return Ok(None),
        };
        let refused = |why: String| ToolError::Rejected(format!("The agent {to} cannot go on: {why}"));
        let Some(StoredAgent { id, metadata: about, resumed: past }) = found.map_err(refused)? else {
            return Ok(None);
        };
        if let Some(team) = about.team_name() {
            return Err(refused(format!(
                "it was a teammate in the team {team} and is gone. Start a new one."
            )));
        }
        let definition = self.definition(&about.agent_type)?.clone();
        // The agent is not continued without the deny rules it had.
        about
            .restore_denials(&self.position.permission_checker.permissions.for_subagent(None))
            .map_err(refused)?;
        let unreadable = past.loaded.repairs.unreadable;
        if unreadable > 0 {
            let lines = if unreadable == 1 { "line" } else { "lines" };
            let told = format!(
                "{unreadable} unreadable {lines} of the transcript of the agent {id} were passed over."
            );
            self.context.frame_sender.warn(told).await;
        }
        Ok(Some(RestorableAgent { id, definition, resumed: past, metadata: about }))
    }
}

/// Loads an agent from disk. Blocking.
fn load_from_disk(folder: &Path, to: &str) -> Result<Option<StoredAgent>, String> {
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    let is_kept = |id: &str| !matches!(files::file_kind(&transcript_path(folder, id)), Ok(FileKind::Missing));
    let id = match can_be_id && is_kept(to) {
        true => to.to_owned(),
        false => match AgentMetadata::find_id_by_name(folder, to) {
            Some(id) => id,
            None => return Ok(None),
        },
    };
    let about = AgentMetadata::load(folder, &id)?;
    let path = transcript_path(folder, &id);
    let past = ResumedSession::from_subagent_file(&path).map_err(|error| error.to_string())?;
    match past.loaded.has_messages() {
        true => Ok(Some(StoredAgent { id, metadata: about, resumed: past })),
        false => Err(format!(
            "its transcript {} has nothing in it that can be read. Start a new agent instead.",
            path.display()
        )),
    }
}

/// Loads an agent from a session store.
async fn load_from_store(
    courier: &StoreWriter,
    session: &str,
    to: &str,
) -> Result<Option<StoredAgent>, String> {
    let failed = |error: StoreError| error.to_string();
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    if can_be_id && let Some(lines) = courier.load(session, &store_subpath(to)).await.map_err(failed)? {
        let (about, lines) = AgentMetadata::extract(lines);
        let about = about.ok_or("the store does not say what it was. Start a new agent instead.")?;
        return parse_stored(to, about, &lines).map(Some);
    }
    // Several agents may have this name; a store has no order, so any of them is used.
    for subpath in courier.subkeys(session).await.map_err(failed)? {
        let Some(id) = subpath.strip_prefix(&store_subpath("")) else { continue };
        let lines = courier.load(session, &subpath).await.map_err(failed)?.unwrap_or_default();
        if let (Some(about), lines) = AgentMetadata::extract(lines)
            && about.has_name(to)
        {
            return parse_stored(id, about, &lines).map(Some);
        }
    }
    Ok(None)
}

fn parse_stored(id: &str, about: AgentMetadata, lines: &[RawJson]) -> Result<StoredAgent, String> {
    let past = ResumedSession::from_subagent_lines(lines).map_err(|error| error.to_string())?;
    match past.loaded.has_messages() {
        true => Ok(StoredAgent { id: id.to_owned(), metadata: about, resumed: past }),
        false => Err("the store has nothing that it said. Start a new agent instead.".into()),
    }
}

/// Subpath of an agent's transcript in a store.
fn store_subpath(id: &str) -> String {
    format!("subagents/agent-{id}")
}

fn transcript_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("agent-{id}.jsonl"))
}
