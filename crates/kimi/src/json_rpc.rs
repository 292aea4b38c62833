//! Lines of the wire: JSON-RPC 2.0 with string ids, one object a line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// A turn runs, or none does.
pub(crate) const INVALID_STATE: i64 = -32000;
/// No model is configured.
pub(crate) const MODEL_NOT_SET: i64 = -32001;
/// The model does not take such input.
pub(crate) const INPUT_NOT_SUPPORTED: i64 = -32002;
/// The provider failed.
pub(crate) const PROVIDER_ERROR: i64 = -32003;

/// A line of the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// A request, which is answered.
    Request { id: String, method: String, params: Map<String, Value> },
    /// A notification: never answered, and without effect.
    Notification,
    /// The answer to a request of ours. A JSON-RPC error is its text.
    Response { id: String, result: Result<Value, String> },
}

/// Why a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// A line that is not a message, with the id that the answer carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidLine {
    pub(crate) id: Option<String>,
    pub(crate) error: RpcError,
}

/// A line of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outgoing {
    /// Something happened.
    Event { kind: String, payload: Value },
    /// A request to the client.
    Request { id: String, kind: &'static str, payload: Value },
    /// The answer to a request; `None` for a line without a readable id.
    Reply { id: Option<String>, result: Result<Value, RpcError> },
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

#[derive(Deserialize)]
struct RawError {
    #[serde(default)]
    message: String,
}

/// Reads a line.
pub(crate) fn parse(line: &str) -> Result<Incoming, InvalidLine> {
    let invalid =
        |id: Option<String>, code, message: String| InvalidLine { id, error: RpcError { code, message } };
    let value: Value = serde_json::from_str(line)
        .map_err(|error| invalid(None, PARSE_ERROR, format!("The line is not JSON: {error}.")))?;
    let Value::Object(mut fields) = value else {
        return Err(invalid(None, INVALID_REQUEST, "The line is not a JSON-RPC object.".into()));
    };
    if fields.get("jsonrpc").is_some_and(|version| version != "2.0") {
        return Err(invalid(None, INVALID_REQUEST, "Only JSON-RPC 2.0 is supported.".into()));
    }
    let id = match fields.remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return Err(invalid(None, INVALID_REQUEST, "The id is not a string.".into())),
    };
    match (id, fields.remove("method")) {
        (id, Some(Value::String(method))) => {
            let params = match fields.remove("params") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(params)) => params,
                Some(_) if id.is_none() => Map::new(),
                Some(_) => return Err(invalid(id, INVALID_PARAMS, "The params are not an object.".into())),
            };
            Ok(id.map_or(Incoming::Notification, |id| Incoming::Request { id, method, params }))
        }
        (Some(id), None) => match (fields.remove("result"), fields.remove("error")) {
            (_, Some(error)) if !error.is_null() => {
                let text =
                    RawError::deserialize(&error).map_or_else(|_| error.to_string(), |error| error.message);
                Ok(Incoming::Response { id, result: Err(text) })
            }
            (Some(result), _) => Ok(Incoming::Response { id, result: Ok(result) }),
            (None, _) => Err(invalid(None, INVALID_REQUEST, "The line has no method and no result.".into())),
        },
        (_, Some(_)) => Err(invalid(None, INVALID_REQUEST, "The method is not a string.".into())),
        (None, None) => Err(invalid(None, INVALID_REQUEST, "The line has no method and no id.".into())),
    }
}

impl Serialize for Outgoing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = match self {
            Self::Event { kind, payload } => {
                json!({"jsonrpc": "2.0", "method": "event", "params": {"type": kind, "payload": payload}})
            }
            Self::Request { id, kind, payload } => json!({
                "jsonrpc": "2.0", "method": "request", "id": id, "params": {"type": kind, "payload": payload},
            }),
            Self::Reply { id, result: Ok(result) } => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Self::Reply { id, result: Err(error) } => json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.message, "data": null},
            }),
        };
        line.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_requests_notifications_or_responses() {
        let request = |method: &str, params: Value| Incoming::Request {
            id: "1".into(),
            method: method.into(),
            params: params.as_object().cloned().unwrap_or_default(),
        };
        let rows = [
            (
                "request",
                json!({"jsonrpc": "2.0", "id": "1", "method": "cancel"}),
                request("cancel", json!({})),
            ),
            (
                "without version",
                json!({"id": "1", "method": "cancel", "params": null}),
                request("cancel", json!({})),
            ),
            (
                "params",
                json!({"id": "1", "method": "steer", "params": {"a": 1}}),
                request("steer", json!({"a": 1})),
            ),
            ("notification", json!({"method": "teleport", "params": [1]}), Incoming::Notification),
            (
                "result",
                json!({"id": "1", "result": {"x": 1}}),
                Incoming::Response { id: "1".into(), result: Ok(json!({"x": 1})) },
            ),
            (
                "error",
                json!({"id": "1", "error": {"code": 1, "message": "no"}}),
                Incoming::Response { id: "1".into(), result: Err("no".into()) },
            ),
        ];
        for (name, line, expected) in rows {
            assert_eq!(parse(&line.to_string()), Ok(expected), "{name}");
        }
    }

    #[test]
    fn invalid_lines_are_named() {
        let rows = [
            ("no JSON", "this is not json", None, PARSE_ERROR),
            ("empty", "", None, PARSE_ERROR),
            ("batch", r#"[{"id":"1","method":"cancel"}]"#, None, INVALID_REQUEST),
            ("number as id", r#"{"id":1,"method":"cancel"}"#, None, INVALID_REQUEST),
            ("other version", r#"{"jsonrpc":"1.0","id":"1","method":"cancel"}"#, None, INVALID_REQUEST),
            ("params", r#"{"id":"1","method":"steer","params":7}"#, Some("1"), INVALID_PARAMS),
            ("nothing", r#"{"id":"1"}"#, None, INVALID_REQUEST),
        ];
        for (name, line, id, code) in rows {
            let error = parse(line).unwrap_err();
            assert_eq!((error.id.as_deref(), error.error.code), (id, code), "{name}");
        }
    }
}
