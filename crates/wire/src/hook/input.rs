//! Input of hooks, one struct per event.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ElicitationAction;
use crate::lenient::{count, optional_count, or_default};
use crate::message::FailureKind;
use crate::permission::{McpServerProvenance, PermissionMode, PermissionUpdate};
use crate::system::CompactTrigger;

/// What every hook is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookBase {
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
    /// The file with its transcript.
    #[serde(default, deserialize_with = "or_default")]
    pub transcript_path: String,
    /// The working directory.
    #[serde(default, deserialize_with = "or_default")]
    pub cwd: String,
    /// The permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// The prompt that is being answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// The subagent in which it happened; none on the main line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// How hard the model thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<HookEffort>,
}

/// How hard the model thinks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookEffort {
    /// `low` to `max`.
    #[serde(default, deserialize_with = "or_default")]
    pub level: String,
}

/// A tool is about to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreToolUse {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// The call.
    pub tool_use_id: String,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
}

/// A tool ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostToolUse {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// Its result.
    pub tool_response: Value,
    /// The call.
    pub tool_use_id: String,
    /// How long it took.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
}

/// A tool failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostToolUseFailure {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// The call.
    pub tool_use_id: String,
    /// Why.
    pub error: String,
    /// Whether it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_interrupt: Option<bool>,
    /// How long it took.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
}

/// All calls of one reply are done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostToolBatch {
    /// The calls.
    pub tool_calls: Vec<BatchedCall>,
}

/// A call that is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchedCall {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// The call.
    pub tool_use_id: String,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_response: Option<Value>,
}

/// The person would have to be asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionRequest {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// Changes of rules that would settle it for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_suggestions: Option<Vec<PermissionUpdate>>,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
}

/// A call was refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionDeniedHook {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub tool_input: Value,
    /// The call.
    pub tool_use_id: String,
    /// Why.
    pub reason: String,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
}

/// The person should look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotificationHook {
    /// What to show.
    pub message: String,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What sort of notification it is.
    pub notification_type: String,
}

/// A prompt came in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserPromptSubmit {
    /// The prompt.
    pub prompt: String,
    /// Who sent it: `user`, `sdk`, `system`, `loop_wakeup`, `schedule_wakeup` or `poll_event`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The session's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
}

/// A slash command became a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserPromptExpansion {
    /// `slash_command` or `mcp_prompt`.
    pub expansion_type: String,
    /// The command.
    pub command_name: String,
    /// What followed it.
    pub command_args: String,
    /// Where the command is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_source: Option<String>,
    /// The prompt that it became.
    pub prompt: String,
}

/// A session began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStart {
    /// How: `startup`, `resume`, `clear`, `compact` or `fork`.
    pub source: String,
    /// The kind of agent that the session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
    /// How long ago the model last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_since_last_response: Option<f64>,
    /// Tokens in the context.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Whether the provider has forgotten the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache_likely_expired: Option<bool>,
    /// What it will cost to remind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cache_write_usd: Option<f64>,
}

/// A session ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEnd {
    /// Why: `clear`, `logout`, `prompt_input_exit`, `resume`, `other`, ...
    pub reason: String,
}

/// The model is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stop {
    /// Whether a hook already made it go on.
    pub stop_hook_active: bool,
    /// What it said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
    /// What still runs beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
    /// What will start by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_crons: Option<Vec<SessionCronSummary>>,
}

/// The turn failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopFailure {
    /// What kind of failure it was.
    pub error: FailureKind,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_details: Option<String>,
    /// What the model said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
}

/// A subagent began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentStart {
    /// The subagent.
    pub agent_id: String,
    /// Its kind.
    pub agent_type: String,
}

/// A subagent is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentStop {
    /// Whether a hook already made it go on.
    pub stop_hook_active: bool,
    /// The subagent.
    pub agent_id: String,
    /// The file with its transcript.
    pub agent_transcript_path: String,
    /// Its kind.
    pub agent_type: String,
    /// What it said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
    /// What still runs beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_tasks: Option<Vec<BackgroundTaskSummary>>,
    /// What will start by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_crons: Option<Vec<SessionCronSummary>>,
}

/// Something that runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackgroundTaskSummary {
    /// The task.
    pub id: String,
    /// What sort of task it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it is.
    pub status: String,
    /// What it does.
    pub description: String,
    /// The command that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The kind of subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Something that starts by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCronSummary {
    /// Its name.
    pub id: String,
    /// When.
    pub schedule: String,
    /// Whether more than once.
    pub recurring: bool,
    /// What will be asked.
    pub prompt: String,
}

/// The conversation is about to be made shorter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreCompact {
    /// Who wants it.
    pub trigger: CompactTrigger,
    /// What the person wants to be kept.
    #[serde(default)]
    pub custom_instructions: Option<String>,
}

/// The conversation was made shorter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostCompact {
    /// Who wanted it.
    pub trigger: CompactTrigger,
    /// What is left of it.
    pub compact_summary: String,
}

/// Another model is about to be used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreModelSwitch {
    /// The model so far.
    pub from_model: String,
    /// The model from now on.
    pub to_model: String,
    /// The name that was asked for.
    #[serde(default)]
    pub requested_model: Option<String>,
    /// Who wants it: `command`, `picker` or `sdk`.
    pub source: String,
    /// Tokens in the context.
    #[serde(deserialize_with = "count")]
    pub context_tokens: u64,
    /// Whether the provider remembers the context.
    pub prompt_cache_warm: bool,
    /// How long it does: `5m` or `1h`.
    pub cache_ttl: String,
    /// What it will cost to tell it to the other model.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from: `configured`, `catalog` or `default`.
    pub pricing: String,
}

/// Another model is in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostModelSwitch {
    /// The model so far.
    pub from_model: String,
    /// The model from now on.
    pub to_model: String,
    /// The name that was asked for.
    #[serde(default)]
    pub requested_model: Option<String>,
    /// Who wanted it: `command`, `picker`, `sdk`, `auto` or `resume`.
    pub source: String,
    /// Tokens in the context.
    #[serde(deserialize_with = "count")]
    pub context_tokens: u64,
    /// Whether the provider remembered the context.
    pub prompt_cache_warm: bool,
    /// How long it does: `5m` or `1h`.
    pub cache_ttl: String,
    /// What it costs to tell it to the other model.
    pub estimated_cache_write_usd: f64,
    /// Where the price comes from: `configured`, `catalog` or `default`.
    pub pricing: String,
}

/// The engine is being set up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setup {
    /// Why: `init` or `maintenance`.
    pub trigger: String,
}

/// A teammate has nothing to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeammateIdle {
    /// The teammate.
    pub teammate_name: String,
    /// The team.
    pub team_name: String,
}

/// A task was put on the list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskCreated {
    /// The task.
    pub task_id: String,
    /// What it is about.
    pub task_subject: String,
    /// What is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teammate_name: Option<String>,
    /// The team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
}

/// A task on the list was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskCompleted {
    /// The task.
    pub task_id: String,
    /// What it was about.
    pub task_subject: String,
    /// What was to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teammate_name: Option<String>,
    /// The team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
}

/// An MCP server asks the person something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElicitationHook {
    /// The server.
    pub mcp_server_name: String,
    /// The question.
    pub message: String,
    /// `form` or `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Where to answer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Names the question, when it is answered elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// The shape of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
}

/// The person answered an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElicitationResult {
    /// The server.
    pub mcp_server_name: String,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// `form` or `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether there is an answer.
    pub action: ElicitationAction,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// Settings changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigChange {
    /// Whose: `user_settings`, `project_settings`, `local_settings`, `policy_settings` or `skills`.
    pub source: String,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
}

/// An instruction file was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstructionsLoaded {
    /// The file.
    pub file_path: String,
    /// Whose: `User`, `Project`, `Local` or `Managed`.
    pub memory_type: String,
    /// Why: `session_start`, `nested_traversal`, `path_glob_match`, `include` or `compact`.
    pub load_reason: String,
    /// The files it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globs: Option<Vec<String>>,
    /// The file that made it matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_file_path: Option<String>,
    /// The file that includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_file_path: Option<String>,
}

/// A work tree is wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeCreate {
    /// Its name.
    pub name: String,
}

/// A work tree is no longer wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeRemove {
    /// Its directory.
    pub worktree_path: String,
}

/// The working directory changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CwdChanged {
    /// From here.
    pub old_cwd: String,
    /// To here.
    pub new_cwd: String,
}

/// A watched file changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChanged {
    /// The file.
    pub file_path: String,
    /// How: `change`, `add` or `unlink`.
    pub event: String,
}

/// A directory was added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectoryAdded {
    /// The directory.
    pub directory: String,
    /// By whom: `slash_command` or `register_repo_root`.
    pub source: String,
}

/// Text of the model is about to be shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageDisplay {
    /// The turn.
    pub turn_id: String,
    /// The message.
    pub message_id: String,
    /// Which piece of the message, from 0.
    #[serde(deserialize_with = "count")]
    pub index: u64,
    /// Whether it is the last piece.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// The text.
    pub delta: String,
}
