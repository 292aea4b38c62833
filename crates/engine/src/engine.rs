//! What all sessions of a process share: the way to the models, the catalog, the tools.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use whimbrel_models::catalog::Catalog;
use whimbrel_models::api_key::{API_KEY_HELPER, KeySource};
use whimbrel_models::log::Log;
use whimbrel_models::providers::Providers;
use whimbrel_models::{ModelError, Model, Preamble, ToolSpec};

use crate::tool_set::ToolEntry;
use crate::tools::{self, AnyTool};

/// The shared part of an engine. Cheap to clone; one serves any number of sessions.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    /// Who has the session's key, where the environment has none.
    key: Option<Arc<dyn KeySource>>,
    /// Who hears what is done.
    log: Log,
}

struct Shared {
    providers: Providers,
    catalog: Catalog,
    tools: Vec<Arc<ToolEntry>>,
    team_tools: Vec<Arc<ToolEntry>>,
    /// Preambles in use, so that sessions with the same prompt and tools share one.
    preambles: Mutex<Vec<Weak<Preamble>>>,
}

impl Engine {
    /// An engine that asks these providers.
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

    /// The same for a session whose key is had from somebody.
    #[must_use]
    pub fn with_key_source(self, key: Option<Arc<dyn KeySource>>) -> Self {
        Self { key, ..self }
    }

    /// The same with somebody who hears what is done.
    #[must_use]
    pub fn with_log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    /// The way to whoever hears what is done.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Who answers for a model, and the model's name there.
    pub fn resolve(&self, name: &str) -> Result<(Arc<dyn Model>, String), ModelError> {
        self.providers().resolve_with_key_source(name, self.key.as_ref())
    }

    /// Where the key for the Messages API comes from, as hosts are told.
    pub fn key_source(&self) -> &'static str {
        match (self.providers().key_source(), &self.key) {
            ("none", Some(_)) => API_KEY_HELPER,
            (variable, _) => variable,
        }
    }

    /// The way to the models.
    pub fn providers(&self) -> &Providers {
        &self.shared.providers
    }

    /// What is known about models.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// The built-in tools.
    pub fn tools(&self) -> &[Arc<ToolEntry>] {
        &self.shared.tools
    }

    /// The same of a session that may have a team.
    pub fn team_tools(&self) -> &[Arc<ToolEntry>] {
        &self.shared.team_tools
    }

    /// A preamble with this prompt and these tools; one that another session uses already, if it is the same.
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

/// A list with more tools: each in the place of the one with its name, or at the end.
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
