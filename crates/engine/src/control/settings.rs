//! Control requests about settings: show, overlay, write.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::http_hooks::{ALLOWED_ENV_VARS_KEY, ALLOWED_URLS_KEY};
use whimbrel_os::files;
use whimbrel_wire::control::{ControlResponse, UpdateSettings};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::system::Status;

use super::switch_model;
use crate::event_loop::Session;
use crate::hooks::{HookDispatcher, HookInputBuilder, join_reasons};
use crate::model_switch::{SwitchRequest, SwitchRequester};
use crate::permission::PermissionState;
use crate::setup::model::parse_effort;

/// Keys about hooks, which are fixed at the start of a session.
const HOOK_KEYS: &[&str] =
    &["hooks", "disableAllHooks", "allowManagedHooksOnly", ALLOWED_URLS_KEY, ALLOWED_ENV_VARS_KEY];

/// Shows the effective settings, each source, and the values in use.
pub(super) fn get_settings(session: &Session, id: String) -> ControlResponse {
    let knobs = session.runtime_settings.borrow().clone();
    let applied = json!({
        "model": knobs.model,
        "effort": knobs.effort,
        "permissionMode": session.setup.permission_state.mode(),
    });
    let applied = applied.as_object().cloned().unwrap_or_default();
    ControlResponse::success(id, &session.setup.permission_state.settings().report(applied))
}

/// Applies settings of the host over all other sources. If any is invalid, nothing changes.
pub(super) async fn apply_flag_settings(
    session: &mut Session,
    id: String,
    changes: Map<String, Value>,
) -> Option<ControlResponse> {
    let before = session.setup.permission_state.mode();
    let laid = try_apply_flag_settings(session, changes);
    let mode = session.setup.permission_state.mode();
    if mode != before {
        // Bypass mode was disabled.
        session.frame_sender.notify(Status { permission_mode: Some(mode), ..Status::default() }).await;
    }
    match laid {
        Ok(None) => Some(ControlResponse::ok(id)),
        Ok(Some(wish)) => switch_model(session, wish, ControlResponse::ok(id)),
        Err(error) => Some(ControlResponse::error(id, error)),
    }
}

/// Applies the settings; returns a model switch if they name a model.
fn try_apply_flag_settings(
    session: &mut Session,
    changes: Map<String, Value>,
) -> Result<Option<SwitchRequest>, String> {
    if HOOK_KEYS.iter().any(|key| changes.contains_key(*key)) {
        return Err("Hooks cannot be changed while a session runs. Give them at its start.".into());
    }
    if changes.get("permissions").is_some_and(|permissions| permissions.get("defaultMode").is_some()) {
        return Err("permissions.defaultMode is for the start of a session. Use set_permission_mode.".into());
    }
    let named: Vec<String> = changes.keys().cloned().collect();
    let (before, effective) = session.setup.permission_state.apply_host_settings(changes)?;
    let gone = before.env.keys().filter(|name| !effective.env.contains_key(*name));
    session.setup.workspace.unset_variables(gone);
    session.setup.workspace.set_variables(effective.env.clone());
    let is_named = |key: &str| named.iter().any(|name| name == key);
    if is_named("effortLevel") {
        let effort = effective.typed.effort_level.as_deref().and_then(parse_effort);
        session.runtime_settings.send_modify(|knobs| knobs.effort = effort);
    }
    let requested = effective.typed.model.clone();
    let to = session.setup.model(&session.engine, requested.as_deref());
    Ok(is_named("model").then_some(SwitchRequest {
        requester: SwitchRequester::Settings,
        model: to,
        requested_name: requested,
    }))
}

/// Writes values to a settings file asynchronously, because another writer may hold its lock. Requests are
/// serialized.
pub(super) fn update_settings(
    session: &mut Session,
    id: String,
    update: UpdateSettings,
) -> Option<ControlResponse> {
    let (rights, lookout) = (session.setup.permission_state.clone(), session.hooks.clone());
    let mut place = session.settings_writes.enqueue();
    session.mcp.respond_later(async move {
        place.acquire().await;
        match try_update_settings(rights, &lookout, update).await {
            Ok(()) => ControlResponse::ok(id),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

async fn try_update_settings(
    rights: PermissionState,
    lookout: &HookDispatcher,
    update: UpdateSettings,
) -> Result<(), String> {
    let (source, file) = match update.source.as_str() {
        "localSettings" => ("local_settings", rights.settings().file_for(SettingSource::Local)),
        "userSettings" => ("user_settings", rights.settings().file_for(SettingSource::User)),
        _ => ("", None),
    };
    // An unsupported source is rejected below.
    if let Some(file) = file {
        let told = |scene: &HookInputBuilder| scene.config_change(source, &file);
        let said = lookout.dispatch(HookEvent::ConfigChange, told, &CancellationToken::new()).await;
        if !said.blocked.is_empty() {
            return Err(format!(
                "A hook has stopped the change of settings: {}",
                join_reasons(&said.blocked)
            ));
        }
    }
    let kept = files::run_blocking(move || rights.write_settings(&update))
        .await
        .map_err(|error| error.to_string())?;
    kept.map(|_| ()).map_err(|error| error.to_string())
}
