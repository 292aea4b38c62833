//! Plugins, skills and output styles in a session: loading and reloading.

use std::sync::Arc;

use whimbrel_wire::options::PluginConfig;
use whimbrel_wire::system::{CommandsChanged, InformationLevel, Informational};
use whimbrel_wire::tool_names::SKILL;

use super::Session;
use crate::agent::Agent;
use crate::agents::tools::SkillTool;
use crate::structured_output::{self, StructuredOutput};

impl Session {
    /// Adds the Skill tool if skills were added since, and announces changed skills to the agent.
    pub(super) fn refresh_skills(&self, agent: &mut Agent) {
        if self.setup.tools.tool_set.find(SKILL).is_some() && agent.tool_env.tool_set.find(SKILL).is_none() {
            let tool = SkillTool::new(self.setup.extensions.skills.clone(), agent.invoked_skills.queue());
            let tool_set = Arc::new(agent.tool_env.tool_set.with_tool(Arc::new(tool)));
            Arc::make_mut(&mut agent.tool_env).tool_set = tool_set;
            agent.refresh_tools();
        }
        agent.inject_skill_listing_changes();
    }

    /// Gives the agent the output format of the session, if that has changed since its last turn.
    pub(super) fn refresh_output_schema(&self, agent: &mut Agent) {
        let schema = &self.setup.tools.output_schema;
        if agent.structured_output.has_schema(schema.as_ref()) {
            return;
        }
        agent.structured_output = StructuredOutput::new(schema.clone());
        let tool_set = &agent.tool_env.tool_set;
        let tool_set = match schema {
            Some(schema) => tool_set.with_tool(schema.tool()),
            None => tool_set.without_tools(&[structured_output::TOOL_NAME]),
        };
        Arc::make_mut(&mut agent.tool_env).tool_set = Arc::new(tool_set);
        agent.refresh_tools();
    }

    /// Loads plugins before the first turn, with their hooks.
    pub(crate) fn load_plugins(&mut self, configs: &[PluginConfig]) {
        let known = self.plugin_names();
        let mut warnings = self.setup.reload_extensions(configs);
        let (hooks, hook_warnings) =
            self.setup.extensions.hooks(|name| !known.iter().any(|other| other == name));
        warnings.extend(hook_warnings);
        self.add_hooks(hooks);
        self.add_warnings(warnings);
    }

    /// Reloads all extensions during the session and notifies the host of changes.
    pub(crate) async fn reload_extensions(&mut self, more: &[PluginConfig]) {
        let (known, before) = (self.plugin_names(), self.setup.commands.slash_commands());
        let mut warnings = self.setup.reload_extensions(more);
        let new_plugins = self.setup.extensions.plugins.hooks().map(|(plugin, _)| &plugin.name);
        let mut new_plugins: Vec<&String> = new_plugins.filter(|name| !known.contains(name)).collect();
        new_plugins.dedup();
        warnings.extend(new_plugins.into_iter().map(|name| {
            format!("The hooks of the plugin {name} do not run in this session, because it was loaded after the session started.")
        }));
        for content in warnings {
            let level = InformationLevel::Warning;
            self.host.frame_sender.notify(Informational { content, level, ..Informational::default() }).await;
        }
        let commands = self.setup.commands.slash_commands();
        if commands != before {
            self.host.frame_sender.notify(CommandsChanged { commands }).await;
        }
    }

    fn plugin_names(&self) -> Vec<String> {
        self.setup.extensions.plugins.all().iter().map(|plugin| plugin.name.clone()).collect()
    }
}
