//! The built-in tools and the list of them. Each file holds one tool or a family of tools.
//!
//! The trait, the per-call context and the result types are in [`crate::tool_api`]. A tool consists of an input type
//! (its doc comments go into the schema that the model reads), declared effects, `run`, and examples that are
//! documentation and test at once. To add a tool, write its file and add it to [`builtin_tools`].

mod agent;
mod ask_user_question;
mod bash;
mod cron;
mod edit;
mod encoding;
mod file_errors;
mod file_target;
mod glob;
mod grep;
mod list_agents;
mod monitor;
mod notebook_edit;
pub(crate) mod patch;
#[cfg(test)]
mod path_swap_tests;
mod plan_mode;
mod read;
mod schedule_wakeup;
mod send_message;
mod task_list;
mod task_output;
mod task_stop;
mod team;
mod todo_write;
mod tool_search;
mod walk;
mod web_fetch;
mod web_search;
mod worktree;
mod write;

use std::sync::Arc;

use crate::tool_api::AnyTool;

pub use whimbrel_wire::tool_names::*;

pub(crate) use agent::{
    LAUNCHED_PREFIX, NOTIFIED_WHEN_DONE, background_result, describe_tool as agent_description, report_error,
};
pub(crate) use file_target::is_special_path;
pub(crate) use read::image_block;
pub(crate) use send_message::SENT_TO_PREFIX;
pub(crate) use task_stop::STOPPED_PREFIX;

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
        Arc::new(plan_mode::EnterPlanModeTool),
        Arc::new(plan_mode::ExitPlanModeTool),
        Arc::new(tool_search::ToolSearchTool),
        Arc::new(worktree::EnterWorktreeTool),
        Arc::new(worktree::ExitWorktreeTool),
        Arc::new(todo_write::TodoWriteTool),
        Arc::new(task_list::TaskCreateTool),
        Arc::new(task_list::TaskGetTool),
        Arc::new(task_list::TaskListTool),
        Arc::new(task_list::TaskUpdateTool),
        Arc::new(list_agents::ListAgentsTool),
        Arc::new(send_message::SendMessageTool),
        Arc::new(web_search::WebSearchTool),
        Arc::new(monitor::MonitorTool),
        Arc::new(cron::CronCreateTool),
        Arc::new(cron::CronDeleteTool),
        Arc::new(cron::CronListTool),
        Arc::new(schedule_wakeup::ScheduleWakeupTool),
    ]
}

/// Returns the tools of a session that may have a team. They replace built-in tools of the same name or are added to
/// them.
pub fn team_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent::TeamAgentTool),
        Arc::new(team::TeamCreateTool),
        Arc::new(team::TeamDeleteTool),
        Arc::new(send_message::TeamSendMessageTool),
    ]
}
