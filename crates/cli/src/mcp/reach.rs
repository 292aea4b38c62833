//! Connects to servers, to see whether they are there. Whatever was started ends before this is over.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use whimbrel_engine::mcp::{Roster, Servers, Surroundings};
use whimbrel_engine::setup::Setup;
use whimbrel_wire::control::McpServerStatus;

/// How long a list waits for servers.
const GLANCE: Duration = Duration::from_secs(15);

/// How long the test of a server may take; the server's own limit is shorter unless somebody has raised it.
const LOOK: Duration = Duration::from_mins(10);

/// How long servers may take to end.
const FAREWELL: Duration = Duration::from_secs(6);

/// How all of these are, after a moment.
pub(super) fn all(servers: Servers, setup: &Setup) -> Result<Vec<McpServerStatus>, String> {
    look(servers, setup, GLANCE)
}

/// How the one of these is, after a try.
pub(super) fn one(servers: Servers, setup: &Setup) -> Result<McpServerStatus, String> {
    let found = look(servers, setup, LOOK)?;
    found.into_iter().next().ok_or_else(|| "The server has no name.".into())
}

fn look(servers: Servers, setup: &Setup, patience: Duration) -> Result<Vec<McpServerStatus>, String> {
    if servers.entries.is_empty() {
        return Ok(Vec::new());
    }
    // Nothing that a server leaves behind shall outlive us.
    whimbrel_engine::tasks::follow_daemons();
    let (runtime, surroundings) = (runtime()?, surroundings(setup));
    let found = runtime.block_on(async {
        let roster = Roster::start(servers, surroundings);
        roster.ready(patience).await;
        let found = roster.status();
        // What does not end in time is ended when it is dropped.
        let _ = tokio::time::timeout(FAREWELL, roster.close()).await;
        found
    });
    runtime.shutdown_background();
    Ok(found)
}

/// Somewhere to wait for servers.
pub(super) fn runtime() -> Result<Runtime, String> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("The machine did not let us begin: {error}."))
}

/// What servers are given here.
pub(super) fn surroundings(setup: &Setup) -> Surroundings {
    Surroundings::new(setup.workspace.root().to_path_buf(), setup.workspace.environment())
}
