//! Agent definition: purpose, prompt, tools, model and limits of a type of subagent.

use serde_json::Value;
use whimbrel_models::Effort;
use whimbrel_wire::options::{AgentDefinition, AgentEffort};
use whimbrel_wire::permission::PermissionMode;

use super::hooks;
use super::mcp_servers::ServerSpecs;
use super::memory::MemoryScope;
use crate::runtime_settings::to_model_effort;

/// An agent definition with defaults applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedDefinition {
    pub name: String,
    /// When to use it, shown to the model that may start it.
    pub description: String,
    pub prompt: String,
    /// Tools by name; `None` means all tools of the parent. `Agent(a, b)` lists the agent types it may start.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Vec<String>,
    /// Model; `None` means the parent's.
    pub model: Option<String>,
    /// Effort; `None` means the parent's.
    pub effort: Option<Effort>,
    /// Limit on model calls.
    pub max_turns: Option<u32>,
    /// Permission mode; applied only if it is not wider than the parent's.
    pub permission_mode: Option<PermissionMode>,
    /// Whether it runs in the background unless the call says otherwise.
    pub background: bool,
    /// First prompt, if the session itself uses this definition.
    pub initial_prompt: Option<String>,
    /// Reminder that is added after the task.
    pub reminder: Option<String>,
    /// Excludes instruction files (CLAUDE.md) from its context.
    pub omit_instructions: bool,
    /// Context window for auto-compaction, in tokens.
    pub auto_compact_window: Option<u64>,
    /// Scope of its agent memory: `user`, `project` or `local`.
    pub memory: Option<String>,
    /// Isolation: `worktree`, or `None` for the parent's directory.
    pub isolation: Option<String>,
    /// Skills that are loaded into its context before the task.
    pub skills: Vec<String>,
    pub mcp_servers: ServerSpecs,
    /// Hooks that run while such an agent works, in the format of settings.
    pub hooks: Option<Value>,
    /// Warnings about fields that could not be parsed; the definition is used without them.
    pub parse_warnings: Vec<String>,
    pub source: DefinitionSource,
}

/// Origin of a definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefinitionSource {
    #[default]
    BuiltIn,
    Plugin,
    User,
    Project,
    Host,
}

impl ResolvedDefinition {
    /// Converts a definition given by the host. The error says what is wrong.
    pub fn from_host(name: &str, given: AgentDefinition) -> Result<Self, String> {
        let (effort, errors) = match given.effort {
            Some(AgentEffort::Named(effort)) => (Some(to_model_effort(effort)), Vec::new()),
            Some(AgentEffort::Number(number)) => {
                (None, vec![format!("effort must be low, medium, high, xhigh or max, not {number}")])
            }
            None => (None, Vec::new()),
        };
        let definition = Self {
            name: name.to_owned(),
            description: given.description,
            prompt: given.prompt,
            tools: given.tools,
            disallowed_tools: given.disallowed_tools.unwrap_or_default(),
            model: explicit_model(given.model),
            effort,
            max_turns: given.max_turns,
            permission_mode: given.permission_mode,
            background: given.background.unwrap_or(false),
            initial_prompt: given.initial_prompt,
            reminder: given.critical_system_reminder,
            omit_instructions: given.omit_claude_md.unwrap_or(false),
            auto_compact_window: given.auto_compact_window,
            memory: given.memory,
            isolation: given.isolation,
            skills: given.skills.unwrap_or_default(),
            mcp_servers: ServerSpecs::parse(given.mcp_servers.unwrap_or_default()),
            hooks: None,
            parse_warnings: errors,
            source: DefinitionSource::Host,
        };
        definition.validate()
    }

    /// Returns the definition if it is valid.
    pub(super) fn validate(self) -> Result<Self, String> {
        let error = if self.name.trim().is_empty() {
            "it has no name"
        } else if self.name.chars().any(|c| c.is_control() || matches!(c, '(' | ')' | ',')) {
            "a name cannot have parentheses, commas or control characters"
        } else if self.description.trim().is_empty() {
            "it has no description, so the model cannot know when to use it"
        } else if self.prompt.trim().is_empty() {
            "it has no prompt"
        } else if self.max_turns == Some(0) {
            "maxTurns must be at least 1"
        } else {
            return Ok(self);
        };
        Err(error.into())
    }

    /// Warnings about fields that are ignored.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = [self.parse_warnings.as_slice(), &self.mcp_servers.warnings].concat();
        if self.memory.as_deref().is_some_and(|name| MemoryScope::from_name(name).is_none()) {
            warnings.push("memory must be \"user\", \"project\" or \"local\"; it runs without memory".into());
        }
        let warnings = warnings.into_iter().map(|what| format!("The agent {}: {what}.", self.name));
        warnings.chain(hooks::agent_hooks(self).1).collect()
    }

    /// The agent types that such an agent may start, from the `Agent` entries of its tools.
    pub fn startable_agents(&self) -> StartableAgents {
        let Some(tools) = &self.tools else { return StartableAgents::NoAgents };
        let mut named = Vec::new();
        for tool in tools {
            match split_tool_rule(tool) {
                ("Agent" | "Task", None) => return StartableAgents::All,
                ("Agent" | "Task", Some(types)) => {
                    named.extend(types.split(',').map(|name| name.trim().to_owned()));
                }
                _ => {}
            }
        }
        if named.is_empty() { StartableAgents::NoAgents } else { StartableAgents::Listed(named) }
    }
}

/// Agent types that an agent may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartableAgents {
    All,
    Listed(Vec<String>),
    NoAgents,
}

impl StartableAgents {
    pub fn allows(&self, agent_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(types) => types.iter().any(|allowed| allowed == agent_type),
            Self::NoAgents => false,
        }
    }
}

/// Splits a tool entry into the tool's name and the text in parentheses.
pub(super) fn split_tool_rule(tool: &str) -> (&str, Option<&str>) {
    match tool.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')'))),
        None => (tool.trim(), None),
    }
}

/// The model's name, unless it means the parent's model.
pub(super) fn explicit_model(name: Option<String>) -> Option<String> {
    name.filter(|name| !matches!(name.trim(), "" | "inherit" | "default"))
}

/// Agent type used when none is given.
pub const GENERAL_PURPOSE: &str = "general-purpose";

const READ_ONLY_TOOLS: [&str; 4] = ["Read", "Glob", "Grep", "WebFetch"];

const REPORT_PROMPT: &str = "You are a subagent: another agent gave you a task and waits for your report. Your last message is the report and the only text that the other agent sees: \
say what you found or did, with file paths as path:line and the facts it needs to continue; say plainly what you could not do. No preamble.";

/// The built-in definitions of every session.
pub fn built_in_definitions() -> Vec<ResolvedDefinition> {
    let definition = |name: &str, description: &str, task: &str| ResolvedDefinition {
        name: name.into(),
        description: description.into(),
        prompt: format!("{REPORT_PROMPT}\n\n{task}"),
        ..ResolvedDefinition::default()
    };
    let read_only = || Some(READ_ONLY_TOOLS.map(str::to_owned).to_vec());
    vec![
        definition(
            GENERAL_PURPOSE,
            "Research and multi-step tasks that need no interaction",
            "Do exactly the task, with the tools you have and without asking questions.",
        ),
        ResolvedDefinition {
            tools: read_only(),
            ..definition(
                "Explore",
                "Read-only code search: where something is and how it fits together",
                "Read only; change nothing. Search broadly first, by name and by content, then read what matters; run several searches at once. Report where things are and how they fit together, and quote only what is needed.",
            )
        },
        ResolvedDefinition {
            tools: read_only(),
            ..definition(
                "Plan",
                "Plans a change before anything is edited",
                "Plan only; change nothing. Read the code that the change affects and similar code, then write the plan: the steps in order, the files of each step, the risks, and how to verify the result. Name the three to five files that matter most.",
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_definition(change: impl FnOnce(&mut AgentDefinition)) -> AgentDefinition {
        let mut given = AgentDefinition {
            description: "looks".into(),
            prompt: "Look.".into(),
            ..AgentDefinition::default()
        };
        change(&mut given);
        given
    }

    #[test]
    fn invalid_definition_is_rejected_with_reason() {
        let rows = [
            ("x", host_definition(|_| {}), None),
            ("", host_definition(|_| {}), Some("no name")),
            ("a(b)", host_definition(|_| {}), Some("parentheses")),
            ("x", host_definition(|given| given.prompt = " ".into()), Some("no prompt")),
            ("x", host_definition(|given| given.description.clear()), Some("no description")),
            ("x", host_definition(|given| given.max_turns = Some(0)), Some("maxTurns")),
        ];
        for (name, given, expected) in rows {
            let error = ResolvedDefinition::from_host(name, given).err();
            assert_eq!(error.is_some(), expected.is_some(), "{name}: {error:?}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }

    #[test]
    fn unknown_effort_is_ignored_with_warning() {
        let definition = |effort: &str| {
            let given = format!(r#"{{"description": "looks", "prompt": "Look.", "effort": {effort}}}"#);
            ResolvedDefinition::from_host("x", serde_json::from_str(&given).unwrap()).unwrap()
        };
        assert_eq!(
            (definition("\"high\"").effort, definition("\"high\"").warnings().len()),
            (Some(Effort::High), 0)
        );
        let by_number = definition("3");
        assert_eq!(by_number.effort, None);
        assert!(by_number.warnings()[0].contains("not 3"), "{:?}", by_number.warnings());
    }

    #[test]
    fn startable_agents_come_from_tool_entries() {
        let rows: [(Option<&[&str]>, StartableAgents); 5] = [
            (None, StartableAgents::NoAgents),
            (Some(&["Read"]), StartableAgents::NoAgents),
            (Some(&["Read", "Agent"]), StartableAgents::All),
            (
                Some(&["Task(Explore, Plan)", "Agent(x)"]),
                StartableAgents::Listed(vec!["Explore".into(), "Plan".into(), "x".into()]),
            ),
            (Some(&["Agent(x)", "Agent"]), StartableAgents::All),
        ];
        for (tools, expected) in rows {
            let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
            let definition = ResolvedDefinition { tools, ..ResolvedDefinition::default() };
            assert_eq!(definition.startable_agents(), expected, "{:?}", definition.tools);
        }
    }

    #[test]
    fn inherited_model_is_not_explicit() {
        for (name, expected) in [("inherit", None), ("", None), ("haiku", Some("haiku"))] {
            assert_eq!(explicit_model(Some(name.into())).as_deref(), expected);
        }
    }
}
