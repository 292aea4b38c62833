//! Replies to control requests, one struct each. Those to `initialize`, `can_use_tool` and `hook_callback` live
//! elsewhere.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{AgentInfo, ModelInfo};
use crate::hook::ElicitationAction;
use crate::lenient::{count, or_default};
use crate::permission::PermissionMode;
use crate::raw::RawJson;
use crate::system::SlashCommand;

/// Reply without content. Any other JSON in its place is ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Empty {}

impl<'de> Deserialize<'de> for Empty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Empty {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Empty".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Nothing to say beyond \"done\".", "type": ["object", "null"] })
    }
}

/// What an interrupt left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptReply {
    /// Prompts that still wait.
    #[serde(default, deserialize_with = "or_default")]
    pub still_queued: Vec<String>,
    /// Prompts that were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Value>,
}

/// The mode that is in force now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPermissionModeReply {
    /// The mode.
    #[serde(default, deserialize_with = "or_default")]
    pub mode: PermissionMode,
}

/// The model that is in use now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModelReply {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What fills the context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// The parts.
    #[serde(default, deserialize_with = "or_default")]
    pub categories: Vec<ContextCategory>,
    /// Tokens in use.
    #[serde(default, deserialize_with = "count")]
    pub total_tokens: u64,
    /// Tokens that may be used.
    #[serde(default, deserialize_with = "count")]
    pub max_tokens: u64,
    /// The model's window.
    #[serde(default, deserialize_with = "count")]
    pub raw_max_tokens: u64,
    /// How full it is, in percent.
    #[serde(default, deserialize_with = "or_default")]
    pub percentage: f64,
    /// The picture that a terminal shows.
    #[serde(default, deserialize_with = "or_default")]
    pub grid_rows: Vec<Value>,
    /// The model.
    #[serde(default, deserialize_with = "or_default")]
    pub model: String,
    /// Instruction files and their tokens.
    #[serde(default, deserialize_with = "or_default")]
    pub memory_files: Vec<Value>,
    /// MCP tools and their tokens.
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_tools: Vec<Value>,
    /// Kinds of subagent and their tokens.
    #[serde(default, deserialize_with = "or_default")]
    pub agents: Vec<Value>,
    /// Whether the engine makes room by itself.
    #[serde(default, deserialize_with = "or_default")]
    pub is_auto_compact_enabled: bool,
    /// When it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compact_threshold: Option<f64>,
    /// Usage of the last model call.
    #[serde(default)]
    pub api_usage: Option<Value>,
    /// Tokens of the conversation by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_breakdown: Option<Value>,
    /// Built-in tools and their tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_tools: Option<Vec<Value>>,
    /// Parts of the system prompt and their tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_sections: Option<Vec<Value>>,
    /// Slash commands and their tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slash_commands: Option<Value>,
    /// Skills and their tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Value>,
}

/// One part of the context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextCategory {
    /// Its name to programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name to people.
    pub name: String,
    /// Its tokens.
    #[serde(default, deserialize_with = "count")]
    pub tokens: u64,
    /// Its colour in the picture.
    #[serde(default, deserialize_with = "or_default")]
    pub color: String,
    /// Whether it is not in the context yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_deferred: Option<bool>,
    /// What sort of part it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What the session cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCost {
    /// As text to show.
    #[serde(default, deserialize_with = "or_default")]
    pub text: String,
}

/// What the session and the account spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session: SessionUsage,
    /// What was paid for.
    #[serde(default)]
    pub subscription_type: Option<String>,
    /// Whether the limits are known.
    #[serde(default, deserialize_with = "or_default")]
    pub rate_limits_available: bool,
    /// The limits.
    #[serde(default)]
    pub rate_limits: Option<Value>,
    /// Habits that cost.
    #[serde(default)]
    pub behaviors: Option<Value>,
}

/// What a session spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionUsage {
    /// Dollars.
    #[serde(default, deserialize_with = "or_default")]
    pub total_cost_usd: f64,
    /// Time spent waiting for the model.
    #[serde(default, deserialize_with = "count")]
    pub total_api_duration_ms: u64,
    /// Wall time.
    #[serde(default, deserialize_with = "count")]
    pub total_duration_ms: u64,
    /// Lines added to files.
    #[serde(default, deserialize_with = "count")]
    pub total_lines_added: u64,
    /// Lines removed from files.
    #[serde(default, deserialize_with = "count")]
    pub total_lines_removed: u64,
    /// By model.
    #[serde(default, deserialize_with = "or_default")]
    pub model_usage: BTreeMap<String, Value>,
}

/// The models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelList {
    /// All of them.
    #[serde(default, deserialize_with = "or_default")]
    pub models: Vec<ModelInfo>,
}

/// Which build of the engine this is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BinaryVersion {
    /// Its version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// When it was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_time: Option<String>,
}

/// Files that fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSuggestionsReply {
    /// The files, best first.
    #[serde(default, deserialize_with = "or_default")]
    pub suggestions: Vec<Value>,
    /// The directory that they are relative to.
    #[serde(default, deserialize_with = "or_default")]
    pub cwd: String,
}

/// What is in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadFileReply {
    /// Its contents.
    #[serde(default, deserialize_with = "or_default")]
    pub contents: String,
    /// Its full path.
    #[serde(default, deserialize_with = "or_default")]
    pub abs_path: String,
    /// Whether there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// `utf-8` or `base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Whether some bytes were not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossy: Option<bool>,
}

/// What was, or would be, put back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RewindFilesReply {
    /// Whether it is possible.
    #[serde(default, deserialize_with = "or_default")]
    pub can_rewind: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// Lines that come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Lines that go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Links that are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_links: Option<Value>,
}

/// What a rewind changed, or would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindSessionReply {
    /// The prompt before which the session is now. None when an earlier rewind was undone, or when the prompt is not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptText>,
    /// How many messages were dropped from the conversation.
    #[serde(default, deserialize_with = "count")]
    pub messages_dropped: u64,
    /// How many of them were prompts.
    #[serde(default, deserialize_with = "count")]
    pub prompts_dropped: u64,
    /// How many messages came back that an earlier rewind had dropped.
    #[serde(default, deserialize_with = "count")]
    pub messages_restored: u64,
    /// The last message of the conversation. None: it is empty, or only files went back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message_id: Option<String>,
    /// The files, if they go back too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<RewindFilesReply>,
    /// Background work of the dropped messages, which was stopped.
    #[serde(default, deserialize_with = "or_default")]
    pub stopped_tasks: Vec<StoppedTask>,
    /// Names this rewind: as the `user_message_id` of another one it undoes this one. None for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_id: Option<String>,
}

/// A prompt, for an input line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptText {
    /// What was typed.
    pub text: String,
    /// How many images and documents it had; they are not in the text.
    #[serde(default, deserialize_with = "count")]
    pub attachments: u64,
    /// The permission mode at the time, as far as it is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

/// Background work that was stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoppedTask {
    /// The task, or the job of a timer.
    pub task_id: String,
    /// What it was for.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
}

/// The calls that are asked for again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumePendingCallsReply {
    /// The calls. Empty: there were none, and no turn started.
    #[serde(default, deserialize_with = "or_default")]
    pub calls: Vec<PendingCall>,
}

/// A call that was recorded but never began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingCall {
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its input.
    #[serde(default)]
    pub input: Value,
}

/// Whether the file counts as read. An engine that does not say so leaves it open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeedReadStateReply {
    /// False when it was changed since, so that it has to be read again.
    #[serde(default, deserialize_with = "or_default")]
    pub seeded: bool,
}

/// Whether the prompt still waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelAsyncMessageReply {
    /// True when it was dropped. False when the model gets it, or had got it already.
    #[serde(default, deserialize_with = "or_default")]
    pub cancelled: bool,
    /// The prompt, when it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptText>,
    /// Prompts that still wait.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub still_queued: Vec<String>,
}

/// What is wrong with an input; nothing if it matches the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckToolInputReply {
    /// The invalid fields.
    #[serde(default, deserialize_with = "or_default")]
    pub errors: Vec<InvalidField>,
}

/// A field that does not match the schema of its tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvalidField {
    /// Path of the field, such as `edits[0].old_string`; empty if the input as a whole is wrong.
    #[serde(default)]
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Whether calls go on in the background now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackgroundTasksReply {
    /// False if one call was meant and nothing waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backgrounded: Option<bool>,
}

/// The answer to a question beside the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideQuestionReply {
    /// The model's answer; null if there is none.
    #[serde(default)]
    pub response: Option<String>,
}

/// What a task has written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskOutput {
    /// The text, or its end.
    #[serde(default, deserialize_with = "or_default")]
    pub output: String,
    /// How much there is in all.
    #[serde(default, deserialize_with = "count")]
    pub total_bytes: u64,
    /// Whether some of it is missing here.
    #[serde(default, deserialize_with = "or_default")]
    pub truncated: bool,
}

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingsReport {
    /// What is in force.
    #[serde(default, deserialize_with = "or_default")]
    pub effective: Map<String, Value>,
    /// What each source says.
    #[serde(default, deserialize_with = "or_default")]
    pub sources: Vec<Value>,
    /// What follows from it: model, effort, ...
    #[serde(default, deserialize_with = "or_default")]
    pub applied: Map<String, Value>,
}

/// The permission rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionRules {
    /// All about them.
    #[serde(default, deserialize_with = "or_default")]
    pub state: PermissionRulesState,
}

/// All about the permission rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRulesState {
    /// The rules and where they are kept.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<Value>,
    /// The directories to work in.
    #[serde(default, deserialize_with = "or_default")]
    pub workspace_directories: Vec<Value>,
    /// Where the session began.
    #[serde(default, deserialize_with = "or_default")]
    pub original_cwd: String,
    /// Whether only an administrator's rules count.
    #[serde(default, deserialize_with = "or_default")]
    pub managed_only: bool,
    /// Rules that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Value>,
    /// Rules that are not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Value>,
}

/// What there is after loading the plugins anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadPluginsReply {
    /// The slash commands.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<SlashCommand>,
    /// The kinds of subagent.
    #[serde(default, deserialize_with = "or_default")]
    pub agents: Vec<AgentInfo>,
    /// The plugins.
    #[serde(default, deserialize_with = "or_default")]
    pub plugins: Vec<Value>,
    /// The MCP servers.
    #[serde(default, rename = "mcpServers", deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServerStatus>,
    /// How many plugins could not be loaded.
    #[serde(default, deserialize_with = "count")]
    pub error_count: u64,
    /// Set when nothing was done after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What it does to the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_impact: Option<Value>,
}

/// What there is after loading the skills anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadSkillsReply {
    /// The skills.
    #[serde(default, deserialize_with = "or_default")]
    pub skills: Vec<Value>,
}

/// What there is after loading the output styles anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadOutputStylesReply {
    /// The output styles.
    #[serde(default, deserialize_with = "or_default")]
    pub available_output_styles: Vec<String>,
}

/// How the MCP servers are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpStatusReply {
    /// All of them.
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServerStatus>,
}

/// How an MCP server is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    /// Its name.
    pub name: String,
    /// Whether it can be used.
    #[serde(default, deserialize_with = "or_default")]
    pub status: McpConnection,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<McpServerInfo>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// Which settings it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What put it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<McpToolInfo>>,
}

/// Whether an MCP server can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum McpConnection {
    /// Yes.
    Connected,
    /// No.
    Failed,
    /// Not before a login.
    NeedsAuth,
    /// Not yet.
    #[default]
    Pending,
    /// It is switched off.
    Disabled,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

impl McpConnection {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Pending => "pending",
            Self::Disabled => "disabled",
            Self::Other(name) => name,
        }
    }
}

/// What an MCP server calls itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServerInfo {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpToolInfo {
    /// Its name there.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<McpToolAnnotations>,
}

/// What a tool of an MCP server promises.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpToolAnnotations {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// It reaches beyond this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// What became of the MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpSetServersReply {
    /// Those that are new.
    #[serde(default, deserialize_with = "or_default")]
    pub added: Vec<String>,
    /// Those that are gone.
    #[serde(default, deserialize_with = "or_default")]
    pub removed: Vec<String>,
    /// Those that failed, and why.
    #[serde(default, deserialize_with = "or_default")]
    pub errors: BTreeMap<String, String>,
}

/// What is in the resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpReadResourceReply {
    /// Its parts.
    #[serde(default, deserialize_with = "or_default")]
    pub contents: Vec<McpResourceContents>,
}

/// One part of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpResourceContents {
    /// Its address.
    pub uri: String,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// What the server adds.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What an MCP server of the other side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpMessageReply {
    /// The JSON-RPC answer.
    pub mcp_response: RawJson,
}

/// The person's answer to an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElicitationReply {
    /// Whether there is one.
    pub action: ElicitationAction,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// What became of a dialog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserDialogReply {
    /// Whether it was answered.
    pub behavior: DialogBehavior,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Whether a dialog was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DialogBehavior {
    /// Yes.
    Completed,
    /// No.
    #[default]
    Cancelled,
}
