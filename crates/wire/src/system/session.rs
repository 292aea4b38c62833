//! `system` frames about the session: its configuration and its state.

use serde::{Deserialize, Serialize};

use crate::lenient::{count, optional_count, or_default};
use crate::permission::PermissionMode;

/// The first notice of every turn: what the session is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Init {
    /// The kinds of subagent that can be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Where the credentials came from; `none` without any.
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    /// The provider's beta features in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub betas: Option<Vec<String>>,
    /// The protocol version spoken, three numbers.
    pub claude_code_version: String,
    /// The working directory.
    pub cwd: String,
    /// The tools that the model may call.
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Vec<String>,
    /// The MCP servers and how they are.
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<InitServer>,
    /// The model.
    pub model: String,
    /// The permission mode.
    #[serde(rename = "permissionMode")]
    pub permission_mode: PermissionMode,
    /// The slash commands, without the slash.
    #[serde(default, deserialize_with = "or_default")]
    pub slash_commands: Vec<String>,
    /// Slash commands that need a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_slash_commands: Option<Vec<String>>,
    /// The output style.
    pub output_style: String,
    /// The skills.
    #[serde(default, deserialize_with = "or_default")]
    pub skills: Vec<String>,
    /// The plugins.
    #[serde(default, deserialize_with = "or_default")]
    pub plugins: Vec<InitPlugin>,
    /// Plugins that could not be loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_errors: Option<Vec<PluginError>>,
    /// Whether the fast mode is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_mode_state: Option<String>,
    /// Why the fast mode cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_mode_disabled_reason: Option<String>,
    /// How hard the model thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `default` or `focus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_mode: Option<String>,
    /// The sandbox of commands, if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<InitSandbox>>,
    /// Protocol features that this engine has, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
}

/// The sandbox of commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitSandbox {
    /// Whether commands are confined.
    pub enabled: bool,
    /// What confines them: `whimbrel` or `bwrap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// How much is confined: `namespaces`, `bwrap` or `machine-proc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// What the sandbox lacks.
    #[serde(default, deserialize_with = "or_default")]
    pub warnings: Vec<String>,
}

/// An MCP server, as the first notice lists it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitServer {
    /// Its name.
    pub name: String,
    /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    pub status: String,
    /// Which configuration it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A plugin, as the first notice lists it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitPlugin {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Why a plugin could not be loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PluginError {
    /// The plugin.
    pub plugin: String,
    /// The kind of failure.
    #[serde(rename = "type")]
    pub kind: String,
    /// What went wrong.
    pub message: String,
    /// The file concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Set when an administrator's policy is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_lock: Option<serde_json::Value>,
}

/// What the engine is busy with outside the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The work; none when it is done.
    #[serde(default)]
    pub status: Option<StatusKind>,
    /// The permission mode, when it changed.
    #[serde(default, rename = "permissionMode", skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// How a compaction ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_result: Option<CompactResult>,
    /// Why a compaction failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_error: Option<String>,
}

/// What the engine can be busy with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StatusKind {
    /// Making the conversation shorter.
    Compacting,
    /// Waiting for the model's first token.
    Requesting,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// How a compaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactResult {
    /// The conversation is shorter now.
    Success,
    /// It is as it was.
    Failed,
}

/// Here the conversation was made shorter; what came before is no longer sent to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactBoundary {
    /// How and how much.
    pub compact_metadata: CompactMetadata,
}

/// Here the conversation went back to an earlier state, because the host wanted it. Its id undoes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConversationRewound {
    /// The prompt or the rewind before which it goes on.
    pub user_message_id: String,
    /// The last message that is left; none of them, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message_id: Option<String>,
}

/// Figures of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactMetadata {
    /// Who wanted it.
    pub trigger: CompactTrigger,
    /// Tokens before.
    #[serde(deserialize_with = "count")]
    pub pre_tokens: u64,
    /// Tokens after.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub post_tokens: Option<u64>,
    /// How long it took.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// A run of messages that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_segment: Option<PreservedSegment>,
    /// Single messages that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_messages: Option<PreservedMessages>,
}

/// Who wanted a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactTrigger {
    /// The person.
    #[default]
    Manual,
    /// The engine, because the context was full.
    Auto,
}

/// A run of messages that a compaction kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreservedSegment {
    /// Its first message.
    pub head_uuid: String,
    /// The message after which it hangs now.
    pub anchor_uuid: String,
    /// Its last message.
    pub tail_uuid: String,
}

/// Messages that a compaction kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreservedMessages {
    /// The message after which they hang now.
    pub anchor_uuid: String,
    /// The messages.
    pub uuids: Vec<String>,
}

/// The session began to work, came to rest, or waits for its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStateChanged {
    /// The new state.
    pub state: SessionState,
    /// Set when the SDK asked for it and does not show it to its caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk_host_only: Option<bool>,
}

/// Whether a session is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionState {
    /// Nothing runs and nothing is queued.
    Idle,
    /// A turn runs.
    Running,
    /// A question to the host is open.
    RequiresAction,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// The engine process is about to end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerShuttingDown {
    /// Why.
    pub reason: String,
}

/// The slash commands are others now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandsChanged {
    /// All of them.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<SlashCommand>,
}

/// Files were stored at the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesPersisted {
    /// The stored ones.
    #[serde(default, deserialize_with = "or_default")]
    pub files: Vec<PersistedFile>,
    /// Those that could not be stored.
    #[serde(default, deserialize_with = "or_default")]
    pub failed: Vec<UnpersistedFile>,
    /// When.
    pub processed_at: String,
}

/// A file that was stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersistedFile {
    /// Its name here.
    pub filename: String,
    /// Its id there.
    pub file_id: String,
}

/// A file that could not be stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnpersistedFile {
    /// Its name.
    pub filename: String,
    /// Why.
    pub error: String,
}

/// Memories were looked up for the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRecall {
    /// How.
    pub mode: RecallMode,
    /// What was found.
    #[serde(default, deserialize_with = "or_default")]
    pub memories: Vec<RecalledMemory>,
}

/// How memories were looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecallMode {
    /// Whole files were chosen.
    Select,
    /// A summary was written.
    Synthesize,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// A memory that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecalledMemory {
    /// Its file.
    pub path: String,
    /// `personal`, `team` or `organization`.
    pub scope: String,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Transcript lines did not reach the host's own store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MirrorError {
    /// Why.
    pub error: String,
    /// Which transcript.
    pub key: MirrorKey,
}

/// Names a transcript in a host's store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MirrorKey {
    /// The project.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// The transcript below it, for a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
}

/// The disk is full: parts of the session could not be written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionWritesLost {
    /// `ENOSPC`, `EDQUOT` or `EROFS`.
    pub error_code: String,
    /// What was lost: `transcript`, `global_config`.
    #[serde(default, deserialize_with = "or_default")]
    pub lost: Vec<String>,
    /// The sessions concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_session_ids: Option<Vec<String>>,
}

/// A slash command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// What may follow it.
    #[serde(default, deserialize_with = "or_default")]
    pub argument_hint: String,
    /// Its other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Vec<String>>,
    /// Whether the engine itself answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<bool>,
}
