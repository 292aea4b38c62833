//! Connects to servers, to see whether they are there. Whatever was started ends before this is over.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use whimbrel_engine::mcp::{ServerRegistry, ServerConfigs, ServerDeps};
use whimbrel_engine::setup::Setup;
use whimbrel_wire::control::McpServerStatus;

/// How long a list waits for servers.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the test of a server may take; the server's own limit is shorter unless somebody has raised it.
const TEST_TIMEOUT: Duration = Duration::from_mins(10);

/// How long servers may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// How all of these are, after a moment.
pub(super) fn server_statuses(servers: ServerConfigs, setup: &Setup) -> Result<Vec<McpServerStatus>, String> {
    connect_and_query(servers, setup, LIST_TIMEOUT)
}

/// How the one of these is, after a try.
pub(super) fn server_status(servers: ServerConfigs, setup: &Setup) -> Result<McpServerStatus, String> {
    let found = connect_and_query(servers, setup, TEST_TIMEOUT)?;
    found.into_iter().next().ok_or_else(|| "The server has no name.".into())
}

fn connect_and_query(servers: ServerConfigs, setup: &Setup, patience: Duration) -> Result<Vec<McpServerStatus>, String> {
    if servers.entries.is_empty() {
        return Ok(Vec::new());
    }
    // Nothing that a server leaves behind shall outlive us.
    whimbrel_engine::tasks::track_daemons();
    let (runtime, surroundings) = (build_runtime()?, server_deps(setup));
    let found = runtime.block_on(async {
        let roster = ServerRegistry::start(servers, surroundings);
        roster.wait_ready(patience).await;
        let found = roster.status();
        // What does not end in time is ended when it is dropped.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, roster.close()).await;
        found
    });
    runtime.shutdown_background();
    Ok(found)
}

/// Somewhere to wait for servers.
pub(super) fn build_runtime() -> Result<Runtime, String> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("The machine did not let us begin: {error}."))
}

/// What servers are given here.
pub(super) fn server_deps(setup: &Setup) -> ServerDeps {
    ServerDeps::new(setup.workspace.root().to_path_buf(), setup.workspace.environment())
}
