//! `system` frames about model requests: retries, fallback models, thinking.

use serde::{Deserialize, Serialize};

use crate::lenient::{count, optional_count};
use crate::message::FailureKind;

/// A model call failed and will be made again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiRetry {
    /// Which repetition this is, from 1.
    #[serde(deserialize_with = "count")]
    pub attempt: u64,
    /// How many there will be at most.
    #[serde(deserialize_with = "count")]
    pub max_retries: u64,
    /// How long the engine waits before it.
    #[serde(deserialize_with = "count")]
    pub retry_delay_ms: u64,
    /// The HTTP status; none when there was no answer.
    #[serde(default)]
    pub error_status: Option<u16>,
    /// What kind of failure it was.
    pub error: FailureKind,
    /// Set when the provider said nothing for too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_response: Option<NoResponse>,
}

/// A call that the provider left unanswered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoResponse {
    /// How long the engine had waited.
    #[serde(deserialize_with = "count")]
    pub waited_ms: u64,
    /// How long it will wait the next time.
    #[serde(deserialize_with = "count")]
    pub retry_wait_ms: u64,
}

/// A control request takes long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlRequestProgress {
    /// The request.
    pub request_id: String,
    /// `started` or `api_retry`.
    pub status: String,
    /// Which repetition of the model call this is.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// How many there will be at most.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u64>,
    /// How long the engine waits before it.
    #[serde(default, deserialize_with = "optional_count", skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    /// The HTTP status of the failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_status: Option<u16>,
}

/// The model declined and another one is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelRefusalFallback {
    /// Always `refusal`.
    pub trigger: String,
    /// `retry`, `revert` or `sticky`.
    pub direction: String,
    /// `session` or `local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The model that declined.
    pub original_model: String,
    /// The model that is asked.
    pub fallback_model: String,
    /// The provider's id of the declined request.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The provider's reason, as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_refusal_category: Option<String>,
    /// The provider's reason, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_refusal_explanation: Option<String>,
    /// Messages that no longer count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retracted_message_uuids: Option<Vec<String>>,
    /// The prompt that was declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_user_message_uuid: Option<String>,
    /// A sentence to show.
    pub content: String,
}

/// The model declined and no other one is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelRefusalNoFallback {
    /// The model that declined.
    pub original_model: String,
    /// The provider's id of the declined request.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The provider's reason, as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_refusal_category: Option<String>,
    /// The provider's reason, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_refusal_explanation: Option<String>,
    /// The prompt that was declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_user_message_uuid: Option<String>,
    /// A sentence to show.
    pub content: String,
}

/// The model is not available and another one is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelFallback {
    /// Why, as a word: `overloaded`, `model_not_found`, ...
    pub trigger: String,
    /// The model that was wanted.
    pub original_model: String,
    /// The model that is asked.
    pub fallback_model: String,
    /// A sentence to show.
    pub content: String,
}

/// How much the model has thought so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingTokens {
    /// Tokens since the reply began.
    #[serde(deserialize_with = "count")]
    pub estimated_tokens: u64,
    /// Tokens since the last such notice.
    #[serde(deserialize_with = "count")]
    pub estimated_tokens_delta: u64,
    /// The prompt that it thinks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<String>,
}
