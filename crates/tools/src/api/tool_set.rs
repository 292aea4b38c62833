//! The tools of an agent and their lookup by name.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_policy::ToolProperties;
use whimbrel_wire::RawJson;
use whimbrel_wire::options::ToolSet;
use whimbrel_wire::permission::McpServerProvenance;

use super::{AnyTool, Availability};
use crate::hooks::HookSet;
use crate::permission::PermissionState;
use crate::responders::{Responders, UserPresence};
use whimbrel_wire::tool_names::AGENT;

/// A tool with its derived data. Specification, properties and size are computed once and shared by all sessions.
pub struct ToolEntry {
    tool: Arc<dyn AnyTool>,
    spec: OnceLock<Arc<ToolSpec>>,
    properties: OnceLock<ToolProperties>,
    provenance: OnceLock<Option<McpServerProvenance>>,
    size: OnceLock<usize>,
}

impl ToolEntry {
    pub fn new(tool: Arc<dyn AnyTool>) -> Self {
        let (spec, properties, size) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { tool, spec, properties, size, provenance: OnceLock::new() }
    }

    /// Replaces a tool of the same name. Shares the specification if it is unchanged.
    pub fn replacing(before: &Self, tool: Arc<dyn AnyTool>) -> Self {
        let (old, new) = (before.spec(), tool.spec());
        let spec = if *old == new { old } else { Arc::new(new) };
        Self { spec: spec.into(), ..Self::new(tool) }
    }

    fn with_description(&self, description: &str) -> Self {
        let spec = ToolSpec { description: description.into(), ..ToolSpec::clone(&self.spec()) };
        Self { spec: Arc::new(spec).into(), ..Self::new(Arc::clone(&self.tool)) }
    }

    /// Shows the model a field of the input that is hidden otherwise.
    fn with_field(&self, field: &str, field_schema: &Value) -> Self {
        let spec = self.spec();
        let mut schema: Value = serde_json::from_str(spec.input_schema.as_str()).unwrap_or_default();
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.insert(field.to_owned(), field_schema.clone());
        }
        let input_schema = RawJson::from_value(&schema).unwrap_or_else(|_| spec.input_schema.clone());
        let spec = ToolSpec { input_schema, ..ToolSpec::clone(&spec) };
        Self { spec: Arc::new(spec).into(), ..Self::new(Arc::clone(&self.tool)) }
    }

    /// Hides a field of the input from the model.
    fn without_field(&self, field: &str) -> Self {
        let spec = self.spec();
        let mut schema: Value = serde_json::from_str(spec.input_schema.as_str()).unwrap_or_default();
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.shift_remove(field);
        }
        let input_schema = RawJson::from_value(&schema).unwrap_or_else(|_| spec.input_schema.clone());
        let spec = ToolSpec { input_schema, ..ToolSpec::clone(&spec) };
        Self { spec: Arc::new(spec).into(), ..Self::new(Arc::clone(&self.tool)) }
    }

    pub fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(self.spec.get_or_init(|| Arc::new(self.tool.spec())))
    }

    /// Size of the specification as JSON, in bytes.
    pub fn spec_size(&self) -> usize {
        *self.size.get_or_init(|| serde_json::to_string(self.spec().as_ref()).map_or(0, |json| json.len()))
    }

    pub fn tool(&self) -> &dyn AnyTool {
        self.tool.as_ref()
    }

    /// Properties for permission rules.
    pub fn properties(&self) -> &ToolProperties {
        self.properties.get_or_init(|| {
            let schema: Value = serde_json::from_str(self.spec().input_schema.as_str()).unwrap_or_default();
            let fields = schema.get("properties").and_then(Value::as_object);
            let fields: Vec<&str> =
                fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect();
            let mut properties = ToolProperties::for_tool(self.tool.name(), &fields);
            // Server names may contain the separator, so the name of the tool does not tell where the server's name
            // ends.
            properties.mcp_server = self.tool.server().map(str::to_owned).or(properties.mcp_server);
            properties.requires_interaction |= self.tool.needs_user();
            properties
        })
    }

    /// The MCP server of the tool, in the form that hosts and hooks receive.
    pub fn provenance(&self) -> Option<&McpServerProvenance> {
        self.provenance.get_or_init(|| self.tool.provenance()).as_ref()
    }

    /// Properties for permission rules about a call with this input.
    pub fn properties_for_input(&self, input: &Value) -> Cow<'_, ToolProperties> {
        match self.tool.adds_allow_rules(input) {
            true => Cow::Owned(ToolProperties { adds_rules_or_hooks: true, ..self.properties().clone() }),
            false => Cow::Borrowed(self.properties()),
        }
    }

    fn is_noninteractive(&self) -> bool {
        self.tool.availability() != Availability::Interactive
    }

    fn is_for_all_agents(&self) -> bool {
        self.tool.availability() == Availability::AllAgents
    }

    /// Returns whether an entry of an agent's tool list selects this tool: by tool name, `*`, or MCP server
    /// (`mcp__server`, in the server's own spelling or as in tool names).
    fn matches_selector(&self, name: &str) -> bool {
        let server = |rest: &str| {
            let selected = rest.strip_suffix("__*").unwrap_or(rest);
            let display_name = self.provenance().and_then(|server| server.name.as_deref());
            display_name == Some(selected) || self.tool.server() == Some(selected)
        };
        name == "*"
            || self.has_name(name)
            || name.strip_prefix("mcp__").is_some_and(|rest| rest == "*" || server(rest))
    }

    fn has_name(&self, name: &str) -> bool {
        self.tool.name() == name || self.tool.aliases().contains(&name)
    }
}

/// Tools that change while a session runs: those of MCP servers, which connect and disconnect.
pub trait DynamicTools: Send + Sync {
    /// The current tools, in a stable order.
    fn tools(&self) -> Arc<[Arc<ToolEntry>]>;
    /// Instructions for the model about these tools, one text for each server.
    fn instructions(&self) -> Arc<[String]>;
}

/// The tools of one agent.
#[derive(Clone, Default)]
pub struct AgentToolSet {
    tools: Vec<Arc<ToolEntry>>,
    /// Decides whether interactive tools can be answered; without it they are not available.
    responders: Option<Arc<Responders>>,
    /// Tools of the session's MCP servers.
    mcp_tools: Option<Arc<dyn DynamicTools>>,
    /// Tools of MCP servers that belong to this agent alone. Exempt from the tool lists.
    own_mcp_tools: Option<Arc<dyn DynamicTools>>,
    /// Lists that select MCP tools; a tool must be selected by all of them.
    server_tool_filters: Vec<Arc<[String]>>,
    /// Names of tools that are removed.
    excluded: Vec<String>,
}

impl AgentToolSet {
    /// Selects tools by the options and removes those that a deny rule names. Interactive tools are available only
    /// while they can be answered.
    pub fn select(
        all: &[Arc<ToolEntry>],
        selection: Option<&ToolSet>,
        permissions: &PermissionState,
        user: UserPresence,
    ) -> Self {
        let is_selected = |tool: &Arc<ToolEntry>| match selection {
            None | Some(ToolSet::Default) => true,
            Some(ToolSet::List(names)) => names.iter().any(|name| tool.has_name(name)),
        };
        let is_denied = |tool: &Arc<ToolEntry>| permissions.denies_tool_named(tool.tool.name());
        let is_available = |tool: &&Arc<ToolEntry>| is_selected(tool) && !is_denied(tool);
        let responders = Some(Arc::new(Responders::new(user, permissions)));
        Self { tools: all.iter().filter(is_available).cloned().collect(), responders, ..Self::default() }
    }

    /// Adds hooks that may answer interactive tools in place of the user.
    #[must_use]
    pub fn with_hook_responders(&self, hooks: &HookSet) -> Self {
        let interactive =
            self.tools.iter().filter(|tool| !tool.is_noninteractive()).map(|tool| tool.tool.name());
        let responders = self.responders.as_ref().map(|known| Arc::new(known.with_hooks(hooks, interactive)));
        Self { responders, ..self.clone() }
    }

    /// Adds the tools of the session's MCP servers.
    #[must_use]
    pub fn with_mcp_tools(self, tools: Arc<dyn DynamicTools>) -> Self {
        Self { mcp_tools: Some(tools), ..self }
    }

    /// Adds the tools of MCP servers that belong to this agent alone.
    #[must_use]
    pub fn with_own_mcp_tools(self, tools: Option<Arc<dyn DynamicTools>>) -> Self {
        Self { own_mcp_tools: tools, ..self }
    }

    /// Adds a tool, or replaces the one of the same name.
    #[must_use]
    pub fn with_tool(&self, tool: Arc<dyn AnyTool>) -> Self {
        let mut tools = self.tools.clone();
        let known = tools.iter().position(|entry| entry.tool.name() == tool.name());
        let tool = Arc::new(ToolEntry::new(tool));
        match known {
            Some(index) => tools[index] = tool,
            None => tools.push(tool),
        }
        Self { tools, ..self.clone() }
    }

    /// Changes the description of one tool.
    #[must_use]
    pub fn with_description(mut self, name: &str, description: &str) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| tool.tool.name() == name) {
            *tool = Arc::new(tool.with_description(description));
        }
        self
    }

    /// Adds to the description of one tool.
    #[must_use]
    pub fn append_description(mut self, name: &str, text: &str) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| tool.tool.name() == name) {
            *tool = Arc::new(tool.with_description(&format!("{}{text}", tool.spec().description)));
        }
        self
    }

    /// Shows the model a hidden input field of one tool.
    #[must_use]
    pub fn with_field(mut self, name: &str, field: &str, schema: &Value) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| tool.tool.name() == name) {
            *tool = Arc::new(tool.with_field(field, schema));
        }
        self
    }

    /// Hides an optional input field of one tool from the model.
    #[must_use]
    pub fn without_field(mut self, name: &str, field: &str) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| tool.tool.name() == name) {
            *tool = Arc::new(tool.without_field(field));
        }
        self
    }

    #[must_use]
    pub fn without_tools(&self, names: &[&str]) -> Self {
        let is_available = |tool: &&Arc<ToolEntry>| !names.contains(&tool.tool.name());
        let is_new = |name: &&&str| !self.excluded.iter().any(|excluded| excluded == *name);
        let new = names.iter().filter(is_new).map(|name| (*name).to_owned());
        let excluded = self.excluded.iter().cloned().chain(new).collect();
        Self { tools: self.tools.iter().filter(is_available).cloned().collect(), excluded, ..self.clone() }
    }

    #[cfg(any(test, feature = "test-support"))]
    pub fn empty() -> Self {
        Self::default()
    }

    #[cfg(any(test, feature = "test-support"))]
    pub fn from_tools(tools: Vec<Arc<dyn AnyTool>>) -> Self {
        let tools = tools.into_iter().map(|tool| Arc::new(ToolEntry::new(tool))).collect();
        Self { tools, ..Self::default() }
    }

    /// The tools for a subagent: no interactive or main-agent tools, without `without`, and only those in `only` if
    /// given.
    pub fn for_subagent(&self, only: Option<&[String]>, without: &[&str]) -> Self {
        let mut restricted = self.restricted_to(only, without);
        restricted.tools.retain(|tool| tool.is_for_all_agents());
        restricted
    }

    /// Removes `without` and keeps only the tools in `only` if given.
    pub fn restricted_to(&self, only: Option<&[String]>, without: &[&str]) -> Self {
        let is_available = |tool: &&Arc<ToolEntry>| {
            !without.contains(&tool.tool.name())
                && only.is_none_or(|names| names.iter().any(|name| name == "*" || tool.has_name(name)))
        };
        let filters = self.server_tool_filters.iter().cloned().chain(only.map(Arc::from)).collect();
        let tools = self.tools.iter().filter(is_available).cloned().collect();
        let excluded =
            self.excluded.iter().cloned().chain(without.iter().map(|name| (*name).to_owned())).collect();
        Self { tools, server_tool_filters: filters, excluded, ..self.clone() }
    }

    /// Keeps only the MCP tools of these servers.
    #[must_use]
    pub fn restricted_to_servers<'a>(&self, servers: impl IntoIterator<Item = &'a String>) -> Self {
        let list: Vec<String> = servers.into_iter().map(|server| format!("mcp__{server}")).collect();
        let filters = self.server_tool_filters.iter().cloned().chain([Arc::from(list)]).collect();
        Self { server_tool_filters: filters, ..self.clone() }
    }

    /// All tools; MCP tools come last.
    fn all_tools(&self) -> impl Iterator<Item = Arc<ToolEntry>> {
        let is_selected =
            |tool: &ToolEntry, list: &[String]| list.iter().any(|name| tool.matches_selector(name));
        let shared = self.mcp_tools.as_ref().map(|tools| tools.tools()).unwrap_or_default();
        let shared =
            shared.iter().filter(|tool| self.server_tool_filters.iter().all(|list| is_selected(tool, list)));
        let own = self.own_mcp_tools.as_ref().map(|tools| tools.tools()).unwrap_or_default();
        // If two servers have the same name, the agent's own wins.
        let shared = shared.filter(|tool| own.iter().all(|other| other.tool.name() != tool.tool.name()));
        let from_servers = own.iter().chain(shared).filter(|tool| !is_selected(tool, &self.excluded));
        self.available_builtins().chain(from_servers).cloned().collect::<Vec<_>>().into_iter()
    }

    /// Built-in tools, without interactive ones that cannot be answered now.
    fn available_builtins(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        let can_answer =
            |tool: &ToolEntry| self.responders.as_ref().is_some_and(|it| it.can_answer(tool.tool.name()));
        self.tools.iter().filter(move |tool| tool.is_noninteractive() || can_answer(tool))
    }

    /// Instructions of the MCP servers, one text each.
    pub fn server_instructions(&self) -> Arc<[String]> {
        let shared = self.mcp_tools.as_ref().map(|tools| tools.instructions()).unwrap_or_default();
        match &self.own_mcp_tools {
            None => shared,
            Some(own) => own.instructions().iter().chain(shared.iter()).cloned().collect(),
        }
    }

    /// Finds a tool by name or alias.
    pub fn find(&self, name: &str) -> Option<Arc<ToolEntry>> {
        let own = self.available_builtins().find(|tool| tool.has_name(name)).cloned();
        own.or_else(|| self.all_tools().find(|tool| tool.has_name(name)))
    }

    pub fn names(&self) -> Vec<String> {
        self.all_tools().map(|entry| entry.tool.name().to_owned()).collect()
    }

    /// Names for the init frame: hosts expect the subagent tool under its old name there.
    pub fn names_for_init(&self) -> Vec<String> {
        let entry = |name: &str| if name == AGENT { "Task".to_owned() } else { name.to_owned() };
        self.all_tools().map(|tool| entry(tool.tool.name())).collect()
    }

    pub fn tools(&self) -> Vec<Arc<ToolEntry>> {
        self.all_tools().collect()
    }
}
