//! Typed values of the keys that the engine uses. Rules, mode, directories, variables and hooks are elsewhere, because
//! their source matters.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Values merged over all layers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypedSettings {
    pub model: Option<String>,
    /// Models to use when the first is not available, in order.
    pub fallback_model: Vec<String>,
    pub effort_level: Option<String>,
    pub always_thinking_enabled: Option<bool>,
    /// Name of the agent definition of the main session.
    pub agent: Option<String>,
    pub output_style: Option<String>,
    /// Language of replies.
    pub language: Option<String>,
    /// Command that prints the API key.
    pub api_key_helper: Option<String>,
    /// Command of the status line.
    pub status_line: Option<Map<String, Value>>,
    /// Command that suggests files.
    pub file_suggestion: Option<Map<String, Value>>,
    pub sandbox: Map<String, Value>,
    /// Approves all MCP servers of the project.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Approved MCP servers of the project.
    pub enabled_mcpjson_servers: Vec<String>,
    /// Rejected MCP servers of the project.
    pub disabled_mcpjson_servers: Vec<String>,
    /// Commits name the agent as co-author.
    pub include_co_authored_by: Option<bool>,
    /// The system prompt contains instructions for git.
    pub include_git_instructions: Option<bool>,
    /// File lists omit files ignored by git.
    pub respect_gitignore: Option<bool>,
    /// Days until transcripts are deleted.
    pub cleanup_period_days: Option<f64>,
    /// Automatic compaction.
    pub auto_compact_enabled: Option<bool>,
    /// File checkpoints.
    pub file_checkpointing_enabled: Option<bool>,
    /// Instruction files to skip.
    pub claude_md_excludes: Vec<String>,
}
