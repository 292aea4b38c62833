//! Restores a subagent of an earlier run from its transcript and its metadata file.

use std::path::{Path, PathBuf};

use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::store::StoreError;
use whimbrel_session_store::{ResumedSession, StoreWriter};
use whimbrel_tools::api::ToolError;
use whimbrel_wire::RawJson;

use super::metadata::{self, AgentMetadata};
use super::{AgentSpawner, ResolvedDefinition};

/// A stored agent that can be continued.
pub(super) struct RestorableAgent {
    pub(super) id: String,
    /// The current definition of its type.
    pub(super) definition: ResolvedDefinition,
    pub(super) resumed: ResumedSession,
    pub(super) metadata: AgentMetadata,
}

struct StoredAgent {
    id: String,
    metadata: AgentMetadata,
    resumed: ResumedSession,
}

impl AgentSpawner {
    /// Loads the agent with this id or name. Returns `None` if the earlier run of the session left no such agent.
    pub(super) async fn load_stored(&self, to: &str) -> Result<Option<RestorableAgent>, ToolError> {
        let found = match (
            &self.context.storage.persistence.store_writer,
            metadata::transcripts_dir(&self.context),
        ) {
            (Some(store_writer), _) => {
                load_from_store(store_writer, &self.context.storage.identity.session, to).await
            }
            (None, Some(dir)) => {
                let id_or_name = to.to_owned();
                let found = files::run_blocking(move || load_from_disk(&dir, &id_or_name)).await;
                found.unwrap_or_else(|error| Err(error.to_string()))
            }
            (None, None) => return Ok(None),
        };
        let rejected =
            |reason: String| ToolError::Rejected(format!("The agent {to} cannot continue: {reason}"));
        let Some(StoredAgent { id, metadata: stored, resumed }) = found.map_err(rejected)? else {
            return Ok(None);
        };
        if let Some(team) = stored.team_name() {
            return Err(rejected(format!(
                "it was a teammate in the team {team}, which has ended. Start a new agent."
            )));
        }
        let definition = self.definition(&stored.agent_type)?.clone();
        // The agent is not continued without the deny rules it had.
        stored
            .restore_denials(&self.position.permission_checker.permissions.for_subagent(None))
            .map_err(rejected)?;
        let unreadable = resumed.loaded.repairs.unreadable;
        if unreadable > 0 {
            let lines = if unreadable == 1 { "line" } else { "lines" };
            let warning =
                format!("{unreadable} unreadable {lines} in the transcript of the agent {id} were skipped.");
            self.context.frame_sender.warn(warning).await;
        }
        Ok(Some(RestorableAgent { id, definition, resumed, metadata: stored }))
    }
}

/// Loads an agent from disk. Blocking.
fn load_from_disk(dir: &Path, to: &str) -> Result<Option<StoredAgent>, String> {
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    let is_stored = |id: &str| !matches!(files::file_kind(&transcript_path(dir, id)), Ok(FileKind::Missing));
    let id = match can_be_id && is_stored(to) {
        true => to.to_owned(),
        false => match AgentMetadata::find_id_by_name(dir, to) {
            Some(id) => id,
            None => return Ok(None),
        },
    };
    let metadata = AgentMetadata::load(dir, &id)?;
    let path = transcript_path(dir, &id);
    let resumed = ResumedSession::from_subagent_file(&path).map_err(|error| error.to_string())?;
    match resumed.loaded.has_messages() {
        true => Ok(Some(StoredAgent { id, metadata, resumed })),
        false => Err(format!(
            "its transcript {} has no readable messages. Start a new agent instead.",
            path.display()
        )),
    }
}

/// Loads an agent from a session store.
async fn load_from_store(
    store_writer: &StoreWriter,
    session: &str,
    to: &str,
) -> Result<Option<StoredAgent>, String> {
    let failed = |error: StoreError| error.to_string();
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    if can_be_id && let Some(lines) = store_writer.load(session, &store_subpath(to)).await.map_err(failed)? {
        let (metadata, lines) = AgentMetadata::extract(lines);
        let metadata =
            metadata.ok_or("the session store has no metadata for it. Start a new agent instead.")?;
        return parse_stored(to, metadata, &lines).map(Some);
    }
    // Several agents may have this name; a store has no order, so any of them is used.
    for subpath in store_writer.subkeys(session).await.map_err(failed)? {
        let Some(id) = subpath.strip_prefix(&store_subpath("")) else { continue };
        let lines = store_writer.load(session, &subpath).await.map_err(failed)?.unwrap_or_default();
        if let (Some(metadata), lines) = AgentMetadata::extract(lines)
            && metadata.has_name(to)
        {
            return parse_stored(id, metadata, &lines).map(Some);
        }
    }
    Ok(None)
}

fn parse_stored(id: &str, metadata: AgentMetadata, lines: &[RawJson]) -> Result<StoredAgent, String> {
    let resumed = ResumedSession::from_subagent_lines(lines).map_err(|error| error.to_string())?;
    match resumed.loaded.has_messages() {
        true => Ok(StoredAgent { id: id.to_owned(), metadata, resumed }),
        false => Err("the session store has no messages of it. Start a new agent instead.".into()),
    }
}

/// Subpath of an agent's transcript in a store.
fn store_subpath(id: &str) -> String {
    format!("subagents/agent-{id}")
}

fn transcript_path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("agent-{id}.jsonl"))
}
