//! Agent definitions in a session: those given by the host, and the one that `--agent` applies to the session itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_policy::mode::choose_stricter_mode;
use whimbrel_wire::message::User;
use whimbrel_wire::options::{AgentDefinition, SystemPrompt};

use super::Session;
use crate::agents::allowed_tools::session_tools;
use crate::agents::{ResolvedDefinition, hooks, mcp_servers, memory};
use crate::input_queue::QueuedInput;
use crate::setup::SetupError;

impl Session {
    /// Adds the agent definitions of the host to those from files.
    pub(crate) fn add_agent_definitions(&mut self, given: BTreeMap<String, AgentDefinition>) {
        if given.is_empty() {
            return;
        }
        let warnings = self.setup.agents.definitions.add_host(given);
        self.add_warnings(warnings);
        self.setup.agents.definitions =
            self.setup.agents.definitions.allowed_by(&self.setup.permissions.state);
    }

    /// Completes the setup before a turn. If the session must not continue, `setup_error` says why.
    pub(super) fn complete_setup(&mut self) {
        match self.refused_initialize.take() {
            Some(refused) => self.setup_error = Some(refused),
            None => self.apply_main_agent_definition(),
        }
    }

    /// Applies the definition named by `--agent`. Called once everything is configured and before the first turn.
    fn apply_main_agent_definition(&mut self) {
        let Some(name) = self.setup.agents.main_agent.take() else { return };
        let Some(definition) = self.setup.agents.definitions.get(&name).cloned() else {
            let known = self.setup.agents.definitions.names().join(", ");
            let reason = format!(
                "names the unknown agent {name:?}; the setting \"agent\" can name it, too. Available: {known}."
            );
            self.setup_error = Some(SetupError::InvalidOption { option: "agent", reason });
            return;
        };
        self.apply_definition(&definition);
        self.apply_hooks_and_servers(&definition);
        if !definition.skills.is_empty() {
            self.add_warnings(vec![format!(
                "The agent {name}: its skills are preloaded only in a subagent; in a session, they are loaded when called."
            )]);
        }
        if let Some(text) = &definition.initial_prompt {
            self.input_queue.push_front(QueuedInput::Prompt(Box::new(User::prompt(text.as_str()))));
        }
    }

    /// Adds the hooks and MCP servers of a definition to the session.
    fn apply_hooks_and_servers(&mut self, definition: &ResolvedDefinition) {
        if definition.hooks.is_some() && self.setup.extensions.has_hooks_enabled() {
            self.add_hooks(hooks::session_hooks(definition));
        }
        self.add_warnings(definition.missing_server_warnings(self.mcp.registry()));
        let own = &definition.mcp_servers.own;
        if !own.is_empty() {
            let workspace = Arc::clone(&self.setup.session.workspace);
            self.mcp
                .ensure_registry()
                .add(mcp_servers::resolve_configs(own, |name| workspace.variable(name)));
            self.mcp.mark_starting();
        }
    }

    /// Applies a definition's prompt, tools, limits, mode and model, where the host has not set its own.
    fn apply_definition(&mut self, definition: &ResolvedDefinition) {
        let setup = &mut self.setup;
        let host_prompt = match &setup.prompt.system_prompt {
            Some(SystemPrompt::Text(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        let memory_reminder = memory::session_reminder(definition, &setup.config_locations);
        let prompt = std::iter::once(definition.prompt.clone()).chain(host_prompt).chain(memory_reminder);
        let prompt = prompt.collect::<Vec<_>>().join("\n\n");
        setup.prompt.system_prompt = Some(SystemPrompt::Text(prompt));
        setup.tools.tool_set = Arc::new(session_tools(&setup.tools.tool_set, definition));
        setup.agents.limits.max_turns = setup.agents.limits.max_turns.or(definition.max_turns);
        if let Some(mode) = definition.permission_mode {
            setup.permissions.state.set_mode(choose_stricter_mode(setup.permissions.state.mode(), mode));
        }
        let model = definition.model.as_ref().filter(|_| !setup.models.is_explicit);
        let model = model.map(|name| self.engine.catalog().resolve_alias(name));
        let effort = definition.effort;
        self.settings.runtime.send_modify(|runtime_settings| {
            runtime_settings.effort = runtime_settings.effort.or(effort);
            if let Some(model) = model {
                runtime_settings.model = model;
            }
        });
    }
}
