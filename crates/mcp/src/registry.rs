//! Registry of the session's MCP servers: starts them concurrently, enables, disables and replaces them, and shuts them
//! down. Dropping the last handle ends every server.

mod set_servers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::McpMessageReply;
use whimbrel_wire::options::McpServerConfig;

use super::config::{ServerConfigs, ServerEntry};
use super::deps::ServerDeps;
use super::server_lifecycle::{ServerHandle, ServerPhase};
use super::server_policy::ServerPolicy;
use super::server_pool::ServerPool;
use super::slot::{ServerSlot, SlotState};

/// Registry of the session's servers. Cheap to clone.
#[derive(Clone)]
pub struct ServerRegistry(Arc<RegistryInner>);

/// State shared by all handles.
pub(super) struct RegistryInner {
    pub(super) deps: ServerDeps,
    pool: Option<ServerPool>,
    policy: ServerPolicy,
    slots: Mutex<BTreeMap<String, ServerSlot>>,
    /// Counts visible changes: server states, tools and prompts.
    version: watch::Sender<u64>,
}

/// Enables or disables a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    On,
    Off,
}

impl Toggle {
    /// Converts the wire's `enabled` flag.
    pub fn from_enabled(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

/// Reference that does not keep the servers alive.
#[derive(Clone)]
pub struct WeakServerRegistry(Weak<RegistryInner>);

impl WeakServerRegistry {
    pub fn upgrade(&self) -> Option<ServerRegistry> {
        self.0.upgrade().map(ServerRegistry)
    }
}

impl ServerRegistry {
    /// Starts all servers concurrently, without waiting for them.
    pub fn start(servers: ServerConfigs, deps: ServerDeps) -> Self {
        Self::start_with_pool(servers, deps, None)
    }

    /// Like [`start`](Self::start), with servers that other sessions of the process share.
    pub fn start_shared(servers: ServerConfigs, deps: ServerDeps, pool: ServerPool) -> Self {
        Self::start_with_pool(servers, deps, Some(pool))
    }

    fn start_with_pool(servers: ServerConfigs, deps: ServerDeps, pool: Option<ServerPool>) -> Self {
        let policy = servers.policy.clone();
        let (slots, version) = (Mutex::default(), watch::Sender::default());
        let inner = RegistryInner { deps, pool, policy, slots, version };
        let registry = Self(Arc::new(inner));
        registry.add(servers);
        registry
    }

    /// Starts further servers without waiting for them. An existing name keeps its server, so that a host may declare
    /// the same server twice.
    pub fn add(&self, servers: ServerConfigs) {
        for (name, entry) in servers.entries {
            if !self.slots().contains_key(&name) {
                self.insert(name, entry);
            }
        }
    }

    /// Waits until every server has finished its first connection attempt, at most for `limit`.
    pub async fn wait_ready(&self, limit: Duration) {
        self.wait_settled(self.enabled_servers(), limit).await;
    }

    /// Like [`wait_ready`](Self::wait_ready), except for servers in the host's process: they wait for the host, which
    /// may be waiting for us.
    pub async fn wait_ready_external(&self, limit: Duration) {
        let is_hosted = |server: &Arc<ServerHandle>| matches!(server.config, McpServerConfig::Sdk(_));
        let external = self.enabled_servers().into_iter().filter(|server| !is_hosted(server));
        self.wait_settled(external.collect(), limit).await;
    }

    /// Waits until these servers have finished their first connection attempt, at most for `limit`.
    async fn wait_settled(&self, servers: Vec<Arc<ServerHandle>>, limit: Duration) {
        let settled = join_all(servers.iter().map(|server| server.wait_settled()));
        let _ = timeout(limit, settled).await;
        // The tasks that forward version changes may run later; the caller must see the new tools now.
        self.bump_version();
    }

    /// Receives a new version for every change of servers, tools or prompts.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Number of changes so far.
    pub fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    pub fn is_empty(&self) -> bool {
        self.slots().is_empty()
    }

    /// Reconnects a server and waits for the result. Enables a disabled server.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = match self.slot(name)?.state {
            SlotState::Enabled(server, _) => server,
            SlotState::InProcess(_) => return Ok(()),
            SlotState::Disabled => {
                self.toggle(name, Toggle::On).await?;
                return self.wait_connected(name).await;
            }
            SlotState::Invalid(error) => return Err(format!("MCP server {name}: {error}")),
        };
        let connected = server.reconnect().await;
        self.bump_version();
        connected.map_err(|error| format!("MCP server {name}: {error}"))
    }

    /// Waits for a server's first connection attempt and returns its result.
    async fn wait_connected(&self, name: &str) -> Result<(), String> {
        let SlotState::Enabled(server, _) = self.slot(name)?.state else { return Ok(()) };
        let phase = server.wait_settled().await.phase;
        self.bump_version();
        match phase {
            ServerPhase::Failed(error) => Err(format!("MCP server {name}: {error}")),
            ServerPhase::Starting | ServerPhase::Connected(_) | ServerPhase::Reconnecting(_) => Ok(()),
        }
    }

    /// Enables or disables a server. Disabling ends it; enabling does not wait for the connection.
    pub async fn toggle(&self, name: &str, toggle: Toggle) -> Result<(), String> {
        let slot = self.slot(name)?;
        match (slot.state, toggle) {
            (SlotState::Invalid(error), Toggle::On) => return Err(format!("MCP server {name}: {error}")),
            (SlotState::Enabled(..) | SlotState::InProcess(_), Toggle::On)
            | (SlotState::Disabled, Toggle::Off) => {}
            (SlotState::Disabled, Toggle::On) => {
                self.slots().remove(name);
                self.insert(name.to_owned(), slot.entry);
            }
            (
                state @ (SlotState::Enabled(..) | SlotState::InProcess(_) | SlotState::Invalid(_)),
                Toggle::Off,
            ) => {
                if let Some(slot) = self.slots().get_mut(name) {
                    slot.state = SlotState::Disabled;
                }
                self.bump_version();
                state.shut_down().await;
            }
        }
        Ok(())
    }

    /// Handles a message that a server in the host's process sends on its own. If it is a request, our response goes to
    /// the host as a separate message.
    pub fn handle_host_message(&self, name: &str, message: &RawJson) -> Result<McpMessageReply, String> {
        let SlotState::Enabled(server, _) = self.slot(name)?.state else { return Err(not_found(name)) };
        if !server.deliver(message) {
            return Err(format!(
                "MCP server {name}: the message is not valid, or the server is not connected."
            ));
        }
        let acknowledgment = serde_json::json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        let mcp_response = RawJson::from_value(&acknowledgment).map_err(|error| error.to_string())?;
        Ok(McpMessageReply { mcp_response })
    }

    /// Ends all servers and waits for their exit. Shared servers keep running for other sessions.
    pub async fn close(&self) {
        let slots = std::mem::take(&mut *self.slots());
        self.bump_version();
        join_all(slots.into_values().map(|slot| slot.state.shut_down())).await;
    }

    async fn remove(&self, name: &str) {
        let slot = self.slots().remove(name);
        if let Some(slot) = slot {
            self.bump_version();
            slot.state.shut_down().await;
        }
    }

    /// Returns the config if the settings' allow and deny lists permit the server.
    fn check_policy(
        &self,
        name: &str,
        config: Result<McpServerConfig, String>,
    ) -> Result<McpServerConfig, String> {
        config.and_then(|config| self.0.policy.denial_reason(name, &config).map_or(Ok(config), Err))
    }

    fn insert(&self, name: String, entry: ServerEntry) {
        let entry = ServerEntry { config: self.check_policy(&name, entry.config), ..entry };
        let host_managed = matches!(entry.config, Ok(McpServerConfig::Sdk(_)));
        let state = match &entry.config {
            Err(error) => SlotState::Invalid(error.clone()),
            Ok(McpServerConfig::Sdk(_)) if let Some(server) = self.0.deps.in_process_servers.get(&name) => {
                SlotState::InProcess(server.clone())
            }
            Ok(config) => {
                let server = self.start_server(&name, config);
                let watcher = tokio::spawn(forward_changes(server.changes(), self.0.version.clone()));
                SlotState::Enabled(server, Arc::new(AbortOnDropHandle::new(watcher)))
            }
        };
        self.slots().insert(name, ServerSlot { entry, host_managed, state });
        self.bump_version();
    }

    fn start_server(&self, name: &str, config: &McpServerConfig) -> Arc<ServerHandle> {
        match (&self.0.pool, config) {
            (Some(pool), McpServerConfig::Stdio(_) | McpServerConfig::Sse(_) | McpServerConfig::Http(_)) => {
                pool.get_or_start(name, config, &self.0.deps)
            }
            (_, config) => Arc::new(ServerHandle::start(name, config.clone(), self.0.deps.clone())),
        }
    }

    pub fn downgrade(&self) -> WeakServerRegistry {
        WeakServerRegistry(Arc::downgrade(&self.0))
    }

    pub(super) fn inner(&self) -> &Arc<RegistryInner> {
        &self.0
    }

    /// All slots, sorted by name.
    pub(super) fn all_slots(&self) -> Vec<(String, ServerSlot)> {
        self.slots().iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    pub(super) fn enabled_servers(&self) -> Vec<Arc<ServerHandle>> {
        let enabled_server = |slot: &ServerSlot| match &slot.state {
            SlotState::Enabled(server, _) => Some(Arc::clone(server)),
            SlotState::InProcess(_) | SlotState::Disabled | SlotState::Invalid(_) => None,
        };
        self.slots().values().filter_map(enabled_server).collect()
    }

    fn slot(&self, name: &str) -> Result<ServerSlot, String> {
        self.slots().get(name).cloned().ok_or_else(|| not_found(name))
    }

    fn bump_version(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    /// Slots are inserted and removed whole, so a poisoned lock cannot hold a half-written one.
    fn slots(&self) -> MutexGuard<'_, BTreeMap<String, ServerSlot>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(name: &str) -> String {
    format!("Server not found: {name}")
}

/// Adds one server's changes to the registry's version.
async fn forward_changes<T>(mut changes: watch::Receiver<T>, version: watch::Sender<u64>) {
    while changes.changed().await.is_ok() {
        version.send_modify(|version| *version += 1);
    }
}
