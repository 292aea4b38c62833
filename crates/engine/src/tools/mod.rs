//! The built-in tools, one file each, and the list of them.
//!
//! The trait is in `tool`, the per-call context and the result types in `context`. A tool consists of an input type
//! (its doc comments go into the schema that the model reads), declared effects, `run`, and examples that are
//! documentation and test at once. To add a tool, write its file and add it to [`builtin_tools`].

mod agent;
mod ask_user_question;
mod bash;
mod checkpoint;
mod context;
mod cron_create;
mod cron_delete;
mod cron_list;
mod edit;
mod effects;
mod encoding;
mod enter_plan_mode;
mod enter_worktree;
mod example;
mod exit_plan_mode;
mod exit_worktree;
mod file_errors;
mod file_target;
mod glob;
mod grep;
mod lenient;
mod list_agents;
mod monitor;
mod notebook_edit;
pub(crate) mod patch;
#[cfg(test)]
mod path_swap_tests;
mod read;
mod schedule_wakeup;
mod schema;
mod send_message;
mod task_create;
mod task_get;
mod task_list;
mod task_output;
mod task_stop;
mod task_update;
mod team_agent;
mod team_create;
mod team_delete;
mod todo_write;
mod tool;
mod tool_search;
mod walk;
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

pub use whimbrel_wire::tool_names::*;

pub(crate) use agent::{
    LAUNCHED_PREFIX, NOTIFIED_WHEN_DONE, background_result, describe_tool as agent_description, report_error,
};
pub use context::{ToolContext, ToolError, ToolOutput, ToolResult};
pub use effects::Effects;
pub use example::Example;
pub(crate) use file_target::is_special_path;
pub(crate) use read::image_block;
pub(crate) use send_message::SENT_TO_PREFIX;
pub(crate) use task_stop::STOPPED_PREFIX;
pub use tool::{AnyTool, Availability, Tool};

/// Returns the built-in tools in the order in which the model sees them.
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

/// Returns the tools of a session that may have a team. They replace built-in tools of the same name or are added to
/// them.
pub fn team_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(team_agent::TeamAgentTool),
        Arc::new(team_create::TeamCreateTool),
        Arc::new(team_delete::TeamDeleteTool),
        Arc::new(send_message::TeamSendMessageTool),
    ]
}
