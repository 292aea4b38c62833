//! Kinds of agent in a session: those that the host brings along, and the one that the session itself is.

use std::collections::BTreeMap;
use std::sync::Arc;

use whimbrel_policy::mode::narrower;
use whimbrel_wire::message::User;
use whimbrel_wire::options::{AgentDefinition, SystemPrompt};

use super::Session;
use crate::agents::raise::session_tools;
use crate::agents::{Definition, hired, hooked, notes};
use crate::queue::Due;
use crate::setup::SetupError;

impl Session {
    /// The kinds that a host brings along come to those of files.
    pub(crate) fn add_kinds(&mut self, given: BTreeMap<String, AgentDefinition>) {
        if given.is_empty() {
            return;
        }
        let flaws = self.setup.kinds.add_host(given);
        self.add_warnings(flaws);
        self.setup.kinds = self.setup.kinds.permitted(&self.setup.rights);
    }

    /// Makes the session one of the kind that was asked for, once everything is known and before anything has begun.
    pub(super) fn become_its_kind(&mut self) {
        let Some(name) = self.setup.kind.take() else { return };
        let Some(kind) = self.setup.kinds.named(&name).cloned() else {
            let known = self.setup.kinds.names().join(", ");
            let text = format!(
                "There is no agent \"{name}\" (--agent, or the setting \"agent\"). There are: {known}."
            );
            self.refused = Some(SetupError::Invalid(text));
            return;
        };
        self.take_over(&kind);
        self.bring_along(&kind);
        if !kind.skills.is_empty() {
            self.add_warnings(vec![format!(
                "The agent {name}: its skills are read at the start only when it is a subagent; a session calls them as it needs them."
            )]);
        }
        if let Some(text) = &kind.initial_prompt {
            self.queue.push_first(Due::Prompt(Box::new(User::prompt(text.as_str()))));
        }
    }

    /// The hooks and the servers of a kind are those of the session that is of this kind.
    fn bring_along(&mut self, kind: &Definition) {
        if kind.hooks.is_some() && self.setup.extensions.run_hooks() {
            self.add_hooks(hooked::of_session(kind));
        }
        self.add_warnings(kind.misses(self.crew.hired()));
        let own = &kind.servers.own;
        if !own.is_empty() {
            let workspace = Arc::clone(&self.setup.workspace);
            self.crew.roster().add(hired::servers(own, |name| workspace.variable(name)));
            self.crew.expect_some();
        }
    }

    /// Takes over what a kind says about an agent, where the host has not said otherwise.
    fn take_over(&mut self, kind: &Definition) {
        let setup = &mut self.setup;
        let hosts = match &setup.system_prompt {
            Some(SystemPrompt::Text(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        let notes = notes::of_session(kind, &setup.ground);
        let prompt = std::iter::once(kind.prompt.clone()).chain(hosts).chain(notes);
        let prompt = prompt.collect::<Vec<_>>().join("\n\n");
        setup.system_prompt = Some(SystemPrompt::Text(prompt));
        setup.toolbox = Arc::new(session_tools(&setup.toolbox, kind));
        setup.limits.max_turns = setup.limits.max_turns.or(kind.max_turns);
        if let Some(mode) = kind.permission_mode {
            setup.rights.set_mode(narrower(setup.rights.mode(), mode));
        }
        let model = kind.model.as_ref().filter(|_| !setup.model_was_named);
        let model = model.map(|name| self.engine.catalog().resolve_alias(name));
        let effort = kind.effort;
        self.knobs.send_modify(|knobs| {
            knobs.effort = knobs.effort.or(effort);
            if let Some(model) = model {
                knobs.model = model;
            }
        });
    }
}
