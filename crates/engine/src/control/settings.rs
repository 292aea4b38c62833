//! Requests about settings: show them, lay others over them, keep one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use whimbrel_wire::control::{ControlResponse, UpdateSettings};

use crate::serve::Session;
use crate::settings::Source;
use crate::setup::model::effort_named;

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
    if changes.contains_key("hooks") {
        return Err("Hooks cannot be changed while a session runs. Give them at its start.".into());
    }
    let named: Vec<String> = changes.keys().cloned().collect();
    let rights = session.setup.rights.clone();
    let before = rights.settings().clone();
    let changed: BTreeSet<Source> =
        rights.settings().apply_flag(changes).map_err(|error| error.to_string())?;
    if let Err(error) = rights.take_settings(&Vec::from_iter(changed)) {
        *rights.settings() = before;
        return Err(error);
    }
    let effective = rights.settings().effective().clone();
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
pub(super) fn keep(session: &Session, id: String, update: &UpdateSettings) -> ControlResponse {
    match session.setup.rights.settings().update_values(update) {
        Ok(_) => ControlResponse::ok(id),
        Err(error) => ControlResponse::error(id, error.to_string()),
    }
}
