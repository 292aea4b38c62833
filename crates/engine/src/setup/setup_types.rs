//! The [`Setup`] of a session, and its parts, each for one area.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_mcp::{InProcessServer, ServerConfigs};
use whimbrel_session_store::{Persistence, ResumedSession, TranscriptDir};
use whimbrel_tools::api::{AgentToolSet, DeferredTools};
use whimbrel_tools::hooks::{HookSet, ProgressPolicy};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::task_list::TaskList;
use whimbrel_tools::tasks::BackgroundPolicy;
use whimbrel_tools::telemetry::PromptSpans;
use whimbrel_tools::workspace::Workspace;
use whimbrel_wire::options::{SetupHooks, SystemPrompt};

use super::extensions::Extensions;
use super::session_selection::SessionOrigin;
use crate::agent::AgentLimits;
use crate::agents::AgentDefinitions;
use crate::commands::Commands;
use crate::runtime_settings::RuntimeSettings;
use crate::state_notifier::StateSubscription;
use crate::structured_output::OutputSchema;

/// Everything a session needs, resolved.
pub struct Setup {
    pub session: SessionSetup,
    pub models: ModelSetup,
    pub tools: ToolSetup,
    pub mcp: McpSetup,
    pub permissions: PermissionSetup,
    pub hooks: HookSetup,
    pub agents: AgentSetup,
    pub prompt: PromptSetup,
    pub host: HostSetup,
    pub config_locations: Arc<ConfigLocations>,
    /// Slash commands.
    pub commands: Commands,
    /// Plugins, skills and output styles.
    pub extensions: Extensions,
}

/// Which session it is, where it works and where it is stored.
pub struct SessionSetup {
    pub id: String,
    /// Working directory, environment and tool output directory.
    pub workspace: Arc<Workspace>,
    /// Directory of the transcript; `None` if the session is not stored on disk.
    pub transcript_dir: Option<TranscriptDir>,
    pub persistence: Persistence,
    /// State of a resumed session; taken by the first turn.
    pub resumed: Option<Box<ResumedSession>>,
    pub origin: SessionOrigin,
    /// Nothing of the session may remain on disk.
    pub is_ephemeral: bool,
    /// Title to set.
    pub title: Option<String>,
    /// How the engine was started.
    pub entrypoint: String,
}

pub struct ModelSetup {
    /// The model used when the host asks for the default.
    pub default_model: String,
    /// The host named a model.
    pub is_explicit: bool,
    pub small_model: String,
    /// Initial runtime settings.
    pub runtime_settings: RuntimeSettings,
    /// Command that prints the API key.
    pub key_helper: Option<String>,
}

pub struct ToolSetup {
    pub tool_set: Arc<AgentToolSet>,
    /// Deferred tools and which of them are loaded.
    pub deferred_tools: DeferredTools,
    pub task_list: TaskList,
    /// JSON schema of structured output, if the host asks for it.
    pub output_schema: Option<OutputSchema>,
}

pub struct McpSetup {
    /// MCP servers to start; taken when the session begins.
    pub servers: ServerConfigs,
    /// In-process MCP servers of the host.
    pub in_process_servers: Arc<BTreeMap<String, InProcessServer>>,
    /// Tools and prompts of MCP servers.
    pub tool_cache: ToolCache,
}

pub struct PermissionSetup {
    pub state: PermissionState,
    /// The host answers permission requests.
    pub host_answers: bool,
    /// The MCP tool that answers permission requests instead.
    pub prompt_tool: Option<String>,
    /// Timeout of permission requests; `None` for no timeout.
    pub request_timeout: Option<Duration>,
}

pub struct HookSetup {
    /// Hooks of settings and plugins.
    pub set: HookSet,
    /// Hook events whose progress is sent to the host.
    pub progress: ProgressPolicy,
    /// The `Setup` hooks to run at the start.
    pub setup_hooks: Option<SetupHooks>,
}

pub struct AgentSetup {
    pub definitions: AgentDefinitions,
    /// Name of the agent definition that the main session uses.
    pub main_agent: Option<String>,
    /// Limits of the main agent.
    pub limits: AgentLimits,
    /// Limit on concurrent agents, if set.
    pub max_concurrent: Option<usize>,
    /// Limit on messages of a team, if set.
    pub max_team_messages: Option<usize>,
    /// Text of subagents is forwarded to the host as it is streamed.
    pub forward_subagent_text: bool,
    /// Text appended to the system prompts of subagents.
    pub appended_prompt: Option<Arc<str>>,
}

pub struct PromptSetup {
    /// The system prompt option.
    pub system_prompt: Option<SystemPrompt>,
    /// Text appended to the system prompt.
    pub appended: Option<String>,
}

/// Whether notifications start turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationTurns {
    /// While no turn runs, a notification starts one.
    Started,
    /// Notifications wait for the next prompt.
    Deferred,
}

/// What the host gets, and how the session ends.
pub struct HostSetup {
    /// Policy for background tasks at the end.
    pub background_policy: BackgroundPolicy,
    /// Time limit for waiting for them; `None` for no limit.
    pub background_wait_limit: Option<Duration>,
    /// Whether a notification, such as the end of a background task, may start a turn.
    pub notification_turns: NotificationTurns,
    /// Whether the host subscribes to session state changes.
    pub state_subscription: StateSubscription,
    /// Frames to the host have fields that the official protocol does not have.
    pub sends_details: bool,
    /// User messages are echoed to the host.
    pub replay_user_messages: bool,
    /// Spans in which the host has sent prompts: the parents of their turns.
    pub prompt_spans: PromptSpans,
    /// Warnings for the host, sent with the first turn.
    pub warning: Option<String>,
}

impl HostSetup {
    /// Queues warnings; the host gets them with the next turn.
    pub fn add_warnings(&mut self, more: impl IntoIterator<Item = String>) {
        let warnings = self.warning.take().into_iter().chain(more);
        self.warning = warnings.reduce(|one, other| format!("{one}\n{other}"));
    }
}
