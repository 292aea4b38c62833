//! What a skill brings to the agent that calls it, besides its words and a [loan](crate::commands::loan) for the turn:
//! hooks that run from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::Agent;
use crate::agents::hooked;
use crate::commands::head::Head;
use crate::commands::{CommandFile, FOLDER_VARIABLE, Owner};
use crate::hooks::{Desk, HookSet, Lookout};
use crate::plugins::ROOT_VARIABLE;

/// What skills have brought to one agent.
pub(super) struct Brought {
    /// What hooks are run with; none if hooks do not run in this session.
    desk: Option<Desk>,
    /// The lookout as it is without them, once there are some.
    lookout: Option<Lookout>,
    /// The hooks by skill, so that one that is called again does not add up.
    hooks: BTreeMap<String, HookSet>,
}

impl Brought {
    /// Nothing yet.
    pub(super) fn nothing(desk: Option<Desk>) -> Self {
        Self { desk, lookout: None, hooks: BTreeMap::new() }
    }
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
