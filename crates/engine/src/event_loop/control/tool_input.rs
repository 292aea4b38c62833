//! Compares an input with the schema of a tool, for a host that lets its user edit a call before it is allowed.

use serde_json::Value;
use whimbrel_tools::api::{AnyTool, ToolError};
use whimbrel_wire::control::{CheckToolInput, CheckToolInputReply, ControlResponse, InvalidField};

use crate::event_loop::Session;
use crate::structured_output;

/// Responds with the invalid fields. Nothing is run.
pub(crate) fn check_input(session: &Session, id: String, request: CheckToolInput) -> ControlResponse {
    let CheckToolInput { tool_name, input } = request;
    let Some(entry) = session.setup.tools.tool_set.find(&tool_name) else {
        return ControlResponse::error(
            id,
            format!("No such tool: {tool_name}. Use the name of the request."),
        );
    };
    match find_invalid_fields(entry.tool(), &Value::Object(input)) {
        Ok(errors) => ControlResponse::success(id, &CheckToolInputReply { errors }),
        Err(reason) => {
            ControlResponse::error(id, format!("The input of {tool_name} cannot be checked: {reason}"))
        }
    }
}

fn find_invalid_fields(tool: &dyn AnyTool, input: &Value) -> Result<Vec<InvalidField>, String> {
    let fields = match tool.invalid_fields(input) {
        Some(fields) => fields,
        None => {
            let schema = tool.spec().input_schema.decode().map_err(|error| error.to_string())?;
            structured_output::invalid_fields(&schema, input)?
        }
    };
    if !fields.is_empty() {
        return Ok(fields);
    }
    // The tool may require more than its schema says.
    let rejection = tool.effects(input).err();
    Ok(rejection.iter().map(to_invalid_field).collect())
}

fn to_invalid_field(error: &ToolError) -> InvalidField {
    let reason = error.reason();
    let message = reason.strip_prefix("InputValidationError: ").unwrap_or(reason).to_owned();
    InvalidField { field: String::new(), message }
}
