//! Requests about settings: show them, lay others over them, keep one.

use serde_json::{Map, Value, json};
use whimbrel_wire::control::{ControlResponse, UpdateSettings};

use crate::files;
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
pub(super) fn lay_over(session: &mut Session, id: String, changes: Map<String, Value>) -> ControlResponse {
    match try_lay_over(session, changes) {
        Ok(()) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, error),
    }
}

fn try_lay_over(session: &mut Session, changes: Map<String, Value>) -> Result<(), String> {
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
    if is_named("model") {
        let model = session.setup.model(&session.engine, effective.known.model.as_deref());
        session.knobs.send_modify(|knobs| knobs.model = model);
    }
    if is_named("effortLevel") {
        let effort = effective.known.effort_level.as_deref().and_then(effort_named);
        session.knobs.send_modify(|knobs| knobs.effort = effort);
    }
    Ok(())
}

/// Writes values to a file of the person.
pub(super) async fn keep(rights: Rights, id: String, update: UpdateSettings) -> ControlResponse {
    match files::aside(move || rights.keep_values(&update)).await {
        Ok(Ok(_)) => ControlResponse::ok(id),
        Ok(Err(error)) => ControlResponse::error(id, error.to_string()),
        Err(error) => ControlResponse::error(id, error.to_string()),
    }
}
