//! The place of one server in a session, whether the server is there or not.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::config::ServerEntry;
use super::local::LocalServer;
use super::server::ServerHandle;

/// The place of one server.
#[derive(Clone)]
pub(super) struct ServerSlot {
    pub(super) entry: ServerEntry,
    /// Whether the host manages it: then it goes when the host no longer names it.
    pub(super) host_managed: bool,
    pub(super) state: SlotState,
}

/// Whether a server is there.
#[derive(Clone)]
pub(super) enum SlotState {
    /// It is.
    Enabled(
        Arc<ServerHandle>,
        #[expect(dead_code, reason = "held so that changes are told")] Arc<AbortOnDropHandle<()>>,
    ),
    /// It is code in this process.
    InProcess(LocalServer),
    /// It is switched off.
    Disabled,
    /// Its entry is bad, and why.
    Invalid(String),
}

impl SlotState {
    /// Ends the server, unless others use it.
    pub(super) async fn shut_down(self) {
        if let Self::Enabled(server, _) = self
            && let Some(server) = Arc::into_inner(server)
        {
            server.close().await;
        }
    }
}
