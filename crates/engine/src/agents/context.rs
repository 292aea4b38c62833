//! What the agents of one session have in common, and how an agent is made of it: the main one and every subagent alike.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::task_list::{TaskList, TodoList};
use crate::agent::{Agent, AgentLimits};
use crate::agents::definition::StartableAgents;
use crate::agents::registry::AgentRegistry;
use crate::agents::mcp_servers::ServerStarter;
use crate::agents::spawn_limits::SpawnLimits;
use crate::agents::progress::AgentProgress;
use crate::agents::team::{LEAD, SessionTeam};
use crate::agents::{AgentDefinitions, lost_agents};
use crate::small_model::SmallModel;
use crate::context::PlanModeState;
use crate::context::instructions::Instructions;
use crate::context::auto_compact::CompactionState;
use crate::conversation::{Conversation, Attribution};
use crate::cost::CostLedger;
use crate::denial_log::DenialLog;
use crate::engine::Engine;
use crate::permission_checker::PermissionChecker;
use crate::config_locations::ConfigLocations;
use crate::hooks;
use crate::internal_events::EventSender;
use crate::runtime_settings::RuntimeSettingsReader;
use crate::deferred_tools::DeferredTools;
use crate::frame_sender::FrameSender;
use crate::permission::SearchFilter;
use crate::session::transcript_log::SessionIdentity;
use crate::session::{Persistence, TranscriptLog, ResumedSession, ProjectDir};
use crate::structured_output::{StructuredOutput, OutputSchema};
use crate::skills::{self, Skills};
use crate::tasks::TaskRegistry;
use crate::tool_set::AgentToolSet;
use crate::tools::ToolContext;
use crate::fallback::FallbackModels;
use crate::tool_scheduler::ToolEnv;
use crate::workspace::Workspace;

/// Makes the agents of a session. Cheap to clone.
#[derive(Clone)]
pub struct AgentSpawner {
    pub(super) context: Arc<AgentContext>,
    pub(super) position: Arc<TreePosition>,
}

/// Where in the tree an agent stands, and what those that it starts have from it.
#[derive(Clone)]
pub struct TreePosition {
    /// How many agents are above it.
    pub(super) depth: usize,
    /// The agent; none if it is the main one.
    pub(super) agent_id: Option<String>,
    /// Its tools.
    pub(super) tool_set: Arc<AgentToolSet>,
    /// Its gate.
    pub(super) permission_checker: PermissionChecker,
    /// Its knobs.
    pub(super) runtime_settings: RuntimeSettingsReader,
    /// The kinds that it may start.
    pub(super) startable: StartableAgents,
    /// Its name in the team, if it is a teammate.
    pub(super) teammate_name: Option<String>,
}

/// What the agents of a session have in common.
pub struct AgentContext {
    /// What all sessions share.
    pub engine: Engine,
    /// The way to the host.
    pub frame_sender: FrameSender,
    /// What the host can turn.
    pub runtime_settings: RuntimeSettingsReader,
    /// The tools of the session.
    pub tool_set: Arc<AgentToolSet>,
    /// Which of them the main agent has been shown.
    pub deferred_tools: DeferredTools,
    /// One gate for the whole tree.
    pub permission_checker: PermissionChecker,
    /// Limits of the main agent.
    pub limits: AgentLimits,
    /// One ledger for the whole tree.
    pub ledger: CostLedger,
    /// One list of what was refused, for the whole tree.
    pub denials: DenialLog,
    /// Who the session is, for the transcript.
    pub identity: SessionIdentity,
    /// Where transcripts are kept; none keeps nothing.
    pub project_dir: Option<ProjectDir>,
    /// How they are kept.
    pub persistence: Persistence,
    /// The kinds of subagent.
    pub definitions: AgentDefinitions,
    /// How many agents may work at once.
    pub spawn_limits: SpawnLimits,
    /// Which agents can be reached.
    pub registry: AgentRegistry,
    /// The team of the session, if it has one.
    pub team: SessionTeam,
    /// Where news for the main agent is posted.
    pub event_sender: EventSender,
    /// Where the session works.
    pub workspace: Arc<Workspace>,
    /// Its background work.
    pub tasks: TaskRegistry,
    /// Its list of tasks.
    pub task_list: TaskList,
    /// The model for small jobs.
    pub small_model: String,
    /// Whether the host hears the words of subagents as they are said.
    pub forward_subagent_text: bool,
    /// The shape of the main agent's answers, if the host asks for one.
    pub output_schema: Option<OutputSchema>,
    /// The instruction files, which every agent is told anew.
    pub instructions: Instructions,
    /// What agents may call themselves.
    pub skills: Skills,
    /// Where the person's and the project's files are.
    pub config_locations: Arc<ConfigLocations>,
    /// How servers are started that work for one agent alone.
    pub server_starter: ServerStarter,
    /// What the hooks of a kind are run with; none if hooks do not run.
    pub hook_deps: Option<hooks::HookDeps>,
}

/// What is an agent's own.
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
}

impl AgentSpawner {
    /// Agents for a session.
    pub fn new(home: AgentContext) -> Self {
        let position = TreePosition {
            depth: 0,
            agent_id: None,
            tool_set: Arc::clone(&home.tool_set),
            permission_checker: home.permission_checker.clone(),
            runtime_settings: home.runtime_settings.clone(),
            startable: StartableAgents::All,
            teammate_name: None,
        };
        Self { context: Arc::new(home), position: Arc::new(position) }
    }

    /// The same for an agent that stands elsewhere.
    pub(super) fn with_position(&self, position: impl Into<Arc<TreePosition>>) -> Self {
        Self { context: Arc::clone(&self.context), position: position.into() }
    }

    /// The same for whoever starts an agent that has stood at a depth before: it does not rise.
    pub(super) fn at_least_depth(&self, depth: usize) -> Self {
        match depth.checked_sub(1) {
            Some(above) if above > self.position.depth => {
                self.with_position(TreePosition { depth: above, ..(*self.position).clone() })
            }
            _ => self.clone(),
        }
    }

    /// The team of the session, if it has one.
    pub fn team(&self) -> &SessionTeam {
        &self.context.team
    }

    /// The name under which letters from here are written.
    pub fn sender_name(&self) -> &str {
        self.position.teammate_name.as_deref().or(self.position.agent_id.as_deref()).unwrap_or(LEAD)
    }

    /// Whether letters are all that it can write to others: a teammate starts nobody, and wakes nobody outside its team.
    pub fn is_teammate(&self) -> bool {
        self.position.teammate_name.is_some()
    }

    /// What a model is told of the kinds that it may start.
    pub fn definitions_notice(&self) -> Option<String> {
        self.context.definitions.render_notice()
    }

    /// Makes the main agent, with this system prompt; it goes on from a past if there is one.
    pub fn build_main(&self, system: Vec<String>, mut past: Option<ResumedSession>) -> Agent {
        let home = &self.context;
        let SessionIdentity { session, .. } = &home.identity;
        let consult = SmallModel::new(
            home.engine.clone(),
            home.ledger.clone(),
            home.small_model.clone(),
            home.limits.retry_policy(),
            session.as_str().into(),
        )
        .with_timing(home.limits.timing);
        let path = home.project_dir.as_ref().map(|place| place.transcript(session));
        let lock = past.as_mut().and_then(|past| past.lock.take());
        let log = TranscriptLog::new(home.identity.clone(), path, &home.persistence, lock);
        let journal = log.writer().clone();
        let adrift = past.as_ref().and_then(|past| lost_agents::lost_agents_notice(&past.loaded.history));
        let mut agent = home.build_agent(AgentParts {
            log,
            resumed: past,
            attribution: Attribution::main(),
            system,
            tool_env: ToolEnv {
                tool_set: Arc::clone(&home.tool_set),
                checker: home.permission_checker.clone(),
                context: ToolContext {
                    id: String::new(),
                    checked_file: None,
                    original_input: None,
                    workspace: Arc::clone(&home.workspace),
                    tasks: home.tasks.clone(),
                    tool_set: Arc::clone(&home.tool_set),
                    deferred_tools: home.deferred_tools.clone(),
                    task_list: home.task_list.clone(),
                    todos: TodoList::default(),
                    read_filter: SearchFilter::default(),
                    small_model: consult,
                    agents: Some(self.clone()),
                    mode: home.permission_checker.mode_switch(),
                    hooks: home.permission_checker.hooks.clone(),
                    transcript: journal,
                    cancel: CancellationToken::new(),
                },
            },
            runtime_settings: home.runtime_settings.clone(),
            limits: home.limits.clone(),
            ledger: home.ledger.clone(),
            structured_output: StructuredOutput::new(home.output_schema.clone()),
            instructions: home.instructions.for_new_agent(),
            progress: AgentProgress::default(),
        });
        if let Some(told) = adrift {
            agent.conversation.push_hidden(&told);
        }
        agent
    }
}

impl AgentContext {
    /// Makes an agent that knows where it is, and what it has heard before.
    pub(super) fn build_agent(&self, own: AgentParts) -> Agent {
        let AgentParts { log, resumed: past, attribution: speaker, system, tool_env: mut bench, runtime_settings: knobs, limits, ledger, structured_output: owed, instructions: memory, progress } =
            own;
        let skills = skills::AgentSkills::new(&self.skills, self.hook_deps.clone());
        bench.tool_set = skills.with_skill_tool(&bench.tool_set);
        if let Some(past) = &past {
            bench.context.deferred_tools.load(past.loaded.loaded_tools.iter().cloned());
        }
        let understudies = FallbackModels::new(limits.fallback_models.clone());
        let mut agent = Agent {
            engine: self.engine.clone(),
            conversation: Conversation::new(log, self.frame_sender.clone(), speaker),
            instructions: memory,
            preamble: self.engine.preamble(system, bench.context.deferred_tools.visible_specs(&bench.tool_set)),
            tool_env: Arc::new(bench),
            runtime_settings: knobs,
            frame_sender: self.frame_sender.clone(),
            limits,
            ledger,
            denials: self.denials.clone(),
            structured_output: owed,
            fallback_models: understudies,
            compaction_state: CompactionState::default(),
            plan_mode: PlanModeState::default(),
            invoked_skills: skills,
            progress,
        };
        if let Some(past) = past {
            agent.conversation.restore(past);
        }
        agent.inject_context();
        agent
    }
}
