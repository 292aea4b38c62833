//! Parts shared by all sessions of a process: access to models, and the built-in tools.

mod builder;

use std::sync::Arc;

use whimbrel_models::catalog::Catalog;
use whimbrel_models::key_source::KeySource;
use whimbrel_models::providers::Providers;
use whimbrel_os::log::Log;
use whimbrel_tools::api::{AnyTool, ToolEntry};
use whimbrel_tools::builtin;
use whimbrel_tools::model_access::ModelAccess;
pub use whimbrel_tools::sandbox::SandboxLauncher;
use whimbrel_tools::sandbox::SandboxProbe;

pub use self::builder::EngineBuilder;
pub use crate::agents::tools::team_tools;
use crate::agents::tools::with_agent_tools;

/// Shared part of all sessions. Cheap to clone.
///
/// The methods that are hidden in the documentation name types that the crate `whimbrel` does not export; they are for the
/// other crates of this engine.
#[derive(Clone)]
pub struct Engine {
    models: ModelAccess,
    tools: Arc<BuiltinTools>,
    sandbox_probe: Arc<SandboxProbe>,
}

struct BuiltinTools {
    tools: Vec<Arc<ToolEntry>>,
    /// The same for a session that may have a team.
    team_tools: Vec<Arc<ToolEntry>>,
}

impl Engine {
    #[doc(hidden)]
    pub fn new(providers: Providers) -> Self {
        let tools = merge_tools(&[], builtin_tools());
        let team_tools = merge_tools(&tools, team_tools());
        Self {
            models: ModelAccess::new(providers),
            tools: Arc::new(BuiltinTools { tools, team_tools }),
            sandbox_probe: Arc::default(),
        }
    }

    /// Names the program that confines commands in sessions with a sandbox.
    #[must_use]
    pub fn with_sandbox_launcher(self, launcher: SandboxLauncher) -> Self {
        Self { sandbox_probe: Arc::new(SandboxProbe::new(launcher)), ..self }
    }

    /// What this machine can do to confine commands.
    #[doc(hidden)]
    pub fn sandbox_probe(&self) -> &Arc<SandboxProbe> {
        &self.sandbox_probe
    }

    /// Uses this key source for a session.
    #[doc(hidden)]
    #[must_use]
    pub fn with_key_source(self, key: Option<Arc<dyn KeySource>>) -> Self {
        Self { models: self.models.with_key_source(key), ..self }
    }

    /// Writes debug output to this log.
    #[doc(hidden)]
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { models: self.models.with_log(log), ..self }
    }

    #[doc(hidden)]
    pub fn models(&self) -> &ModelAccess {
        &self.models
    }

    #[doc(hidden)]
    pub fn log(&self) -> &Log {
        self.models.log()
    }

    #[doc(hidden)]
    pub fn providers(&self) -> &Providers {
        self.models.providers()
    }

    #[doc(hidden)]
    pub fn catalog(&self) -> &Catalog {
        self.models.catalog()
    }

    #[doc(hidden)]
    pub fn tools(&self) -> &[Arc<ToolEntry>] {
        &self.tools.tools
    }

    /// The built-in tools of a session that may have a team.
    #[doc(hidden)]
    pub fn team_tools(&self) -> &[Arc<ToolEntry>] {
        &self.tools.team_tools
    }
}

/// Returns the built-in tools in the order in which the model sees them.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    with_agent_tools(builtin::builtin_tools())
}

/// Adds tools to a list; a tool replaces the one with the same name.
fn merge_tools(tools: &[Arc<ToolEntry>], more: Vec<Arc<dyn AnyTool>>) -> Vec<Arc<ToolEntry>> {
    let mut tools = tools.to_vec();
    for tool in more {
        let known = tools.iter().position(|other| other.tool().name() == tool.name());
        let tool = Arc::new(ToolEntry::new(tool));
        match known {
            Some(index) => tools[index] = tool,
            None => tools.push(tool),
        }
    }
    tools
}

#[cfg(test)]
mod tests {
    use whimbrel_tools::api::{AgentToolSet, DeferredTools};
    use whimbrel_tools::test_support::check_examples;
    use whimbrel_wire::tool_names::{RENAMED_TOOLS, TODO_WRITE};

    use super::*;

    #[tokio::test]
    async fn examples_of_agent_tools_pass() {
        check_examples(&with_agent_tools(Vec::new())).await;
    }

    #[test]
    fn renamed_tools_are_the_aliases() {
        let tools = builtin_tools();
        let mut aliases: Vec<(&str, &str)> =
            tools.iter().flat_map(|tool| tool.aliases().iter().map(|alias| (*alias, tool.name()))).collect();
        let mut renamed = RENAMED_TOOLS.to_vec();
        aliases.sort_unstable();
        renamed.sort_unstable();
        assert_eq!(aliases, renamed);
    }

    #[test]
    fn eager_tool_schemas_stay_small() {
        // A session has either to-do or task-list tools, and the latter are deferred.
        let tool_set = AgentToolSet::from_tools(builtin_tools()).without_tools(&[TODO_WRITE]);
        let shown = DeferredTools::default().visible_specs(&tool_set);
        let sizes: Vec<(&str, usize)> = shown
            .iter()
            .map(|spec| (spec.name.as_str(), serde_json::to_string(spec.as_ref()).unwrap().len()))
            .collect();
        println!("{sizes:?}");
        assert!(sizes.iter().map(|(_, size)| size).sum::<usize>() < 7 * 1024, "{sizes:?}");
    }
}
