//! Parts shared by all sessions of a process: providers, model catalog and built-in tools.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use whimbrel_models::api_key::{API_KEY_HELPER, KeySource};
use whimbrel_models::catalog::Catalog;
use whimbrel_models::log::Log;
use whimbrel_models::providers::Providers;
use whimbrel_models::{Model, ModelError, Preamble, ToolSpec};

use crate::tool_api::AnyTool;
use crate::tool_set::ToolEntry;
use crate::tools;

/// Shared part of all sessions. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    /// Source of the session's API key if the environment has none.
    key: Option<Arc<dyn KeySource>>,
    log: Log,
}

struct Shared {
    providers: Providers,
    catalog: Catalog,
    tools: Vec<Arc<ToolEntry>>,
    team_tools: Vec<Arc<ToolEntry>>,
    /// Cached preambles, so that sessions with the same system prompt and tools share one.
    preambles: Mutex<Vec<Weak<Preamble>>>,
}

impl Engine {
    pub fn new(providers: Providers) -> Self {
        let tools = merge_tools(&[], tools::builtin_tools());
        let shared = Shared {
            providers,
            catalog: Catalog::default(),
            team_tools: merge_tools(&tools, tools::team_tools()),
            tools,
            preambles: Mutex::default(),
        };
        Self { shared: Arc::new(shared), key: None, log: Log::default() }
    }

    /// Uses this key source for a session.
    #[must_use]
    pub fn with_key_source(self, key: Option<Arc<dyn KeySource>>) -> Self {
        Self { key, ..self }
    }

    /// Writes debug output to this log.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The provider that serves a model, and the model's name there.
    pub fn resolve(&self, name: &str) -> Result<(Arc<dyn Model>, String), ModelError> {
        self.providers().resolve_with_key_source(name, self.key.as_ref())
    }

    /// Source of the API key, as shown to hosts.
    pub fn key_source(&self) -> &'static str {
        match (self.providers().key_source(), &self.key) {
            ("none", Some(_)) => API_KEY_HELPER,
            (variable, _) => variable,
        }
    }

    pub fn providers(&self) -> &Providers {
        &self.shared.providers
    }

    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    pub fn tools(&self) -> &[Arc<ToolEntry>] {
        &self.shared.tools
    }

    /// The built-in tools of a session that may have a team.
    pub fn team_tools(&self) -> &[Arc<ToolEntry>] {
        &self.shared.team_tools
    }

    /// Returns a preamble with this system prompt and these tools; a cached one if it is in use elsewhere.
    pub fn preamble(&self, system: Vec<String>, tools: Vec<Arc<ToolSpec>>) -> Arc<Preamble> {
        let mut known = self.shared.preambles.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|preamble| preamble.strong_count() > 0);
        let same =
            known.iter().filter_map(Weak::upgrade).find(|preamble| preamble.is_built_from(&system, &tools));
        same.unwrap_or_else(|| {
            let fresh = Arc::new(Preamble::new(system, tools));
            known.push(Arc::downgrade(&fresh));
            fresh
        })
    }
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
