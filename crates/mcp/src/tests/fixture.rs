//! Starts servers in a temporary directory and calls their tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::Block;
use whimbrel_wire::control::McpServerStatus;

use super::test_server;
use crate::{
    McpLimits, ReconnectBackoff, ServerConfigs, ServerDeps, ServerOrigin, ServerRegistry, ServerTool,
    ToolRequest,
};

/// Longer than any test step takes.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Registry with servers in a temporary directory.
pub(super) struct TestServers {
    pub(super) registry: ServerRegistry,
    pub(super) cancel: CancellationToken,
    dir: Arc<TempDir>,
}

/// Limits with a short backoff.
pub(super) fn test_limits() -> McpLimits {
    let backoff = ReconnectBackoff { initial_delay: Duration::from_millis(10), max_attempts: 3 };
    McpLimits { backoff, ..McpLimits::default() }
}

pub(super) fn test_deps(dir: &Path) -> ServerDeps {
    let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    ServerDeps { limits: test_limits(), ..ServerDeps::new(dir.to_path_buf(), environment) }
}

/// Entries as from a flag.
pub(super) fn server_configs(entries: &Value) -> ServerConfigs {
    let mut servers = ServerConfigs::default();
    servers.add_json(ServerOrigin::Dynamic, "test", &json!({"mcpServers": entries}).to_string(), &|_| None);
    servers
}

impl TestServers {
    /// Starts servers and waits for them.
    pub(super) async fn start(entries: Value) -> Self {
        Self::start_with(entries, |deps| deps).await
    }

    /// Like [`start`](Self::start), with changed dependencies.
    pub(super) async fn start_with(entries: Value, change: impl FnOnce(ServerDeps) -> ServerDeps) -> Self {
        let servers = Self::start_without_waiting(&entries, change);
        servers.registry.wait_ready(TEST_TIMEOUT).await;
        servers
    }

    /// Starts servers without waiting for them.
    pub(super) fn start_without_waiting(
        entries: &Value,
        change: impl FnOnce(ServerDeps) -> ServerDeps,
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let registry = ServerRegistry::start(server_configs(entries), change(test_deps(dir.path())));
        Self { registry, cancel: CancellationToken::new(), dir }
    }

    /// Starts the test server as `play`.
    pub(super) async fn start_test_server() -> Self {
        Self::start(json!({"play": test_server::entry()})).await
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn status(&self, name: &str) -> McpServerStatus {
        self.registry.status().into_iter().find(|server| server.name == name).unwrap()
    }

    /// Status word and error of a server.
    pub(super) fn status_and_error(&self, name: &str) -> (String, String) {
        let status = self.status(name);
        let word = serde_json::to_value(status.status).unwrap().as_str().unwrap().to_owned();
        (word, status.error.unwrap_or_default())
    }

    /// Waits for a status word.
    pub(super) async fn wait_status(&self, name: &str, word: &str) {
        self.wait_until(|servers| servers.status_and_error(name).0 == word).await;
    }

    /// Waits for a condition, checking it after every change of the registry.
    pub(super) async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.registry.changes();
        let waiting = async {
            while !condition(self) {
                changes.changed().await.unwrap();
            }
        };
        let states: Vec<_> = self.registry.status();
        tokio::time::timeout(TEST_TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{states:?}"));
    }

    /// Waits until a server has written a file.
    pub(super) async fn wait_file(&self, name: &str) {
        let path = self.dir().join(name);
        let waiting = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, waiting).await.unwrap();
    }

    pub(super) fn tool_names(&self) -> Vec<String> {
        self.registry.tools().into_iter().map(|tool| tool.name).collect()
    }

    pub(super) fn tool(&self, name: &str) -> ServerTool {
        let tools = self.registry.tools();
        tools
            .into_iter()
            .find(|tool| tool.name == name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.tool_names()))
    }

    /// A call with this input.
    pub(super) fn request(&self, input: Value) -> ToolRequest<'_> {
        tool_request(input, self.dir(), &self.cancel)
    }

    pub(super) async fn call(&self, name: &str, input: Value) -> Result<Vec<Block>, String> {
        self.tool(name).call(self.request(input)).await.map_err(|failed| failed.text())
    }

    /// Text of a call's result.
    pub(super) async fn call_text(&self, name: &str, input: Value) -> String {
        self.call(name, input)
            .await
            .map_or_else(|error| format!("error: {error}"), |blocks| joined_text(&blocks))
    }
}

pub(super) fn tool_request<'a>(input: Value, dir: &Path, cancel: &'a CancellationToken) -> ToolRequest<'a> {
    let Value::Object(arguments) = input else { panic!("{input}") };
    ToolRequest {
        arguments,
        tool_use_id: "toolu_1",
        agent_id: None,
        cwd: dir.to_path_buf(),
        output_dir: dir.join("spill"),
        cancel,
    }
}

/// The texts of blocks, one per line.
pub(super) fn joined_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block {
        Block::Text { text, .. } => text.as_str(),
        other => panic!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}
