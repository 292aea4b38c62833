//! Which model, effort and thinking a subagent uses.

use whimbrel_models::Thinking;

use super::{AgentSpawner, Definition, SubagentTask};
use crate::runtime_settings::{RuntimeSettings, RuntimeSettingsReader};

impl AgentSpawner {
    /// The parent's runtime settings, or a copy if the task or the definition overrides model or effort.
    pub(super) fn subagent_settings(
        &self,
        definition: &Definition,
        task: &SubagentTask,
    ) -> RuntimeSettingsReader {
        let parent_settings = &self.position.runtime_settings;
        let by_environment = self.context.environment.workspace.variable("CLAUDE_CODE_SUBAGENT_MODEL");
        let requested = by_environment.as_ref().or(task.model.as_ref()).or(definition.model.as_ref());
        let model = requested.filter(|name| !matches!(name.as_str(), "" | "inherit"));
        let effort = task.effort.or(definition.effort);
        if model.is_none() && effort.is_none() {
            return parent_settings.for_subagent();
        }
        let mut settings: RuntimeSettings = parent_settings.current();
        settings.effort = effort.or(settings.effort);
        if let Some(name) = model {
            settings.model = self.context.models.catalog().resolve_alias(name);
            settings.thinking = settings.thinking.filter(|thinking| *thinking == Thinking::Disabled);
        }
        RuntimeSettingsReader::fixed(settings)
    }
}
