//! The place of one server in a session, whether the server is there or not.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::config::Entry;
use super::local::LocalServer;
use super::server::Server;

/// The place of one server.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) entry: Entry,
    /// Whether the host manages it: then it goes when the host no longer names it.
    pub(super) managed: bool,
    pub(super) life: Life,
}

/// Whether a server is there.
#[derive(Clone)]
pub(super) enum Life {
    /// It is.
    On(
        Arc<Server>,
        #[expect(dead_code, reason = "held so that changes are told")] Arc<AbortOnDropHandle<()>>,
    ),
    /// It is code in this process.
    Here(LocalServer),
    /// It is switched off.
    Off,
    /// Its entry is bad, and why.
    Bad(String),
}

impl Life {
    /// Ends the server, unless others use it.
    pub(super) async fn end(self) {
        if let Self::On(server, _) = self
            && let Some(server) = Arc::into_inner(server)
        {
            server.close().await;
        }
    }
}
