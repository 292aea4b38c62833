//! Rarer frames beside the conversation: authentication, rate limits, suggestions, environment, transcript mirror.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lenient::{count, optional_count, or_default};
use crate::raw::RawJson;

/// A line that sums up what some tool calls did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseSummary {
    /// The line.
    pub summary: String,
    /// The calls.
    #[serde(default, deserialize_with = "or_default")]
    pub preceding_tool_use_ids: Vec<String>,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// How far a login is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuthStatus {
    /// Whether one goes on.
    #[serde(rename = "isAuthenticating")]
    pub is_authenticating: bool,
    /// What to show.
    #[serde(default, deserialize_with = "or_default")]
    pub output: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// How much of the provider's rate limit is left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateLimitEvent {
    /// The figures.
    pub rate_limit_info: RateLimitInfo,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// Figures of a rate limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RateLimitInfo {
    /// Whether requests are let through.
    pub status: RateLimitStatus,
    /// When the limit starts anew, in seconds since 1970.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<u64>,
    /// Which limit it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_type: Option<String>,
    /// How much of it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Whether requests beyond the limit are let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_status: Option<String>,
    /// When the limit for those starts anew.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub overage_resets_at: Option<u64>,
    /// Why there is nothing beyond the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_disabled_reason: Option<String>,
    /// Whether requests are beyond the limit now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_using_overage: Option<bool>,
    /// The warning mark that was passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surpassed_threshold: Option<f64>,
}

/// Whether a rate limit lets requests through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RateLimitStatus {
    /// It does.
    #[default]
    Allowed,
    /// It does, but not for long.
    AllowedWarning,
    /// It does not.
    Rejected,
    /// Anything newer.
    #[serde(untagged)]
    Other(String),
}

/// What the person might ask next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptSuggestion {
    /// The prompt.
    pub suggestion: String,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// The conversation starts anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConversationReset {
    /// The new one.
    pub new_conversation_id: String,
    /// Why: `clear`, `plan_mode_exit`, `fresh_session` or `onboarding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The prompt that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<String>,
    /// When, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// The goal that the session works towards changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveGoal {
    /// The goal; none when there is none any more.
    #[serde(default)]
    pub value: Option<Goal>,
    /// This message's own id.
    #[serde(default, deserialize_with = "or_default")]
    pub uuid: String,
    /// The session.
    #[serde(default, deserialize_with = "or_default")]
    pub session_id: String,
}

/// A goal that a session works towards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goal {
    /// What has to be true in the end.
    pub condition: String,
    /// How often it was looked at.
    #[serde(deserialize_with = "count")]
    pub iterations: u64,
    /// When it was set, in milliseconds since 1970.
    #[serde(deserialize_with = "count")]
    pub set_at: u64,
    /// Tokens spent before it was set.
    #[serde(deserialize_with = "count")]
    pub tokens_at_start: u64,
    /// Why it was not reached the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
}

/// A sign of life. It has no answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeepAlive {}

/// Environment variables that the host sets or changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnvironmentUpdate {
    /// Name to value.
    #[serde(default, deserialize_with = "or_default")]
    pub variables: BTreeMap<String, String>,
}

/// Lines that were added to a transcript, for a host that keeps its own store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptMirror {
    /// The transcript.
    #[serde(rename = "filePath")]
    pub file_path: String,
    /// The lines.
    #[serde(default, deserialize_with = "or_default")]
    pub entries: Vec<RawJson>,
}
