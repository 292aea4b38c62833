//! Tools on demand: their schemas stand in a request only after the model has asked for them with ToolSearch.
//!
//! The model is told their names in the conversation, so that the cached prefix stays as it is. What it loads is added
//! behind the other tools and stays for as long as the session lives, over compactions and resumes. A call of a tool that
//! was not loaded is judged and made like any other.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_models::ToolSpec;
use whimbrel_wire::content::{Block, ResultContent};

use crate::agent::Agent;
use crate::tool_set::{ToolEntry, AgentToolSet};
use crate::tools::TOOL_SEARCH;
use crate::tool_scheduler::ToolCallResult;

/// The variable that says what is on demand.
pub const TOOL_SEARCH_VARIABLE: &str = "ENABLE_TOOL_SEARCH";

/// How many bytes the schemas of MCP servers may take before they are on demand, if nobody says otherwise.
const DEFAULT_SCHEMA_BYTES: usize = 16 * 1024;

/// The share of the model's window that `auto` gives to them, in percent.
const AUTO_WINDOW_PERCENT: u64 = 10;

/// The window of a model that is not known, in tokens.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;

/// How many names are told at once. Whoever has more finds the others by what they do.
const MAX_ANNOUNCED_NAMES: usize = 250;

/// How a tool comes to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolLoading {
    /// With every request.
    Eager,
    /// When the model asks for it.
    Deferred,
    /// With every request while there is room for all of this kind, otherwise when the model asks for it.
    IfFits,
}

/// What one agent has been shown of its tools. Cheap to clone; the clones are one.
#[derive(Debug, Clone)]
pub struct DeferredTools {
    /// How many bytes the tools may take that are offered if there is room.
    max_schema_bytes: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What was loaded, in order.
    loaded: Vec<String>,
    /// The names that the model knows.
    announced: HashSet<String>,
}

impl Default for DeferredTools {
    fn default() -> Self {
        Self::with_schema_budget(DEFAULT_SCHEMA_BYTES)
    }
}

impl DeferredTools {
    /// Nothing loaded; tools that are offered if there is room may take this many bytes.
    pub fn with_schema_budget(max_schema_bytes: usize) -> Self {
        Self { max_schema_bytes, state: Arc::default() }
    }

    /// The same for another agent.
    #[must_use]
    pub fn for_new_agent(&self) -> Self {
        Self::with_schema_budget(self.max_schema_bytes)
    }

    /// The tools on demand, loaded or not. Without ToolSearch there are none: nobody could load them.
    pub fn deferred_in(&self, toolbox: &AgentToolSet) -> Vec<Arc<ToolEntry>> {
        if toolbox.find(TOOL_SEARCH).is_none() {
            return Vec::new();
        }
        let tools = toolbox.tools();
        let guests = tools.iter().filter(|tool| tool.tool().loading() == ToolLoading::IfFits);
        let crowded = guests.map(|tool| tool.spec_size()).sum::<usize>() > self.max_schema_bytes;
        let waits = |tool: &&Arc<ToolEntry>| match tool.tool().loading() {
            ToolLoading::Eager => false,
            ToolLoading::Deferred => true,
            ToolLoading::IfFits => crowded,
        };
        tools.iter().filter(waits).cloned().collect()
    }

    /// The tools as the model sees them: those that are not on demand, then what was loaded, in order.
    pub fn visible_specs(&self, toolbox: &AgentToolSet) -> Vec<Arc<ToolSpec>> {
        let on_demand = self.deferred_in(toolbox);
        let shown = |tool: &&Arc<ToolEntry>| match tool.tool().name() {
            TOOL_SEARCH => !on_demand.is_empty(),
            _ => !on_demand.iter().any(|other| Arc::ptr_eq(other, tool)),
        };
        let loaded = self.loaded();
        let loaded =
            loaded.iter().filter_map(|name| on_demand.iter().find(|tool| tool.tool().name() == *name));
        toolbox.tools().iter().filter(shown).chain(loaded).map(|tool| tool.spec()).collect()
    }

    /// Loads tools by their names. What is loaded already stays where it is.
    pub fn load(&self, names: impl IntoIterator<Item = String>) {
        let mut state = self.lock();
        for name in names {
            if !state.loaded.contains(&name) {
                state.loaded.push(name);
            }
        }
    }

    /// What was loaded, in order.
    pub fn loaded(&self) -> Vec<String> {
        self.lock().loaded.clone()
    }

    /// Whether a tool is on demand and was not loaded.
    pub fn is_unloaded(&self, toolbox: &AgentToolSet, name: &str) -> bool {
        !self.lock().loaded.iter().any(|loaded| loaded == name)
            && self.deferred_in(toolbox).iter().any(|tool| tool.tool().name() == name)
    }

    /// The model has forgotten which tools there are.
    pub fn reset_announced(&self) {
        self.lock().announced.clear();
    }

    /// What the model should hear, if there are names that it does not know.
    fn take_announcement(&self, toolbox: &AgentToolSet) -> Option<String> {
        let tools = self.deferred_in(toolbox);
        let mut state = self.lock();
        let names = tools.iter().map(|tool| tool.tool().name());
        let fresh: Vec<&str> = names.filter(|name| !state.announced.contains(*name)).collect();
        state.announced.extend(fresh.iter().map(|name| (*name).to_owned()));
        (!fresh.is_empty()).then(|| render_announcement(&fresh))
    }

    /// Each change is complete when the lock is released; a panic elsewhere cannot leave it half made.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render_announcement(names: &[&str]) -> String {
    let (told, left_out) = names.split_at(names.len().min(MAX_ANNOUNCED_NAMES));
    let more = match left_out.len() {
        0 => String::new(),
        more => format!(" and {more} more, which ToolSearch finds by what they do"),
    };
    format!(
        "<system-reminder>\nMore tools are there on demand. Before you use one, load it with ToolSearch: {}{more}.\n</system-reminder>",
        told.join(", ")
    )
}

/// How much room the variable gives to tools of MCP servers; none if nothing is to be on demand.
pub fn schema_budget(env: &BTreeMap<String, String>, window: Option<u64>) -> Result<Option<usize>, String> {
    let share = |percent: u64| {
        let tokens = window.filter(|window| *window > 0).unwrap_or(DEFAULT_CONTEXT_WINDOW) * percent / 100;
        usize::try_from(tokens * 4).unwrap_or(usize::MAX)
    };
    let said = env.get(TOOL_SEARCH_VARIABLE).map(|text| text.trim().to_ascii_lowercase()).unwrap_or_default();
    match said.as_str() {
        "" => Ok(Some(DEFAULT_SCHEMA_BYTES)),
        "true" | "1" => Ok(Some(0)),
        "false" | "0" => Ok(None),
        "auto" => Ok(Some(share(AUTO_WINDOW_PERCENT))),
        other => match other.strip_prefix("auto:").and_then(|percent| percent.parse::<u64>().ok()) {
            Some(percent) if percent <= 100 => Ok(Some(share(percent))),
            _ => Err(format!(
                "{TOOL_SEARCH_VARIABLE} must be true, false, auto or auto:PERCENT with a percentage up to 100, but is {said:?}."
            )),
        },
    }
}

/// Tells the model of tools on demand that it does not know yet.
pub fn announce(agent: &mut Agent) {
    if let Some(text) = agent.tool_env.context.deferred_tools.take_announcement(&agent.tool_env.tool_set) {
        agent.conversation.push_hidden_once(&text);
    }
}

/// Before the model is asked: it knows what there is, and is sent what it has loaded.
pub fn refresh_request_tools(agent: &mut Agent) {
    announce(agent);
    let specs = agent.tool_env.context.deferred_tools.visible_specs(&agent.tool_env.tool_set);
    if !agent.preamble.is_built_from(&agent.preamble.system, &specs) {
        agent.preamble = agent.engine.preamble(agent.preamble.system.clone(), specs);
    }
}

/// After a call: if it failed and the model had not seen the tool's schema, the tool is loaded, and the model told so.
pub fn load_after_failed_call(on_demand: &DeferredTools, toolbox: &AgentToolSet, name: &str, made: &mut ToolCallResult) {
    if !made.is_error || made.denial.is_some() || made.deferred_call.is_some() || !on_demand.is_unloaded(toolbox, name) {
        return;
    }
    on_demand.load([name.to_owned()]);
    let note = format!(
        "{name} was called before it was loaded. It is loaded now: look at its schema, then try again."
    );
    match &mut made.content {
        ResultContent::Text(text) => *text = format!("{text}\n\n{note}"),
        ResultContent::Blocks(blocks) => blocks.push(Block::text(note)),
    }
}

#[cfg(test)]
mod tests;
