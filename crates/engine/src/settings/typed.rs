//! The keys that the engine acts on, in types. Rules, mode, directories, variables and hooks are not among them: where
//! they come from matters, so they are kept apart.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Single values and lists, merged over all layers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypedSettings {
    /// The model to use.
    pub model: Option<String>,
    /// The models to use when it is not to be had, in this order.
    pub fallback_model: Vec<String>,
    /// How hard the model tries.
    pub effort_level: Option<String>,
    /// Whether the model thinks before it answers.
    pub always_thinking_enabled: Option<bool>,
    /// The kind of agent that the session itself is.
    pub agent: Option<String>,
    /// How answers are styled.
    pub output_style: Option<String>,
    /// The language of answers.
    pub language: Option<String>,
    /// A command that prints the key for the model's provider.
    pub api_key_helper: Option<String>,
    /// The command of the status line.
    pub status_line: Option<Map<String, Value>>,
    /// A command that suggests files.
    pub file_suggestion: Option<Map<String, Value>>,
    /// The sandbox.
    pub sandbox: Map<String, Value>,
    /// Whether all MCP servers of the project are approved.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// The project's MCP servers that are approved.
    pub enabled_mcpjson_servers: Vec<String>,
    /// The project's MCP servers that are refused.
    pub disabled_mcpjson_servers: Vec<String>,
    /// Whether commits name the agent as an author.
    pub include_co_authored_by: Option<bool>,
    /// Whether the prompt says how to use git.
    pub include_git_instructions: Option<bool>,
    /// Whether ignored files are left out where files are listed.
    pub respect_gitignore: Option<bool>,
    /// How many days transcripts are kept.
    pub cleanup_period_days: Option<f64>,
    /// Whether the engine makes room in the context by itself.
    pub auto_compact_enabled: Option<bool>,
    /// Whether files can be put back to where they were at a prompt.
    pub file_checkpointing_enabled: Option<bool>,
    /// Instruction files that are not read.
    pub claude_md_excludes: Vec<String>,
}
