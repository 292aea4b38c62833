//! JSON-RPC side of a tool server, for an engine process: one answer per message.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Source;
use whimbrel_wire::{Block, RawJson};

use super::context::{ContextParts, ProgressFn, ToolContext};
use super::output::ToolOutput;
use super::server::ServerParts;
use super::tool::Tool;
use crate::extensions::Extensions;

#[derive(Deserialize)]
struct RpcRequest {
    #[serde(default)]
    id: Option<Value>,
    method: String,
    #[serde(default)]
    params: Map<String, Value>,
}

/// Sends a JSON-RPC message of a server to the engine.
pub(crate) type NotifyFn = Arc<dyn Fn(RawJson) + Send + Sync>;

/// Answers a message. Notifications are acknowledged with an empty result.
pub(super) async fn handle_message(
    server: &ServerParts,
    message: &RawJson,
    extensions: Extensions,
    notify: NotifyFn,
) -> Result<RawJson, String> {
    let message: RpcRequest = message.decode().map_err(|error| format!("not a JSON-RPC message: {error}"))?;
    let Some(id) = message.id else { return to_raw_json(&json!({"jsonrpc": "2.0", "id": 0, "result": {}})) };
    let context = CallContext { extensions, notify };
    to_raw_json(&match call_method(server, &message.method, message.params, context).await {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, text)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}),
    })
}

async fn call_method(
    server: &ServerParts,
    method: &str,
    mut params: Map<String, Value>,
    context: CallContext,
) -> Result<Value, (i32, String)> {
    match method {
        "initialize" => {
            let version = params.remove("protocolVersion").unwrap_or_else(|| "2025-06-18".into());
            let mut result = json!({
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": server.info,
            });
            if let Some(text) = &server.instructions {
                result["instructions"] = text.as_str().into();
            }
            Ok(result)
        }
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": server.tools.iter().map(tool_to_json).collect::<Vec<_>>()})),
        "tools/call" => {
            let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
            let found = server.tools.iter().find(|tool| tool.name == name);
            let tool = found.ok_or_else(|| (-32602, format!("Tool {name} not found")))?;
            let input = params.remove("arguments").unwrap_or_else(|| Map::new().into());
            let cancellation = CancellationToken::new();
            let context = context.for_call(&params, cancellation.clone());
            // Work that the function has started elsewhere learns that the call is over.
            let cancel_on_drop = cancellation.drop_guard();
            let ToolOutput { content, failed } = (tool.function)(input, context).await;
            cancel_on_drop.disarm();
            let content: Vec<Value> = content.into_iter().map(block_to_json).collect();
            Ok(json!({"content": content, "isError": failed}))
        }
        other => Err((-32601, format!("Method not found: {other}"))),
    }
}

/// What a call gets from the host.
struct CallContext {
    extensions: Extensions,
    notify: NotifyFn,
}

impl CallContext {
    /// Context of a call with the metadata of its request.
    fn for_call(self, params: &Map<String, Value>, cancellation: CancellationToken) -> ToolContext {
        let meta = params.get("_meta").and_then(Value::as_object);
        let text = |key: &str| meta.and_then(|meta| meta.get(key)?.as_str()).map(str::to_owned);
        let token = meta.and_then(|meta| meta.get("progressToken")).cloned();
        ToolContext::new(ContextParts {
            session_id: text("whimbrel/sessionId").unwrap_or_default(),
            tool_use_id: text("claudecode/toolUseId"),
            agent_id: text("whimbrel/agentId"),
            cwd: text("whimbrel/cwd").unwrap_or_default().into(),
            cancellation,
            progress: token.map(|token| progress_fn(token, self.notify)),
            extensions: self.extensions,
        })
    }
}

/// Reports progress by notifications with the token of the request.
fn progress_fn(token: Value, notify: NotifyFn) -> ProgressFn {
    Arc::new(move |done, total, message| {
        let mut params = json!({"progressToken": token, "progress": done});
        for (name, value) in [("total", total.map(Value::from)), ("message", message.map(Value::from))] {
            if let Some(value) = value {
                params[name] = value;
            }
        }
        let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        if let Ok(message) = to_raw_json(&message) {
            notify(message);
        }
    })
}

fn tool_to_json(tool: &Tool) -> Value {
    let hints = &tool.annotations;
    let hints = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("openWorldHint", hints.open_world),
    ];
    let hints = hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), Value::Bool(hint?))));
    let mut listed = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": hints.collect::<Map<_, _>>(),
    });
    if let Some(always) = tool.always_load {
        listed["_meta"] = json!({"anthropic/alwaysLoad": always});
    }
    listed
}

/// Converts a block to MCP content.
fn block_to_json(block: Block) -> Value {
    match block {
        Block::Text { text, .. } => json!({"type": "text", "text": text}),
        Block::Image { source: Source::Base64 { media_type, data } } => {
            json!({"type": "image", "data": data, "mimeType": media_type})
        }
        other => json!({"type": "text", "text": json!(other).to_string()}),
    }
}

fn to_raw_json(value: &Value) -> Result<RawJson, String> {
    RawJson::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::tools::{ToolServer, ToolServers, tool};

    #[derive(Deserialize, JsonSchema)]
    struct Halve {
        /// Number to halve.
        number: u32,
    }

    async fn send_request(method: &str, params: Value) -> Value {
        let halve = tool("halve", "Halves", |input: Halve| async move {
            match input.number % 2 {
                0 => Ok((input.number / 2).to_string()),
                _ => Err("It is odd."),
            }
        });
        let mut servers = ToolServers::default();
        servers.add(
            ToolServer::new("maths")
                .version("2")
                .instructions("Be exact.")
                .tool(halve.read_only().always_loaded()),
        );
        let message =
            RawJson::from_value(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
                .unwrap();
        servers
            .handle_message("maths", &message, Extensions::default(), Arc::new(drop))
            .await
            .unwrap()
            .decode()
            .unwrap()
    }

    #[tokio::test]
    async fn server_answers_initialize_list_and_call() {
        let hello = send_request("initialize", json!({"protocolVersion": "2025-11-25"})).await;
        assert_eq!(
            hello["result"],
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "instructions": "Be exact.",
                   "serverInfo": {"name": "maths", "version": "2"}})
        );
        let list = send_request("tools/list", json!({})).await;
        let listed = &list["result"]["tools"][0];
        assert_eq!(listed["annotations"], json!({"readOnlyHint": true}));
        assert_eq!(listed["_meta"], json!({"anthropic/alwaysLoad": true}));
        assert_eq!(listed["inputSchema"]["required"], json!(["number"]));
        assert_eq!(listed["inputSchema"]["properties"]["number"]["description"], "Number to halve.");
        let rows = [
            (json!({"number": 4}), "2", false),
            (json!({"number": 3}), "It is odd.", true),
            (json!({"number": "x"}), "InputValidationError", true),
        ];
        for (input, text, failed) in rows {
            let result =
                &send_request("tools/call", json!({"name": "halve", "arguments": input})).await["result"];
            assert!(result["content"][0]["text"].as_str().unwrap().starts_with(text), "{result}");
            assert_eq!(result["isError"], failed, "{input}");
        }
        assert_eq!(send_request("tools/call", json!({"name": "double"})).await["error"]["code"], -32602);
        assert_eq!(send_request("resources/list", json!({})).await["error"]["code"], -32601);
    }

    #[tokio::test]
    async fn notifications_are_acknowledged_and_unknown_servers_rejected() {
        let mut servers = ToolServers::default();
        servers.add(ToolServer::new("maths"));
        let note =
            RawJson::from_value(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        let send = async |server: &str| {
            servers.handle_message(server, &note, Extensions::default(), Arc::new(drop)).await
        };
        let answer: Value = send("maths").await.unwrap().decode().unwrap();
        assert_eq!(answer["result"], json!({}));
        let error = send("music").await.unwrap_err();
        assert_eq!(error, "SDK MCP server not found: music");
    }
}
