//! Builds subagents: permissions and ledger derive from the parent; prompt, tools and transcript are their own.

use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_models::Thinking;
use whimbrel_os::files;
use whimbrel_session_store::{ResumedSession, TranscriptLog};
use whimbrel_tools::api::{AgentServices, AgentToolSet, DynamicTools, ToolContext};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::PlanLock;
use whimbrel_tools::task_list::TodoList;
use whimbrel_tools::tasks::AgentTask;
use whimbrel_wire::tool_names::{AGENT, SEND_MESSAGE, TEAM_CREATE, TEAM_DELETE};

use super::context::{AgentParts, TreePosition};
use super::definition::{StartableAgents, split_tool_rule};
use super::{AgentSpawner, Definition, SubagentTask, hooks, memory};
use crate::agent::{Agent, AgentLimits, AgentProgress};
use crate::context::compaction_policy::CompactionConfig;
use crate::context::instructions::Instructions;
use crate::conversation::Attribution;
use crate::permission_checker::PermissionChecker;
use crate::runtime_settings::{RuntimeSettings, RuntimeSettingsReader};
use crate::structured_output::{self, StructuredOutput};
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

impl AgentSpawner {
    /// Builds the agent for a task; it continues a resumed conversation if there is one.
    pub(super) fn build_subagent(
        &self,
        definition: &Definition,
        task: &SubagentTask,
        call: &ToolContext,
        entry: &AgentTask,
        role: &AgentRole,
        resumed: Option<ResumedSession>,
    ) -> Agent {
        let (agent_context, parent) = (&self.context, &self.position);
        let agent_id = &entry.facts.task_id;
        let transcripts = agent_context
            .storage
            .project_dir
            .as_ref()
            .map(|project_dir| project_dir.subagents_dir(&agent_context.storage.identity.session));
        let ledger = agent_context.accounts.ledger.for_agent(format!("{} ({agent_id})", definition.name));
        let log = TranscriptLog::sidechain(
            agent_context.storage.identity.clone(),
            agent_id,
            transcripts.as_deref(),
            &agent_context.storage.persistence,
        );
        let writer = log.writer().clone();
        let permission_state = parent
            .permission_checker
            .permissions
            .for_subagent(definition.permission_mode)
            .for_subagent(task.mode);
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
        let settings = self.subagent_settings(definition, task);
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
            log,
            resumed,
            attribution: Attribution::subagent(&call.id, agent_id, &definition.name, &task.description)
                .with_text_forwarded(agent_context.spawning.forward_subagent_text),
            system: vec![definition.prompt.clone()],
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
            limits: subagent_limits(&agent_context.main.limits, definition, task),
            ledger,
            structured_output: StructuredOutput::default(),
            instructions: match definition.omit_instructions {
                true => Instructions::new(Arc::new(ConfigLocations::default()), None),
                false => agent_context.extensions.instructions.for_new_agent(),
            },
            progress: AgentProgress::for_task(entry.facts.clone()),
            own_servers,
        })
    }

    /// The parent's runtime settings, or a copy if the task or the definition overrides model or effort.
    pub(super) fn subagent_settings(
        &self,
        definition: &Definition,
        task: &SubagentTask,
    ) -> RuntimeSettingsReader {
        let parent_settings = &self.position.runtime_settings;
        let by_environment = self.context.environment.workspace.variable("CLAUDE_CODE_SUBAGENT_MODEL");
        let requested = by_environment.as_ref().or(task.model.as_ref()).or(definition.model.as_ref());
        let model = requested.filter(|name| !matches!(name.as_str(), "" | "inherit"));
        let effort = task.effort.or(definition.effort);
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
    pub(super) async fn load_skills(&self, agent: &mut Agent, definition: &Definition) {
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

/// The parent's tools, restricted by the definition. Only the main agent creates teams, and only teammates send
/// messages.
fn subagent_tools(parent: &AgentToolSet, definition: &Definition, role: &AgentRole) -> AgentToolSet {
    let mut allowed = definition.tools.as_deref().map(|tools| canonical_names(parent, tools));
    if definition.memory.is_some() {
        allowed.iter_mut().for_each(|allowed| allowed.extend(memory::MEMORY_TOOLS.map(String::from)));
    }
    let mut excluded = canonical_names(parent, &definition.disallowed_tools);
    excluded.extend([structured_output::TOOL_NAME, TEAM_CREATE, TEAM_DELETE].map(String::from));
    match role {
        AgentRole::Teammate { .. } => {
            excluded.push(AGENT.into());
            allowed.iter_mut().for_each(|allowed| allowed.push(SEND_MESSAGE.into()));
        }
        AgentRole::Subagent => {
            excluded.push(SEND_MESSAGE.into());
            if definition.startable_agents() == StartableAgents::NoAgents {
                excluded.push(AGENT.into());
            }
        }
    }
    let narrowed =
        parent.for_subagent(allowed.as_deref(), &excluded.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => narrowed,
        named => narrowed.restricted_to_servers(named),
    }
}

/// The tools of a session to which the definition is applied.
pub(crate) fn session_tools(all: &AgentToolSet, definition: &Definition) -> AgentToolSet {
    let mut allowed = definition.tools.as_deref().map(|tools| canonical_names(all, tools));
    let own = &definition.mcp_servers.own;
    if let Some(allowed) = &mut allowed {
        allowed.extend(own.keys().map(|server| format!("mcp__{server}")));
        allowed.extend(definition.memory.iter().flat_map(|_| memory::MEMORY_TOOLS.map(String::from)));
    }
    let excluded = canonical_names(all, &definition.disallowed_tools);
    let limited =
        all.restricted_to(allowed.as_deref(), &excluded.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => limited,
        named => limited.restricted_to_servers(named.iter().chain(own.keys())),
    }
}

/// Resolves aliases in a definition's tool entries to tool names.
fn canonical_names(tool_set: &AgentToolSet, tools: &[String]) -> Vec<String> {
    let names = tools.iter().map(|tool| split_tool_rule(tool).0);
    let canonical = |name: &str| tool_set.find(name).map(|tool| tool.tool().name().to_owned());
    names.map(|name| canonical(name).unwrap_or_else(|| name.to_owned())).collect()
}

fn subagent_limits(base: &AgentLimits, definition: &Definition, task: &SubagentTask) -> AgentLimits {
    AgentLimits {
        max_turns: task.max_turns.or(definition.max_turns),
        compaction: CompactionConfig {
            window: definition.auto_compact_window.or(base.compaction.window),
            ..base.compaction
        },
        ..base.clone()
    }
}
