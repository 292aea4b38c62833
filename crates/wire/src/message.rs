//! Messages of the conversation: what the engine sends and a host displays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Block, Content, Role, StopReason, Usage};
use crate::lenient::count;
use crate::raw::RawJson;

/// Model name on messages that no model wrote.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// One block of the model's reply. An engine writes one such message per content block; those of one reply share `message.id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Assistant {
    /// The reply, holding this one block.
    pub message: Reply,
    /// The `Agent` call below which this was said; none on the main line.
    pub parent_tool_use_id: Option<String>,
    /// This message's own id.
    #[serde(default)]
    pub uuid: String,
    /// The session.
    #[serde(default)]
    pub session_id: String,
    /// Set when this is not the model's reply but the report of a failed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureKind>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Set on what had arrived of a reply that was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<bool>,
    /// The prompt that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<String>,
    /// The prompts that this answers, when several were joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuids: Option<Vec<String>>,
    /// Why the turn was taken up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_reason: Option<String>,
    /// Messages that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// The subagent that spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// What it was asked to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
    /// When it was said, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// How full the context is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<Value>,
    /// Spend so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_report: Option<Value>,
}

/// The model's reply, in the shape of the Messages API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reply {
    /// The provider's id of the reply.
    #[serde(default)]
    pub id: String,
    /// Always `message`.
    #[serde(default = "default_message_type", rename = "type")]
    pub kind: String,
    /// Always the assistant.
    #[serde(default = "default_assistant_role")]
    pub role: Role,
    /// The model that answered.
    pub model: String,
    /// The blocks.
    pub content: Vec<Block>,
    /// Why it stopped; null while later blocks are still to come.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that appeared.
    #[serde(default)]
    pub stop_sequence: Option<String>,
    /// Tokens, as far as known when the block ended.
    #[serde(default)]
    pub usage: Usage,
}

fn default_message_type() -> String {
    "message".into()
}

fn default_assistant_role() -> Role {
    Role::Assistant
}

/// What kind of failure an [`Assistant`] message reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The key or token was refused.
    AuthenticationFailed,
    /// The account cannot pay.
    BillingError,
    /// Too many requests.
    RateLimit,
    /// The provider refused the request as malformed.
    InvalidRequest,
    /// The provider failed.
    ServerError,
    /// The provider is overloaded.
    Overloaded,
    /// There is no such model, or not for this account.
    ModelNotFound,
    /// The reply hit the output limit too often.
    MaxOutputTokens,
    /// The organisation may not use this login.
    OauthOrgNotAllowed,
    /// The account is on hold.
    AccountOnHold,
    /// The account must be verified.
    VerificationRequired,
    /// The cloud provider's credentials failed.
    CloudCredentialError,
    /// None of the above.
    #[default]
    Unknown,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// Something said to the model: a prompt, or the result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// What is said.
    pub message: Said,
    /// The `Agent` call below which this was said; none on the main line.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// This message's own id; the engine makes one when the host gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The session. Engines ignore it on input.
    #[serde(default)]
    pub session_id: String,
    /// Set when the engine said it, not the person.
    #[serde(default, rename = "isSynthetic", skip_serializing_if = "Option::is_none")]
    pub is_synthetic: Option<bool>,
    /// Set on an echo of a message that the host sent.
    #[serde(default, rename = "isReplay", skip_serializing_if = "Option::is_none")]
    pub is_replay: Option<bool>,
    /// The tool's own, structured result; or the text `Error: ...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Value>,
    /// How the command of a failed call ended. Not part of the official protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_exit: Option<CommandExit>,
    /// How urgent it is while a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Where the message came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// False: add it to the conversation, ask the model later.
    #[serde(default, rename = "shouldQuery", skip_serializing_if = "Option::is_none")]
    pub should_query: Option<bool>,
    /// When it was said, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The host composed it; take it to the letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_composed: Option<bool>,
    /// Content that was pasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pasted_content: Option<Vec<Content>>,
    /// Pasted pieces of the text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_pastes: Option<Vec<String>>,
    /// Files that came along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_attachments: Option<Vec<Value>>,
    /// The subagent concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// What it was asked to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
}

/// How a command ended: with an exit code, or by a signal. Neither is known of a command that was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandExit {
    /// The exit code, unless a signal ended the command.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The name of the signal, such as `SIGKILL`.
    #[serde(default)]
    pub signal: Option<String>,
}

impl User {
    /// Creates a prompt as a host sends it.
    pub fn prompt(content: impl Into<Content>) -> Self {
        Self {
            message: Said { role: Role::User, content: content.into() },
            parent_tool_use_id: None,
            uuid: None,
            session_id: String::new(),
            is_synthetic: None,
            is_replay: None,
            tool_use_result: None,
            command_exit: None,
            priority: None,
            origin: None,
            should_query: None,
            timestamp: None,
            client_composed: None,
            pasted_content: None,
            inline_pastes: None,
            file_attachments: None,
            agent_id: None,
            subagent_type: None,
            task_description: None,
        }
    }

    /// Sets how urgent it is while a turn runs.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self::Blocks(blocks)
    }
}

/// A plain text is a prompt.
impl From<&str> for User {
    fn from(text: &str) -> Self {
        Self::prompt(text)
    }
}

impl From<String> for User {
    fn from(text: String) -> Self {
        Self::prompt(text)
    }
}

/// A message as the Messages API takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// Who speaks.
    #[serde(default = "default_user_role")]
    pub role: Role,
    /// What.
    pub content: Content,
}

fn default_user_role() -> Role {
    Role::User
}

/// How urgent a prompt is that arrives while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// It interrupts the running turn, and the next one begins with it.
    Now,
    /// It is added before the next model call of the running turn.
    Next,
    /// It waits for the end of the running turn; the default.
    Later,
}

/// Where a message came from: a kind, and what that kind adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// `human`, `task-notification`, `peer`, `channel`, ...
    pub kind: String,
    /// Further fields, which depend on the kind.
    #[serde(flatten)]
    pub details: serde_json::Map<String, Value>,
}

/// The end of a turn. It does not end the run: further turns may follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnResult {
    /// How the turn ended.
    pub subtype: Outcome,
    /// Whether it failed. A failed API call is `success` with `is_error` set.
    pub is_error: bool,
    /// Wall time of the turn.
    pub duration_ms: u64,
    /// Of it, time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Model calls plus tool results, as the official engine counts them.
    pub num_turns: u32,
    /// The model's last text. Only with `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What went wrong. Only with the error subtypes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
    /// Why the model stopped last.
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    /// The session.
    #[serde(default)]
    pub session_id: String,
    /// Dollars spent by this process so far.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// Tokens of this turn.
    #[serde(default)]
    pub usage: Usage,
    /// Tokens and dollars of this process so far, by model.
    #[serde(default, rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Calls that were not permitted in this turn.
    #[serde(default)]
    pub permission_denials: Vec<Denial>,
    /// The answer in the shape that the host asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// A finer reason for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<TerminalReason>,
    /// The HTTP status of a failed API call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// What started the turn, when it was not a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Milliseconds to the first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    /// Turns that wait behind this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_turn_count: Option<u32>,
    /// Which result of this process this is, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_index: Option<u32>,
    /// The prompt that this answers; the first one when several were joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<String>,
    /// All prompts that this answers, when several were joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuids: Option<Vec<String>>,
    /// The slash command that the engine answered itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_command: Option<String>,
    /// Why the engine could not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_failure_reason: Option<String>,
    /// A call that a hook put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred_tool_use: Option<Value>,
    /// This message's own id.
    #[serde(default)]
    pub uuid: String,
}

impl TurnResult {
    /// Returns whether this answers the prompt with this uuid.
    pub fn answers(&self, prompt: &str) -> bool {
        self.user_message_uuid.as_deref() == Some(prompt)
            || self.user_message_uuids.iter().flatten().any(|uuid| uuid == prompt)
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The model finished, or its API failed (`is_error`).
    Success,
    /// Interrupted, or the engine could not go on.
    ErrorDuringExecution,
    /// Too many model calls.
    ErrorMaxTurns,
    /// Too many dollars.
    ErrorMaxBudgetUsd,
    /// The structured answer never fitted its schema.
    ErrorMaxStructuredOutputRetries,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// A finer reason for the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum TerminalReason {
    Completed,
    MaxTurns,
    BudgetExhausted,
    ApiError,
    AbortedStreaming,
    AbortedTools,
    PromptTooLong,
    ImageError,
    ModelError,
    BlockingLimit,
    RapidRefillBreaker,
    MalformedToolUseExhausted,
    StopHookPrevented,
    HookStopped,
    ToolDeferred,
    ToolDeferredUnavailable,
    BackgroundRequested,
    StructuredOutputRetryExhausted,
    SessionConflict,
    TurnSetupFailed,
    #[serde(untagged)]
    Other(String),
}

/// Tokens and dollars of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// Tokens read at the full price.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Searches at the provider.
    pub web_search_requests: u64,
    /// Dollars.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// The model's window; 0 when unknown.
    pub context_window: u64,
    /// The model's output limit; 0 when unknown.
    pub max_output_tokens: u64,
    /// `unknown` when the catalog has no price for the model, so that `costUSD` lacks its share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<String>,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: Value,
}

/// A raw event of the model's stream. Only sent when the host asked for partial messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamEvent {
    /// The provider's event, untouched.
    pub event: RawJson,
    /// The `Agent` call below which it happened; none on the main line.
    pub parent_tool_use_id: Option<String>,
    /// The session.
    #[serde(default)]
    pub session_id: String,
    /// This message's own id.
    #[serde(default)]
    pub uuid: String,
    /// On the first event: milliseconds to the first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
}

/// A long-running tool is still at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolProgress {
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// The `Agent` call above it.
    pub parent_tool_use_id: Option<String>,
    /// How long it has run.
    pub elapsed_time_seconds: f64,
    /// The background task it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Set on a sign of life without news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<bool>,
    /// The kind of subagent at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// Set while a subagent repeats a failed API call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_retry: Option<Value>,
    /// What the tool itself says about its progress; only for hosts that asked for such details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressDetails>,
    /// This message's own id.
    #[serde(default)]
    pub uuid: String,
    /// The session.
    #[serde(default)]
    pub session_id: String,
}

/// Text that a running command printed, for a host that subscribed with `subscribe_tool_output`. It is sent while the
/// command runs and is neither recorded nor repeated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolOutputChunk {
    /// The call that started the command.
    pub tool_use_id: String,
    /// The background task, once the command runs in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The `Agent` call above it; none on the main line.
    pub parent_tool_use_id: Option<String>,
    /// The subagent that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Stdout and stderr in the order printed, without escape sequences.
    pub text: String,
    /// Bytes of text that were left out before `text`, because the command printed faster than the host read.
    #[serde(default, deserialize_with = "count")]
    pub omitted_bytes: u64,
    /// This message's own id.
    #[serde(default)]
    pub uuid: String,
    /// The session.
    #[serde(default)]
    pub session_id: String,
}

/// What a tool says about its progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressDetails {
    /// The amount done.
    pub done: f64,
    /// The amount at which the call is complete, if the tool knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
