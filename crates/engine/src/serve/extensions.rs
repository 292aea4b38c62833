//! What people and plugins add, in a session: what the host is told of it, and what the agent gets when it changes.

use std::sync::Arc;

use whimbrel_wire::options::PluginConfig;
use whimbrel_wire::system::{CommandsChanged, InformationLevel, Informational, Init};

use super::Session;
use crate::agent::Agent;
use crate::skills::{Skill, desk};
use crate::tools::SKILL;

impl Session {
    /// The first notice with what was added.
    pub(super) fn with_extensions(&self, init: Init) -> Init {
        let extensions = &self.setup.extensions;
        let errors = extensions.plugins.errors();
        Init {
            output_style: extensions.style_name().into(),
            skills: extensions.skills.names(),
            plugins: extensions.plugins.listed(),
            plugin_errors: (!errors.is_empty()).then(|| errors.to_vec()),
            slash_commands: self.setup.commands.names(),
            ..init
        }
    }

    /// Gives an agent the tool for skills if there are skills only now, and tells it what has changed.
    pub(super) fn equip(&self, agent: &mut Agent) {
        if self.setup.toolbox.find(SKILL).is_some() && agent.bench.toolbox.find(SKILL).is_none() {
            let offered = Skill::to_offer(self.setup.extensions.skills.clone());
            let toolbox = agent.skills.fit(&Arc::new(agent.bench.toolbox.with(offered)));
            Arc::make_mut(&mut agent.bench).toolbox = toolbox;
            agent.refit();
        }
        desk::update(agent);
    }

    /// Loads plugins before the session begins: all that they bring counts.
    pub(crate) fn load_plugins(&mut self, configs: &[PluginConfig]) {
        let known = self.plugin_names();
        let mut warnings = self.setup.renew_extensions(configs);
        let (hooks, about_hooks) =
            self.setup.extensions.hooks(|name| !known.iter().any(|other| other == name));
        warnings.extend(about_hooks);
        self.add_hooks(hooks);
        self.add_warnings(warnings);
    }

    /// Finds everything anew while the session runs, and tells the host what has changed by that.
    pub(crate) async fn reload(&mut self, more: &[PluginConfig]) {
        let (known, before) = (self.plugin_names(), self.setup.commands.listed());
        let mut warnings = self.setup.renew_extensions(more);
        let late = self.setup.extensions.plugins.hooks().map(|(plugin, _)| &plugin.name);
        let mut late: Vec<&String> = late.filter(|name| !known.contains(name)).collect();
        late.dedup();
        warnings.extend(late.into_iter().map(|name| {
            format!("The hooks of the plugin {name} do not run in this session: it was loaded after the beginning.")
        }));
        for content in warnings {
            let level = InformationLevel::Warning;
            self.outbox.notify(Informational { content, level, ..Informational::default() }).await;
        }
        let commands = self.setup.commands.listed();
        if commands != before {
            self.outbox.notify(CommandsChanged { commands }).await;
        }
    }

    fn plugin_names(&self) -> Vec<String> {
        self.setup.extensions.plugins.all().iter().map(|plugin| plugin.name.clone()).collect()
    }
}
