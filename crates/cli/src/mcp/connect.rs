//! Connects to servers to query their status. Every process that was started ends before the call returns.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use whimbrel_engine::setup::Setup;
use whimbrel_mcp::{ServerConfigs, ServerDeps, ServerRegistry};
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
    let statuses = connect_and_query(servers, setup, TEST_TIMEOUT)?;
    statuses.into_iter().next().ok_or_else(|| "The server has no entry.".into())
}

fn connect_and_query(
    servers: ServerConfigs,
    setup: &Setup,
    limit: Duration,
) -> Result<Vec<McpServerStatus>, String> {
    if servers.entries.is_empty() {
        return Ok(Vec::new());
    }
    // No process that a server leaves behind may outlive this program.
    whimbrel_process::track_daemons();
    let (runtime, deps) = (build_runtime()?, server_deps(setup));
    let statuses = runtime.block_on(async {
        let registry = ServerRegistry::start(servers, deps);
        registry.wait_ready(limit).await;
        let statuses = registry.status();
        // Servers that do not exit in time are killed on drop.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, registry.close()).await;
        statuses
    });
    runtime.shutdown_background();
    Ok(statuses)
}

/// Creates a runtime to wait for servers.
pub(super) fn build_runtime() -> Result<Runtime, String> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("Cannot start the runtime: {error}."))
}

/// Dependencies of servers outside a session.
pub(super) fn server_deps(setup: &Setup) -> ServerDeps {
    let workspace = &setup.session.workspace;
    ServerDeps {
        hidden_variables: workspace.hidden_variables().clone(),
        ..ServerDeps::new(workspace.root().to_path_buf(), workspace.environment())
    }
}
