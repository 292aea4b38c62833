//! Connects to servers to query their status. Every process that was started ends before the call returns.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use whimbrel_engine::mcp::{ServerConfigs, ServerDeps, ServerRegistry};
use whimbrel_engine::setup::Setup;
use whimbrel_wire::control::McpServerStatus;

/// Time that a list waits for servers.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// Time for the test of one server; the server's own timeout is shorter unless it was raised.
const TEST_TIMEOUT: Duration = Duration::from_mins(10);

/// Time that servers have to exit.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// Returns the status of all servers after a short wait.
pub(super) fn server_statuses(servers: ServerConfigs, setup: &Setup) -> Result<Vec<McpServerStatus>, String> {
    connect_and_query(servers, setup, LIST_TIMEOUT)
}

/// Returns the status of a single server after an attempt to connect.
pub(super) fn server_status(servers: ServerConfigs, setup: &Setup) -> Result<McpServerStatus, String> {
    let found = connect_and_query(servers, setup, TEST_TIMEOUT)?;
    found.into_iter().next().ok_or_else(|| "The server has no name.".into())
}

fn connect_and_query(
    servers: ServerConfigs,
    setup: &Setup,
    patience: Duration,
) -> Result<Vec<McpServerStatus>, String> {
    if servers.entries.is_empty() {
        return Ok(Vec::new());
    }
    // No process that a server leaves behind may outlive this program.
    whimbrel_process::track_daemons();
    let (runtime, surroundings) = (build_runtime()?, server_deps(setup));
    let found = runtime.block_on(async {
        let roster = ServerRegistry::start(servers, surroundings);
        roster.wait_ready(patience).await;
        let found = roster.status();
        // Servers that do not exit in time are killed on drop.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, roster.close()).await;
        found
    });
    runtime.shutdown_background();
    Ok(found)
}

/// Creates a runtime to wait for servers.
pub(super) fn build_runtime() -> Result<Runtime, String> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("The machine did not let us begin: {error}."))
}

/// Dependencies of servers outside a session.
pub(super) fn server_deps(setup: &Setup) -> ServerDeps {
    ServerDeps::new(setup.workspace.root().to_path_buf(), setup.workspace.environment())
}
