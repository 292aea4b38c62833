//! Names of built-in tools that more than one crate refers to.

/// Name of the tool that starts subagents.
pub const AGENT: &str = "Agent";
/// Name of the tool that runs shell commands.
pub const BASH: &str = "Bash";
/// Name of the tool that sends messages to other agents.
pub const SEND_MESSAGE: &str = "SendMessage";
/// Name of the tool that creates a team.
pub const TEAM_CREATE: &str = "TeamCreate";
/// Name of the tool that deletes the team.
pub const TEAM_DELETE: &str = "TeamDelete";
/// Name of the tool that asks the user a question.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";
/// Name of the tool that enters plan mode.
pub const ENTER_PLAN_MODE: &str = "EnterPlanMode";
/// Name of the tool that asks the user to approve a plan.
pub const EXIT_PLAN_MODE: &str = "ExitPlanMode";
/// Name of the tool that loads a skill.
pub const SKILL: &str = "Skill";
/// Name of the tool that loads deferred tools.
pub const TOOL_SEARCH: &str = "ToolSearch";
/// Name of the tool that adds a task to the task list.
pub const TASK_CREATE: &str = "TaskCreate";
/// Name of the tool that shows one task of the list.
pub const TASK_GET: &str = "TaskGet";
/// Name of the tool that shows the whole task list.
pub const TASK_LIST: &str = "TaskList";
/// Name of the tool that changes a task of the list.
pub const TASK_UPDATE: &str = "TaskUpdate";
/// Name of the tool for an agent's private to-do list.
pub const TODO_WRITE: &str = "TodoWrite";

/// Older names of built-in tools, each with the current name. Hook matchers and permission rules may still use them.
pub const RENAMED_TOOLS: &[(&str, &str)] = &[
    ("Task", AGENT),
    ("BashOutput", "TaskOutput"),
    ("KillShell", "TaskStop"),
    ("KillBash", "TaskStop"),
    ("ListPeers", "ListAgents"),
];
