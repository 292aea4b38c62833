//! Pickers about the engine: models, modes, effort, MCP servers, tasks.

use whimbrel::PermissionMode;
use whimbrel::wire::control::{McpConnection, McpServerStatus, ModelInfo};
use whimbrel::wire::options::Effort;

use super::{Picker, Purpose};
use crate::conversation::Conversation;
use crate::menu::{Choice, Menu, MenuStyle};

/// The models of the engine.
pub(crate) fn model(models: &[ModelInfo], current: Option<&str>) -> Picker {
    let is_current = |model: &ModelInfo| {
        current.is_some_and(|name| name == model.value || model.resolved_model.as_deref() == Some(name))
    };
    let choices = models.iter().map(|model| {
        let resolved = model.resolved_model.as_deref().filter(|resolved| *resolved != model.value);
        let detail = match resolved {
            Some(resolved) => format!("{resolved}  {}", model.description),
            None => model.description.clone(),
        };
        Choice::new(model.display_name.clone()).detail(detail).current(is_current(model))
    });
    let menu = Menu::new("Model", choices.collect())
        .style(MenuStyle::Filtered)
        .footer("/model NAME takes any other, for example openai:qwen3");
    Picker { menu, purpose: Purpose::Model(models.iter().map(|model| model.value.clone()).collect()) }
}

/// What a permission mode means.
fn describe_mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "ask before edits, commands and the network",
        PermissionMode::AcceptEdits => "edit files of the project without asking",
        PermissionMode::Plan => "read and plan, change nothing",
        PermissionMode::BypassPermissions => "allow everything; only if the start allowed it",
        _ => "allow only what the rules allow",
    }
}

/// The permission modes.
pub(crate) fn mode(current: PermissionMode) -> Picker {
    let modes = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::BypassPermissions,
    ];
    let choices = modes
        .iter()
        .map(|mode| Choice::new(mode.to_string()).detail(describe_mode(*mode)).current(*mode == current));
    Picker { menu: Menu::new("Permission mode", choices.collect()), purpose: Purpose::Mode(modes.to_vec()) }
}

/// The levels of effort.
pub(crate) fn effort(current: Option<&str>) -> Picker {
    let levels = [Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];
    let choices = levels
        .iter()
        .map(|level| Choice::new(level.to_string()).current(current == Some(level.to_string().as_str())));
    Picker {
        menu: Menu::new("Effort of the model", choices.collect()),
        purpose: Purpose::Effort(levels.to_vec()),
    }
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpServer {
    name: String,
    is_enabled: bool,
    tools: Vec<String>,
    error: Option<String>,
}

/// The MCP servers.
pub(crate) fn mcp(servers: &[McpServerStatus]) -> Picker {
    let choices = servers.iter().map(|server| {
        let tools = server.tools.as_ref().map_or(0, Vec::len);
        let state = match &server.status {
            McpConnection::Connected => format!("connected, {tools} tools"),
            McpConnection::Failed => {
                format!("failed: {}", server.error.as_deref().unwrap_or("no reason given"))
            }
            McpConnection::NeedsAuth => format!("needs a login: whimbrel mcp login {}", server.name),
            McpConnection::Pending => "connecting".into(),
            McpConnection::Disabled => "disabled".into(),
            McpConnection::Other(state) => state.clone(),
            _ => "unknown".into(),
        };
        Choice::new(server.name.clone()).detail(state)
    });
    let menu = Menu::new("MCP servers", choices.collect());
    let servers = servers.iter().map(|server| McpServer {
        name: server.name.clone(),
        is_enabled: server.status != McpConnection::Disabled,
        tools: server.tools.iter().flatten().map(|tool| tool.name.clone()).collect(),
        error: server.error.clone(),
    });
    Picker { menu, purpose: Purpose::Mcp(servers.collect()) }
}

/// What can be done with an MCP server.
pub(crate) fn mcp_server(server: &McpServer) -> Picker {
    let mut notes = Vec::new();
    notes.extend(server.error.clone());
    if !server.tools.is_empty() {
        notes.push(format!("tools: {}", server.tools.join(", ")));
    }
    let switch = if server.is_enabled { "Disable" } else { "Enable" };
    let menu =
        Menu::new(server.name.clone(), vec![Choice::new("Reconnect"), Choice::new(switch)]).notes(notes);
    Picker { menu, purpose: Purpose::McpServer { name: server.name.clone(), is_enabled: server.is_enabled } }
}

/// The background tasks.
pub(crate) fn tasks(conversation: &Conversation) -> Picker {
    let tasks = &conversation.background;
    let choices = tasks.iter().map(|task| {
        Choice::new(task.description.clone()).detail(format!("{} · {}", task.task_type, task.task_id))
    });
    let title = if tasks.is_empty() { "No background task runs" } else { "Background tasks" };
    let ids = tasks.iter().map(|task| (task.task_id.clone(), task.description.clone())).collect();
    Picker { menu: Menu::new(title, choices.collect()).footer("Esc closes"), purpose: Purpose::Tasks(ids) }
}

/// What can be done with a background task.
pub(crate) fn task(id: &str, name: &str) -> Picker {
    let menu = Menu::new(name, vec![Choice::new("Show its output"), Choice::new("Stop it")]);
    Picker { menu, purpose: Purpose::Task(id.to_owned()) }
}
