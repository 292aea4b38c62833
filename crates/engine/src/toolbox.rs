//! The tools of one session: which ones there are, and how they are found by name.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_policy::ToolFacts;
use whimbrel_wire::options::ToolSet;

use crate::permission::Rights;
use crate::tools::{AGENT, AnyTool, DealsWith};

/// A tool on the list. What the model sees of it is worked out once, for all sessions.
pub struct Offered {
    tool: Arc<dyn AnyTool>,
    spec: OnceLock<Arc<ToolSpec>>,
    facts: OnceLock<ToolFacts>,
    size: OnceLock<usize>,
}

impl Offered {
    /// Puts a tool on the list.
    pub fn new(tool: Arc<dyn AnyTool>) -> Self {
        Self { tool, spec: OnceLock::new(), facts: OnceLock::new(), size: OnceLock::new() }
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

    /// Whether it is of use where there is no person.
    fn needs_no_person(&self) -> bool {
        self.tool.deals_with() != DealsWith::Person
    }

    /// Whether it is of use to any agent.
    fn is_for_all(&self) -> bool {
        self.tool.deals_with() == DealsWith::Machines
    }

    fn answers_to(&self, name: &str) -> bool {
        self.tool.name() == name || self.tool.aliases().contains(&name)
    }
}

/// Whether a person can be asked something through the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// One can.
    Present,
    /// None can, or none wants to be.
    Absent,
}

/// The tools of a session.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<Offered>>,
}

impl Toolbox {
    /// Picks from all tools what the options ask for, less what a rule takes away and what would ask a person where there
    /// is none to ask.
    pub fn pick(all: &[Arc<Offered>], wanted: Option<&ToolSet>, rights: &Rights, person: Person) -> Self {
        let asked_for = |tool: &Arc<Offered>| match wanted {
            None | Some(ToolSet::Default) => true,
            Some(ToolSet::List(names)) => names.iter().any(|name| tool.answers_to(name)),
        };
        let refused = |tool: &Arc<Offered>| rights.removes(tool.tool.name());
        let of_use = |tool: &Arc<Offered>| person == Person::Present || tool.needs_no_person();
        let kept = |tool: &&Arc<Offered>| asked_for(tool) && of_use(tool) && !refused(tool);
        Self { tools: all.iter().filter(kept).cloned().collect() }
    }

    /// The same tools and one more.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn AnyTool>) -> Self {
        let mut tools = self.tools.clone();
        tools.retain(|listed| listed.tool.name() != tool.name());
        tools.push(Arc::new(Offered::new(tool)));
        Self { tools }
    }

    /// The same tools less these.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let kept = |tool: &&Arc<Offered>| !names.contains(&tool.tool.name());
        Self { tools: self.tools.iter().filter(kept).cloned().collect() }
    }

    /// No tools at all.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// These tools.
    #[cfg(test)]
    pub(crate) fn of(tools: Vec<Arc<dyn AnyTool>>) -> Self {
        Self { tools: tools.into_iter().map(|tool| Arc::new(Offered::new(tool))).collect() }
    }

    /// The same tools for a subagent: less some, less those that deal with a person or the session, and only those named
    /// if any are.
    pub fn narrowed(&self, only: Option<&[String]>, without: &[&str]) -> Self {
        let kept = |tool: &&Arc<Offered>| {
            !without.contains(&tool.tool.name())
                && tool.is_for_all()
                && only.is_none_or(|names| names.iter().any(|name| name == "*" || tool.answers_to(name)))
        };
        Self { tools: self.tools.iter().filter(kept).cloned().collect() }
    }

    /// Finds a tool by its name or an older one.
    pub fn find(&self, name: &str) -> Option<Arc<Offered>> {
        self.tools.iter().find(|tool| tool.answers_to(name)).cloned()
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|listed| listed.tool.name().to_owned()).collect()
    }

    /// The names as hosts expect them in the first notice: there the subagent tool still has its old name.
    pub fn names_for_init(&self) -> Vec<String> {
        let listed = |name: &str| if name == AGENT { "Task".to_owned() } else { name.to_owned() };
        self.tools.iter().map(|tool| listed(tool.tool.name())).collect()
    }

    /// The tools, in order.
    pub fn tools(&self) -> &[Arc<Offered>] {
        &self.tools
    }
}
