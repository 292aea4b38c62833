//! Control requests about settings and permission rules: show, overlay, write.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::http_hooks::{ALLOWED_ENV_VARS_KEY, ALLOWED_URLS_KEY};
use whimbrel_os::files;
use whimbrel_policy::{RuleSource, SourcedRule};
use whimbrel_tools::hooks::{HookDispatcher, HookInputBuilder, join_reasons};
use whimbrel_tools::permission::{ModeSwitch, PermissionState};
use whimbrel_wire::control::{
    ControlResponse, PermissionRules, PermissionRulesState, UpdatePermissions, UpdateSettings,
};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::PermissionBehavior;
use whimbrel_wire::system::Status;

use super::switch_model;
use crate::event_loop::Session;
use crate::model_switch::{SwitchRequest, SwitchRequester};
use crate::runtime_settings::parse_effort;

/// Keys about hooks, which are fixed at the start of a session.
const HOOK_KEYS: &[&str] =
    &["hooks", "disableAllHooks", "allowManagedHooksOnly", ALLOWED_URLS_KEY, ALLOWED_ENV_VARS_KEY];

/// Shows the effective settings, each source, and the values in use.
pub(crate) fn get_settings(session: &Session, id: String) -> ControlResponse {
    let runtime_settings = session.settings.runtime.borrow().clone();
    let applied = json!({
        "model": runtime_settings.model,
        "effort": runtime_settings.effort,
        "permissionMode": session.setup.permissions.state.mode(),
    });
    let applied = applied.as_object().cloned().unwrap_or_default();
    ControlResponse::success(id, &session.setup.permissions.state.settings().report(applied))
}

/// Applies settings of the host over all other sources. If any is invalid, nothing changes.
pub(crate) async fn apply_flag_settings(
    session: &mut Session,
    id: String,
    changes: Map<String, Value>,
) -> Option<ControlResponse> {
    let before = session.setup.permissions.state.mode();
    let applied = try_apply_flag_settings(session, changes);
    let mode = session.setup.permissions.state.mode();
    if mode != before {
        // Bypass mode was disabled.
        session.host.frame_sender.notify(Status { permission_mode: Some(mode), ..Status::default() }).await;
    }
    match applied {
        Ok(None) => Some(ControlResponse::ok(id)),
        Ok(Some(request)) => switch_model(session, request, ControlResponse::ok(id)),
        Err(error) => Some(ControlResponse::error(id, error)),
    }
}

/// Applies the settings; returns a model switch if they name a model.
fn try_apply_flag_settings(
    session: &mut Session,
    changes: Map<String, Value>,
) -> Result<Option<SwitchRequest>, String> {
    if HOOK_KEYS.iter().any(|key| changes.contains_key(*key)) {
        return Err("Hooks cannot be changed while a session runs. Set them when it starts.".into());
    }
    if changes.get("permissions").is_some_and(|permissions| permissions.get("defaultMode").is_some()) {
        return Err(
            "permissions.defaultMode applies only when a session starts. Use set_permission_mode.".into()
        );
    }
    let keys: Vec<String> = changes.keys().cloned().collect();
    let (before, effective) = session.setup.permissions.state.apply_host_settings(changes)?;
    let removed = before.env.keys().filter(|name| !effective.env.contains_key(*name));
    session.setup.session.workspace.unset_variables(removed);
    session.setup.session.workspace.set_variables(effective.env.clone());
    let is_named = |key: &str| keys.iter().any(|name| name == key);
    if is_named("effortLevel") {
        let effort = effective.typed.effort_level.as_deref().and_then(parse_effort);
        session.settings.runtime.send_modify(|runtime_settings| runtime_settings.effort = effort);
    }
    let requested = effective.typed.model.clone();
    let model = session.setup.model(&session.engine, requested.as_deref());
    Ok(is_named("model").then_some(SwitchRequest {
        requester: SwitchRequester::Settings,
        model,
        requested_name: requested,
    }))
}

/// Writes values to a settings file asynchronously, because another writer may hold its lock. Requests are
/// serialized.
pub(crate) fn update_settings(
    session: &mut Session,
    id: String,
    update: UpdateSettings,
) -> Option<ControlResponse> {
    let (permissions, hooks) = (session.setup.permissions.state.clone(), session.hooks.clone());
    let mut queue_slot = session.settings.file_writes.enqueue();
    session.mcp.respond_later(async move {
        queue_slot.acquire().await;
        match try_update_settings(permissions, &hooks, update).await {
            Ok(()) => ControlResponse::ok(id),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

async fn try_update_settings(
    permissions: PermissionState,
    hooks: &HookDispatcher,
    update: UpdateSettings,
) -> Result<(), String> {
    let (source, file) = match update.source.as_str() {
        "localSettings" => ("local_settings", permissions.settings().file_for(SettingSource::Local)),
        "userSettings" => ("user_settings", permissions.settings().file_for(SettingSource::User)),
        _ => ("", None),
    };
    // An unsupported source is rejected below.
    if let Some(file) = file {
        let build_input = |input: &HookInputBuilder| input.config_change(source, &file);
        let output = hooks.dispatch(HookEvent::ConfigChange, build_input, &CancellationToken::new()).await;
        if !output.blocked.is_empty() {
            return Err(format!("A hook blocked the settings change: {}", join_reasons(&output.blocked)));
        }
    }
    let written = files::run_blocking(move || permissions.write_settings(&update))
        .await
        .map_err(|error| error.to_string())?;
    written.map(|_| ()).map_err(|error| error.to_string())
}

/// Applies permission updates of the host and writes those that files keep. Like other writes to settings files they are
/// serialized.
pub(crate) fn update_permissions(
    session: &mut Session,
    id: String,
    update: UpdatePermissions,
) -> Option<ControlResponse> {
    let permissions = session.setup.permissions.state.clone();
    let modes = ModeSwitch::new(permissions.clone(), session.host.frame_sender.clone());
    let mut queue_slot = session.settings.file_writes.enqueue();
    session.mcp.respond_later(async move {
        queue_slot.acquire().await;
        let before = modes.mode();
        let applied = files::run_blocking(move || permissions.apply_updates(&update.updates)).await;
        if modes.mode() != before {
            modes.notify_host().await;
        }
        match applied {
            Ok(messages) if messages.is_empty() => ControlResponse::ok(id),
            Ok(messages) => ControlResponse::error(id, messages.join(" ")),
            Err(error) => ControlResponse::error(id, error.to_string()),
        }
    });
    None
}

/// Lists rules and directories with their sources.
pub(crate) fn list_rules(session: &Session, id: String) -> ControlResponse {
    let snapshot = session.setup.permissions.state.snapshot();
    let behaviors = [PermissionBehavior::Allow, PermissionBehavior::Deny, PermissionBehavior::Ask];
    let rules = behaviors.into_iter().flat_map(|behavior| snapshot.rules.with_behavior(behavior));
    let directories = snapshot.dirs.extra.iter();
    let state = PermissionRulesState {
        rules: rules.map(|rule| rule_json(&rule.sourced)).collect(),
        workspace_directories: directories
            .map(|(directory, source)| json!({"path": directory.lexical, "source": source.as_str()}))
            .collect(),
        original_cwd: session.setup.session.workspace.root().display().to_string(),
        managed_only: snapshot.rules.is_managed_only(),
        ..PermissionRulesState::default()
    };
    ControlResponse::success(id, &PermissionRules { state })
}

fn rule_json(rule: &SourcedRule) -> Value {
    json!({
        "behavior": rule.behavior.to_string(),
        "source": rule.source.as_str(),
        "rule": rule.rule.to_string(),
        "editability": describe_editability(rule.source),
    })
}

/// Returns whether a rule can be edited, by its source.
fn describe_editability(source: RuleSource) -> &'static str {
    match source {
        RuleSource::UserSettings | RuleSource::ProjectSettings | RuleSource::LocalSettings => "persistent",
        RuleSource::CliArg | RuleSource::Session => "session",
        RuleSource::Managed | RuleSource::FlagSettings | RuleSource::Skill => "readonly",
    }
}
