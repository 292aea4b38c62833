//! Handles control requests of the host: one match from request to response. Longer handlers have their own files.

mod extensions;
mod files;
mod hooks_listing;
pub(super) mod initialize;
mod mcp;
mod output;
mod refused;
mod repo_root;
mod session;
mod settings;
mod side_question;
mod title;
mod tool_input;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_mcp::Toggle;
use whimbrel_models::Thinking;
use whimbrel_tools::permission::AUTO_MODE_UNSUPPORTED;
use whimbrel_tools::tasks::{TaskOutputReport, TaskRegistry, TaskScope};
use whimbrel_tools::workspace::DISABLE_BACKGROUND_VARIABLE;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::control::{
    BackgroundTasks, BackgroundTasksReply, BinaryVersion, ControlResponse, Interrupt, InterruptReply,
    ModelInfo, ModelList, Request, SetMaxThinkingTokens, SetModelReply, SetPermissionModeReply,
    SubscribeToolOutput, TaskOutput,
};
use whimbrel_wire::options::Effort;
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::Status;

use crate::agents::notices;
use crate::event_loop::Session;
use crate::file_checkpoints;
use crate::model_switch::{SwitchRequest, SwitchRequester};
pub(crate) use session::AgentHandles;

/// Handles one request; `None` if the response is sent later.
pub(crate) async fn handle_request(
    session: &mut Session,
    id: String,
    request: Request,
) -> Option<ControlResponse> {
    Some(match request {
        Request::McpReconnect(request) => return mcp::reconnect(session, id, request.server_name),
        Request::McpToggle(request) => {
            return mcp::toggle(session, id, request.server_name, Toggle::from_enabled(request.enabled));
        }
        Request::McpSetServers(request) => return mcp::set_servers(session, id, request),
        Request::McpReadResource(request) => {
            return mcp::read_resource(session, id, request.server_name, request.uri);
        }
        Request::McpCall(call) => return mcp::call_tool(session, id, call),
        Request::SetMcpPermissionModeOverride(set) => mcp::set_mode_override(session, id, set),
        Request::McpStatus(_) => mcp::status(session, id),
        Request::McpMessage(message) => mcp::handle_message(session, id, &message),
        Request::Initialize(initialize) => return initialize::handle_initialize(session, id, &initialize),
        Request::Interrupt(request) => interrupt(session, id, &request).await,
        Request::SetPermissionMode(set) => set_permission_mode(session, id, set.mode).await,
        Request::SetModel(set) => {
            let model = session.setup.model(&session.engine, set.model.as_deref());
            let reply = SetModelReply { model: Some(model.clone()) };
            let options =
                SwitchRequest { requester: SwitchRequester::Host, model, requested_name: set.model };
            return switch_model(session, options, ControlResponse::success(id, &reply));
        }
        Request::SetMaxThinkingTokens(set) => set_thinking(session, id, &set),
        Request::StopTask(stop) => return stop_task(session, id, stop.task_id),
        Request::BackgroundTasks(request) => move_to_background(session, id, &request).await,
        Request::GetTaskOutput(get) => task_output(session.tasks.clone(), id, &get.task_id).await,
        Request::SetPartialMessages(set) => output::set_partial_messages(session, id, &set),
        Request::SetOutputFormat(set) => output::set_output_format(session, &id, &set),
        Request::SubscribeToolOutput(request) => subscribe_tool_output(session, id, &request),
        Request::RenameSession(request) => session::rename_session(session, id, &request).await,
        Request::GetSessionCost(_) => session::session_cost(session, id),
        Request::GetUsage(_) => session::session_usage(session, id),
        Request::ReadFile(request) => files::read_file(session, id, request).await,
        Request::FileSuggestions(request) => return files::suggest_files(session, id, request.query),
        Request::GenerateSessionTitle(request) => return title::generate_title(session, id, request),
        Request::SideQuestion(request) => return side_question::answer_question(session, id, request).await,
        Request::GetHooksListing(_) => hooks_listing::list_hooks(session, id),
        Request::ListPermissionRules(_) => settings::list_rules(session, id),
        Request::UpdatePermissions(update) => return settings::update_permissions(session, id, update),
        // The engine does not depend on it.
        Request::SetHasSubscribers(_) => ControlResponse::ok(id),
        Request::CancelAsyncMessage(request) => session::cancel_message(session, id, &request),
        Request::SeedReadState(request) => {
            session::seed_read_state(Arc::clone(&session.setup.session.workspace), id, request).await
        }
        Request::RewindFiles(request) => {
            file_checkpoints::handle_rewind(&session.setup.session.workspace, id, request).await
        }
        Request::RewindSession(request) => Box::pin(session.rewind_session(id, request)).await,
        Request::ResumePendingCalls(_) => Box::pin(session.resume_pending_calls(id)).await,
        Request::GetSettings(_) => settings::get_settings(session, id),
        Request::ApplyFlagSettings(apply) => {
            return settings::apply_flag_settings(session, id, apply.settings).await;
        }
        Request::UpdateSettings(update) => return settings::update_settings(session, id, update),
        Request::RegisterRepoRoot(request) => return repo_root::register_root(session, id, request).await,
        Request::CheckToolInput(request) => tool_input::check_input(session, id, request),
        Request::ReloadPlugins(request) => extensions::reload_plugins(session, id, request).await,
        Request::ReloadSkills(_) => extensions::reload_skills(session, id).await,
        Request::ReloadOutputStyles(_) => extensions::reload_output_styles(session, id).await,
        Request::GetContextUsage(_) => ControlResponse::success(id, &session.context_usage()),
        Request::ListModels(_) => ControlResponse::success(id, &ModelList { models: model_infos(session) }),
        Request::GetBinaryVersion(_) => ControlResponse::success(
            id,
            &BinaryVersion { version: PROTOCOL_VERSION.into(), build_time: None },
        ),
        Request::Invalid { subtype, error } => {
            if subtype == "initialize" {
                initialize::reject_unreadable(session, &error);
            }
            ControlResponse::error(id, error)
        }
        other => refused::refuse(id, &other),
    })
}

/// Lets the turn go on beside its commands and agents: one of them, or all.
async fn move_to_background(session: &mut Session, id: String, request: &BackgroundTasks) -> ControlResponse {
    if session.setup.session.workspace.is_background_disabled() {
        let text =
            format!("Background tasks are disabled ({DISABLE_BACKGROUND_VARIABLE}). Unset the variable.");
        return ControlResponse::error(id, text);
    }
    let changed = session.tasks.move_to_background(request.tool_use_id.as_deref());
    notices::notify_backgrounded(&session.host.frame_sender, &session.tasks, &changed).await;
    // A request for all tasks succeeds even if there are none.
    let backgrounded = request.tool_use_id.is_none() || !changed.is_empty();
    ControlResponse::success(id, &BackgroundTasksReply { backgrounded: Some(backgrounded) })
}

/// Stops a task asynchronously, because hooks of the host may take part.
fn stop_task(session: &mut Session, id: String, task: String) -> Option<ControlResponse> {
    let tasks = session.tasks.clone();
    session.mcp.respond_later(async move {
        // A task that has ended meanwhile counts as stopped.
        let _ = tasks.stop(&task, TaskScope::Host).await;
        ControlResponse::ok(id)
    });
    None
}

/// Begins or ends the live output of commands.
fn subscribe_tool_output(session: &Session, id: String, request: &SubscribeToolOutput) -> ControlResponse {
    match request.enabled {
        true => session.tasks.live_output().subscribe(),
        false => session.tasks.live_output().unsubscribe(),
    }
    ControlResponse::ok(id)
}

/// The output of a task so far.
async fn task_output(tasks: TaskRegistry, id: String, task: &str) -> ControlResponse {
    match tasks.read_output(task, TaskScope::Host, Duration::ZERO).await {
        Ok(TaskOutputReport { output, omitted_bytes, .. }) => {
            let total_bytes = omitted_bytes + output.len() as u64;
            ControlResponse::success(id, &TaskOutput { output, total_bytes, truncated: omitted_bytes > 0 })
        }
        Err(error) => ControlResponse::error(id, error.to_string()),
    }
}

/// Interrupts the turn, and removes queued prompts on request. Prompts of a turn of which the host has seen nothing count
/// as queued: hosts take those that are missing in `still_queued` for dropped, and their result for that of another one.
async fn interrupt(session: &mut Session, id: String, request: &Interrupt) -> ControlResponse {
    if let Some(prompt) = &request.user_message_uuid {
        let cancelled = session.interrupt_prompt(prompt).then(|| vec![prompt.clone()]);
        let still_queued = session.input_queue.prompt_ids();
        return ControlResponse::success(
            id,
            &InterruptReply { still_queued, cancelled: cancelled.map(Into::into) },
        );
    }
    let mut still_queued = session.interrupt().await;
    let cancelled = request.cancel_queued.unwrap_or(false).then(|| session.input_queue.drop_prompts());
    still_queued.extend(session.input_queue.prompt_ids());
    ControlResponse::success(id, &InterruptReply { still_queued, cancelled: cancelled.map(Into::into) })
}

async fn set_permission_mode(session: &mut Session, id: String, mode: PermissionMode) -> ControlResponse {
    if !session.setup.permissions.state.set_mode(mode) {
        let (text, code) = match session.setup.permissions.state.is_bypass_disabled() {
            true => (
                "Permissions cannot be bypassed: the settings contain disableBypassPermissionsMode.",
                "bypass_disabled",
            ),
            false => (
                "Permissions can only be bypassed in a session that was started with --allow-dangerously-skip-permissions.",
                "bypass_not_launched",
            ),
        };
        return ControlResponse::error_with_code(id, text, code);
    }
    if mode == PermissionMode::Auto {
        session.host.frame_sender.warn(AUTO_MODE_UNSUPPORTED).await;
    }
    let mode = session.setup.permissions.state.mode();
    session.host.frame_sender.notify(Status { permission_mode: Some(mode), ..Status::default() }).await;
    ControlResponse::success(id, &SetPermissionModeReply { mode })
}

/// Sets thinking budget and display. Absent fields stay unchanged.
fn set_thinking(session: &mut Session, id: String, set: &SetMaxThinkingTokens) -> ControlResponse {
    if let Some(limit) = set.max_thinking_tokens {
        let thinking = limit.map(|budget| match budget {
            0 => Thinking::Disabled,
            budget => Thinking::Enabled { budget },
        });
        session.settings.runtime.send_modify(|runtime_settings| runtime_settings.thinking = thinking);
    }
    match set.thinking_display.as_ref().map(|name| name.as_deref().map(str::parse).transpose()) {
        Some(Err(error)) => return ControlResponse::error(id, format!("{error}.")),
        Some(Ok(display)) => session
            .settings
            .runtime
            .send_modify(|runtime_settings| runtime_settings.thinking_display = display),
        None => {}
    }
    ControlResponse::ok(id)
}

fn model_infos(session: &Session) -> Vec<ModelInfo> {
    let choices = session.engine.catalog().models_with_aliases();
    choices
        .map(|(alias, model)| ModelInfo {
            value: alias.unwrap_or(model.name).to_owned(),
            display_name: model.display_name.to_string(),
            description: model.description.to_string(),
            resolved_model: Some(model.name.to_string()),
            supports_effort: model.supports_effort.then_some(true),
            supported_effort_levels: model
                .supports_effort
                .then(|| Effort::ALL.iter().map(ToString::to_string).collect()),
            ..ModelInfo::default()
        })
        .collect()
}

/// Switches the model, asynchronously if hooks run or earlier switches are pending; `response` is the response on
/// success.
fn switch_model(
    session: &mut Session,
    request: SwitchRequest,
    response: ControlResponse,
) -> Option<ControlResponse> {
    let Some(switch) = session.request_model_switch(request) else { return Some(response) };
    session.mcp.respond_later(async move {
        match switch.apply(&CancellationToken::new()).await {
            Ok(()) => response,
            Err(reason) => ControlResponse::error(response.response.request_id(), reason),
        }
    });
    None
}
