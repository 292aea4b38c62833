//! Builds agents: the main agent, and subagents. Permissions and ledger of a subagent derive from its parent; prompt,
//! tools and transcript are its own.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_config::locations::ConfigLocations;
use whimbrel_mcp::ServerRegistry;
use whimbrel_models::Thinking;
use whimbrel_os::files;
use whimbrel_policy::CheckedCall;
use whimbrel_session_store::transcript_recorder::SessionIdentity;
use whimbrel_session_store::{ResumedSession, TranscriptRecorder};
use whimbrel_tools::api::{AgentServices, DynamicTools, ToolContext};
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::{PlanLock, SearchFilter};
use whimbrel_tools::small_model::SmallModel;
use whimbrel_tools::task_list::TodoList;
use whimbrel_tools::tasks::AgentTask;
use whimbrel_wire::tool_names::SKILL;

use super::allowed_tools::subagent_tools;
use super::awaited_agents::lost_agents_reminder;
use super::context::{AgentContext, TreePosition};
use super::definition::StartableAgents;
use super::tools::SkillTool;
use super::{AgentSpawner, ResolvedDefinition, SpawnRequest, hooks};
use crate::agent::{Agent, AgentLimits, AgentProgress};
use crate::context::compaction_policy::{CompactionConfig, CompactionState};
use crate::context::instructions::Instructions;
use crate::conversation::{Attribution, Conversation};
use crate::fallback::FallbackModels;
use crate::permission_checker::PermissionChecker;
use crate::runtime_settings::{RuntimeSettings, RuntimeSettingsReader};
use crate::side_question::ConversationView;
use crate::skills::AgentSkills;
use crate::structured_output::StructuredOutput;
use crate::tool_scheduler::ToolEnv;

/// Relation of an agent to the one that starts it.
pub(super) enum AgentRole {
    /// Runs one task and reports.
    Subagent,
    /// Stays alive under this name and exchanges messages.
    Teammate {
        name: String,
        /// Denies changes until the lead approves a plan, if a plan is required.
        plan_lock: Option<PlanLock>,
    },
}

impl AgentRole {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Subagent => None,
            Self::Teammate { name, .. } => Some(name),
        }
    }

    fn plan_lock(&self) -> Option<PlanLock> {
        match self {
            Self::Subagent => None,
            Self::Teammate { plan_lock, .. } => plan_lock.clone(),
        }
    }
}

/// Parts that differ between agents.
struct AgentParts {
    recorder: TranscriptRecorder,
    resumed: Option<ResumedSession>,
    attribution: Attribution,
    system: Vec<String>,
    tool_env: ToolEnv,
    runtime_settings: RuntimeSettingsReader,
    limits: AgentLimits,
    ledger: CostLedger,
    structured_output: StructuredOutput,
    instructions: Instructions,
    progress: AgentProgress,
    own_servers: Option<ServerRegistry>,
}

impl AgentSpawner {
    /// Builds the main agent; it continues a resumed session if there is one.
    pub fn build_main(&self, system: Vec<String>, mut resumed: Option<ResumedSession>) -> Agent {
        let agent_context = &self.context;
        let SessionIdentity { session, .. } = &agent_context.storage.identity;
        let small_model = SmallModel::new(
            agent_context.models.clone(),
            agent_context.totals.ledger.clone(),
            agent_context.environment.small_model.clone(),
            agent_context.main.limits.retry_policy(),
            session.as_str().into(),
        )
        .with_timing(agent_context.main.limits.timing);
        let path = agent_context
            .storage
            .transcript_dir
            .as_ref()
            .map(|transcript_dir| transcript_dir.transcript(session));
        let lock = resumed.as_mut().and_then(|resumed| resumed.lock.take());
        let recorder = TranscriptRecorder::new(
            agent_context.storage.identity.clone(),
            path,
            &agent_context.storage.persistence,
            lock,
        );
        let writer = recorder.writer().clone();
        let recorded_cost = resumed.as_ref().and_then(|resumed| resumed.loaded.cost.as_ref());
        // A fork starts its own account.
        if let Some(cost) = recorded_cost.filter(|cost| cost.session_id == *session) {
            agent_context.totals.ledger.restore(agent_context.models.catalog(), cost);
        }
        let lost_reminder =
            resumed.as_ref().and_then(|resumed| lost_agents_reminder(&resumed.loaded.awaited_agents));
        let mut agent = agent_context.build_agent(AgentParts {
            recorder,
            resumed,
            attribution: Attribution::main(),
            system,
            tool_env: ToolEnv {
                tool_set: Arc::clone(&agent_context.main.tool_set),
                checker: agent_context.main.permission_checker.clone(),
                context: ToolContext {
                    id: String::new(),
                    checked: CheckedCall::default(),
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
            ledger: agent_context.totals.ledger.clone(),
            structured_output: StructuredOutput::new(agent_context.main.output_schema.clone()),
            instructions: agent_context.extensions.instructions.for_new_agent(),
            progress: AgentProgress::default(),
            own_servers: None,
        });
        if let Some(reminder) = lost_reminder {
            agent.conversation.push_hidden(&reminder);
            agent_context.spawning.awaited.mark_reminder_pending();
        }
        agent
    }

    /// Builds the agent for a task; it continues a resumed conversation if there is one.
    pub(super) fn build_subagent(
        &self,
        definition: &ResolvedDefinition,
        request: &SpawnRequest,
        call: &ToolContext,
        entry: &AgentTask,
        role: &AgentRole,
        resumed: Option<ResumedSession>,
    ) -> Agent {
        let (agent_context, parent) = (&self.context, &self.position);
        let agent_id = &entry.info.task_id;
        let transcripts = agent_context
            .storage
            .transcript_dir
            .as_ref()
            .map(|transcript_dir| transcript_dir.subagents_dir(&agent_context.storage.identity.session));
        let ledger = agent_context.totals.ledger.for_agent(format!("{} ({agent_id})", definition.name));
        let recorder = TranscriptRecorder::sidechain(
            agent_context.storage.identity.clone(),
            agent_id,
            transcripts.as_deref(),
            &agent_context.storage.persistence,
        );
        let writer = recorder.writer().clone();
        let permission_state = parent
            .permission_checker
            .permissions
            .for_subagent(definition.permission_mode)
            .for_subagent(request.mode);
        let permission_state =
            permission_state.with_plan_lock(role.plan_lock()).with_workspace(&call.workspace);
        let dispatcher = parent.permission_checker.hooks.for_subagent(agent_id, &definition.name);
        let dispatcher = match &agent_context.extensions.hook_deps {
            Some(deps) => dispatcher.with_hooks(hooks::agent_hooks(definition).0, deps),
            None => dispatcher,
        };
        let checker = PermissionChecker {
            hooks: dispatcher.with_workspace(&call.workspace, permission_state.clone()),
            permissions: permission_state,
            ..parent.permission_checker.clone()
        };
        let own_tools =
            agent_context.spawning.server_starter.create_tool_cache(definition, &checker.permissions);
        let own_servers = own_tools.as_ref().and_then(ToolCache::registry).cloned();
        let own_tools = own_tools.map(|tools| Arc::new(tools) as Arc<dyn DynamicTools>);
        let tool_set = subagent_tools(&parent.tool_set, definition, role).with_own_mcp_tools(own_tools);
        let tool_set = Arc::new(tool_set);
        let settings = self.subagent_settings(definition, request);
        let position = TreePosition {
            depth: parent.depth + 1,
            agent_id: Some(agent_id.clone()),
            tool_set: Arc::clone(&tool_set),
            permission_checker: checker.clone(),
            runtime_settings: settings.clone(),
            startable: match role {
                AgentRole::Subagent => definition.startable_agents(),
                AgentRole::Teammate { .. } => StartableAgents::NoAgents,
            },
            teammate_name: role.name().map(Into::into),
        };
        let reaches_others =
            position.startable != StartableAgents::NoAgents || position.teammate_name.is_some();
        let agents = reaches_others.then(|| Arc::new(self.with_position(position)) as Arc<dyn AgentServices>);
        agent_context.build_agent(AgentParts {
            recorder,
            resumed,
            attribution: Attribution::subagent(&call.id, agent_id, &definition.name, &request.description)
                .with_text_forwarded(agent_context.spawning.forward_subagent_text),
            system: vec![join_prompt(&definition.prompt, agent_context.spawning.appended_prompt.as_deref())],
            tool_env: ToolEnv {
                tool_set,
                checker,
                context: ToolContext {
                    id: String::new(),
                    agents,
                    cancel: entry.stop.clone(),
                    small_model: call.small_model.with_ledger(ledger.clone()),
                    deferred_tools: agent_context.main.deferred_tools.for_new_agent(),
                    todos: TodoList::default(),
                    transcript: writer,
                    ..call.clone()
                },
            },
            runtime_settings: settings,
            limits: subagent_limits(&agent_context.main.limits, definition, request),
            ledger,
            structured_output: StructuredOutput::default(),
            instructions: match definition.omit_instructions {
                true => Instructions::new(Arc::new(ConfigLocations::default()), None),
                false => agent_context.extensions.instructions.for_new_agent(),
            },
            progress: AgentProgress::for_task(entry.info.clone()),
            own_servers,
        })
    }

    /// The parent's runtime settings, or a copy if the task or the definition overrides model or effort.
    pub(super) fn subagent_settings(
        &self,
        definition: &ResolvedDefinition,
        request: &SpawnRequest,
    ) -> RuntimeSettingsReader {
        let parent_settings = &self.position.runtime_settings;
        let by_environment = self.context.environment.workspace.variable("CLAUDE_CODE_SUBAGENT_MODEL");
        let requested = by_environment.as_ref().or(request.model.as_ref()).or(definition.model.as_ref());
        let model = requested.filter(|name| !matches!(name.as_str(), "" | "inherit"));
        let effort = request.effort.or(definition.effort);
        if model.is_none() && effort.is_none() {
            return parent_settings.for_subagent();
        }
        let mut settings: RuntimeSettings = parent_settings.current();
        settings.effort = effort.or(settings.effort);
        if let Some(name) = model {
            settings.model = self.context.models.catalog().resolve_alias(name);
            settings.thinking = settings.thinking.filter(|thinking| *thinking == Thinking::Disabled);
        }
        RuntimeSettingsReader::fixed(settings)
    }

    /// Adds the skills of a definition to the conversation. Missing skills are reported to the host; the agent starts
    /// without them.
    pub(super) async fn load_skills(&self, agent: &mut Agent, definition: &ResolvedDefinition) {
        for name in &definition.skills {
            let (skills, skill_name) = (self.context.extensions.skills.clone(), name.clone());
            let body = files::run_blocking(move || {
                skills.render_body(&skill_name).map_err(|missing| missing.to_string())
            })
            .await;
            match body.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(body) => {
                    agent.conversation.push_hidden(&format!("The skill {name}, for your task:\n\n{body}"));
                }
                Err(reason) => {
                    let warning =
                        format!("The agent {} starts without the skill {name}: {reason}", definition.name);
                    self.context.frame_sender.warn(warning).await;
                }
            }
        }
    }
}

impl AgentContext {
    /// Builds an agent, restores its conversation and injects its context.
    fn build_agent(&self, parts: AgentParts) -> Agent {
        let AgentParts {
            recorder,
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
            conversation: Conversation::new(recorder, self.frame_sender.clone(), attribution),
            instructions,
            request_prefix: self
                .models
                .request_prefix(system, tool_env.context.deferred_tools.visible_specs(&tool_env.tool_set)),
            tool_env: Arc::new(tool_env),
            runtime_settings,
            frame_sender: self.frame_sender.clone(),
            limits,
            ledger,
            denials: self.totals.denials.clone(),
            structured_output,
            fallback_models,
            compaction_state: CompactionState::default(),
            invoked_skills: skills,
            progress,
            own_servers,
            steering: None,
            view: ConversationView::default(),
        };
        if let Some(resumed) = resumed {
            agent.conversation.restore(resumed);
        }
        agent.inject_context();
        agent
    }
}

/// System prompt of a subagent: that of its definition, and the text that the host appends to all of them.
fn join_prompt(prompt: &str, appended: Option<&str>) -> String {
    match appended {
        Some(appended) => format!("{prompt}\n\n{appended}"),
        None => prompt.to_owned(),
    }
}

fn subagent_limits(
    base: &AgentLimits,
    definition: &ResolvedDefinition,
    request: &SpawnRequest,
) -> AgentLimits {
    AgentLimits {
        max_turns: request.max_turns.or(definition.max_turns),
        compaction: CompactionConfig {
            window: definition.auto_compact_window.or(base.compaction.window),
            ..base.compaction
        },
        ..base.clone()
    }
}
