//! Tests of the server registry.

use std::time::Duration;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use whimbrel_wire::options::McpServerConfig;

use super::fixture::{TEST_TIMEOUT, TestServers, server_configs, test_deps};
use super::scripts::{LIST_ONE_TOOL, reply_text, server_entry, shell_entry};
use super::test_server;
use crate::{ServerPool, ServerRegistry, Toggle};
use whimbrel_process::test_support::{exits, read_pid};

fn parse_configs(entries: Value) -> BTreeMap<String, McpServerConfig> {
    serde_json::from_value(entries).unwrap()
}

/// Entry of a server that writes its process id to a file.
fn entry_writing_pid(file: &str) -> Value {
    let server = server_entry(LIST_ONE_TOOL, &reply_text("ok"));
    shell_entry(&format!("echo $$ > {file}; {}", server["args"][1].as_str().unwrap()))
}

#[tokio::test]
async fn status_is_reported_to_the_host() {
    let entries = json!({"play": test_server::entry(), "bad": {"command": ""}});
    let servers = TestServers::start(entries).await;
    let status = serde_json::to_value(servers.registry.status()).unwrap();
    assert_eq!(
        status[0],
        json!({"name": "bad", "status": "failed", "error": "`command` is empty. Name the program.", "scope": "dynamic", "source": "dynamic"})
    );
    let play = &status[1];
    assert_eq!((&play["status"], &play["scope"]), (&json!("connected"), &json!("dynamic")));
    assert_eq!(play["serverInfo"], json!({"name": "test-server", "version": "1.2.3"}));
    assert_eq!(
        play["tools"][0],
        json!({"name": "echo", "description": "The tool echo", "annotations": {"readOnly": true}})
    );
    assert_eq!((&play["config"]["type"], &play["config"]["env"]), (&json!("stdio"), &Value::Null));
    let init = serde_json::to_value(servers.registry.init_servers()).unwrap();
    assert_eq!(init[1], json!({"name": "play", "status": "connected", "source": "dynamic"}));
    for result in
        [servers.registry.reconnect("missing").await, servers.registry.toggle("missing", Toggle::Off).await]
    {
        assert_eq!(result, Err("Server not found: missing".to_owned()));
    }
    assert!(servers.registry.reconnect("bad").await.unwrap_err().contains("`command` is empty"));
    servers.registry.close().await;
    assert!(servers.registry.is_empty() && servers.tool_names().is_empty());
}

#[tokio::test]
async fn waiting_for_servers_bumps_the_version() {
    let servers = TestServers::start(json!({"s": entry_writing_pid("pid")})).await;
    servers.wait_status("s", "connected").await;
    // No task runs in between, so nothing else can change the version.
    let before = servers.registry.version();
    servers.registry.wait_ready(Duration::from_secs(60)).await;
    assert_ne!(servers.registry.version(), before);
    servers.registry.close().await;
}

#[tokio::test]
async fn a_server_can_be_disabled_and_enabled() {
    let servers = TestServers::start(json!({"s": entry_writing_pid("pid")})).await;
    let first = read_pid(&servers.dir().join("pid")).await;
    let mut changes = servers.registry.changes();
    changes.mark_unchanged();
    servers.registry.toggle("s", Toggle::Off).await.unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!(servers.status_and_error("s").0, "disabled");
    assert_eq!(servers.tool_names(), Vec::<String>::new());
    assert!(exits(first).await);
    servers.registry.toggle("s", Toggle::Off).await.unwrap();
    std::fs::remove_file(servers.dir().join("pid")).unwrap();
    servers.registry.toggle("s", Toggle::On).await.unwrap();
    servers.wait_status("s", "connected").await;
    assert_ne!(read_pid(&servers.dir().join("pid")).await, first);
    assert_eq!(servers.call_text("mcp__s__go", json!({})).await, "ok");
    servers.registry.close().await;
}

#[tokio::test]
async fn a_server_can_be_reconnected() {
    let servers =
        TestServers::start(json!({"s": entry_writing_pid("pid"), "broken": shell_entry("exit 3")})).await;
    let first = read_pid(&servers.dir().join("pid")).await;
    std::fs::remove_file(servers.dir().join("pid")).unwrap();
    servers.registry.reconnect("s").await.unwrap();
    assert!(exits(first).await);
    assert_ne!(read_pid(&servers.dir().join("pid")).await, first);
    assert_eq!(servers.call_text("mcp__s__go", json!({})).await, "ok");
    let failed = servers.registry.reconnect("broken").await.unwrap_err();
    assert_eq!(failed, "MCP server broken: its program exited with code 3.");
    servers.registry.close().await;
}

#[tokio::test]
async fn the_host_replaces_the_servers_it_set() {
    let servers =
        TestServers::start(json!({"settings": server_entry(LIST_ONE_TOOL, &reply_text("settings"))})).await;
    let (one, two) =
        (server_entry(LIST_ONE_TOOL, &reply_text("one")), server_entry(LIST_ONE_TOOL, &reply_text("two")));
    let set = async |entries: Value| {
        let reply = servers.registry.set_servers(&parse_configs(entries)).await;
        serde_json::to_value(reply).unwrap()
    };
    let reply = set(json!({"a": one, "broken": shell_entry("exit 3"), "bad": {"command": ""}})).await;
    assert_eq!(
        reply,
        json!({"added": ["a", "broken"], "removed": [],
            "errors": {"bad": "`command` is empty. Name the program.", "broken": "its program exited with code 3."}})
    );
    assert_eq!(servers.tool_names(), ["mcp__a__go", "mcp__settings__go"]);
    // Unchanged servers stay; servers that are not named are removed, unless the host did not set them.
    let reply = set(json!({"a": one, "b": two})).await;
    assert_eq!(reply, json!({"added": ["b"], "removed": ["bad", "broken"], "errors": {}}));
    assert_eq!(servers.call_text("mcp__b__go", json!({})).await, "two");
    let reply = set(json!({"a": two})).await;
    assert_eq!(reply, json!({"added": ["a"], "removed": ["b"], "errors": {}}));
    assert_eq!(servers.call_text("mcp__a__go", json!({})).await, "two");
    let reply = set(json!({"settings": two})).await;
    assert_eq!(reply, json!({"added": ["settings"], "removed": ["a"], "errors": {}}));
    let reply = set(json!({"": one, " ": one, "settings": two})).await;
    let nameless = "it has no name. Add one.";
    assert_eq!(reply, json!({"added": [], "removed": [], "errors": {"": nameless, " ": nameless}}));
    assert_eq!(servers.tool_names(), ["mcp__settings__go"]);
    assert_eq!(set(json!({})).await, json!({"added": [], "removed": ["settings"], "errors": {}}));
    assert!(servers.registry.is_empty());
}

#[tokio::test]
async fn a_duplicate_name_starts_no_second_server() {
    let servers = TestServers::start(json!({"s": entry_writing_pid("pid")})).await;
    let pid = read_pid(&servers.dir().join("pid")).await;
    servers.registry.add(server_configs(
        &json!({"s": shell_entry("exit 3"), "t": server_entry(LIST_ONE_TOOL, &reply_text("t"))}),
    ));
    servers.registry.wait_ready(TEST_TIMEOUT).await;
    assert_eq!(servers.tool_names(), ["mcp__s__go", "mcp__t__go"]);
    assert_eq!(servers.call_text("mcp__s__go", json!({})).await, "ok");
    assert_eq!(read_pid(&servers.dir().join("pid")).await, pid);
    servers.registry.close().await;
}

#[tokio::test]
async fn similar_server_names_get_distinct_tool_names() {
    let entry = |text: &str| server_entry(LIST_ONE_TOOL, &reply_text(text));
    let servers = TestServers::start(
        json!({"my srv": entry("space"), "my.srv": entry("dot"), "my_srv": entry("line")}),
    )
    .await;
    for (tool, expected) in
        [("mcp__my_srv__go", "line"), ("mcp__my_srv_2__go", "space"), ("mcp__my_srv_3__go", "dot")]
    {
        assert_eq!(servers.call_text(tool, json!({})).await, expected, "{tool}");
    }
    assert_eq!(servers.tool("mcp__my_srv_3__go").owner.prefix, "my_srv_3");
    servers.registry.close().await;
}

#[tokio::test]
async fn sessions_can_share_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let pool = ServerPool::new();
    let start = || {
        let entries = server_configs(&json!({"s": entry_writing_pid("pid")}));
        ServerRegistry::start_shared(entries, test_deps(dir.path()), pool.clone())
    };
    let (one, two) = (start(), start());
    one.wait_ready(TEST_TIMEOUT).await;
    two.wait_ready(TEST_TIMEOUT).await;
    let pid = read_pid(&dir.path().join("pid")).await;
    // A second server would write it again.
    std::fs::remove_file(dir.path().join("pid")).unwrap();
    one.close().await;
    assert_eq!(two.tools().len(), 1);
    assert_eq!(serde_json::to_value(two.status()).unwrap()[0]["status"], "connected");
    assert!(!dir.path().join("pid").exists());
    two.close().await;
    assert!(exits(pid).await);
    let three = start();
    three.wait_ready(TEST_TIMEOUT).await;
    assert_ne!(read_pid(&dir.path().join("pid")).await, pid);
    three.close().await;
}

#[tokio::test]
async fn a_host_can_call_a_tool_directly() {
    let servers = TestServers::start_test_server().await;
    let fields = serde_json::Map::from_iter([("word".to_owned(), json!("x"))]);
    let answer = servers.registry.call_tool("mcp__play__echo", fields, &servers.cancel).await.unwrap();
    assert_eq!(answer["content"], json!([{"type": "text", "text": "echo:x"}]));
    let unknown =
        servers.registry.call_tool("mcp__play__nothing", serde_json::Map::new(), &servers.cancel).await;
    assert_eq!(unknown, Err("Tool not found: mcp__play__nothing".into()));
    servers.registry.close().await;
}
