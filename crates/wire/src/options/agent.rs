//! Agent definitions and plugins.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Effort;
use crate::lenient::{is_default, or_default};
use crate::permission::PermissionMode;

/// A kind of subagent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// When to use it; the model reads this.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use. None: those of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools it may not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disallowed_tools: Option<Vec<String>>,
    /// Its model. None, or `inherit`: that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its MCP servers: names, or names with configurations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<Value>>,
    /// Something that the model is reminded of again and again.
    #[serde(
        default,
        rename = "criticalSystemReminder_EXPERIMENTAL",
        skip_serializing_if = "Option::is_none"
    )]
    pub critical_system_reminder: Option<String>,
    /// Its skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// How many model calls it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Its first prompt, when the session itself is of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_prompt: Option<String>,
    /// When it makes room, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compact_window: Option<u64>,
    /// Whether it runs in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Whether it does not see the instruction files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omit_claude_md: Option<bool>,
    /// Whose memory it keeps: `user`, `project` or `local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Where it works, if not where its parent does: `worktree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// How hard its model tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<AgentEffort>,
    /// What it may do without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Who watches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Value>,
    /// What the watcher is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer_message: Option<String>,
}

/// How hard the model of an agent tries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AgentEffort {
    /// By a name.
    Named(Effort),
    /// By a number, which means nothing to most models.
    Number(f64),
}

/// A plugin to load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginConfig {
    /// Always `local`.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// Its folder.
    pub path: String,
    /// Whether its MCP servers are left alone.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub skip_mcp_discovery: bool,
}

impl PluginConfig {
    /// Creates the configuration of a plugin in a local directory.
    pub fn local(path: impl Into<String>) -> Self {
        Self { kind: "local".into(), path: path.into(), skip_mcp_discovery: false }
    }
}
