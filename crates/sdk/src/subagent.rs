//! Subagents that the agent can start.

use whimbrel_wire::options::{AgentDefinition, AgentEffort, Effort};
use whimbrel_wire::permission::PermissionMode;

/// A type of subagent: when the agent uses it, its prompt, and its limits. Given to
/// [`Agent::subagent`](crate::Agent::subagent) under a name.
///
/// ```
/// use whimbrel::{Agent, Isolation, Subagent};
///
/// let reviewer = Subagent::new("Reviews code before it is committed", "You review Rust code. Report defects only.")
///     .tools(["Read", "Grep", "Glob"])
///     .model("haiku")
///     .max_turns(20)
///     .isolation(Isolation::Worktree);
/// let agent = Agent::new().subagent("reviewer", reviewer);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    pub(crate) definition: AgentDefinition,
}

/// Where a subagent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// In a git worktree of its own.
    Worktree,
}

/// Memory that a subagent keeps from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryScope {
    /// One memory for all projects of the user.
    User,
    /// The project's, shared with others.
    Project,
    /// The project's, on this machine.
    Local,
}

impl Subagent {
    /// A type of subagent with the tools and the model of the session. The model reads the description to decide when to
    /// use it; the prompt is its system prompt.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (description, prompt) = (description.into(), prompt.into());
        Self { definition: AgentDefinition { description, prompt, ..AgentDefinition::default() } }
    }

    /// Gives it only these tools.
    #[must_use]
    pub fn tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.update(|agent| agent.tools = Some(names.into_iter().map(Into::into).collect()))
    }

    /// Takes these tools away from it.
    #[must_use]
    pub fn disallowed_tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.update(|agent| agent.disallowed_tools = Some(names.into_iter().map(Into::into).collect()))
    }

    /// Its model, by name or alias.
    #[must_use]
    pub fn model(self, name: impl Into<String>) -> Self {
        self.update(|agent| agent.model = Some(name.into()))
    }

    /// Its effort level.
    #[must_use]
    pub fn effort(self, effort: Effort) -> Self {
        self.update(|agent| agent.effort = Some(AgentEffort::Named(effort)))
    }

    /// Maximum number of its model calls.
    #[must_use]
    pub fn max_turns(self, limit: u32) -> Self {
        self.update(|agent| agent.max_turns = Some(limit))
    }

    /// Gives it only these MCP servers of the session.
    #[must_use]
    pub fn mcp_servers(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.update(|agent| {
            agent.mcp_servers = Some(names.into_iter().map(|name| name.into().into()).collect());
        })
    }

    /// Skills whose texts it knows from the start.
    #[must_use]
    pub fn skills(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.update(|agent| agent.skills = Some(names.into_iter().map(Into::into).collect()))
    }

    /// Its permission mode.
    #[must_use]
    pub fn permission_mode(self, mode: PermissionMode) -> Self {
        self.update(|agent| agent.permission_mode = Some(mode))
    }

    /// Runs it in the background: the agent goes on and hears of its report later.
    #[must_use]
    pub fn background(self) -> Self {
        self.update(|agent| agent.background = Some(true))
    }

    /// Where it works, if not in the agent's working directory.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        let name = match isolation {
            Isolation::Worktree => "worktree",
        };
        self.update(|agent| agent.isolation = Some(name.into()))
    }

    /// Lets it keep a memory from run to run.
    #[must_use]
    pub fn memory(self, scope: MemoryScope) -> Self {
        let name = match scope {
            MemoryScope::User => "user",
            MemoryScope::Project => "project",
            MemoryScope::Local => "local",
        };
        self.update(|agent| agent.memory = Some(name.into()))
    }

    fn update(mut self, change: impl FnOnce(&mut AgentDefinition)) -> Self {
        change(&mut self.definition);
        self
    }
}

/// A definition with fields that this type has no methods for.
impl From<AgentDefinition> for Subagent {
    fn from(definition: AgentDefinition) -> Self {
        Self { definition }
    }
}
