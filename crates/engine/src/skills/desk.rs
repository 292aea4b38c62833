//! An agent's desk: what the skills say that it has called, laid before it after the results of its calls.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::brought::{self, Brought};
use super::{Skill, Skills};
use crate::agent::Agent;
use crate::commands::head::Recipe;
use crate::commands::{CommandFile, expand, loan};
use crate::hooks;
use crate::settings::Trust;
use crate::toolbox::Toolbox;
use crate::tools::SKILL;

/// The desk of one agent.
pub struct Desk {
    skills: Skills,
    arrivals: Arrivals,
    tool: Arc<Skill>,
    /// What the model has been told of skills.
    told: Option<String>,
    /// What they have brought besides words.
    pub(super) brought: Brought,
}

/// The skills that were called and have not yet been laid before the model. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals(Arc<Mutex<Vec<Loaded>>>);

impl Arrivals {
    /// Puts one there.
    pub(super) fn put(&self, loaded: Loaded) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(loaded);
    }

    /// Takes all of them, in the order in which they came.
    fn take(&self) -> Vec<Loaded> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A skill that was called.
#[derive(Debug)]
pub struct Loaded {
    /// Its file.
    pub file: Arc<CommandFile>,
    /// What that said when it was called.
    pub recipe: Recipe,
    /// What the skill was told.
    pub arguments: String,
}

impl Desk {
    /// A desk for an agent of a session with these skills. Their hooks are run with `hooks`; none if hooks do not run.
    pub fn new(skills: &Skills, hooks: Option<hooks::Desk>) -> Self {
        let arrivals = Arrivals::default();
        let tool = Arc::new(Skill::new(skills.clone(), arrivals.clone()));
        Self { skills: skills.clone(), arrivals, tool, told: None, brought: Brought::nothing(hooks) }
    }

    /// How far the project is trusted.
    pub(super) fn trust(&self) -> Trust {
        self.skills.trust()
    }

    /// The tools of the agent: where skills are offered, by the tool that leads to this desk.
    pub fn fit(&self, toolbox: &Arc<Toolbox>) -> Arc<Toolbox> {
        match toolbox.find(SKILL) {
            Some(_) => Arc::new(toolbox.with(self.tool.clone())),
            None => Arc::clone(toolbox),
        }
    }

    /// What there is to tell the model of skills since it was told last.
    fn news(&mut self) -> Option<String> {
        let listing = self.skills.listing();
        if listing == self.told {
            return None;
        }
        self.told.clone_from(&listing);
        listing
    }
}

/// Tells an agent at its beginning which skills there are.
pub fn introduce(agent: &mut Agent) {
    agent.skills.told = None;
    if agent.bench.toolbox.find(SKILL).is_some()
        && let Some(text) = agent.skills.news()
    {
        agent.conversation.remind(&text);
    }
}

/// Tells an agent which skills there are if they are others than it was told.
pub fn update(agent: &mut Agent) {
    if agent.bench.toolbox.find(SKILL).is_some()
        && let Some(text) = agent.skills.news()
    {
        agent.conversation.brief(&text);
    }
}

/// Lays before the model what the skills say that it has called. The rules and the model of a skill count until the turn
/// ends, its hooks from now on.
pub async fn lay_open(agent: &mut Agent, cancel: &CancellationToken) {
    for loaded in agent.skills.arrivals.take() {
        if let Some(unfit) = loan::model(agent, &loaded.file, &loaded.recipe.head) {
            agent.outbox.warn(unfit).await;
        }
        let tools = Arc::clone(&agent.bench.toolbox);
        let text = read_out(agent, &loaded, &tools, cancel).await;
        agent.conversation.note(&text).await;
    }
}

/// What a skill says to an agent, which has its rules and hooks from now on. What it wants run is run by the tools of
/// whoever called it.
pub(crate) async fn read_out(
    agent: &mut Agent,
    loaded: &Loaded,
    tools: &Arc<Toolbox>,
    cancel: &CancellationToken,
) -> String {
    let Loaded { file, recipe, arguments } = loaded;
    let rules = match recipe.head.terms().lend(&agent.bench.gate.rights, file, agent.skills.trust()) {
        Ok(warnings) => warnings,
        Err(why) => return format!("The skill {} could not be loaded. {why}", file.name),
    };
    let hooks = brought::hooks(agent, file, &recipe.head);
    // What was wrong with it from the start was told then.
    let flaw = recipe.flaw.clone().filter(|flaw| file.flaw.as_ref() != Some(flaw));
    for warning in flaw.into_iter().chain(rules).chain(hooks) {
        agent.outbox.warn(warning).await;
    }
    let made = expand::make(agent, tools, file, &recipe.body, arguments);
    // What a command printed that was stopped is not what the skill wants shown.
    let made = cancel.run_until_cancelled(made).await.filter(|_| !cancel.is_cancelled());
    match made {
        Some(Ok(made)) => made.text,
        Some(Err(why)) => format!("The skill {} could not be loaded. {why}", file.name),
        None => format!("The skill {} was not loaded: the turn was interrupted.", file.name),
    }
}
