//! One entry of the server registry, whatever the state of its server.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::config::ServerEntry;
use super::in_process::InProcessServer;
use super::server_lifecycle::ServerHandle;

/// Entry of the server registry.
#[derive(Clone)]
pub(super) struct ServerSlot {
    pub(super) entry: ServerEntry,
    /// True for servers set by the host: they are removed once the host no longer names them.
    pub(super) host_managed: bool,
    pub(super) state: SlotState,
}

/// State of a registry entry.
#[derive(Clone)]
pub(super) enum SlotState {
    /// Running, or being connected to.
    Enabled(
        Arc<ServerHandle>,
        #[expect(dead_code, reason = "keeps the change notification alive")] Arc<AbortOnDropHandle<()>>,
    ),
    /// Implemented in this process.
    InProcess(InProcessServer),
    Disabled,
    /// The entry is invalid; the text says why.
    Invalid(String),
}

impl SlotState {
    /// Ends the server unless other sessions share it.
    pub(super) async fn shut_down(self) {
        if let Self::Enabled(server, _) = self
            && let Some(server) = Arc::into_inner(server)
        {
            server.close().await;
        }
    }
}
