//! Skills of an agent: the list that the model sees, and the hooks of called skills.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_config::plugins::ROOT_VARIABLE;
use whimbrel_tools::hooks::front_matter;
use whimbrel_wire::tool_names::SKILL;

use super::Agent;
use crate::commands::parse_file::CommandFrontMatter;
use crate::commands::{CommandFile, CommandOwner, SKILL_DIR_VARIABLE};

impl Agent {
    /// Injects the list of skills at the start of an agent.
    pub(super) fn inject_skill_listing(&mut self) {
        self.invoked_skills.forget_listing();
        if let Some(text) = self.take_changed_skill_listing() {
            self.conversation.push_hidden_once(&text);
        }
    }

    /// Injects the list of skills if it has changed.
    pub fn inject_skill_listing_changes(&mut self) {
        if let Some(text) = self.take_changed_skill_listing() {
            self.conversation.push_hidden(&text);
        }
    }

    fn take_changed_skill_listing(&mut self) -> Option<String> {
        self.tool_env.tool_set.find(SKILL).and_then(|_| self.invoked_skills.take_changed_listing())
    }

    /// Adds the hooks of a skill for the agent's lifetime; returns warnings. Hooks of a project's skill need trust in
    /// the project.
    pub fn add_skill_hooks(&mut self, file: &CommandFile, head: &CommandFrontMatter) -> Vec<String> {
        let Some(hook_config) = &head.hooks else { return Vec::new() };
        let with_path = |text: String| format!("{}: {text}", file.path.display());
        if !file.may_grant_permissions(self.invoked_skills.trust()) {
            return vec![with_path("its hooks do not run, because the project is not trusted.".into())];
        }
        let tool_env = Arc::make_mut(&mut self.tool_env);
        let checker = &mut tool_env.checker;
        let hook_config = match checker.hooks.agent_id() {
            Some(_) => front_matter::map_stop_to_subagent_stop(hook_config),
            None => hook_config.clone(),
        };
        let origin = format!("the skill {}", file.name);
        let (set, errors) = front_matter::parse_hooks(&hook_config, &origin, &hook_environment(file));
        let Some(hooks) = self.invoked_skills.add_hooks(&file.name, set, &checker.hooks) else {
            return Vec::new();
        };
        checker.hooks = hooks;
        tool_env.context.hooks = checker.hooks.clone();
        errors.into_iter().map(with_path).collect()
    }
}

/// Environment variables of a skill's hooks.
fn hook_environment(file: &CommandFile) -> BTreeMap<String, String> {
    let dir = file.skill_dir.as_ref().map(|dir| dir.display().to_string());
    let root = match &file.owner {
        CommandOwner::Plugin(plugin) => Some(plugin.root.display().to_string()),
        CommandOwner::User | CommandOwner::Project => dir.clone(),
    };
    let variables = [(SKILL_DIR_VARIABLE, dir), (ROOT_VARIABLE, root)];
    variables.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path?))).collect()
}
