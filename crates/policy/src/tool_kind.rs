//! Tool kinds: which rules apply to a tool and what it may do without approval.

/// Kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Runs a command: Bash, Monitor.
    Shell,
    /// Reads one file.
    Read,
    /// Searches files: Grep, Glob.
    Search,
    /// Writes one file: Edit, Write, NotebookEdit.
    Edit,
    /// Fetches a URL.
    WebFetch,
    /// Searches the web.
    WebSearch,
    /// Starts a subagent.
    Agent,
    /// Loads a skill.
    Skill,
    /// Needs an answer from the user: AskUserQuestion, ExitPlanMode.
    Interaction,
    /// Needs no approval: task lists, plans, messages.
    NoApproval,
    /// Belongs to an MCP server.
    Mcp,
    /// Any other tool: requires permission.
    Other,
}

/// Tools that need no approval, besides Agent.
const NO_APPROVAL_TOOLS: [&str; 26] = [
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskStop",
    "TaskOutput",
    "TodoWrite",
    "TodoRead",
    "BashOutput",
    "AgentOutputTool",
    "ToolSearch",
    "SendMessage",
    "ListAgents",
    "TeamCreate",
    "TeamDelete",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "StructuredOutput",
    "EndConversation",
    "ScheduleWakeup",
];

impl ToolKind {
    /// Kind of the tool with this current name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "Bash" | "Monitor" => Self::Shell,
            "Read" => Self::Read,
            "Grep" | "Glob" => Self::Search,
            "Edit" | "Write" | "NotebookEdit" => Self::Edit,
            "WebFetch" => Self::WebFetch,
            "WebSearch" => Self::WebSearch,
            "Agent" => Self::Agent,
            "Skill" => Self::Skill,
            "AskUserQuestion" | "ExitPlanMode" => Self::Interaction,
            _ if NO_APPROVAL_TOOLS.contains(&name) => Self::NoApproval,
            _ if name.starts_with("mcp__") => Self::Mcp,
            _ => Self::Other,
        }
    }

    /// The input field with the target of the call, for the kinds that have one.
    pub fn primary_field(self, name: &str) -> Option<&'static str> {
        match self {
            Self::Shell => Some("command"),
            Self::Edit if name == "NotebookEdit" => Some("notebook_path"),
            Self::Read | Self::Edit => Some("file_path"),
            Self::WebFetch => Some("url"),
            Self::Search => Some("path"),
            Self::WebSearch
            | Self::Agent
            | Self::Skill
            | Self::Interaction
            | Self::NoApproval
            | Self::Mcp
            | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_kinds_by_name() {
        let rows = [
            ("Bash", ToolKind::Shell),
            ("Monitor", ToolKind::Shell),
            ("NotebookEdit", ToolKind::Edit),
            ("TodoWrite", ToolKind::NoApproval),
            ("mcp__a__Bash", ToolKind::Mcp),
            ("bash", ToolKind::Other),
        ];
        for (name, kind) in rows {
            assert_eq!(ToolKind::from_name(name), kind, "{name}");
        }
        assert_eq!(ToolKind::Edit.primary_field("NotebookEdit"), Some("notebook_path"));
    }
}
