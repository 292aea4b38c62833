//! Builds subagents: permissions and ledger derive from the parent; prompt, tools and transcript are their own.

use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_models::Thinking;
use whimbrel_session_store::{ResumedSession, TranscriptLog};

use super::context::{AgentParts, TreePosition};
use super::definition::{StartableAgents, split_tool_rule};
use super::progress::AgentProgress;
use super::{AgentSpawner, Definition, SubagentTask, hooks, memory};
use crate::agent::{Agent, AgentLimits};
use crate::context::auto_compact::CompactionConfig;
use crate::context::instructions::Instructions;
use crate::conversation::Attribution;
use crate::permission::PlanLock;
use crate::permission_checker::PermissionChecker;
use crate::runtime_settings::{RuntimeSettings, RuntimeSettingsReader};
use crate::structured_output::{self, StructuredOutput};
use crate::task_list::TodoList;
use crate::tasks::AgentTask;
use crate::tool_scheduler::ToolEnv;
use crate::tool_set::AgentToolSet;
use crate::tools::{AGENT, SEND_MESSAGE, TEAM_CREATE, TEAM_DELETE, ToolContext};

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
            Self::Teammate { plan_lock: pledge, .. } => pledge.clone(),
        }
    }
}

impl AgentSpawner {
    /// Builds the agent for a task; it continues a resumed conversation if there is one.
    pub(super) fn build_subagent(
        &self,
        definition: &Definition,
        errand: &SubagentTask,
        call: &ToolContext,
        entry: &AgentTask,
        role: &AgentRole,
        past: Option<ResumedSession>,
    ) -> Agent {
        let (home, parent) = (&self.context, &self.position);
        let agent_id = &entry.facts.task_id;
        let transcripts = home.project_dir.as_ref().map(|place| place.subagents_dir(&home.identity.session));
        let ledger = home.ledger.for_agent(format!("{} ({agent_id})", definition.name));
        let log = TranscriptLog::sidechain(
            home.identity.clone(),
            agent_id,
            transcripts.as_deref(),
            &home.persistence,
        );
        let journal = log.writer().clone();
        let rights = parent
            .permission_checker
            .permissions
            .for_subagent(definition.permission_mode)
            .for_subagent(errand.mode);
        let rights = rights.with_plan_lock(role.plan_lock()).with_workspace(&call.workspace);
        let lookout = parent.permission_checker.hooks.for_subagent(agent_id, &definition.name);
        let lookout = match &home.hook_deps {
            Some(desk) => lookout.with_hooks(hooks::agent_hooks(definition).0, desk),
            None => lookout,
        };
        let gate = PermissionChecker {
            hooks: lookout.with_workspace(&call.workspace, rights.clone()),
            permissions: rights,
            ..parent.permission_checker.clone()
        };
        let own_servers = home.server_starter.create_tool_cache(definition, &gate.permissions);
        let toolbox = subagent_tools(&parent.tool_set, definition, role).with_own_mcp_tools(own_servers);
        let toolbox = Arc::new(toolbox);
        let knobs = self.subagent_settings(definition, errand);
        let below = TreePosition {
            depth: parent.depth + 1,
            agent_id: Some(agent_id.clone()),
            tool_set: Arc::clone(&toolbox),
            permission_checker: gate.clone(),
            runtime_settings: knobs.clone(),
            startable: match role {
                AgentRole::Subagent => definition.startable_agents(),
                AgentRole::Teammate { .. } => StartableAgents::NoAgents,
            },
            teammate_name: role.name().map(Into::into),
        };
        let reaches_others = below.startable != StartableAgents::NoAgents || below.teammate_name.is_some();
        let agents = reaches_others.then(|| self.with_position(below));
        home.build_agent(AgentParts {
            log,
            resumed: past,
            attribution: Attribution::subagent(&call.id, agent_id, &definition.name, &errand.description)
                .with_text_forwarded(home.forward_subagent_text),
            system: vec![definition.prompt.clone()],
            tool_env: ToolEnv {
                tool_set: toolbox,
                checker: gate,
                context: ToolContext {
                    id: String::new(),
                    agents,
                    cancel: entry.stop.clone(),
                    small_model: call.small_model.with_ledger(ledger.clone()),
                    deferred_tools: home.deferred_tools.for_new_agent(),
                    todos: TodoList::default(),
                    transcript: journal,
                    ..call.clone()
                },
            },
            runtime_settings: knobs,
            limits: subagent_limits(&home.limits, definition, errand),
            ledger,
            structured_output: StructuredOutput::default(),
            instructions: match definition.omit_instructions {
                true => Instructions::new(Arc::new(ConfigLocations::default()), None),
                false => home.instructions.for_new_agent(),
            },
            progress: AgentProgress::for_task(entry.facts.clone()),
        })
    }

    /// The parent's runtime settings, or a copy if the task or the definition overrides model or effort.
    pub(super) fn subagent_settings(
        &self,
        definition: &Definition,
        errand: &SubagentTask,
    ) -> RuntimeSettingsReader {
        let parents = &self.position.runtime_settings;
        let by_environment = self.context.workspace.variable("CLAUDE_CODE_SUBAGENT_MODEL");
        let wanted = by_environment.as_ref().or(errand.model.as_ref()).or(definition.model.as_ref());
        let model = wanted.filter(|name| !matches!(name.as_str(), "" | "inherit"));
        let effort = errand.effort.or(definition.effort);
        if model.is_none() && effort.is_none() {
            return parents.for_subagent();
        }
        let mut own: RuntimeSettings = parents.current();
        own.effort = effort.or(own.effort);
        if let Some(name) = model {
            own.model = self.context.engine.catalog().resolve_alias(name);
            own.thinking = own.thinking.filter(|thinking| *thinking == Thinking::Disabled);
        }
        RuntimeSettingsReader::fixed(own)
    }
}

/// The parent's tools, restricted by the definition. Only the main agent creates teams, and only teammates send
/// messages.
fn subagent_tools(parent: &AgentToolSet, definition: &Definition, role: &AgentRole) -> AgentToolSet {
    let mut only = definition.tools.as_deref().map(|tools| canonical_names(parent, tools));
    if definition.memory.is_some() {
        only.iter_mut().for_each(|only| only.extend(memory::MEMORY_TOOLS.map(String::from)));
    }
    let mut without = canonical_names(parent, &definition.disallowed_tools);
    without.extend([structured_output::TOOL_NAME, TEAM_CREATE, TEAM_DELETE].map(String::from));
    match role {
        AgentRole::Teammate { .. } => {
            without.push(AGENT.into());
            only.iter_mut().for_each(|only| only.push(SEND_MESSAGE.into()));
        }
        AgentRole::Subagent => {
            without.push(SEND_MESSAGE.into());
            if definition.startable_agents() == StartableAgents::NoAgents {
                without.push(AGENT.into());
            }
        }
    }
    let narrowed =
        parent.for_subagent(only.as_deref(), &without.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => narrowed,
        named => narrowed.restricted_to_servers(named),
    }
}

/// The tools of a session to which the definition is applied.
pub(crate) fn session_tools(all: &AgentToolSet, definition: &Definition) -> AgentToolSet {
    let mut only = definition.tools.as_deref().map(|tools| canonical_names(all, tools));
    let own = &definition.mcp_servers.own;
    if let Some(only) = &mut only {
        only.extend(own.keys().map(|server| format!("mcp__{server}")));
        only.extend(definition.memory.iter().flat_map(|_| memory::MEMORY_TOOLS.map(String::from)));
    }
    let without = canonical_names(all, &definition.disallowed_tools);
    let limited = all.restricted_to(only.as_deref(), &without.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => limited,
        named => limited.restricted_to_servers(named.iter().chain(own.keys())),
    }
}

/// Resolves aliases in a definition's tool entries to tool names.
fn canonical_names(toolbox: &AgentToolSet, tools: &[String]) -> Vec<String> {
    let names = tools.iter().map(|tool| split_tool_rule(tool).0);
    let own = |name: &str| toolbox.find(name).map(|tool| tool.tool().name().to_owned());
    names.map(|name| own(name).unwrap_or_else(|| name.to_owned())).collect()
}

fn subagent_limits(home: &AgentLimits, definition: &Definition, errand: &SubagentTask) -> AgentLimits {
    AgentLimits {
        max_turns: errand.max_turns.or(definition.max_turns),
        compaction: CompactionConfig {
            window: definition.auto_compact_window.or(home.compaction.window),
            ..home.compaction
        },
        ..home.clone()
    }
}
