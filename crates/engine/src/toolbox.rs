//! The tools of one session: which ones there are, and how they are found by name.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_policy::ToolFacts;
use whimbrel_wire::options::ToolSet;
use whimbrel_wire::permission::McpServerProvenance;

use crate::audience::{Audience, Person};
use crate::hooks::HookSet;
use crate::mcp::{Roster, Supply};
use crate::permission::Rights;
use crate::tools::{AGENT, AnyTool, DealsWith};

/// A tool on the list. What the model sees of it is worked out once, for all sessions.
pub struct Offered {
    tool: Arc<dyn AnyTool>,
    spec: OnceLock<Arc<ToolSpec>>,
    facts: OnceLock<ToolFacts>,
    provenance: OnceLock<Option<McpServerProvenance>>,
    size: OnceLock<usize>,
}

impl Offered {
    /// Puts a tool on the list.
    pub fn new(tool: Arc<dyn AnyTool>) -> Self {
        let (spec, facts, size) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { tool, spec, facts, size, provenance: OnceLock::new() }
    }

    /// Puts a tool on the list in the place of another of its name. If both look the same to the model, they share their
    /// looks.
    pub fn in_place_of(before: &Self, tool: Arc<dyn AnyTool>) -> Self {
        let (old, new) = (before.spec(), tool.spec());
        let spec = if *old == new { old } else { Arc::new(new) };
        Self { spec: spec.into(), ..Self::new(tool) }
    }

    /// The same tool, of which the model reads something else.
    fn described(&self, description: &str) -> Self {
        let spec = ToolSpec { description: description.into(), ..ToolSpec::clone(&self.spec()) };
        Self { spec: Arc::new(spec).into(), ..Self::new(Arc::clone(&self.tool)) }
    }

    /// The tool as the model sees it.
    pub fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(self.spec.get_or_init(|| Arc::new(self.tool.spec())))
    }

    /// How many bytes that is.
    pub fn size(&self) -> usize {
        *self.size.get_or_init(|| serde_json::to_string(self.spec().as_ref()).map_or(0, |json| json.len()))
    }

    /// The tool.
    pub fn tool(&self) -> &dyn AnyTool {
        self.tool.as_ref()
    }

    /// The tool as rules see it.
    pub fn facts(&self) -> &ToolFacts {
        self.facts.get_or_init(|| {
            let schema: Value = serde_json::from_str(self.spec().input_schema.as_str()).unwrap_or_default();
            let fields = schema.get("properties").and_then(Value::as_object);
            let fields: Vec<&str> =
                fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect();
            let mut facts = ToolFacts::named(self.tool.name(), &fields);
            // Where a server's name ends cannot be seen from the name of its tool.
            facts.mcp_server = self.tool.server().map(str::to_owned).or(facts.mcp_server);
            facts.requires_interaction |= self.tool.needs_person();
            facts
        })
    }

    /// The MCP server that it belongs to, as hosts and hooks are told of it.
    pub fn provenance(&self) -> Option<&McpServerProvenance> {
        self.provenance.get_or_init(|| self.tool.provenance()).as_ref()
    }

    /// The tool as rules see it in a call with this input.
    pub fn facts_of(&self, input: &Value) -> Cow<'_, ToolFacts> {
        match self.tool.brings_grants(input) {
            true => Cow::Owned(ToolFacts { brings_grants: true, ..self.facts().clone() }),
            false => Cow::Borrowed(self.facts()),
        }
    }

    /// Whether it is of use where there is no person.
    fn needs_no_person(&self) -> bool {
        self.tool.deals_with() != DealsWith::Person
    }

    /// Whether it is of use to any agent.
    fn is_for_all(&self) -> bool {
        self.tool.deals_with() == DealsWith::Machines
    }

    /// Whether a list of tools for a subagent names it, by its own name or by its server's: as that is called, or as it
    /// stands in the names of its tools.
    fn is_meant_by(&self, name: &str) -> bool {
        let server = |rest: &str| {
            let meant = rest.strip_suffix("__*").unwrap_or(rest);
            let called = self.provenance().and_then(|server| server.name.as_deref());
            called == Some(meant) || self.tool.server() == Some(meant)
        };
        name == "*"
            || self.answers_to(name)
            || name.strip_prefix("mcp__").is_some_and(|rest| rest == "*" || server(rest))
    }

    fn answers_to(&self, name: &str) -> bool {
        self.tool.name() == name || self.tool.aliases().contains(&name)
    }
}

/// The tools of a session.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<Offered>>,
    /// Who answers what some of them ask of a person; without it nobody does, and those are not offered.
    audience: Option<Arc<Audience>>,
    /// What MCP servers bring, which changes as they come and go.
    supply: Option<Supply>,
    /// The same of servers that work for this agent alone. They are there to be used.
    own: Option<Supply>,
    /// Of these lists, each names the tools of servers that may be used.
    only: Vec<Arc<[String]>>,
    /// Those that may not be used.
    except: Vec<String>,
}

impl Toolbox {
    /// Picks from all tools what the options ask for, less what a rule takes away. What would ask a person is offered only
    /// while somebody answers.
    pub fn pick(all: &[Arc<Offered>], wanted: Option<&ToolSet>, rights: &Rights, person: Person) -> Self {
        let asked_for = |tool: &Arc<Offered>| match wanted {
            None | Some(ToolSet::Default) => true,
            Some(ToolSet::List(names)) => names.iter().any(|name| tool.answers_to(name)),
        };
        let refused = |tool: &Arc<Offered>| rights.removes(tool.tool.name());
        let kept = |tool: &&Arc<Offered>| asked_for(tool) && !refused(tool);
        let audience = Some(Arc::new(Audience::new(person, rights)));
        Self { tools: all.iter().filter(kept).cloned().collect(), audience, ..Self::default() }
    }

    /// The same tools, where these hooks may answer for a person.
    #[must_use]
    pub fn answered_by(&self, hooks: &HookSet) -> Self {
        let asking = self.tools.iter().filter(|tool| !tool.needs_no_person()).map(|tool| tool.tool.name());
        let audience = self.audience.as_ref().map(|audience| Arc::new(audience.with_hooks(hooks, asking)));
        Self { audience, ..self.clone() }
    }

    /// The same tools, and those of MCP servers as they come and go.
    #[must_use]
    pub fn with_servers(self, supply: Supply) -> Self {
        Self { supply: Some(supply), ..self }
    }

    /// The same tools, and those of servers that are the agent's own.
    #[must_use]
    pub fn with_own_servers(self, own: Option<Supply>) -> Self {
        Self { own, ..self }
    }

    /// The servers of the session, if it has some.
    pub fn servers(&self) -> Option<&Roster> {
        self.supply.as_ref().and_then(Supply::roster)
    }

    /// The servers that are the agent's own, if it has some.
    pub fn own_servers(&self) -> Option<&Supply> {
        self.own.as_ref()
    }

    /// The same tools and one more.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn AnyTool>) -> Self {
        let mut tools = self.tools.clone();
        let known = tools.iter().position(|listed| listed.tool.name() == tool.name());
        let tool = Arc::new(Offered::new(tool));
        match known {
            Some(index) => tools[index] = tool,
            None => tools.push(tool),
        }
        Self { tools, ..self.clone() }
    }

    /// The same tools, of which the model reads something else about one.
    #[must_use]
    pub fn described(mut self, name: &str, description: &str) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| tool.tool.name() == name) {
            *tool = Arc::new(tool.described(description));
        }
        self
    }

    /// The same tools less these.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let kept = |tool: &&Arc<Offered>| !names.contains(&tool.tool.name());
        let except = self.except.iter().cloned().chain(names.iter().map(|name| (*name).to_owned())).collect();
        Self { tools: self.tools.iter().filter(kept).cloned().collect(), except, ..self.clone() }
    }

    /// No tools at all.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// These tools.
    #[cfg(test)]
    pub(crate) fn of(tools: Vec<Arc<dyn AnyTool>>) -> Self {
        let tools = tools.into_iter().map(|tool| Arc::new(Offered::new(tool))).collect();
        Self { tools, ..Self::default() }
    }

    /// The same tools for a subagent: less some, less those that deal with a person or the session, and only those named
    /// if any are.
    pub fn narrowed(&self, only: Option<&[String]>, without: &[&str]) -> Self {
        let mut narrowed = self.limited(only, without);
        narrowed.tools.retain(|tool| tool.is_for_all());
        narrowed
    }

    /// The same tools less some, and only those named if any are.
    pub fn limited(&self, only: Option<&[String]>, without: &[&str]) -> Self {
        let kept = |tool: &&Arc<Offered>| {
            !without.contains(&tool.tool.name())
                && only.is_none_or(|names| names.iter().any(|name| name == "*" || tool.answers_to(name)))
        };
        let lists = self.only.iter().cloned().chain(only.map(Arc::from)).collect();
        let tools = self.tools.iter().filter(kept).cloned().collect();
        let except =
            self.except.iter().cloned().chain(without.iter().map(|name| (*name).to_owned())).collect();
        Self { tools, only: lists, except, ..self.clone() }
    }

    /// The same tools, but of the MCP servers only those with these names.
    #[must_use]
    pub fn with_only_servers<'a>(&self, servers: impl IntoIterator<Item = &'a String>) -> Self {
        let list: Vec<String> = servers.into_iter().map(|server| format!("mcp__{server}")).collect();
        let only = self.only.iter().cloned().chain([Arc::from(list)]).collect();
        Self { only, ..self.clone() }
    }

    /// Every tool, as things stand: those of servers come last.
    fn all(&self) -> impl Iterator<Item = Arc<Offered>> {
        let brought = self.supply.as_ref().map(Supply::tools).unwrap_or_default();
        let named = |tool: &Offered, list: &[String]| list.iter().any(|name| tool.is_meant_by(name));
        let brought = brought.iter().filter(|tool| self.only.iter().all(|list| named(tool, list)));
        let own = self.own.as_ref().map(Supply::tools).unwrap_or_default();
        // Of two servers with one name the agent's own counts.
        let brought = brought.filter(|tool| own.iter().all(|other| other.tool.name() != tool.tool.name()));
        let brought = own.iter().chain(brought).filter(|tool| !named(tool, &self.except));
        self.offered().chain(brought).cloned().collect::<Vec<_>>().into_iter()
    }

    /// Our own tools, less those that would ask somebody who does not answer.
    fn offered(&self) -> impl Iterator<Item = &Arc<Offered>> {
        let answers = |tool: &Offered| self.audience.as_ref().is_some_and(|it| it.answers(tool.tool.name()));
        self.tools.iter().filter(move |tool| tool.needs_no_person() || answers(tool))
    }

    /// What MCP servers want the model to know, a text each.
    pub fn instructions(&self) -> Arc<[String]> {
        let of = |supply: &Option<Supply>| supply.as_ref().map(Supply::instructions).unwrap_or_default();
        match &self.own {
            None => of(&self.supply),
            own => of(own).iter().chain(of(&self.supply).iter()).cloned().collect(),
        }
    }

    /// Finds a tool by its name or an older one.
    pub fn find(&self, name: &str) -> Option<Arc<Offered>> {
        let own = self.offered().find(|tool| tool.answers_to(name)).cloned();
        own.or_else(|| self.all().find(|tool| tool.answers_to(name)))
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        self.all().map(|listed| listed.tool.name().to_owned()).collect()
    }

    /// The names as hosts expect them in the first notice: there the subagent tool still has its old name.
    pub fn names_for_init(&self) -> Vec<String> {
        let listed = |name: &str| if name == AGENT { "Task".to_owned() } else { name.to_owned() };
        self.all().map(|tool| listed(tool.tool.name())).collect()
    }

    /// The tools, in order.
    pub fn tools(&self) -> Vec<Arc<Offered>> {
        self.all().collect()
    }
}
