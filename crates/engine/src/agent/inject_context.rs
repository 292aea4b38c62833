//! Adds context that the model does not have yet to the conversation: environment, tools, skills, agent definitions,
//! instructions, plan mode reminders and hook output.

use whimbrel_os::files;
use whimbrel_wire::tool_names::AGENT;

use super::Agent;
use crate::context::environment;
use crate::context::plan_mode::{CallPosition, PlanReminderContext, PlanningAgent};

impl Agent {
    /// Updates the tools since the last request. Server instructions are appended to the conversation, so that the
    /// provider's prompt cache stays valid.
    pub fn refresh_tools(&mut self) {
        self.announce_deferred_tools();
        let specs = self.tool_env.context.deferred_tools.visible_specs(&self.tool_env.tool_set);
        if !self.request_prefix.is_built_from(&self.request_prefix.system, &specs) {
            self.request_prefix = self.models.request_prefix(self.request_prefix.system.clone(), specs);
        }
        for text in self.tool_env.tool_set.server_instructions().iter() {
            self.conversation.push_hidden_once(text);
        }
    }

    /// Injects environment, skills, agent definitions and instructions that the model does not have; called at the
    /// start and after a compaction.
    pub fn inject_context(&mut self) {
        let dir = self.tool_env.context.workspace.base_dir();
        let branch = environment::git_branch(&dir);
        let text =
            environment::render_environment(&dir, &self.runtime_settings.current().model, branch.as_deref());
        self.conversation.push_hidden_once(&text);
        self.tool_env.context.deferred_tools.reset_announced();
        self.announce_deferred_tools();
        self.inject_skill_listing();
        self.inject_agent_list();
        if let Some(text) = self.instructions.load_initial() {
            self.conversation.push_hidden_once(&text);
        }
        self.conversation.context_meter().note_instructions(self.instructions.files());
    }

    /// Injects the list of agent definitions, if the Agent tool is available.
    fn inject_agent_list(&mut self) {
        let agents =
            self.tool_env.context.agents.as_ref().filter(|_| self.tool_env.tool_set.find(AGENT).is_some());
        if let Some(text) = agents.and_then(|agents| agents.definitions_reminder()) {
            self.conversation.push_hidden_once(&text);
        }
    }

    /// Announces deferred tools that are new to the model.
    fn announce_deferred_tools(&mut self) {
        let deferred_tools = &self.tool_env.context.deferred_tools;
        if let Some(text) = deferred_tools.take_announcement(&self.tool_env.tool_set) {
            self.conversation.push_hidden_once(&text);
        }
    }

    /// Injects the plan mode reminder that is due.
    pub fn inject_plan_reminder(&mut self, position: CallPosition) {
        let checker = &self.tool_env.checker;
        let host_instructions = self.runtime_settings.current().plan_mode_instructions;
        let context = PlanReminderContext {
            tool_set: &self.tool_env.tool_set,
            agent: match checker.hooks.agent_id() {
                Some(_) if checker.permissions.needs_plan() => PlanningAgent::Teammate,
                Some(_) => PlanningAgent::Subagent,
                None => PlanningAgent::Main,
            },
            own_instructions: host_instructions.as_deref(),
        };
        self.conversation.push_plan_reminder(checker.permissions.mode(), position, &context);
    }

    /// Adds context from hooks to the conversation. Providers require it after all tool results of a reply.
    pub fn inject_hook_context(&mut self, notes: &[String]) {
        for note in notes {
            self.conversation
                .push_hidden(&format!("<system-reminder>\nFrom a hook:\n{note}\n</system-reminder>"));
        }
    }

    /// Injects the instructions of directories whose files the model has accessed since the last call.
    pub fn inject_nested_instructions(&mut self) {
        if let Some(text) = self.instructions.load_added() {
            self.conversation.push_hidden_once(&text);
        }
        let workspace = &self.tool_env.context.workspace;
        let watched = self.instructions.take_watched_paths();
        let paths = watched.iter().map(|path| files::normalize_path(&workspace.resolve(path)));
        let seen: Vec<_> = paths.filter(|path| workspace.seen_file(path).is_some()).collect();
        for path in seen {
            for text in self.instructions.load_nested(&path) {
                self.conversation.push_hidden_once(&text);
            }
        }
        self.conversation.context_meter().note_instructions(self.instructions.files());
    }
}
