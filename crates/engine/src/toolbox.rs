//! The tools of one session: which ones there are, and how they are found by name.

use std::sync::Arc;

use whimbrel_models::ToolSpec;
use whimbrel_wire::options::ToolSet;

use crate::tools::{AGENT, AnyTool};

/// The tools of a session.
#[derive(Clone)]
pub struct Toolbox {
    tools: Vec<Arc<dyn AnyTool>>,
}

impl Toolbox {
    /// Picks from all tools what the options ask for, less what is denied by name.
    pub fn pick(all: &[Arc<dyn AnyTool>], wanted: Option<&ToolSet>, denied: &[String]) -> Self {
        let asked_for = |tool: &Arc<dyn AnyTool>| match wanted {
            None | Some(ToolSet::Default) => true,
            Some(ToolSet::List(names)) => names.iter().any(|name| answers_to(tool.as_ref(), name)),
        };
        let refused = |tool: &Arc<dyn AnyTool>| {
            denied.iter().any(|name| name == "*" || answers_to(tool.as_ref(), name))
        };
        Self { tools: all.iter().filter(|tool| asked_for(tool) && !refused(tool)).cloned().collect() }
    }

    /// The same tools less one, and only those named if any are.
    pub fn narrowed(&self, only: Option<&[String]>, without: &str) -> Self {
        let kept = |tool: &&Arc<dyn AnyTool>| {
            tool.name() != without
                && only.is_none_or(|names| {
                    names.iter().any(|name| name == "*" || answers_to(tool.as_ref(), name))
                })
        };
        Self { tools: self.tools.iter().filter(kept).cloned().collect() }
    }

    /// Names in a list that no tool answers to. Tools of servers come later and are not missed.
    pub fn strangers(all: &[Arc<dyn AnyTool>], names: &[String]) -> Vec<String> {
        let known = |name: &String| {
            name == "*" || name.starts_with("mcp__") || all.iter().any(|tool| answers_to(tool.as_ref(), name))
        };
        names.iter().filter(|name| !known(name)).cloned().collect()
    }

    /// Finds a tool by its name or an older one.
    pub fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        self.tools.iter().find(|tool| answers_to(tool.as_ref(), name)).cloned()
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// The names as hosts expect them in the first notice: there the subagent tool still has its old name.
    pub fn listed_names(&self) -> Vec<String> {
        let listed = |name: &str| if name == AGENT { "Task".to_owned() } else { name.to_owned() };
        self.tools.iter().map(|tool| listed(tool.name())).collect()
    }

    /// The tools as the model sees them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }
}

fn answers_to(tool: &dyn AnyTool, name: &str) -> bool {
    tool.name() == name || tool.aliases().contains(&name)
}
