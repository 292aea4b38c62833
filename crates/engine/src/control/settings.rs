//! Requests about settings: show them, lay others over them, keep one.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::{ControlResponse, UpdateSettings};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::system::Status;

use super::switch_model;
use crate::files;
use crate::hooks::{Lookout, Scene, joined};
use crate::model_switch::{Asker, Wish};
use crate::permission::Rights;
use crate::serve::Session;
use crate::settings::http_hooks::{ADDRESSES, VARIABLES};
use crate::setup::model::effort_named;

/// Keys about hooks, which are what they were at the start.
const ABOUT_HOOKS: &[&str] = &["hooks", "disableAllHooks", "allowManagedHooksOnly", ADDRESSES, VARIABLES];

/// Shows what is in force, what each source says, and what the session makes of it.
pub(super) fn show(session: &Session, id: String) -> ControlResponse {
    let knobs = session.knobs.borrow().clone();
    let applied = json!({
        "model": knobs.model,
        "effort": knobs.effort,
        "permissionMode": session.setup.rights.mode(),
    });
    let applied = applied.as_object().cloned().unwrap_or_default();
    ControlResponse::success(id, &session.setup.rights.settings().report(applied))
}

/// Lays settings of the host over all others. If something in them cannot be taken, nothing changes.
pub(super) async fn lay_over(
    session: &mut Session,
    id: String,
    changes: Map<String, Value>,
) -> Option<ControlResponse> {
    let before = session.setup.rights.mode();
    let laid = try_lay_over(session, changes);
    let mode = session.setup.rights.mode();
    if mode != before {
        // The mode that asks nobody was switched off.
        session.outbox.notify(Status { permission_mode: Some(mode), ..Status::default() }).await;
    }
    match laid {
        Ok(None) => Some(ControlResponse::ok(id)),
        Ok(Some(wish)) => switch_model(session, wish, ControlResponse::ok(id)),
        Err(error) => Some(ControlResponse::error(id, error)),
    }
}

/// Gives the model that is to answer from now on, if the settings name one.
fn try_lay_over(session: &mut Session, changes: Map<String, Value>) -> Result<Option<Wish>, String> {
    if ABOUT_HOOKS.iter().any(|key| changes.contains_key(*key)) {
        return Err("Hooks cannot be changed while a session runs. Give them at its start.".into());
    }
    if changes.get("permissions").is_some_and(|permissions| permissions.get("defaultMode").is_some()) {
        return Err("permissions.defaultMode is for the start of a session. Use set_permission_mode.".into());
    }
    let named: Vec<String> = changes.keys().cloned().collect();
    let (before, effective) = session.setup.rights.lay_over(changes)?;
    let gone = before.env.keys().filter(|name| !effective.env.contains_key(*name));
    session.setup.workspace.unset_variables(gone);
    session.setup.workspace.set_variables(effective.env.clone());
    let is_named = |key: &str| named.iter().any(|name| name == key);
    if is_named("effortLevel") {
        let effort = effective.known.effort_level.as_deref().and_then(effort_named);
        session.knobs.send_modify(|knobs| knobs.effort = effort);
    }
    let requested = effective.known.model.clone();
    let to = session.setup.model(&session.engine, requested.as_deref());
    Ok(is_named("model").then_some(Wish { asker: Asker::Settings, to, requested }))
}

/// Writes values to a file of the person, beside everything else: another writer may hold the file. One request after the
/// other.
pub(super) fn keep(session: &mut Session, id: String, update: UpdateSettings) -> Option<ControlResponse> {
    let (rights, lookout) = (session.setup.rights.clone(), session.lookout.clone());
    let mut place = session.keeping.join();
    session.crew.later(async move {
        place.comes_first().await;
        match try_keep(rights, &lookout, update).await {
            Ok(()) => ControlResponse::ok(id),
            Err(error) => ControlResponse::error(id, error),
        }
    });
    None
}

async fn try_keep(rights: Rights, lookout: &Lookout, update: UpdateSettings) -> Result<(), String> {
    let (source, file) = match update.source.as_str() {
        "localSettings" => ("local_settings", rights.settings().file(SettingSource::Local)),
        "userSettings" => ("user_settings", rights.settings().file(SettingSource::User)),
        _ => ("", None),
    };
    // What cannot be kept is refused below.
    if let Some(file) = file {
        let told = |scene: &Scene| scene.config_change(source, &file);
        let said = lookout.raise(HookEvent::ConfigChange, told, &CancellationToken::new()).await;
        if !said.blocked.is_empty() {
            return Err(format!("A hook has stopped the change of settings: {}", joined(&said.blocked)));
        }
    }
    let kept = files::aside(move || rights.keep_values(&update)).await.map_err(|error| error.to_string())?;
    kept.map(|_| ()).map_err(|error| error.to_string())
}
