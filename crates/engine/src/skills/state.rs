//! Skill state of one agent: the skills that it has called and their hooks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_config::settings::Trust;
use whimbrel_tools::hooks::{HookDeps, HookDispatcher, HookSet};

use super::Skills;
use crate::commands::CommandFile;
use crate::commands::parse_file::ParsedCommand;

pub struct AgentSkills {
    skills: Skills,
    queue: InvocationQueue,
    /// List last shown to the model.
    last_listing: Option<String>,
    /// Hooks of the skills that were called.
    hooks: SkillHooks,
}

struct SkillHooks {
    /// Dependencies of hook runs; `None` if hooks do not run in this session.
    deps: Option<HookDeps>,
    /// Dispatcher without skill hooks; set with the first skill that has hooks.
    base_dispatcher: Option<HookDispatcher>,
    /// Hook sets by skill, so that a repeated call does not add them again.
    by_skill: BTreeMap<String, HookSet>,
}

/// Called skills that have not been injected yet. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct InvocationQueue(Arc<Mutex<Vec<InvokedSkill>>>);

impl InvocationQueue {
    pub fn push(&self, skill: InvokedSkill) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(skill);
    }

    /// Takes all of them, in call order.
    fn drain(&self) -> Vec<InvokedSkill> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
pub struct InvokedSkill {
    pub file: Arc<CommandFile>,
    /// Contents of the file when it was called.
    pub parsed: ParsedCommand,
    pub arguments: String,
}

impl AgentSkills {
    /// State for an agent. `hooks` are the dependencies of skill hooks; `None` if hooks do not run.
    pub fn new(skills: &Skills, hooks: Option<HookDeps>) -> Self {
        let hooks = SkillHooks { deps: hooks, base_dispatcher: None, by_skill: BTreeMap::new() };
        Self { skills: skills.clone(), queue: InvocationQueue::default(), last_listing: None, hooks }
    }

    pub fn trust(&self) -> Trust {
        self.skills.trust()
    }

    /// The skills that the agent can call.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// The queue for skills that the model calls.
    pub fn queue(&self) -> InvocationQueue {
        self.queue.clone()
    }

    /// Takes the called skills, in call order.
    pub fn take_invoked(&self) -> Vec<InvokedSkill> {
        self.queue.drain()
    }

    /// Shows the list again, even if it has not changed.
    pub fn forget_listing(&mut self) {
        self.last_listing = None;
    }

    /// Adds the hooks of a skill to those of its earlier skills; returns the dispatcher with all of them, or `None` if
    /// hooks do not run in this session.
    pub fn add_hooks(
        &mut self,
        skill: &str,
        set: HookSet,
        current: &HookDispatcher,
    ) -> Option<HookDispatcher> {
        let deps = self.hooks.deps.as_ref()?;
        let base = self.hooks.base_dispatcher.get_or_insert_with(|| current.clone());
        self.hooks.by_skill.insert(skill.to_owned(), set);
        let mut all = HookSet::default();
        self.hooks.by_skill.values().for_each(|set| all.append(set.clone()));
        Some(base.with_hooks(all, deps))
    }

    /// The current list, if the model has not seen it yet; remembers it as seen.
    pub fn take_changed_listing(&mut self) -> Option<String> {
        let listing = self.skills.listing();
        if listing == self.last_listing {
            return None;
        }
        self.last_listing.clone_from(&listing);
        listing
    }
}
