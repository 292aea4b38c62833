//! Deferred tools: their schemas are sent only after the model has loaded them with ToolSearch.
//!
//! Their names are announced in the conversation, so that the cached request prefix stays valid. Loaded tools are
//! appended to the tool list and stay loaded for the session, across compaction and resume. A call of a tool that is
//! not loaded is checked and run like any other.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_models::ToolSpec;
use whimbrel_wire::tool_names::TOOL_SEARCH;

use super::{AgentToolSet, ToolEntry, ToolLoading};

/// Environment variable that configures deferred loading.
pub const TOOL_SEARCH_VARIABLE: &str = "ENABLE_TOOL_SEARCH";

/// Default budget for the schemas of MCP tools, in bytes; beyond it they are deferred.
const DEFAULT_SCHEMA_BYTES: usize = 16 * 1024;

/// Share of the context window that `auto` gives to MCP tools, in percent.
const AUTO_WINDOW_PERCENT: u64 = 10;

/// Context window of an unknown model, in tokens.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;

/// Number of names in one announcement; further tools are found by ToolSearch.
const MAX_ANNOUNCED_NAMES: usize = 250;

/// Loading state of one agent's deferred tools. Clones share the state.
#[derive(Debug, Clone)]
pub struct DeferredTools {
    /// Schema budget in bytes for [`ToolLoading::IfFits`].
    max_schema_bytes: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Loaded tools, in order of loading.
    loaded: Vec<String>,
    /// Names that were announced to the model.
    announced: HashSet<String>,
}

impl Default for DeferredTools {
    fn default() -> Self {
        Self::with_schema_budget(DEFAULT_SCHEMA_BYTES)
    }
}

impl DeferredTools {
    /// Nothing loaded, with this schema budget.
    pub fn with_schema_budget(max_schema_bytes: usize) -> Self {
        Self { max_schema_bytes, state: Arc::default() }
    }

    /// A fresh state with the same budget.
    #[must_use]
    pub fn for_new_agent(&self) -> Self {
        Self::with_schema_budget(self.max_schema_bytes)
    }

    /// Deferred tools, loaded or not. None without ToolSearch, because they could not be loaded.
    pub fn deferred_in(&self, tool_set: &AgentToolSet) -> Vec<Arc<ToolEntry>> {
        if tool_set.find(TOOL_SEARCH).is_none() {
            return Vec::new();
        }
        let tools = tool_set.tools();
        let mcp_tools = tools.iter().filter(|tool| tool.tool().loading() == ToolLoading::IfFits);
        let exceeds_budget = mcp_tools.map(|tool| tool.spec_size()).sum::<usize>() > self.max_schema_bytes;
        let is_deferred = |tool: &&Arc<ToolEntry>| match tool.tool().loading() {
            ToolLoading::Eager => false,
            ToolLoading::Deferred => true,
            ToolLoading::IfFits => exceeds_budget,
        };
        tools.iter().filter(is_deferred).cloned().collect()
    }

    /// Specifications to send: eager tools, then loaded tools in order of loading.
    pub fn visible_specs(&self, tool_set: &AgentToolSet) -> Vec<Arc<ToolSpec>> {
        let deferred_tools = self.deferred_in(tool_set);
        let is_visible = |tool: &&Arc<ToolEntry>| match tool.tool().name() {
            TOOL_SEARCH => !deferred_tools.is_empty(),
            _ => !deferred_tools.iter().any(|other| Arc::ptr_eq(other, tool)),
        };
        let loaded = self.loaded();
        let loaded =
            loaded.iter().filter_map(|name| deferred_tools.iter().find(|tool| tool.tool().name() == *name));
        tool_set.tools().iter().filter(is_visible).chain(loaded).map(|tool| tool.spec()).collect()
    }

    /// Loads tools by name. Already loaded tools keep their position.
    pub fn load(&self, names: impl IntoIterator<Item = String>) {
        let mut state = self.lock();
        for name in names {
            if !state.loaded.contains(&name) {
                state.loaded.push(name);
            }
        }
    }

    pub fn loaded(&self) -> Vec<String> {
        self.lock().loaded.clone()
    }

    /// Returns whether a tool is deferred and not loaded.
    pub fn is_unloaded(&self, tool_set: &AgentToolSet, name: &str) -> bool {
        !self.lock().loaded.iter().any(|loaded| loaded == name)
            && self.deferred_in(tool_set).iter().any(|tool| tool.tool().name() == name)
    }

    /// Announces all names again, after a compaction has removed the announcement.
    pub fn reset_announced(&self) {
        self.lock().announced.clear();
    }

    /// Returns an announcement of names that are new to the model, and marks them as announced.
    pub fn take_announcement(&self, tool_set: &AgentToolSet) -> Option<String> {
        let tools = self.deferred_in(tool_set);
        let mut state = self.lock();
        let names = tools.iter().map(|tool| tool.tool().name());
        let new_names: Vec<&str> = names.filter(|name| !state.announced.contains(*name)).collect();
        state.announced.extend(new_names.iter().map(|name| (*name).to_owned()));
        (!new_names.is_empty()).then(|| render_announcement(&new_names))
    }

    /// Every change is complete when the lock is released, so a poisoned lock holds valid data.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render_announcement(names: &[&str]) -> String {
    let (listed, omitted) = names.split_at(names.len().min(MAX_ANNOUNCED_NAMES));
    let more = match omitted.len() {
        0 => String::new(),
        more => format!(" and {more} more, which ToolSearch finds by keyword"),
    };
    format!(
        "<system-reminder>\nMore tools are available on demand. Load one with ToolSearch before you use it: \
         {}{more}.\n</system-reminder>",
        listed.join(", ")
    )
}

/// Schema budget from the environment; `None` if nothing is deferred.
pub fn schema_budget(env: &BTreeMap<String, String>, window: Option<u64>) -> Result<Option<usize>, String> {
    let share = |percent: u64| {
        let tokens = window.filter(|window| *window > 0).unwrap_or(DEFAULT_CONTEXT_WINDOW) * percent / 100;
        usize::try_from(tokens * 4).unwrap_or(usize::MAX)
    };
    let value =
        env.get(TOOL_SEARCH_VARIABLE).map(|text| text.trim().to_ascii_lowercase()).unwrap_or_default();
    match value.as_str() {
        "" => Ok(Some(DEFAULT_SCHEMA_BYTES)),
        "true" | "1" => Ok(Some(0)),
        "false" | "0" => Ok(None),
        "auto" => Ok(Some(share(AUTO_WINDOW_PERCENT))),
        other => match other.strip_prefix("auto:").and_then(|percent| percent.parse::<u64>().ok()) {
            Some(percent) if percent <= 100 => Ok(Some(share(percent))),
            _ => Err(format!(
                "{TOOL_SEARCH_VARIABLE} must be true, false, auto or auto:PERCENT (at most 100), but is {value:?}."
            )),
        },
    }
}

#[cfg(test)]
mod tests;
