//! The tools, one leaf file each, and the list of them.
//!
//! What a tool is stands in `tool`, what a call is in `call`. A leaf has an input type whose doc comments are what the
//! model reads, a word on what it touches, `run`, and examples that are documentation and test at once. To add a tool:
//! write the leaf, add it to [`all`].

mod agent;
mod team_agent;
mod ask_user_question;
mod bash;
mod context;
mod checkpoint;
mod cron_create;
mod cron_delete;
mod cron_list;
mod edit;
mod encoding;
mod enter_plan_mode;
mod enter_worktree;
mod example;
mod exit_plan_mode;
mod exit_worktree;
mod file_errors;
mod glob;
mod grep;
mod lenient;
mod list_agents;
mod monitor;
mod notebook_edit;
pub(crate) mod patch;
mod read;
mod schedule_wakeup;
mod schema;
mod send_message;
#[cfg(test)]
mod path_swap_tests;
mod file_target;
mod task_create;
mod task_get;
mod task_list;
mod task_output;
mod task_stop;
mod task_update;
mod team_create;
mod team_delete;
mod todo_write;
mod tool;
mod tool_search;
mod effects;
mod walk;
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

pub(crate) use agent::{
    LAUNCHED_PREFIX, NOTIFIED_WHEN_DONE, report_error, describe_tool as agent_description, background_result,
};
pub use context::{ToolContext, ToolOutput, ToolResult, ToolError};
pub use example::Example;
pub(crate) use read::image_block;
pub(crate) use send_message::SENT_TO_PREFIX;
pub(crate) use file_target::is_special_path;
pub(crate) use task_stop::STOPPED_PREFIX;
pub use tool::{AnyTool, Availability, Tool};
pub use effects::Effects;

/// The name of the tool that starts subagents.
pub const AGENT: &str = "Agent";

/// The name of the tool that writes to other agents.
pub const SEND_MESSAGE: &str = "SendMessage";

/// The name of the tool that founds a team.
pub const TEAM_CREATE: &str = "TeamCreate";

/// The name of the tool that dissolves it.
pub const TEAM_DELETE: &str = "TeamDelete";

/// The name of the tool that asks the person something.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// The name of the tool that begins plan mode.
pub const ENTER_PLAN_MODE: &str = "EnterPlanMode";

/// The name of the tool that asks for the approval of a plan.
pub const EXIT_PLAN_MODE: &str = "ExitPlanMode";

/// The name of the tool that loads skills.
pub const SKILL: &str = "Skill";
/// The name of the tool that loads others.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// The names of the tools for the list of tasks.
pub const TASK_CREATE: &str = "TaskCreate";
/// Shows one of them.
pub const TASK_GET: &str = "TaskGet";
/// Shows all of them.
pub const TASK_LIST: &str = "TaskList";
/// Changes one of them.
pub const TASK_UPDATE: &str = "TaskUpdate";

/// The name of the tool for a list that an agent keeps for itself.
pub const TODO_WRITE: &str = "TodoWrite";

/// The list of built-in tools. One line each; the order is the order in which the model sees them.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent::AgentTool),
        Arc::new(bash::BashTool),
        Arc::new(read::ReadTool),
        Arc::new(write::WriteTool),
        Arc::new(edit::EditTool),
        Arc::new(glob::GlobTool),
        Arc::new(grep::GrepTool),
        Arc::new(notebook_edit::NotebookEditTool),
        Arc::new(task_output::TaskOutputTool),
        Arc::new(task_stop::TaskStopTool),
        Arc::new(web_fetch::WebFetchTool::default()),
        Arc::new(ask_user_question::AskUserQuestionTool),
        Arc::new(enter_plan_mode::EnterPlanModeTool),
        Arc::new(exit_plan_mode::ExitPlanModeTool),
        Arc::new(tool_search::ToolSearchTool),
        Arc::new(enter_worktree::EnterWorktreeTool),
        Arc::new(exit_worktree::ExitWorktreeTool),
        Arc::new(todo_write::TodoWriteTool),
        Arc::new(task_create::TaskCreateTool),
        Arc::new(task_get::TaskGetTool),
        Arc::new(task_list::TaskListTool),
        Arc::new(task_update::TaskUpdateTool),
        Arc::new(list_agents::ListAgentsTool),
        Arc::new(send_message::SendMessageTool),
        Arc::new(web_search::WebSearchTool),
        Arc::new(monitor::MonitorTool),
        Arc::new(cron_create::CronCreateTool),
        Arc::new(cron_delete::CronDeleteTool),
        Arc::new(cron_list::CronListTool),
        Arc::new(schedule_wakeup::ScheduleWakeupTool),
    ]
}

/// The tools of a session that may have a team, in the place of those with their names or beside them.
pub fn team_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(team_agent::TeamAgentTool),
        Arc::new(team_create::TeamCreateTool),
        Arc::new(team_delete::TeamDeleteTool),
        Arc::new(send_message::TeamSendMessageTool),
    ]
}
