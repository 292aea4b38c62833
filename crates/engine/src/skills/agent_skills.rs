//! An agent's desk: what the skills say that it has called, laid before it after the results of its calls.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::skill_hooks::{self, SkillHooks};
use super::{Skill, Skills};
use crate::agent::Agent;
use crate::commands::parse::ParsedCommand;
use crate::commands::{CommandFile, expand, overrides};
use crate::hooks;
use crate::settings::Trust;
use crate::tool_set::AgentToolSet;
use crate::tools::SKILL;

/// The desk of one agent.
pub struct AgentSkills {
    skills: Skills,
    queue: InvocationQueue,
    tool: Arc<Skill>,
    /// What the model has been told of skills.
    last_listing: Option<String>,
    /// What they have brought besides words.
    pub(super) hooks: SkillHooks,
}

/// The skills that were called and have not yet been laid before the model. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InvocationQueue(Arc<Mutex<Vec<InvokedSkill>>>);

impl InvocationQueue {
    /// Puts one there.
    pub(super) fn push(&self, loaded: InvokedSkill) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(loaded);
    }

    /// Takes all of them, in the order in which they came.
    fn drain(&self) -> Vec<InvokedSkill> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A skill that was called.
#[derive(Debug)]
pub struct InvokedSkill {
    /// Its file.
    pub file: Arc<CommandFile>,
    /// What that said when it was called.
    pub parsed: ParsedCommand,
    /// What the skill was told.
    pub arguments: String,
}

impl AgentSkills {
    /// A desk for an agent of a session with these skills. Their hooks are run with `hooks`; none if hooks do not run.
    pub fn new(skills: &Skills, hooks: Option<hooks::HookDeps>) -> Self {
        let queue = InvocationQueue::default();
        let tool = Arc::new(Skill::new(skills.clone(), queue.clone()));
        Self { skills: skills.clone(), queue, tool, last_listing: None, hooks: SkillHooks::new(hooks) }
    }

    /// How far the project is trusted.
    pub(super) fn trust(&self) -> Trust {
        self.skills.trust()
    }

    /// The tools of the agent: where skills are offered, by the tool that leads to this desk.
    pub fn with_skill_tool(&self, toolbox: &Arc<AgentToolSet>) -> Arc<AgentToolSet> {
        match toolbox.find(SKILL) {
            Some(_) => Arc::new(toolbox.with_tool(self.tool.clone())),
            None => Arc::clone(toolbox),
        }
    }

    /// What there is to tell the model of skills since it was told last.
    fn take_changed_listing(&mut self) -> Option<String> {
        let listing = self.skills.listing();
        if listing == self.last_listing {
            return None;
        }
        self.last_listing.clone_from(&listing);
        listing
    }
}

/// Tells an agent at its beginning which skills there are.
pub fn inject_listing(agent: &mut Agent) {
    agent.invoked_skills.last_listing = None;
    if agent.tool_env.tool_set.find(SKILL).is_some()
        && let Some(text) = agent.invoked_skills.take_changed_listing()
    {
        agent.conversation.push_hidden_once(&text);
    }
}

/// Tells an agent which skills there are if they are others than it was told.
pub fn inject_listing_changes(agent: &mut Agent) {
    if agent.tool_env.tool_set.find(SKILL).is_some()
        && let Some(text) = agent.invoked_skills.take_changed_listing()
    {
        agent.conversation.push_hidden(&text);
    }
}

/// Lays before the model what the skills say that it has called. The rules and the model of a skill count until the turn
/// ends, its hooks from now on.
pub async fn inject_invoked(agent: &mut Agent, cancel: &CancellationToken) {
    for loaded in agent.invoked_skills.queue.drain() {
        if let Some(unfit) = overrides::override_model(agent, &loaded.file, &loaded.parsed.front_matter) {
            agent.frame_sender.warn(unfit).await;
        }
        let tools = Arc::clone(&agent.tool_env.tool_set);
        let text = render(agent, &loaded, &tools, cancel).await;
        agent.conversation.push_synthetic(&text).await;
    }
}

/// What a skill says to an agent, which has its rules and hooks from now on. What it wants run is run by the tools of
/// whoever called it.
pub(crate) async fn render(
    agent: &mut Agent,
    loaded: &InvokedSkill,
    tools: &Arc<AgentToolSet>,
    cancel: &CancellationToken,
) -> String {
    let InvokedSkill { file, parsed: recipe, arguments } = loaded;
    let rules = match recipe.front_matter.rules().apply(&agent.tool_env.checker.permissions, file, agent.invoked_skills.trust()) {
        Ok(warnings) => warnings,
        Err(why) => return format!("The skill {} could not be loaded. {why}", file.name),
    };
    let hooks = skill_hooks::add_skill_hooks(agent, file, &recipe.front_matter);
    // What was wrong with it from the start was told then.
    let flaw = recipe.warning.clone().filter(|flaw| file.warning.as_ref() != Some(flaw));
    for warning in flaw.into_iter().chain(rules).chain(hooks) {
        agent.frame_sender.warn(warning).await;
    }
    let made = expand::expand_file(agent, tools, file, &recipe.body, arguments);
    // What a command printed that was stopped is not what the skill wants shown.
    let made = cancel.run_until_cancelled(made).await.filter(|_| !cancel.is_cancelled());
    match made {
        Some(Ok(made)) => made.text,
        Some(Err(why)) => format!("The skill {} could not be loaded. {why}", file.name),
        None => format!("The skill {} was not loaded: the turn was interrupted.", file.name),
    }
}
