//! Shared dependencies of a session's agents, and the construction of the main agent.

use std::any::Any;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_config::locations::ConfigLocations;
use whimbrel_mcp::ServerRegistry;
use whimbrel_session_store::transcript_log::SessionIdentity;
use whimbrel_session_store::{Persistence, ProjectDir, ResumedSession, TranscriptLog};
use whimbrel_tools::api::{AgentServices, AgentToolSet, DeferredTools, ToolContext};
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::hooks::HookDeps;
use whimbrel_tools::internal_events::EventSender;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::model_access::ModelAccess;
use whimbrel_tools::permission::SearchFilter;
use whimbrel_tools::small_model::SmallModel;
use whimbrel_tools::task_list::{TaskList, TodoList};
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_tools::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::tool_names::SKILL;

use crate::agent::{Agent, AgentLimits, AgentProgress};
use crate::agents::AgentDefinitions;
use crate::agents::awaited_agents::{AwaitedAgents, lost_agents_notice};
use crate::agents::definition::StartableAgents;
use crate::agents::mcp_servers::ServerStarter;
use crate::agents::registry::AgentRegistry;
use crate::agents::spawn_limits::SpawnLimits;
use crate::agents::team::{LEAD, SessionTeam};
use crate::agents::tools::SkillTool;
use crate::context::PlanModeState;
use crate::context::compaction_policy::CompactionState;
use crate::context::instructions::Instructions;
use crate::conversation::{Attribution, Conversation};
use crate::denial_log::DenialLog;
use crate::fallback::FallbackModels;
use crate::permission_checker::PermissionChecker;
use crate::runtime_settings::RuntimeSettingsReader;
use crate::skills::{AgentSkills, Skills};
use crate::structured_output::{OutputSchema, StructuredOutput};
use crate::tool_scheduler::ToolEnv;

/// Builds and launches the agents of a session, seen from one agent. Cheap to clone.
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
    /// Id of the agent; none for the main agent.
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
    pub accounts: AgentAccounts,
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
pub struct AgentAccounts {
    pub ledger: CostLedger,
    /// Denied tool calls.
    pub denials: DenialLog,
}

/// Where transcripts go.
pub struct AgentStorage {
    /// Session identity for the transcript.
    pub identity: SessionIdentity,
    /// Directory of the transcripts; none if they are not stored in files.
    pub project_dir: Option<ProjectDir>,
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
}

/// Instructions, skills, hooks and MCP tools of the session.
pub struct AgentExtensions {
    /// Instruction files; each agent loads them anew.
    pub instructions: Instructions,
    pub skills: Skills,
    pub config_locations: Arc<ConfigLocations>,
    /// Dependencies of the hooks of definitions; none if hooks are disabled.
    pub hook_deps: Option<HookDeps>,
    /// Tools of the session's MCP servers.
    pub mcp_tools: ToolCache,
}

/// Parts that differ between agents.
pub(super) struct AgentParts {
    pub(super) log: TranscriptLog,
    pub(super) resumed: Option<ResumedSession>,
    pub(super) attribution: Attribution,
    pub(super) system: Vec<String>,
    pub(super) tool_env: ToolEnv,
    pub(super) runtime_settings: RuntimeSettingsReader,
    pub(super) limits: AgentLimits,
    pub(super) ledger: CostLedger,
    pub(super) structured_output: StructuredOutput,
    pub(super) instructions: Instructions,
    pub(super) progress: AgentProgress,
    pub(super) own_servers: Option<ServerRegistry>,
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

    /// Builds the main agent; it continues a resumed session if there is one.
    pub fn build_main(&self, system: Vec<String>, mut resumed: Option<ResumedSession>) -> Agent {
        let agent_context = &self.context;
        let SessionIdentity { session, .. } = &agent_context.storage.identity;
        let small_model = SmallModel::new(
            agent_context.models.clone(),
            agent_context.accounts.ledger.clone(),
            agent_context.environment.small_model.clone(),
            agent_context.main.limits.retry_policy(),
            session.as_str().into(),
        )
        .with_timing(agent_context.main.limits.timing);
        let path =
            agent_context.storage.project_dir.as_ref().map(|project_dir| project_dir.transcript(session));
        let lock = resumed.as_mut().and_then(|resumed| resumed.lock.take());
        let log = TranscriptLog::new(
            agent_context.storage.identity.clone(),
            path,
            &agent_context.storage.persistence,
            lock,
        );
        let writer = log.writer().clone();
        let lost_notice =
            resumed.as_ref().and_then(|resumed| lost_agents_notice(&resumed.loaded.awaited_agents));
        let mut agent = agent_context.build_agent(AgentParts {
            log,
            resumed,
            attribution: Attribution::main(),
            system,
            tool_env: ToolEnv {
                tool_set: Arc::clone(&agent_context.main.tool_set),
                checker: agent_context.main.permission_checker.clone(),
                context: ToolContext {
                    id: String::new(),
                    checked_file: None,
                    original_input: None,
                    workspace: Arc::clone(&agent_context.environment.workspace),
                    tasks: agent_context.environment.tasks.clone(),
                    tool_set: Arc::clone(&agent_context.main.tool_set),
                    deferred_tools: agent_context.main.deferred_tools.clone(),
                    task_list: agent_context.environment.task_list.clone(),
                    todos: TodoList::default(),
                    read_filter: SearchFilter::default(),
                    small_model,
                    agents: Some(Arc::new(self.clone())),
                    mode: agent_context.main.permission_checker.mode_switch(),
                    hooks: agent_context.main.permission_checker.hooks.clone(),
                    transcript: writer,
                    cancel: CancellationToken::new(),
                },
            },
            runtime_settings: agent_context.main.runtime_settings.clone(),
            limits: agent_context.main.limits.clone(),
            ledger: agent_context.accounts.ledger.clone(),
            structured_output: StructuredOutput::new(agent_context.main.output_schema.clone()),
            instructions: agent_context.extensions.instructions.for_new_agent(),
            progress: AgentProgress::default(),
            own_servers: None,
        });
        if let Some(notice) = lost_notice {
            agent.conversation.push_hidden(&notice);
            agent_context.spawning.awaited.mark_notice_pending();
        }
        agent
    }
}

impl AgentServices for AgentSpawner {
    fn teammate_name(&self) -> Option<String> {
        self.is_teammate().then(|| self.sender_name().to_owned())
    }

    fn team_name(&self) -> Option<String> {
        self.team().name()
    }

    fn definitions_notice(&self) -> Option<String> {
        self.context.spawning.definitions.render_notice()
    }
}

impl AgentContext {
    /// Builds an agent, restores its conversation and injects its context.
    pub(super) fn build_agent(&self, parts: AgentParts) -> Agent {
        let AgentParts {
            log,
            resumed,
            attribution,
            system,
            mut tool_env,
            runtime_settings,
            limits,
            ledger,
            structured_output,
            instructions,
            progress,
            own_servers,
        } = parts;
        let skills = AgentSkills::new(&self.extensions.skills, self.extensions.hook_deps.clone());
        if tool_env.tool_set.find(SKILL).is_some() {
            let tool = SkillTool::new(self.extensions.skills.clone(), skills.queue());
            tool_env.tool_set = Arc::new(tool_env.tool_set.with_tool(Arc::new(tool)));
        }
        if let Some(resumed) = &resumed {
            tool_env.context.deferred_tools.load(resumed.loaded.loaded_tools.iter().cloned());
        }
        let fallback_models = FallbackModels::new(limits.fallback_models.clone());
        let mut agent = Agent {
            models: self.models.clone(),
            conversation: Conversation::new(log, self.frame_sender.clone(), attribution),
            instructions,
            preamble: self
                .models
                .preamble(system, tool_env.context.deferred_tools.visible_specs(&tool_env.tool_set)),
            tool_env: Arc::new(tool_env),
            runtime_settings,
            frame_sender: self.frame_sender.clone(),
            limits,
            ledger,
            denials: self.accounts.denials.clone(),
            structured_output,
            fallback_models,
            compaction_state: CompactionState::default(),
            plan_mode: PlanModeState::default(),
            invoked_skills: skills,
            progress,
            own_servers,
        };
        if let Some(resumed) = resumed {
            agent.conversation.restore(resumed);
        }
        agent.inject_context();
        agent
    }
}
