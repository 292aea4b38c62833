//! The built-in tools and the list of them. Each file holds one tool or a family of tools.
//!
//! The trait, the per-call context and the result types are in [`crate::api`]. A tool consists of an input type
//! (its doc comments go into the schema that the model reads), declared effects, `run`, and examples that are
//! documentation and test at once. To add a tool, write its file and add it to [`builtin_tools`].

mod ask_user_question;
mod bash;
mod cron;
mod edit;
mod encoding;
mod file_errors;
pub mod file_suggestions;
mod file_target;
mod glob;
mod grep;
mod monitor;
mod notebook_edit;
pub mod patch;
mod plan_mode;
mod read;
mod read_before_write;
mod schedule_wakeup;
mod similar_text;
mod task_list;
mod task_output;
mod task_stop;
mod todo_write;
mod tool_search;
mod walk;
#[cfg(feature = "web")]
mod web_fetch;
mod web_search;
mod worktree;
mod write;

use std::sync::Arc;

use crate::api::AnyTool;

pub use bash::{BACKGROUND_FIELD, describe_without_background};
pub use monitor::MONITOR;

use whimbrel_wire::tool_names::*;

/// Returns the built-in tools in the order in which the model sees them. Those that start and message agents are in
/// the engine.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(bash::BashTool),
        Arc::new(read::ReadTool),
        Arc::new(write::WriteTool),
        Arc::new(edit::EditTool),
        Arc::new(glob::GlobTool),
        Arc::new(grep::GrepTool),
        Arc::new(notebook_edit::NotebookEditTool),
        Arc::new(task_output::TaskOutputTool),
        Arc::new(task_stop::TaskStopTool),
        #[cfg(feature = "web")]
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
        Arc::new(web_search::WebSearchTool),
        Arc::new(monitor::MonitorTool),
        Arc::new(cron::CronCreateTool),
        Arc::new(cron::CronDeleteTool),
        Arc::new(cron::CronListTool),
        Arc::new(schedule_wakeup::ScheduleWakeupTool),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::check_examples;

    #[tokio::test]
    async fn all_examples_pass() {
        check_examples(&builtin_tools()).await;
    }
}
