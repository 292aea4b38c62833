//! Permission prompt tool (`--permission-prompt-tool`): an MCP tool that answers permission requests in place of the
//! host. It gets tool name and input, and answers with a permission result as JSON text.

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_transport::host_requests::HostRequestError;
use whimbrel_wire::control::{CanUseTool, ControlError};
use whimbrel_wire::permission::PermissionResult;

pub(super) async fn request_answer(
    tool_cache: &ToolCache,
    tool: &str,
    host_request: CanUseTool,
    cancel: &CancellationToken,
) -> Result<PermissionResult, HostRequestError> {
    let fields = [
        ("tool_name".to_owned(), host_request.tool_name.into()),
        ("input".to_owned(), Value::Object(host_request.input)),
        ("tool_use_id".to_owned(), host_request.tool_use_id.into()),
    ];
    let answer = tool_cache.call_tool(tool, Map::from_iter(fields), cancel).await.map_err(request_error)?;
    parse_result(tool, &answer).map_err(request_error)
}

/// Parses the tool's result.
fn parse_result(tool: &str, answer: &Value) -> Result<PermissionResult, String> {
    let parts = answer.get("content").and_then(Value::as_array).into_iter().flatten();
    let text: String = parts.filter_map(|part| part.get("text")?.as_str()).collect();
    if answer.get("isError") == Some(&Value::Bool(true)) {
        return Err(format!("{tool} failed: {text}"));
    }
    let format_error = |error: serde_json::Error| {
        format!(
            "{tool} must answer with {{\"behavior\": \"allow\"}} or {{\"behavior\": \"deny\", \"message\": ..}}: \
             {error}"
        )
    };
    match answer.get("structuredContent") {
        Some(value) if text.is_empty() => serde_json::from_value(value.clone()).map_err(format_error),
        _ => serde_json::from_str(&text).map_err(format_error),
    }
}

fn request_error(error: String) -> HostRequestError {
    HostRequestError::Failed(ControlError::Rejected { error, code: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answer_is_a_permission_result_as_json() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let rows = [
            ("allowed", text(r#"{"behavior": "allow"}"#), Ok(PermissionResult::allow())),
            ("denied", text(r#"{"behavior": "deny", "message": "no"}"#), Ok(PermissionResult::deny("no"))),
            (
                "structured content",
                json!({"content": [], "structuredContent": {"behavior": "allow"}}),
                Ok(PermissionResult::allow()),
            ),
            ("not JSON", text("yes"), Err("must answer with")),
            ("not a permission result", text("{}"), Err("must answer with")),
            ("empty result", json!({}), Err("must answer with")),
            (
                "an error",
                json!({"isError": true, "content": [{"type": "text", "text": "broken"}]}),
                Err("failed: broken"),
            ),
        ];
        for (name, answer, expected) in rows {
            match (parse_result("t", &answer), expected) {
                (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{name}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{name}: {error}"),
                (answer, _) => panic!("{name}: {answer:?}"),
            }
        }
    }
}
