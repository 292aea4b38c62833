//! Servers shared by the sessions of one process: equal entries with equal dependencies use one server, which runs
//! while a session uses it.
//!
//! Sharing is opt-in, because a server may keep state from one session. A shared server has no elicitation: it could
//! not say which session to ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::json;
use whimbrel_wire::options::McpServerConfig;

use super::deps::ServerDeps;
use super::server_lifecycle::ServerHandle;

/// Shared servers by a key made of entry and dependencies. Cheap to clone.
#[derive(Clone, Default)]
pub struct ServerPool(Arc<Mutex<HashMap<String, Weak<ServerHandle>>>>);

impl ServerPool {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the running server of this entry, or starts one.
    pub(super) fn get_or_start(
        &self,
        name: &str,
        config: &McpServerConfig,
        deps: &ServerDeps,
    ) -> Arc<ServerHandle> {
        let shared_deps = ServerDeps { elicit: None, notify: None, ..deps.clone() };
        let ServerDeps { cwd, environment, roots, limits, .. } = &shared_deps;
        let key = json!([name, config, cwd, environment, roots, format!("{limits:?}")]).to_string();
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = servers.get(&key).and_then(Weak::upgrade) {
            return server;
        }
        let server = Arc::new(ServerHandle::start(name, config.clone(), shared_deps));
        servers.insert(key, Arc::downgrade(&server));
        server
    }
}
