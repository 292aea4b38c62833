//! Metadata of a subagent, in a file beside its transcript: type, task, parent and spawn options. Used by transcript
//! readers and to restore the agent in a later run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::transcript_writer::TranscriptWriter;
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::tasks::TaskInfo;
use whimbrel_wire::RawJson;
use whimbrel_wire::permission::PermissionMode;

use super::SpawnRequest;
use super::context::AgentContext;
use crate::runtime_settings::parse_effort;
use crate::skills::InvokedSkill;

const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Limit on the files searched for a name.
const MAX_FILES: usize = 10_000;

/// Contents of the metadata file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentMetadata {
    pub(super) agent_type: String,
    /// Short description of its task.
    pub(super) description: String,
    /// Id of the tool call that started it.
    pub(super) tool_use_id: String,
    /// Number of agents above it.
    pub(super) spawn_depth: usize,
    /// Id of its parent; `None` for the main agent.
    pub(super) parent_agent_id: Option<String>,
    #[serde(flatten)]
    options: SpawnOptions,
}

/// Type of the entry that a session store has instead of the file.
const ENTRY_TYPE: &str = "agent_metadata";

#[derive(Serialize, Deserialize)]
struct AgentMetadataEntry<T> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    metadata: T,
}

/// Options of the spawning call that differ from the definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpawnOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<PermissionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<SkillDenials>,
    /// Team name, if it was a teammate.
    #[serde(skip_serializing_if = "Option::is_none")]
    team_name: Option<String>,
}

/// Deny rules of the skill that is the agent's task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SkillDenials {
    file: PathBuf,
    disallowed_tools: Vec<String>,
}

impl SkillDenials {
    /// The deny rules of a skill, if it has any.
    fn for_skill(skill: &InvokedSkill) -> Option<Self> {
        let disallowed_tools = skill.parsed.front_matter.rules().deny;
        (!disallowed_tools.is_empty()).then(|| Self { file: skill.file.path.clone(), disallowed_tools })
    }
}

impl AgentMetadata {
    /// Metadata of an agent that is spawned.
    pub(super) fn for_request(
        info: &TaskInfo,
        request: &SpawnRequest,
        depth: usize,
        parent: Option<&str>,
    ) -> Self {
        let effort = request.effort.and_then(|effort| serde_json::to_value(effort).ok());
        Self {
            agent_type: info.agent_type.clone().unwrap_or_default(),
            description: info.description.clone(),
            tool_use_id: info.tool_use_id.clone(),
            spawn_depth: depth,
            parent_agent_id: parent.map(Into::into),
            options: SpawnOptions {
                name: request.name.clone(),
                model: request.model.clone(),
                effort: effort.and_then(|effort| effort.as_str().map(Into::into)),
                max_turns: request.max_turns,
                isolation: request.isolation.clone(),
                mode: request.mode,
                skill: request.skill.as_deref().and_then(SkillDenials::for_skill),
                team_name: None,
            },
        }
    }

    pub(super) fn with_team(mut self, team: &str) -> Self {
        self.options.team_name = Some(team.to_owned());
        self
    }

    pub(super) fn team_name(&self) -> Option<&str> {
        self.options.team_name.as_deref()
    }

    /// Applies the deny rules of the skill to a restored agent. The error says why it cannot be continued.
    pub(super) fn restore_denials(&self, permissions: &PermissionState) -> Result<(), String> {
        let Some(SkillDenials { file, disallowed_tools }) = &self.options.skill else { return Ok(()) };
        permissions.add_turn_rules(file, Vec::new(), disallowed_tools.clone())?;
        permissions.retain_denials();
        Ok(())
    }

    /// Writes the metadata, if transcripts are stored. Errors are ignored: the agent works without it, but cannot be
    /// restored later.
    pub(super) fn write(&self, context: &AgentContext, id: &str, writer: &TranscriptWriter) {
        if let Ok(entry) =
            RawJson::from_value(&AgentMetadataEntry { kind: ENTRY_TYPE.into(), metadata: self })
        {
            writer.write_sidecar_line(entry);
        }
        let Some(path) = transcripts_dir(context).map(|dir| metadata_path(&dir, id)) else { return };
        let _ = serde_json::to_vec(self).map(|bytes| files::create_with_mode(&path, &bytes, 0o600));
    }

    /// Extracts the metadata from the entries of a store; the last one wins.
    pub(super) fn extract(lines: Vec<RawJson>) -> (Option<Self>, Vec<RawJson>) {
        let mut metadata = None;
        let lines = lines.into_iter().filter(|line| match line.decode::<AgentMetadataEntry<Self>>() {
            Ok(entry) if entry.kind == ENTRY_TYPE => {
                metadata = Some(entry.metadata);
                false
            }
            _ => true,
        });
        let lines = lines.collect();
        (metadata.filter(|metadata: &Self| !metadata.agent_type.is_empty()), lines)
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.options.name.as_deref() == Some(name)
    }

    /// Loads the metadata file of an agent. Blocking.
    pub(super) fn load(dir: &Path, id: &str) -> Result<Self, String> {
        let path = metadata_path(dir, id);
        let file_error = |reason: &str| {
            format!("its metadata file {} {reason}. Start a new agent instead.", path.display())
        };
        let (bytes, _) = match files::file_kind(&path) {
            Ok(FileKind::File(_)) => files::read(&path, MAX_FILE_BYTES)
                .map_err(|error| file_error(&format!("cannot be read ({error})")))?,
            Ok(FileKind::Missing) => return Err(file_error("does not exist")),
            Ok(_) => return Err(file_error("is not a regular file")),
            Err(error) => return Err(file_error(&format!("cannot be read ({error})"))),
        };
        let metadata: Self =
            serde_json::from_slice(&bytes).map_err(|error| file_error(&format!("is not valid ({error})")))?;
        if metadata.agent_type.is_empty() { Err(file_error("names no agent type")) } else { Ok(metadata) }
    }

    /// The latest agent with this name. Blocking.
    pub(super) fn find_id_by_name(dir: &Path, name: &str) -> Option<String> {
        let names = files::entry_names(dir, MAX_FILES);
        let ids = names.iter().filter_map(|file| file.strip_prefix("agent-")?.strip_suffix(".meta.json"));
        let matches = ids.filter_map(|id| {
            let has_name = Self::load(dir, id).ok()?.options.name.as_deref() == Some(name);
            let Ok(FileKind::File(stamp)) = files::file_kind(&metadata_path(dir, id)) else { return None };
            has_name.then(|| (stamp.modified, id.to_owned()))
        });
        matches.max().map(|(_, id)| id)
    }

    /// The task to continue the agent with.
    pub(super) fn to_spawn_request(&self, prompt: &str) -> SpawnRequest {
        let options = self.options.clone();
        SpawnRequest {
            agent_type: self.agent_type.clone(),
            description: self.description.clone(),
            prompt: prompt.to_owned(),
            model: options.model,
            effort: options.effort.as_deref().and_then(parse_effort),
            max_turns: options.max_turns,
            name: options.name,
            background: None,
            isolation: options.isolation,
            mode: options.mode,
            skill: None,
        }
    }
}

/// Directory of the session's subagent transcripts; `None` if transcripts are not stored in files.
pub(super) fn transcripts_dir(context: &AgentContext) -> Option<PathBuf> {
    context
        .storage
        .transcript_dir
        .as_ref()
        .map(|transcript_dir| transcript_dir.subagents_dir(&context.storage.identity.session))
}

fn metadata_path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("agent-{id}.meta.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trips_and_bad_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let info = TaskInfo {
            task_id: "a1".into(),
            tool_use_id: "call".into(),
            owner: None,
            kind: whimbrel_tools::tasks::TaskKind::Agent,
            description: "looks".into(),
            command: String::new(),
            agent_type: Some("Explore".into()),
            name: None,
            output_file: PathBuf::new(),
        };
        let request = SpawnRequest {
            agent_type: "Explore".into(),
            description: "looks".into(),
            prompt: "Go on.".into(),
            effort: Some(whimbrel_models::Effort::Low),
            max_turns: Some(3),
            name: Some("scout".into()),
            isolation: Some("worktree".into()),
            mode: Some(PermissionMode::Plan),
            ..SpawnRequest::default()
        };
        let metadata = AgentMetadata::for_request(&info, &request, 2, Some("a0"));
        std::fs::write(metadata_path(dir.path(), "a1"), serde_json::to_vec(&metadata).unwrap()).unwrap();
        let loaded = AgentMetadata::load(dir.path(), "a1").unwrap();
        assert_eq!(loaded, metadata);
        assert_eq!(format!("{:?}", loaded.to_spawn_request("Go on.")), format!("{request:?}"));
        assert_eq!(AgentMetadata::find_id_by_name(dir.path(), "scout").as_deref(), Some("a1"));
        assert_eq!(AgentMetadata::find_id_by_name(dir.path(), "missing"), None);
        std::fs::create_dir(metadata_path(dir.path(), "folder")).unwrap();
        for (id, text, part) in [
            ("none", None, "does not exist"),
            ("folder", None, "regular"),
            ("torn", Some("{\"agentType\": \"Exp"), "not valid"),
            ("bare", Some("{}"), "agent type"),
        ] {
            if let Some(text) = text {
                std::fs::write(metadata_path(dir.path(), id), text).unwrap();
            }
            let error = AgentMetadata::load(dir.path(), id).unwrap_err();
            assert!(error.contains(part) && error.contains(id), "{error}");
        }
    }
}
