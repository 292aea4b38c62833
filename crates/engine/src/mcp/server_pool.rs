//! Servers that sessions of one process share: equal entries in equal surroundings mean one server. It lives as long as
//! a session uses it.
//!
//! Nothing is shared unless a session asks for it, because a server may remember what one session told it. A shared
//! server can put no question to a person, for it cannot say to whom.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::json;
use whimbrel_wire::options::McpServerConfig;

use super::server::ServerHandle;
use super::deps::ServerDeps;

/// Servers in use, by what they are. Cheap to clone.
#[derive(Clone, Default)]
pub struct ServerPool(Arc<Mutex<HashMap<String, Weak<ServerHandle>>>>);

impl ServerPool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// The server of this entry: one that runs already, or a new one.
    pub(super) fn get_or_start(
        &self,
        name: &str,
        config: &McpServerConfig,
        surroundings: &ServerDeps,
    ) -> Arc<ServerHandle> {
        let alone = ServerDeps { elicit: None, notify: None, ..surroundings.clone() };
        let ServerDeps { cwd, environment, roots, limits, .. } = &alone;
        let key = json!([name, config, cwd, environment, roots, format!("{limits:?}")]).to_string();
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = servers.get(&key).and_then(Weak::upgrade) {
            return server;
        }
        let server = Arc::new(ServerHandle::start(name, config.clone(), alone));
        servers.insert(key, Arc::downgrade(&server));
        server
    }
}
