//! Parses bytes as messages. Other text is ignored; an unreadable response becomes an error of its request, so that the
//! request does not hang.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json_depth;

#[derive(Debug)]
pub(super) enum ParsedInput {
    /// Messages in order; several for a batch.
    Messages(Vec<ServerJsonRpcMessage>),
    /// Not a message.
    Ignored,
}

/// Fields that identify the request of a response.
#[derive(Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    method: Option<serde::de::IgnoredAny>,
}

pub(super) fn parse_messages(text: &[u8]) -> ParsedInput {
    let text = text.trim_ascii();
    match text.first() {
        Some(b'{') => {
            parse_message(text).map_or(ParsedInput::Ignored, |message| ParsedInput::Messages(vec![message]))
        }
        Some(b'[') => match serde_json::from_slice::<Vec<&RawValue>>(text) {
            Ok(batch) => ParsedInput::Messages(
                batch.iter().filter_map(|message| parse_message(message.get().as_bytes())).collect(),
            ),
            Err(_) => ParsedInput::Ignored,
        },
        _ => ParsedInput::Ignored,
    }
}

fn parse_message(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    match serde_json::from_slice(text) {
        Ok(message) => Some(message),
        Err(error) => {
            if let Some(message) =
                json_depth::truncate_depth(text).and_then(|text| serde_json::from_slice(&text).ok())
            {
                return Some(message);
            }
            let envelope: Envelope = serde_json::from_slice(text).ok()?;
            match (envelope.id, envelope.method) {
                (Some(id), None) => Some(unreadable_response(id, &error.to_string())),
                _ => None,
            }
        }
    }
}

/// Error response in place of one that could not be parsed.
pub(super) fn unreadable_response(id: RequestId, reason: &str) -> ServerJsonRpcMessage {
    error_response(id, format!("the response is not valid: {reason}"))
}

/// Error response made by us.
pub(super) fn error_response(id: RequestId, reason: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, reason, None), Some(id))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcMessage, ServerResult};

    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let ParsedInput::Messages(messages) = parse_messages(text.as_bytes()) else {
            return vec!["ignored".into()];
        };
        let kind = |message: &ServerJsonRpcMessage| match message {
            JsonRpcMessage::Request(request) => format!("request {}", request.id),
            JsonRpcMessage::Response(response) => match &response.result {
                ServerResult::CallToolResult(_) => format!("call {}", response.id),
                ServerResult::CustomResult(_) => format!("custom {}", response.id),
                _ => format!("response {}", response.id),
            },
            JsonRpcMessage::Notification(_) => "notification".into(),
            JsonRpcMessage::Error(error) => format!("error {:?}: {}", error.id, error.error.message),
        };
        messages.iter().map(kind).collect()
    }

    #[test]
    fn messages_are_distinguished_from_other_output() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for (name, text, expected) in [
            ("nothing", "", "ignored"),
            ("text", "Server listening on stdio", "ignored"),
            ("other JSON", "17", "ignored"),
            ("an object of another kind", r#"{"level":"info","msg":"up"}"#, "ignored"),
            ("a truncated message", r#"{"jsonrpc":"2.0","id":1,"#, "ignored"),
            ("a response", r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, "call 1"),
            (
                "with spaces around",
                "  {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\r",
                "call 1",
            ),
            (
                "a response with an unknown block",
                r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"other"}]}}"#,
                "custom 1",
            ),
            (
                "a notification",
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                "notification",
            ),
            (
                "an unknown notification",
                r#"{"jsonrpc":"2.0","method":"notifications/new","params":{"a":1}}"#,
                "notification",
            ),
            ("a request", r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#, "request x"),
            ("too deep for a result", &deep, "custom 3"),
        ] {
            let kinds = kinds(text);
            assert!(kinds[0].starts_with(expected) && kinds.len() == 1, "{name}: {kinds:?}");
        }
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{"content":[]}}, 3, {"jsonrpc":"2.0","id":"p","method":"ping"}]"#;
        assert_eq!(kinds(batch), ["call 1", "request p"]);
    }
}
