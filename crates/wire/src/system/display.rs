//! `system` frames for the user: running hooks, messages to display, denied permissions.

use serde::{Deserialize, Serialize};

use crate::lenient::optional_count;

/// A hook began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookStarted {
    /// This run of the hook.
    pub hook_id: String,
    /// The hook.
    pub hook_name: String,
    /// The event that it answers.
    pub hook_event: String,
}

/// A hook wrote something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookProgress {
    /// This run of the hook.
    pub hook_id: String,
    /// The hook.
    pub hook_name: String,
    /// The event that it answers.
    pub hook_event: String,
    /// What it wrote so far.
    pub stdout: String,
    /// What it complained so far.
    pub stderr: String,
    /// Both, in order.
    pub output: String,
}

/// A hook ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookResponse {
    /// This run of the hook.
    pub hook_id: String,
    /// The hook.
    pub hook_name: String,
    /// The event that it answers.
    pub hook_event: String,
    /// All it wrote, in order.
    pub output: String,
    /// Its output.
    pub stdout: String,
    /// Its complaints.
    pub stderr: String,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How it ended.
    pub outcome: HookOutcome,
}

/// How a hook ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookOutcome {
    /// Well.
    #[default]
    Success,
    /// Badly.
    Error,
    /// It was stopped.
    Cancelled,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// What a slash command printed that the engine answered itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalCommandOutput {
    /// The text.
    pub content: String,
}

/// Plugins are being installed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PluginInstall {
    /// `started`, `installed`, `failed` or `completed`.
    pub status: String,
    /// The plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A short message to show for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notification {
    /// A later message with the same key replaces it.
    pub key: String,
    /// The message.
    pub text: String,
    /// `low`, `medium`, `high` or `immediate`.
    pub priority: String,
    /// Its colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// How long to show it.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A message to show in the conversation that the model does not read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Informational {
    /// The message.
    pub content: String,
    /// How much it matters.
    pub level: InformationLevel,
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// Whether the turn ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prevent_continuation: Option<bool>,
    /// What sort of message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// How much a message matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InformationLevel {
    /// Good to know.
    #[default]
    Info,
    /// Worth a look.
    Notice,
    /// Something to try.
    Suggestion,
    /// Something is wrong.
    Warning,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// A question that an MCP server asked elsewhere was answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElicitationComplete {
    /// The server.
    pub mcp_server_name: String,
    /// The question.
    pub elicitation_id: String,
}

/// A call was refused without asking the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionDenied {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// The subagent that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What refused it: `rule`, `mode`, `hook`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
    /// What the model was told.
    pub message: String,
}

/// A line on the engine's input could not be read. Our own addition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WireErrorNotice {
    /// What is wrong with it.
    pub message: String,
    /// The beginning of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}
