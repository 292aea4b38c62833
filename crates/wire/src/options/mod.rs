//! Options of a session. `command_line` turns them into flags and environment variables;
//! `control::initialize` turns them into an `initialize` request.

mod agent;
mod command_line;
mod prompt;
mod server;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{is_default, or_default};
use crate::names::named;
use crate::permission::PermissionMode;

pub use agent::*;
pub use prompt::*;
pub use server::*;

/// What a caller wants of a session. Nothing is mandatory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Options {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model to use when that one is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The git worktree of the working directory's repository in which the session works, by name. It is created if there
    /// is none; an empty name is replaced by a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// More directories to work in.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
    /// The system prompt. None: the engine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<SystemPrompt>,
    /// What to tell the model in plan mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode_instructions: Option<String>,
    /// The built-in tools to offer. None: the engine's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSet>,
    /// Rules for calls that need no question.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Rules for calls that are refused.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Other names for tools.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_aliases: BTreeMap<String, String>,
    /// How many model calls a turn may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How many dollars the run may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// How many tokens the task may take; the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_budget: Option<u64>,
    /// How many tokens one reply may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The provider's beta features to use.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<String>,
    /// Whether and how much the model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How many tokens the model may think; the older form. 0 means it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_thinking_tokens: Option<u64>,
    /// How hard the model tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// What the session may do without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Whether it may be switched to never asking.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub allow_dangerously_skip_permissions: bool,
    /// Who answers permission requests. None: they are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_prompt_tool: Option<PermissionPromptTool>,
    /// Who shows permission questions: `host` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_prompts: Option<String>,
    /// How many milliseconds a permission question waits for its answer. None: as long as it takes; when they are over,
    /// the answer is no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_timeout_ms: Option<u64>,
    /// Settings files of the person and the project that cannot be read, and rules in them, are left out with a warning.
    /// Not given: they stop the start, since something that forbids may be among them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tolerate_bad_settings: bool,
    /// The `Setup` hooks to run before the session starts. None: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_hooks: Option<SetupHooks>,
    /// What becomes of background work when nothing else is due and no input can come. Not given: agents are waited for,
    /// and commands get a short grace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_at_end: Option<BackgroundAtEnd>,
    /// Go on with the last conversation in this directory.
    #[serde(
        default,
        rename = "continue",
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub continue_conversation: bool,
    /// Go on with this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Go on under a new id and leave the resumed session as it is.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub fork_session: bool,
    /// The id of the new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Forget what came after this message of the resumed session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_session_at: Option<String>,
    /// Forget the turn of this message of the resumed session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_drops_turn: Option<String>,
    /// Whether the session is kept on disk. None: yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persist_session: Option<bool>,
    /// Whether the host gets a copy of every transcript line.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub session_mirror: bool,
    /// The session's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// MCP servers, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// MCP servers whose configuration is invalid, with the error. They are reported; the others start.
    #[serde(skip)]
    pub invalid_mcp_servers: BTreeMap<String, String>,
    /// Whether no other MCP servers are used.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub strict_mcp_config: bool,
    /// Settings on top: a path or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Settings that nothing overrides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_settings: Option<Value>,
    /// Settings of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Map<String, Value>>,
    /// The settings files to read. None: all; empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<Vec<SettingSource>>,
    /// Where the project's settings are, when not in the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_config_root: Option<String>,
    /// The kind of agent that the session itself is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Kinds of subagent, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentDefinition>,
    /// The skills to offer. None: all that the settings bring; `*` among them: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// Plugins to load.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginConfig>,
    /// Whether the host gets the model's words as they come.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub include_partial_messages: bool,
    /// Whether the host hears when hooks run.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub include_hook_events: bool,
    /// Whether the host gets its prompts back when they are taken up.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub replay_user_messages: bool,
    /// Whether the host wants suggestions for the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_suggestions: Option<bool>,
    /// Whether the host wants to hear how far subagents are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_progress_summaries: Option<bool>,
    /// Whether the host wants to hear what subagents say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_subagent_text: Option<bool>,
    /// The dialogs that the host can show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_dialog_kinds: Option<Vec<String>>,
    /// Whether the host can stop single tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_task_stop_affordance: Option<bool>,
    /// The shape that the final answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// Whether prompts are taken to the letter.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub verbatim_prompts: bool,
    /// Whether files can be put back to where they were at a prompt.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub enable_file_checkpointing: bool,
    /// How previews in questions to the person are written: `markdown` or `html`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_preview_format: Option<String>,
    /// Whether the engine tells what it does.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub debug: bool,
    /// Where it tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug_file: Option<String>,
    /// Environment variables for the engine.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Flags that have no option of their own: name without dashes, and value.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_args: BTreeMap<String, Option<String>>,
}

named! {
    /// A settings file.
    pub enum SettingSource: "setting source" {
        /// The person's own.
        User = "user",
        /// The project's, shared.
        Project = "project",
        /// The project's, on this machine.
        Local = "local",
    }
}

named! {
    /// The `Setup` hooks that a session runs at its start, by their trigger.
    pub enum SetupHooks: "setup hooks" {
        /// Those that prepare the project.
        Init = "init",
        /// The same; the session then ends without a turn.
        InitOnly = "init-only",
        /// Those that maintain the project.
        Maintenance = "maintenance",
    }
}

impl SetupHooks {
    /// The `trigger` of these hooks.
    pub const fn trigger(self) -> &'static str {
        match self {
            Self::Init | Self::InitOnly => "init",
            Self::Maintenance => "maintenance",
        }
    }
}

named! {
    /// What becomes of background work at the end of a run.
    pub enum BackgroundAtEnd: "end of background work" {
        /// All of it is waited for.
        Wait = "wait",
        /// It is stopped.
        Stop = "stop",
        /// Commands are let go and outlive the run; agents are waited for, for they cannot.
        Detach = "detach",
    }
}

named! {
    /// How hard the model tries.
    pub enum Effort: "effort" {
        /// As little as possible.
        Low = "low",
        /// In between.
        Medium = "medium",
        /// Hard.
        High = "high",
        /// Harder.
        XHigh = "xhigh",
        /// As hard as possible.
        Max = "max",
    }
}

/// Whether and how much the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Thinking {
    /// As much as it sees fit.
    Adaptive {
        /// What the host gets to see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<ThinkingDisplay>,
    },
    /// Up to a limit.
    Enabled {
        /// The limit in tokens; without one it is as if adaptive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_tokens: Option<u64>,
        /// What the host gets to see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<ThinkingDisplay>,
    },
    /// Not at all.
    Disabled,
}

named! {
    /// What the host gets to see of the model's thinking.
    pub enum ThinkingDisplay: "thinking display" {
        /// A summary.
        Summarized = "summarized",
        /// Nothing.
        Omitted = "omitted",
    }
}

/// Who is asked for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum PermissionPromptTool {
    /// The host, by a control request.
    Stdio,
    /// A tool of an MCP server.
    Mcp(String),
}

impl From<String> for PermissionPromptTool {
    fn from(name: String) -> Self {
        match name.as_str() {
            "stdio" => Self::Stdio,
            _ => Self::Mcp(name),
        }
    }
}

impl From<PermissionPromptTool> for String {
    fn from(tool: PermissionPromptTool) -> Self {
        match tool {
            PermissionPromptTool::Stdio => "stdio".into(),
            PermissionPromptTool::Mcp(name) => name,
        }
    }
}

/// The shape that the final answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat {
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema.
        schema: Value,
    },
}
