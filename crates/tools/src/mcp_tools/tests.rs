//! Tests of server tools as the model sees them. The server is a small shell script.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::build_tools;
use crate::api::{AnyTool, Effects, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::workspace::Workspace;
use whimbrel_mcp::{ServerConfigs, ServerDeps, ServerOrigin, ServerRegistry};

/// A server with two tools, `look` (read-only) and `go`, and two resources, a text and bytes.
const SCRIPT: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
        *'"tools/list"'*) reply '{"tools":[{"name":"look","description":"Looks","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"go","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*'"look"'*) reply '{"content":[{"type":"text","text":"seen"}]}' ;;
        *'"tools/call"'*) reply '{"isError":true,"content":[{"type":"text","text":"cannot go"}]}' ;;
        *'"resources/list"'*) reply '{"resources":[{"uri":"sh://text","name":"text"},{"uri":"sh://bytes","name":"bytes"}]}' ;;
        *'"resources/read"'*'sh://text'*) reply '{"contents":[{"uri":"sh://text","mimeType":"text/plain","text":"hello"}]}' ;;
        *'"resources/read"'*) reply '{"contents":[{"uri":"sh://bytes","blob":"AQID"}]}' ;;
    esac
done
"#;

struct TestServer {
    registry: ServerRegistry,
    dir: TempDir,
}

impl TestServer {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let entries = json!({"mcpServers": {"sh": {"command": "sh", "args": ["-c", SCRIPT]}}});
        let mut configs = ServerConfigs::default();
        configs.add_json(ServerOrigin::Dynamic, "test", &entries.to_string(), &|_| None);
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let registry = ServerRegistry::start(configs, ServerDeps::new(dir.path().to_path_buf(), env));
        registry.wait_ready(Duration::from_secs(60)).await;
        Self { registry, dir }
    }

    fn tool(&self, name: &str) -> Arc<dyn AnyTool> {
        build_tools(&self.registry).into_iter().find(|tool| tool.name() == name).unwrap()
    }

    async fn run(&self, name: &str, input: Value) -> ToolResult {
        let root = self.dir.path().to_path_buf();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join("spill"), BTreeMap::new()));
        self.tool(name).run(input, ToolContext::for_test(workspace)).await
    }
}

#[tokio::test]
async fn server_tools_become_tools_of_the_model() {
    let server = TestServer::start().await;
    let names: Vec<String> =
        build_tools(&server.registry).iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["mcp__sh__look", "mcp__sh__go", "ListMcpResourcesTool", "ReadMcpResourceTool"]);
    let look = server.tool("mcp__sh__look");
    let spec = look.spec();
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("mcp__sh__look", "Looks"));
    assert_eq!(look.effects(&json!({})), Ok(Effects::Reads(Vec::new())));
    assert_eq!(server.tool("mcp__sh__go").effects(&json!({})), Ok(Effects::RunsProgram));
    assert_eq!((look.server(), look.needs_user()), (Some("sh"), false));
    server.registry.close().await;
}

#[tokio::test]
async fn results_go_to_model_and_host() {
    let server = TestServer::start().await;
    // Null input is accepted, other types are not.
    for input in [json!({}), Value::Null] {
        let ToolOutput { content, meta } = server.run("mcp__sh__look", input).await.unwrap();
        assert_eq!(meta, json!([{"type": "text", "text": "seen"}]));
        assert_eq!(serde_json::to_value(content).unwrap(), meta);
    }
    let rejected = server.tool("mcp__sh__look").effects(&json!([1]));
    assert!(matches!(rejected, Err(ToolError::Rejected(_))));
    let failed = server.run("mcp__sh__go", json!({})).await;
    assert_eq!(failed, Err(ToolError::Failed("cannot go".into())));
    server.registry.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let server = TestServer::start().await;
    let listed = server.run("ListMcpResourcesTool", json!({"server": "sh"})).await.unwrap();
    assert_eq!(listed.meta[0], json!({"uri": "sh://text", "name": "text", "server": "sh"}));
    let unknown = server.run("ListMcpResourcesTool", json!({"server": "x"})).await.unwrap_err();
    assert_eq!(unknown.reason(), "Server not found: x. Available: sh.");
    let text = server.run("ReadMcpResourceTool", json!({"server": "sh", "uri": "sh://text"})).await.unwrap();
    let contents = json!({"contents": [{"uri": "sh://text", "mimeType": "text/plain", "text": "hello"}]});
    assert_eq!(text.meta, contents);
    let bytes =
        server.run("ReadMcpResourceTool", json!({"server": "sh", "uri": "sh://bytes"})).await.unwrap();
    let saved = bytes.meta["contents"][0]["blobSavedTo"].as_str().unwrap();
    assert_eq!(std::fs::read(saved).unwrap(), [1, 2, 3]);
    server.registry.close().await;
}
