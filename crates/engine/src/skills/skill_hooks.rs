//! Hooks of skills, active from the first call of the skill. Rules and model are
//! [overrides](crate::commands::overrides) for one turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_config::plugins::ROOT_VARIABLE;

use crate::agent::Agent;
use crate::agents::hooks;
use crate::commands::parse::CommandFrontMatter;
use crate::commands::{CommandFile, CommandOwner, SKILL_DIR_VARIABLE};
use crate::hooks::{HookDeps, HookDispatcher, HookSet};

/// Skill hooks of one agent.
pub(super) struct SkillHooks {
    /// Dependencies of hook runs; `None` if hooks do not run in this session.
    deps: Option<HookDeps>,
    /// Dispatcher without skill hooks; set with the first skill that has hooks.
    base_dispatcher: Option<HookDispatcher>,
    /// Hook sets by skill, so that a repeated call does not add them again.
    by_skill: BTreeMap<String, HookSet>,
}

impl SkillHooks {
    pub(super) fn new(deps: Option<HookDeps>) -> Self {
        Self { deps, base_dispatcher: None, by_skill: BTreeMap::new() }
    }
}

/// Adds the hooks of a skill for the agent's lifetime; returns warnings. Hooks of a project's skill need trust in the
/// project.
pub(crate) fn add_skill_hooks(
    agent: &mut Agent,
    file: &CommandFile,
    head: &CommandFrontMatter,
) -> Vec<String> {
    let Some(given) = &head.hooks else { return Vec::new() };
    let with_path = |what: String| format!("{}: {what}", file.path.display());
    if !file.may_grant_permissions(agent.invoked_skills.trust()) {
        return vec![with_path("its hooks do not run, because the project is not trusted.".into())];
    }
    let brought = &mut agent.invoked_skills.hooks;
    let Some(registry) = &brought.deps else { return Vec::new() };
    let tool_env = Arc::make_mut(&mut agent.tool_env);
    let checker = &mut tool_env.checker;
    let plain = brought.base_dispatcher.get_or_insert_with(|| checker.hooks.clone());
    let given = match plain.agent_id() {
        Some(_) => hooks::map_stop_to_subagent_stop(given),
        None => given.clone(),
    };
    let (set, errors) =
        hooks::parse_front_matter_hooks(&given, &format!("the skill {}", file.name), &hook_environment(file));
    brought.by_skill.insert(file.name.clone(), set);
    let mut all = HookSet::default();
    brought.by_skill.values().for_each(|set| all.append(set.clone()));
    checker.hooks = plain.with_hooks(all, registry);
    tool_env.context.hooks = checker.hooks.clone();
    errors.into_iter().map(with_path).collect()
}

/// Environment variables of a skill's hooks.
fn hook_environment(file: &CommandFile) -> BTreeMap<String, String> {
    let dir = file.skill_dir.as_ref().map(|dir| dir.display().to_string());
    let root = match &file.owner {
        CommandOwner::Plugin(plugin) => Some(plugin.root.display().to_string()),
        CommandOwner::User | CommandOwner::Project => dir.clone(),
    };
    let named = [(SKILL_DIR_VARIABLE, dir), (ROOT_VARIABLE, root)];
    named.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path?))).collect()
}
