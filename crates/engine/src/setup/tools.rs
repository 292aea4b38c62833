//! Selects tools and deferred tools, and opens the task list.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use whimbrel_policy::sandbox::OVERRIDE_FIELD;
use whimbrel_tools::api::deferred_tools::{self, DeferredTools};
use whimbrel_tools::api::{AgentToolSet, ToolEntry};
use whimbrel_tools::builtin::{BACKGROUND_FIELD, MONITOR, describe_without_background};
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::sandbox;
use whimbrel_tools::task_list::TaskList;
use whimbrel_tools::workspace::DISABLE_BACKGROUND_VARIABLE;
use whimbrel_wire::options::{Options, ToolSet};
use whimbrel_wire::tool_names::{
    AGENT, BASH, TASK_CREATE, TASK_GET, TASK_LIST, TASK_UPDATE, TODO_WRITE, TOOL_SEARCH,
};

use super::env::is_env_set;
use super::{SetupError, permissions};
use crate::agents::AgentDefinitions;
use crate::agents::tools::agent_description;
use crate::engine::Engine;

/// Chooses between the task list and the todo list.
const TASKS_VARIABLE: &str = "CLAUDE_CODE_ENABLE_TASKS";

/// Name of a task list that several sessions share.
const LIST_VARIABLE: &str = "CLAUDE_CODE_TASK_LIST_ID";

/// Tools that start turns at a later time.
const TIMER_TOOLS: [&str; 4] = ["CronCreate", "CronDelete", "CronList", "ScheduleWakeup"];

/// The tools that the host asked for.
pub(super) fn select_tools(
    engine: &Engine,
    options: &Options,
    env: &BTreeMap<String, String>,
    permission_state: &PermissionState,
) -> AgentToolSet {
    AgentToolSet::select(
        &available_tools(engine, env),
        options.tools.as_ref(),
        permission_state,
        permissions::user_presence(options),
    )
}

/// All available tools; the team tools only if enabled.
fn available_tools(engine: &Engine, env: &BTreeMap<String, String>) -> Vec<Arc<ToolEntry>> {
    let teams = is_env_set(env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if teams { engine.team_tools() } else { engine.tools() }.to_vec()
}

/// Removes tools that are not used: ToolSearch if nothing is deferred, and either the task list or the todo list,
/// unless the host named its tools.
pub(super) fn finalize_tools(
    tool_set: &AgentToolSet,
    options: &Options,
    env: &BTreeMap<String, String>,
    window: Option<u64>,
) -> Result<(AgentToolSet, DeferredTools), SetupError> {
    let is_off =
        |value: &String| matches!(value.trim().to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off");
    let mut excluded: Vec<&str> = match (&options.tools, env.get(TASKS_VARIABLE)) {
        (Some(ToolSet::List(_)), _) => Vec::new(),
        (_, Some(value)) if is_off(value) => vec![TASK_CREATE, TASK_GET, TASK_LIST, TASK_UPDATE],
        _ => vec![TODO_WRITE],
    };
    if is_env_set(env, "CLAUDE_CODE_DISABLE_CRON") {
        excluded.extend(TIMER_TOOLS);
    }
    let budget = deferred_tools::schema_budget(env, window).map_err(SetupError::Invalid)?;
    excluded.extend(budget.is_none().then_some(TOOL_SEARCH));
    let deferred = budget.map_or_else(DeferredTools::default, DeferredTools::with_schema_budget);
    let tool_set = tool_set.without_tools(&excluded);
    match is_env_set(env, DISABLE_BACKGROUND_VARIABLE) {
        true => Ok((without_background(&tool_set), deferred)),
        false => Ok((tool_set, deferred)),
    }
}

/// Hides background work from the model: the field of commands and agents, and the tool that only works so.
fn without_background(tool_set: &AgentToolSet) -> AgentToolSet {
    tool_set
        .without_tools(&[MONITOR])
        .with_description(BASH, &describe_without_background())
        .without_field(BASH, BACKGROUND_FIELD)
        .without_field(AGENT, BACKGROUND_FIELD)
}

/// Describes the Agent tool with the available agent definitions.
pub(super) fn describe_agent_tool(tool_set: AgentToolSet, definitions: &AgentDefinitions) -> AgentToolSet {
    match agent_description(definitions) {
        Some(text) => tool_set.with_description(AGENT, &text),
        None => tool_set,
    }
}

/// Tells the model that commands are confined, and how it may ask to run one unconfined.
pub(super) fn describe_sandbox(tool_set: AgentToolSet, permissions: &PermissionState) -> AgentToolSet {
    let settings = Arc::clone(permissions.settings().sandbox());
    if !permissions.is_sandboxed(&settings) {
        return tool_set;
    }
    let tool_set = tool_set.append_description(BASH, &sandbox::describe(&settings));
    match settings.allow_unsandboxed_commands {
        true => tool_set.with_field(
            BASH,
            OVERRIDE_FIELD,
            &json!({"type": "boolean", "description": "Run outside of the sandbox; asks the user."}),
        ),
        false => tool_set,
    }
}

/// The task list of a session; in memory if the session is not stored.
pub(super) fn open_task_list(
    config: Option<&Path>,
    env: &BTreeMap<String, String>,
    session: &str,
) -> TaskList {
    let named = env.get(LIST_VARIABLE).map(String::as_str).filter(|name| !name.trim().is_empty());
    match (config, named) {
        (Some(config), Some(name)) => TaskList::shared(config, name),
        (Some(config), None) => TaskList::for_session(config, session),
        (None, _) => TaskList::default(),
    }
}
