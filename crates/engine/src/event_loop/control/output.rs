//! Changes what a session sends: partial messages, and the format of its answers.

use whimbrel_wire::control::{ControlResponse, SetOutputFormat, SetPartialMessages};
use whimbrel_wire::options::OutputFormat;

use crate::event_loop::Session;

pub(super) fn set_partial_messages(
    session: &mut Session,
    id: String,
    set: &SetPartialMessages,
) -> ControlResponse {
    session.settings.runtime.send_modify(|runtime_settings| runtime_settings.partial_messages = set.enabled);
    ControlResponse::ok(id)
}

/// Takes effect when the next turn starts; see `Session::refresh_output_schema`.
pub(super) fn set_output_format(session: &mut Session, id: &str, set: &SetOutputFormat) -> ControlResponse {
    let changed = match &set.format {
        Some(OutputFormat::JsonSchema { schema }) => session.setup.require_output_schema(schema),
        None => {
            session.setup.remove_output_schema();
            Ok(())
        }
    };
    changed.map_or_else(|error| ControlResponse::error(id, error), |()| ControlResponse::ok(id))
}
