//! Skills of one agent: queues the skills that it calls and injects them after the tool results.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::Trust;

use super::skill_hooks::{self, SkillHooks};
use super::{Skill, Skills};
use crate::agent::Agent;
use crate::commands::parse::ParsedCommand;
use crate::commands::{CommandFile, expand, overrides};
use crate::hooks;
use crate::tool_set::AgentToolSet;
use crate::tools::SKILL;

/// Skill state of one agent.
pub struct AgentSkills {
    skills: Skills,
    queue: InvocationQueue,
    tool: Arc<Skill>,
    /// List last shown to the model.
    last_listing: Option<String>,
    /// Hooks of the skills that were called.
    pub(super) hooks: SkillHooks,
}

/// Called skills that have not been injected yet. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InvocationQueue(Arc<Mutex<Vec<InvokedSkill>>>);

impl InvocationQueue {
    pub(super) fn push(&self, loaded: InvokedSkill) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(loaded);
    }

    /// Takes all of them, in call order.
    fn drain(&self) -> Vec<InvokedSkill> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Called skill.
#[derive(Debug)]
pub struct InvokedSkill {
    pub file: Arc<CommandFile>,
    /// Contents of the file when it was called.
    pub parsed: ParsedCommand,
    pub arguments: String,
}

impl AgentSkills {
    /// State for an agent. `hooks` are the dependencies of skill hooks; `None` if hooks do not run.
    pub fn new(skills: &Skills, hooks: Option<hooks::HookDeps>) -> Self {
        let queue = InvocationQueue::default();
        let tool = Arc::new(Skill::new(skills.clone(), queue.clone()));
        Self { skills: skills.clone(), queue, tool, last_listing: None, hooks: SkillHooks::new(hooks) }
    }

    pub(super) fn trust(&self) -> Trust {
        self.skills.trust()
    }

    /// Tool set with this agent's Skill tool, if skills are offered.
    pub fn with_skill_tool(&self, tool_set: &Arc<AgentToolSet>) -> Arc<AgentToolSet> {
        match tool_set.find(SKILL) {
            Some(_) => Arc::new(tool_set.with_tool(self.tool.clone())),
            None => Arc::clone(tool_set),
        }
    }

    /// The current list, if the model has not seen it yet; remembers it as seen.
    fn take_changed_listing(&mut self) -> Option<String> {
        let listing = self.skills.listing();
        if listing == self.last_listing {
            return None;
        }
        self.last_listing.clone_from(&listing);
        listing
    }
}

/// Injects the list of skills at the start of an agent.
pub fn inject_listing(agent: &mut Agent) {
    agent.invoked_skills.last_listing = None;
    if agent.tool_env.tool_set.find(SKILL).is_some()
        && let Some(text) = agent.invoked_skills.take_changed_listing()
    {
        agent.conversation.push_hidden_once(&text);
    }
}

/// Injects the list of skills if it has changed.
pub fn inject_listing_changes(agent: &mut Agent) {
    if agent.tool_env.tool_set.find(SKILL).is_some()
        && let Some(text) = agent.invoked_skills.take_changed_listing()
    {
        agent.conversation.push_hidden(&text);
    }
}

/// Injects the called skills. Their rules and model apply until the turn ends, their hooks from now on.
pub async fn inject_invoked(agent: &mut Agent, cancel: &CancellationToken) {
    for loaded in agent.invoked_skills.queue.drain() {
        if let Some(invalid) = overrides::override_model(agent, &loaded.file, &loaded.parsed.front_matter) {
            agent.frame_sender.warn(invalid).await;
        }
        let tools = Arc::clone(&agent.tool_env.tool_set);
        let text = render(agent, &loaded, &tools, cancel).await;
        agent.conversation.push_synthetic(&text).await;
    }
}

/// Renders a skill and applies its rules and hooks to the agent. Shell commands in it run with `tools`, the caller's
/// tool set.
pub(crate) async fn render(
    agent: &mut Agent,
    loaded: &InvokedSkill,
    tools: &Arc<AgentToolSet>,
    cancel: &CancellationToken,
) -> String {
    let InvokedSkill { file, parsed, arguments } = loaded;
    let rules = match parsed.front_matter.rules().apply(
        &agent.tool_env.checker.permissions,
        file,
        agent.invoked_skills.trust(),
    ) {
        Ok(warnings) => warnings,
        Err(why) => return format!("The skill {} could not be loaded. {why}", file.name),
    };
    let hooks = skill_hooks::add_skill_hooks(agent, file, &parsed.front_matter);
    // A warning that existed at discovery has been reported then.
    let error = parsed.warning.clone().filter(|error| file.warning.as_ref() != Some(error));
    for warning in error.into_iter().chain(rules).chain(hooks) {
        agent.frame_sender.warn(warning).await;
    }
    let expanded = expand::expand_file(agent, tools, file, &parsed.body, arguments);
    // The output of a cancelled command must not be injected.
    let expanded = cancel.run_until_cancelled(expanded).await.filter(|_| !cancel.is_cancelled());
    match expanded {
        Some(Ok(expanded)) => expanded.text,
        Some(Err(why)) => format!("The skill {} could not be loaded. {why}", file.name),
        None => format!("The skill {} was not loaded: the turn was interrupted.", file.name),
    }
}
