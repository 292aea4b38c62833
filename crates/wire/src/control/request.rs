//! Control requests, one struct each. `Initialize` has its own file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hook::HookInput;
use crate::lenient::{nullable, nullable_count, optional_count, or_default};
use crate::options::{McpServerConfig, OutputFormat, PluginConfig};
use crate::permission::{McpServerProvenance, PermissionMode, PermissionUpdate};
use crate::raw::RawJson;

/// Stop the running turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interrupt {
    /// Also drop the prompts that wait behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_queued: Option<bool>,
    /// Interrupt only the turn that answers this prompt. If the prompt still waits, it is dropped and reported in
    /// `cancelled`; if it has been answered, nothing happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<String>,
}

/// Change the permission mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPermissionMode {
    /// The new mode.
    pub mode: PermissionMode,
}

/// Change the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModel {
    /// The new model; none means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Change how much the model may think.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetMaxThinkingTokens {
    /// The limit; null means the default, and absence that it stays.
    #[serde(default, deserialize_with = "nullable_count", skip_serializing_if = "Option::is_none")]
    pub max_thinking_tokens: Option<Option<u64>>,
    /// How to show it: `summarized`, `omitted` or `highlights`; null means the default, and absence that it stays.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    pub thinking_display: Option<Option<String>>,
}

/// Give the session another title.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenameSession {
    /// The title.
    pub title: String,
    /// Who wants it: `remote` or `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The session, when it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Give the session a colour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetColor {
    /// The colour.
    pub color: String,
}

/// What fills the context?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetContextUsage {
    /// `summary` or `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What did the session cost, as text?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetSessionCost {}

/// What did the session and the account spend?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetUsage {
    /// Leave out the part about habits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_behaviors: Option<bool>,
}

/// Which models are there?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListModels {}

/// Which build of the engine is this?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetBinaryVersion {}

/// Which files fit what the person types?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSuggestions {
    /// What was typed.
    pub query: String,
}

/// What is in this file?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadFile {
    /// The file.
    pub path: String,
    /// How much of it to read.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// `utf-8` or `base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// The host knows what is in this file; the model may change it without reading it first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeedReadState {
    /// The file.
    pub path: String,
    /// When it was changed, in milliseconds since 1970.
    pub mtime: f64,
}

/// Put the files back to where they were at this prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindFiles {
    /// The prompt.
    pub user_message_id: String,
    /// Only say what would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Go back to where the session was before a prompt. Refused while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindSession {
    /// The prompt; or the `undo_id` of an earlier rewind, to undo that one.
    pub user_message_id: String,
    /// What goes back.
    pub restore: RewindScope,
    /// Only say what would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// What a rewind puts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    /// The conversation.
    Conversation,
    /// The files, as `rewind_files` does.
    Files,
    /// Conversation and files.
    Both,
}

/// Ask again for the calls that were recorded but never began, because the engine ended before; and run what is allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumePendingCalls {}

/// Work in this directory, too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterRepoRoot {
    /// The directory.
    pub directory: String,
    /// Read its instruction files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_claude_md: Option<bool>,
    /// Load its plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_plugins: Option<bool>,
    /// Load its skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_skills: Option<bool>,
}

/// Drop a prompt that waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelAsyncMessage {
    /// The prompt.
    pub message_uuid: String,
}

/// Stop a background task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopTask {
    /// The task.
    pub task_id: String,
}

/// Let running calls go on in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackgroundTasks {
    /// The call; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}

/// What has a background task written?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetTaskOutput {
    /// The task.
    pub task_id: String,
}

/// Send the output of running commands while they print it, as `tool_output` frames, or stop doing so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribeToolOutput {
    /// Whether the host wants the frames from now on.
    pub enabled: bool,
}

/// Change the settings that were given at the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplyFlagSettings {
    /// The changes; null removes a setting.
    pub settings: Map<String, Value>,
}

/// Which settings are in force?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetSettings {}

/// Change a settings file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateSettings {
    /// Which: `localSettings` or `userSettings`.
    pub source: String,
    /// The changes.
    pub settings: Map<String, Value>,
}

/// Which permission rules are in force?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListPermissionRules {}

/// Change permission rules, directories or the mode, as an answer to a permission request can.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdatePermissions {
    /// The changes.
    pub updates: Vec<PermissionUpdate>,
}

/// Which hooks are in force?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetHooksListing {}

/// Load the plugins anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadPlugins {
    /// Do nothing if it would spoil the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_on_cache_impact: Option<bool>,
    /// Plugins to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_plugins: Option<Vec<PluginConfig>>,
    /// Do nothing while a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse_if_busy: Option<bool>,
}

/// Load the skills anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadSkills {}

/// Load the output styles anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadOutputStyles {}

/// How are the MCP servers?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpStatus {
    /// Ask them now rather than telling what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_reply: Option<bool>,
}

/// Use these MCP servers instead of those set before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpSetServers {
    /// The servers, by name.
    pub servers: BTreeMap<String, McpServerConfig>,
}

/// Connect to an MCP server anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpReconnect {
    /// The server.
    pub server_name: String,
}

/// Switch an MCP server on or off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpToggle {
    /// The server.
    pub server_name: String,
    /// On or off.
    pub enabled: bool,
}

/// Call a tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpCall {
    /// The tool.
    pub tool: String,
    /// Its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// After this time there is no point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// How long it may take.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the model hears nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_not_for_model: Option<bool>,
    /// Whether the permission rules apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_permissions: Option<bool>,
    /// Files that the call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_files: Option<Vec<Value>>,
    /// Files that the call makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_files: Option<Vec<Value>>,
}

/// What is in a resource of an MCP server?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpReadResource {
    /// The server.
    pub server_name: String,
    /// The resource.
    pub uri: String,
}

/// Use another permission mode for the tools of one MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetMcpPermissionModeOverride {
    /// The server.
    pub server_name: String,
    /// `default` or `auto`; none means the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
}

/// Forward the reply of the model while it streams, or stop doing so, from the next model call on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPartialMessages {
    /// Whether `stream_event` frames are sent.
    pub enabled: bool,
}

/// Change the format that answers must have, from the next turn on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetOutputFormat {
    /// The format; null means free text.
    #[serde(default)]
    pub format: Option<OutputFormat>,
}

/// Tells the engine whether the frames are shown to a user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetHasSubscribers {
    /// Yes, no, or not known.
    #[serde(default)]
    pub has_subscribers: Option<bool>,
}

/// Let the session be driven from elsewhere. The engine does not look at its fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteControl {}

/// Make up a title.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GenerateSessionTitle {
    /// What the session is about.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Whether to keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
}

/// Answer a question without making it part of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideQuestion {
    /// The question.
    #[serde(default, deserialize_with = "or_default")]
    pub question: String,
}

/// The person rated an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageRated {
    /// Whether the rating was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<bool>,
}

/// May this call be made?
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CanUseTool {
    /// The tool.
    pub tool_name: String,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServerProvenance>,
    /// Its input.
    pub input: Map<String, Value>,
    /// Changes of rules that would settle it for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_suggestions: Option<Vec<PermissionUpdate>>,
    /// The path that is the reason for asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// The reason for asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
    /// What asks: `rule`, `mode`, `subcommandResults`, `hook`, `workingDir`, `safetyCheck`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<String>,
    /// Whether a classifier could answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier_approvable: Option<bool>,
    /// Whether "always" should not be offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_always_allow_rule: Option<bool>,
    /// Whether "no" should be the first choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_to_no: Option<bool>,
    /// The rule that says ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_ask_rule: Option<MatchedAskRule>,
    /// A heading to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The call.
    pub tool_use_id: String,
    /// The subagent that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What the call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether only a person can answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_user_interaction: Option<bool>,
}

/// Compare an input with the schema of a tool, without running it. Not part of the official protocol.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckToolInput {
    /// The tool.
    pub tool_name: String,
    /// The input.
    pub input: Map<String, Value>,
}

/// The rule that says ask.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchedAskRule {
    /// Where it is kept.
    pub source: String,
    /// The tool.
    pub tool_name: String,
    /// Which calls of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// A hook of the host has to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookCallback {
    /// The hook.
    pub callback_id: String,
    /// What happened.
    pub input: HookInput,
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}

/// A message to or from an MCP server that the host runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpMessage {
    /// The server.
    pub server_name: String,
    /// The JSON-RPC message.
    pub message: RawJson,
}

/// An MCP server asks the person something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Elicitation {
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
    /// The order of the form's fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property_order: Option<Vec<String>>,
    /// A heading to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Show a dialog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestUserDialog {
    /// Which.
    pub dialog_kind: String,
    /// What it is about.
    pub payload: Map<String, Value>,
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}
