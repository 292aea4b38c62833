//! Brings back an agent of an earlier run: what it has said and heard is in its transcript, and what it was is in the file
//! beside that.

use std::path::{Path, PathBuf};

use whimbrel_wire::RawJson;

use super::metadata::{self, AgentMetadata};
use super::{AgentSpawner, Definition};
use crate::files::{self, FileKind};
use crate::session::store::StoreError;
use crate::session::{StoreWriter, ResumedSession};
use crate::tools::ToolError;

/// An agent that can go on.
pub(super) struct RestorableAgent {
    /// Its name.
    pub(super) id: String,
    /// Its kind, as it is now.
    pub(super) definition: Definition,
    /// What was said so far.
    pub(super) resumed: ResumedSession,
    /// What else is known of it.
    pub(super) metadata: AgentMetadata,
}

/// What the files say of an agent.
struct StoredAgent {
    id: String,
    metadata: AgentMetadata,
    resumed: ResumedSession,
}

impl AgentSpawner {
    /// The agent of this id or name that an earlier run of this session has left; none if there was no such agent.
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
        let Some(StoredAgent { id, metadata: about, resumed: past }) = found.map_err(refused)? else { return Ok(None) };
        if let Some(team) = about.team_name() {
            return Err(refused(format!(
                "it was a teammate in the team {team} and is gone. Start a new one."
            )));
        }
        let definition = self.definition(&about.agent_type)?.clone();
        // Without denials that it had, it would not be who it was.
        about.restore_denials(&self.position.permission_checker.permissions.for_subagent(None)).map_err(refused)?;
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

/// Reads what is kept of an agent. Touches the disk.
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

/// The same for a session that a store keeps.
async fn load_from_store(courier: &StoreWriter, session: &str, to: &str) -> Result<Option<StoredAgent>, String> {
    let failed = |error: StoreError| error.to_string();
    let can_be_id = !to.is_empty() && to.chars().all(|c| c.is_ascii_alphanumeric());
    if can_be_id && let Some(lines) = courier.load(session, &store_subpath(to)).await.map_err(failed)? {
        let (about, lines) = AgentMetadata::extract(lines);
        let about = about.ok_or("the store does not say what it was. Start a new agent instead.")?;
        return parse_stored(to, about, &lines).map(Some);
    }
    // Of several that were called alike, the last is meant; a store does not tell which that is, so any will do.
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

/// Where a store has the transcript of an agent.
fn store_subpath(id: &str) -> String {
    format!("subagents/agent-{id}")
}

fn transcript_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("agent-{id}.jsonl"))
}
