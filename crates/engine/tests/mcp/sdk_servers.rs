//! SDK servers: MCP servers in the host's process.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, Script};
use whimbrel_wire::control::Request;
use whimbrel_wire::options::{AgentDefinition, McpServerConfig, Options, PermissionPromptTool, SdkServer};

use crate::fixture::server_states;

type Log = Arc<Mutex<Vec<String>>>;

/// A host with a calculator server that offers another tool after the first call.
fn host_with_calculator(script: impl Into<Script>, declared: &[&str]) -> (HostBuilder, Log) {
    let sdk = |name: &&str| {
        let server = SdkServer { name: (*name).into(), ..SdkServer::default() };
        ((*name).to_owned(), McpServerConfig::Sdk(server))
    };
    let options = Options {
        mcp_servers: declared.iter().map(sdk).collect(),
        allowed_tools: vec!["mcp__calc".into()],
        ..Options::default()
    };
    let log = Log::default();
    let methods = Arc::clone(&log);
    let answer = move |request: &Request| match request {
        Request::McpMessage(mcp_message) => {
            let message: Value = mcp_message.message.decode().unwrap();
            let method = message["method"].as_str().unwrap_or("answer").to_owned();
            let has_called = methods.lock().unwrap().iter().any(|method| method == "tools/call");
            methods.lock().unwrap().push(method.clone());
            let result = match method.as_str() {
                "initialize" => {
                    json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "calc", "version": "1"}})
                }
                "tools/list" => {
                    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                    let names: &[&str] = if has_called { &["add", "multiply"] } else { &["add"] };
                    json!({"tools": names.iter().map(|name| tool(name)).collect::<Vec<_>>()})
                }
                "tools/call" => json!({"content": [{"type": "text", "text": "sum=5"}]}),
                _ => json!({}),
            };
            HostResponse::Success(
                json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}}),
            )
        }
        Request::CanUseTool(_) => HostResponse::Success(json!({"behavior": "allow"})),
        other => HostResponse::Error(format!("no answer to {}", other.subtype())),
    };
    (Host::with_script(script).options(options).on_request(answer), log)
}

#[tokio::test]
async fn server_declared_twice_connects_once() {
    let script = [Reply::tool("mcp__calc__add", json!({"a": 2})), Reply::text("Five.")];
    // The host declares it in the options and in `initialize`.
    let (host, log) = host_with_calculator(script, &["calc"]);
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("sum=5"));
    assert_eq!(server_states(host.init_frame().unwrap()), [("calc".into(), "connected".into())]);
    let log = log.lock().unwrap().clone();
    assert_eq!(log, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn server_config_can_restrict_single_tools() {
    let add = || Reply::tool("mcp__calc__add", json!({"a": 2}));
    for (policy, offered, request_count) in
        [("always_allow", true, 0), ("always_ask", true, 1), ("always_deny", false, 0)]
    {
        let (host, log) = host_with_calculator([add(), Reply::text("Five.")], &["calc"]);
        let tools = Some(vec![json!({"name": "add", "permission_policy": policy})]);
        let entry = SdkServer { name: "calc".into(), tools, ..SdkServer::default() };
        let host = host.configure(move |options| {
            options.mcp_servers.insert("calc".into(), McpServerConfig::Sdk(entry));
            options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        });
        let mut host = host.start().await.unwrap();
        host.run("Go.").await.unwrap();
        let requests = host.model_requests();
        assert_eq!(requests[0].tool_names().contains(&"mcp__calc__add"), offered, "{policy}");
        assert_eq!(requests[1].contains_text("sum=5"), offered, "{policy}: {}", requests[1].last_text());
        assert_eq!(host.permission_requests().len(), request_count, "{policy}");
        let call_count = log.lock().unwrap().iter().filter(|method| *method == "tools/call").count();
        assert_eq!(call_count, usize::from(offered), "{policy}");
    }
}

#[tokio::test]
async fn list_changed_notification_updates_the_tools() {
    let script = [Reply::tool("mcp__calc__add", json!({})), Reply::text("One."), Reply::text("Two.")];
    let (host, log) = host_with_calculator(script, &["calc"]);
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(!host.model_requests()[1].tool_names().contains(&"mcp__calc__multiply"));
    let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let notification = json!({"subtype": "mcp_message", "server_name": "calc", "message": message});
    host.send_raw_request(notification).await.unwrap();
    // The engine refreshes the list asynchronously; poll the status until it has both tools.
    loop {
        let status = host.send_request(whimbrel_wire::control::McpStatus::default()).await.unwrap();
        if status.mcp_servers[0].tools.as_ref().is_some_and(|tools| tools.len() == 2) {
            break;
        }
    }
    host.run("Again.").await.unwrap();
    assert!(host.model_requests()[2].tool_names().contains(&"mcp__calc__multiply"));
    assert_eq!(log.lock().unwrap().iter().filter(|method| *method == "initialize").count(), 1);
    let unknown_server = json!({"subtype": "mcp_message", "server_name": "unknown", "message": message});
    let rejected = host.send_raw_request(unknown_server).await.unwrap();
    assert!(serde_json::to_string(&rejected).unwrap().contains("Server not found: unknown"));
}

#[tokio::test]
async fn subagent_gets_the_servers_of_its_definition() {
    let definition = |servers: Value| AgentDefinition {
        description: "Calculates".into(),
        prompt: "YOU CALCULATE".into(),
        mcp_servers: servers.as_array().cloned(),
        ..AgentDefinition::default()
    };
    let both = ["mcp__calc__add", "mcp__other__add"];
    let rows = [
        ("some", json!(["calc"]), vec!["mcp__calc__add"]),
        ("none", json!([]), both.to_vec()),
        ("its own", json!([{"mine": {"command": "x"}}]), both.to_vec()),
    ];
    for (name, servers, expected) in rows {
        let agent_input = json!({"description": "add", "prompt": "Add.", "subagent_type": "abacus"});
        let script = [Reply::tool("Agent", agent_input), Reply::text("Added."), Reply::text("Done.")];
        let (host, _) = host_with_calculator(script, &["calc", "other"]);
        let definition = definition(servers);
        let host = host.configure(|options| drop(options.agents.insert("abacus".into(), definition)));
        let mut host = host.start().await.unwrap();
        host.run("Go.").await.unwrap();
        let mcp_tools = |index: usize| -> Vec<String> {
            let request = &host.model_requests()[index];
            request
                .tool_names()
                .iter()
                .filter(|tool| tool.starts_with("mcp__"))
                .map(|tool| (*tool).to_owned())
                .collect()
        };
        assert_eq!(
            (mcp_tools(0), mcp_tools(1)),
            (both.map(String::from).to_vec(), expected.iter().map(|tool| (*tool).to_owned()).collect()),
            "{name}"
        );
        let warned = host
            .received()
            .iter()
            .any(|received| received.json.to_string().contains("starts without its MCP server mine"));
        assert_eq!(warned, name == "its own", "{name}");
    }
}
