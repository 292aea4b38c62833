//! The tools, one leaf file each, and the list of them.
//!
//! What a tool is stands in `tool`, what a call is in `call`. A leaf has an input type whose doc comments are what the
//! model reads, a word on what it touches, `run`, and examples that are documentation and test at once. To add a tool:
//! write the leaf, add it to [`all`].

mod agent;
mod agent_in_team;
mod ask_user_question;
mod bash;
mod call;
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
mod fault;
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
mod swapped;
mod target;
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
mod touches;
mod walk;
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

pub(crate) use agent::{
    LAUNCHED, WILL_BE_TOLD, came_to_nothing, description as agent_description, works_beside,
};
pub use call::{Call, Done, Output, Trouble};
pub use example::Example;
pub(crate) use read::picture;
pub(crate) use send_message::SENT_TO;
pub(crate) use target::is_off_limits;
pub(crate) use task_stop::STOPPED;
pub use tool::{AnyTool, DealsWith, Tool};
pub use touches::Touches;

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
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent::Agent),
        Arc::new(bash::Bash),
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(notebook_edit::NotebookEdit),
        Arc::new(task_output::TaskOutput),
        Arc::new(task_stop::TaskStop),
        Arc::new(web_fetch::WebFetch::default()),
        Arc::new(ask_user_question::AskUserQuestion),
        Arc::new(enter_plan_mode::EnterPlanMode),
        Arc::new(exit_plan_mode::ExitPlanMode),
        Arc::new(tool_search::ToolSearch),
        Arc::new(enter_worktree::EnterWorktree),
        Arc::new(exit_worktree::ExitWorktree),
        Arc::new(todo_write::TodoWrite),
        Arc::new(task_create::TaskCreate),
        Arc::new(task_get::TaskGet),
        Arc::new(task_list::TaskList),
        Arc::new(task_update::TaskUpdate),
        Arc::new(list_agents::ListAgents),
        Arc::new(send_message::SendMessage),
        Arc::new(web_search::WebSearch),
        Arc::new(monitor::Monitor),
        Arc::new(cron_create::CronCreate),
        Arc::new(cron_delete::CronDelete),
        Arc::new(cron_list::CronList),
        Arc::new(schedule_wakeup::ScheduleWakeup),
    ]
}

/// The tools of a session that may have a team, in the place of those with their names or beside them.
pub fn for_teams() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent_in_team::AgentInTeam),
        Arc::new(team_create::TeamCreate),
        Arc::new(team_delete::TeamDelete),
        Arc::new(send_message::SendMessageInTeam),
    ]
}
