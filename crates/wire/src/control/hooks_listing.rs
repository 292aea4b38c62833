//! The reply to `get_hooks_listing`.

use serde::{Deserialize, Serialize};

use crate::lenient::{count, or_default};

/// The hooks of the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HooksListing {
    /// Events that have hooks.
    #[serde(default, deserialize_with = "or_default")]
    pub events: Vec<HookEventCount>,
    /// The hooks, in the order in which they were registered.
    #[serde(default, deserialize_with = "or_default")]
    pub hooks: Vec<HookInfo>,
    /// All events.
    #[serde(default, deserialize_with = "or_default")]
    pub event_catalog: Vec<HookEventInfo>,
    /// Settings that decide which hooks run.
    #[serde(default)]
    pub policy: Option<HookPolicy>,
}

/// Number of hooks of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookEventCount {
    /// The event.
    pub event: String,
    /// Number of its hooks.
    #[serde(default, deserialize_with = "count")]
    pub hook_count: u64,
}

/// A hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookInfo {
    /// The event.
    pub event: String,
    /// Matcher as written; none matches everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Who registered it: a source of settings, `pluginHook`, or `sessionHook` for the host, an agent or a skill.
    #[serde(default, deserialize_with = "or_default")]
    pub source: String,
    /// The plugin that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_name: Option<String>,
    /// File and line, or another description, for people.
    #[serde(default, deserialize_with = "or_default")]
    pub origin: String,
    /// `command`, `http`, `callback`, or `unavailable` if it cannot run and blocks.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// Command of a command hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// URL of an HTTP hook, without query and fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Id of the host's callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_id: Option<String>,
    /// Why it cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Timeout in seconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timeout: f64,
    /// Permission rule that the call must match.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `block` if a failure blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Whether it runs in the background.
    #[serde(default, rename = "async", skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Whether it runs only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
}

/// An event that hooks can receive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookEventInfo {
    /// Its name.
    pub name: String,
    /// When it occurs.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Field of the input that matchers are compared with; none if they are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher_field: Option<String>,
    /// Whether this engine raises it.
    #[serde(default, deserialize_with = "or_default")]
    pub supported: bool,
}

/// Settings that decide which hooks run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookPolicy {
    /// Sources that set `disableAllHooks`.
    #[serde(default, deserialize_with = "or_default")]
    pub disabled_by: Vec<String>,
    /// Whether only an administrator's hooks run.
    #[serde(default, deserialize_with = "or_default")]
    pub allow_managed_hooks_only: bool,
    /// Whether hooks of plugins run.
    #[serde(default, deserialize_with = "or_default")]
    pub plugin_hooks_enabled: bool,
}
