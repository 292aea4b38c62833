//! Shared dependencies of a session's agents, and the position of an agent in their tree.

use std::any::Any;
use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_session_store::transcript_recorder::SessionIdentity;
use whimbrel_session_store::{Persistence, TranscriptDir};
use whimbrel_tools::api::{AgentServices, AgentToolSet, DeferredTools, ToolContext};
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::hooks::HookDeps;
use whimbrel_tools::internal_events::EventSender;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::model_access::ModelAccess;
use whimbrel_tools::task_list::TaskList;
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_tools::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;

use crate::agent::AgentLimits;
use crate::agents::AgentDefinitions;
use crate::agents::awaited_agents::AwaitedAgents;
use crate::agents::definition::StartableAgents;
use crate::agents::mcp_servers::ServerStarter;
use crate::agents::registry::AgentRegistry;
use crate::agents::spawn_limits::SpawnLimits;
use crate::agents::team::{LEAD, SessionTeam};
use crate::context::instructions::Instructions;
use crate::denial_log::DenialLog;
use crate::permission_checker::PermissionChecker;
use crate::runtime_settings::RuntimeSettingsReader;
use crate::skills::Skills;
use crate::structured_output::OutputSchema;

/// Builds and spawns the agents of a session, seen from one agent. Cheap to clone.
#[derive(Clone)]
pub struct AgentSpawner {
    pub(super) context: Arc<AgentContext>,
    pub(super) position: Arc<TreePosition>,
}

/// Position of an agent in the tree, and what its subagents inherit.
#[derive(Clone)]
pub struct TreePosition {
    /// Number of agents above it.
    pub(super) depth: usize,
    /// Id of the agent; `None` for the main agent.
    pub(super) agent_id: Option<String>,
    pub(super) tool_set: Arc<AgentToolSet>,
    pub(super) permission_checker: PermissionChecker,
    pub(super) runtime_settings: RuntimeSettingsReader,
    pub(super) startable: StartableAgents,
    /// Its name in the team, if it is a teammate.
    pub(super) teammate_name: Option<String>,
}

/// Dependencies shared by all agents of a session.
pub struct AgentContext {
    pub models: ModelAccess,
    pub frame_sender: FrameSender,
    /// Sends notifications for the main agent.
    pub event_sender: EventSender,
    pub main: MainAgentConfig,
    pub totals: AgentTreeTotals,
    pub storage: AgentStorage,
    pub environment: AgentEnvironment,
    pub spawning: SpawnContext,
    pub extensions: AgentExtensions,
}

/// Configuration of the main agent.
pub struct MainAgentConfig {
    pub runtime_settings: RuntimeSettingsReader,
    /// Tools of the session.
    pub tool_set: Arc<AgentToolSet>,
    pub deferred_tools: DeferredTools,
    pub permission_checker: PermissionChecker,
    pub limits: AgentLimits,
    /// Schema of its structured output, if the host requires one.
    pub output_schema: Option<OutputSchema>,
}

/// Totals over the whole agent tree.
pub struct AgentTreeTotals {
    pub ledger: CostLedger,
    /// Denied tool calls.
    pub denials: DenialLog,
}

/// Where transcripts go.
pub struct AgentStorage {
    /// Session identity for the transcript.
    pub identity: SessionIdentity,
    /// Directory of the transcripts; `None` if they are not stored in files.
    pub transcript_dir: Option<TranscriptDir>,
    pub persistence: Persistence,
}

/// What the agents work on.
pub struct AgentEnvironment {
    pub workspace: Arc<Workspace>,
    pub tasks: TaskRegistry,
    pub task_list: TaskList,
    pub small_model: String,
}

/// What starting agents needs.
pub struct SpawnContext {
    pub definitions: AgentDefinitions,
    pub limits: SpawnLimits,
    pub registry: AgentRegistry,
    pub team: SessionTeam,
    pub awaited: AwaitedAgents,
    /// Starts MCP servers owned by one agent.
    pub server_starter: ServerStarter,
    /// Whether the text of subagents is forwarded to the host as it streams.
    pub forward_subagent_text: bool,
    /// Text appended to the system prompts of subagents.
    pub appended_prompt: Option<Arc<str>>,
}

/// Instructions, skills, hooks and MCP tools of the session.
pub struct AgentExtensions {
    /// Instruction files; each agent loads them anew.
    pub instructions: Instructions,
    pub skills: Skills,
    pub config_locations: Arc<ConfigLocations>,
    /// Dependencies of the hooks of definitions; `None` if hooks are disabled.
    pub hook_deps: Option<HookDeps>,
    /// Tools of the session's MCP servers.
    pub mcp_tools: ToolCache,
}

impl AgentSpawner {
    pub fn new(agent_context: AgentContext) -> Self {
        let position = TreePosition {
            depth: 0,
            agent_id: None,
            tool_set: Arc::clone(&agent_context.main.tool_set),
            permission_checker: agent_context.main.permission_checker.clone(),
            runtime_settings: agent_context.main.runtime_settings.clone(),
            startable: StartableAgents::All,
            teammate_name: None,
        };
        Self { context: Arc::new(agent_context), position: Arc::new(position) }
    }

    /// The same spawner for an agent at another position.
    pub(super) fn with_position(&self, position: impl Into<Arc<TreePosition>>) -> Self {
        Self { context: Arc::clone(&self.context), position: position.into() }
    }

    /// The same spawner at a position deep enough that a restored agent does not rise above its former depth.
    pub(super) fn at_least_depth(&self, depth: usize) -> Self {
        match depth.checked_sub(1) {
            Some(above) if above > self.position.depth => {
                self.with_position(TreePosition { depth: above, ..(*self.position).clone() })
            }
            _ => self.clone(),
        }
    }

    pub fn team(&self) -> &SessionTeam {
        &self.context.spawning.team
    }

    /// The sender name on messages from this agent.
    pub fn sender_name(&self) -> &str {
        self.position.teammate_name.as_deref().or(self.position.agent_id.as_deref()).unwrap_or(LEAD)
    }

    /// Returns whether this is a teammate, which starts no agents and messages only its team.
    pub fn is_teammate(&self) -> bool {
        self.position.teammate_name.is_some()
    }

    /// The spawner of the agent that makes a tool call, if it may start or message others.
    pub fn from_context(context: &ToolContext) -> Option<&Self> {
        let services: &dyn Any = context.agents.as_deref()?;
        services.downcast_ref()
    }
}

impl AgentServices for AgentSpawner {
    fn teammate_name(&self) -> Option<String> {
        self.is_teammate().then(|| self.sender_name().to_owned())
    }

    fn team_name(&self) -> Option<String> {
        self.team().name()
    }

    fn definitions_reminder(&self) -> Option<String> {
        self.context.spawning.definitions.render_reminder()
    }
}
