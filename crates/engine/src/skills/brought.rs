//! What a skill brings to the agent that calls it, besides its words: rules and a model for the turn, and hooks that run
//! from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_models::Thinking;

use crate::agent::Agent;
use crate::agents::hooked;
use crate::commands::head::Head;
use crate::commands::{CommandFile, Owner};
use crate::hooks::{Desk, HookSet, Lookout};
use crate::knobs::{Knobs, KnobsReader};
use crate::plugins::ROOT_VARIABLE;

/// The variable that names a skill's folder, for its hooks and in its texts.
pub(crate) const FOLDER_VARIABLE: &str = "CLAUDE_SKILL_DIR";

/// What skills have brought to one agent.
pub(super) struct Brought {
    /// What hooks are run with; none if hooks do not run in this session.
    desk: Option<Desk>,
    /// The lookout as it is without them, once there are some.
    lookout: Option<Lookout>,
    /// The hooks by skill, so that one that is called again does not add up.
    hooks: BTreeMap<String, HookSet>,
    /// The agent's own knobs, while a skill has lent it others.
    knobs: Option<KnobsReader>,
}

impl Brought {
    /// Nothing yet.
    pub(super) fn nothing(desk: Option<Desk>) -> Self {
        Self { desk, lookout: None, hooks: BTreeMap::new(), knobs: None }
    }
}

/// Puts the rules of a skill in force until the turn ends. Gives what is wrong with them; the error says why the skill is
/// not to be followed.
pub(super) fn rules(agent: &Agent, file: &CommandFile, head: &Head) -> Result<Vec<String>, String> {
    head.terms().lend(&agent.bench.gate.rights, file, agent.skills.trust())
}

/// Has the hooks of a skill run from now on, as long as the agent lives. Gives what cannot be had of them. What came with
/// a project does not run unless the project is trusted.
pub(crate) fn hooks(agent: &mut Agent, file: &CommandFile, head: &Head) -> Vec<String> {
    let Some(given) = &head.hooks else { return Vec::new() };
    let about = |what: String| format!("{}: {what}", file.path.display());
    if !file.may_grant(agent.skills.trust()) {
        return vec![about("its hooks do not run, because the project is not trusted.".into())];
    }
    let brought = &mut agent.skills.brought;
    let Some(desk) = &brought.desk else { return Vec::new() };
    let bench = Arc::make_mut(&mut agent.bench);
    let gate = &mut bench.gate;
    let plain = brought.lookout.get_or_insert_with(|| gate.lookout.clone());
    let given = match plain.agent_id() {
        Some(_) => hooked::with_its_own_end(given),
        None => given.clone(),
    };
    let (set, flaws) = hooked::read_hooks(&given, &format!("the skill {}", file.name), &surroundings(file));
    brought.hooks.insert(file.name.clone(), set);
    let mut all = HookSet::default();
    brought.hooks.values().for_each(|set| all.append(set.clone()));
    gate.lookout = plain.with_hooks(all, desk);
    bench.call.lookout = gate.lookout.clone();
    flaws.into_iter().map(about).collect()
}

/// Lends the model of a skill until the turn ends. Gives why it cannot be had.
pub(super) fn model(agent: &mut Agent, file: &CommandFile, head: &Head) -> Option<String> {
    let (name, effort) = (head.model(), head.effort());
    if name.is_none() && effort.is_none() {
        return None;
    }
    let mut lent: Knobs = agent.knobs.borrow().clone();
    lent.effort = effort.or(lent.effort);
    if let Some(name) = name {
        let model = agent.engine.catalog().resolve_alias(name);
        if let Err(fault) = agent.engine.providers().resolve(&model) {
            return Some(format!("{}: its model is not used: {}", file.path.display(), fault.message));
        }
        lent.model = model;
        // A limit on thinking was meant for the other model.
        lent.thinking = lent.thinking.filter(|thinking| *thinking == Thinking::Disabled);
    }
    let own = std::mem::replace(&mut agent.knobs, tokio::sync::watch::Sender::new(lent).subscribe());
    agent.skills.brought.knobs.get_or_insert(own);
    None
}

/// The turn is over: the agent has its own knobs again.
pub(crate) fn give_back(agent: &mut Agent) {
    if let Some(own) = agent.skills.brought.knobs.take() {
        agent.knobs = own;
    }
}

/// The variables that the hooks of a skill have besides.
fn surroundings(file: &CommandFile) -> BTreeMap<String, String> {
    let folder = file.folder.as_ref().map(|folder| folder.display().to_string());
    let root = match &file.owner {
        Owner::Plugin(plugin) => Some(plugin.root.display().to_string()),
        Owner::User | Owner::Project => folder.clone(),
    };
    let named = [(FOLDER_VARIABLE, folder), (ROOT_VARIABLE, root)];
    named.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path?))).collect()
}
