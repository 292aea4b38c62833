//! All servers of a session: started side by side, switched on and off, replaced, ended. When the last handle is
//! dropped, every server is ended.

mod set_servers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::RawJson;
use whimbrel_wire::control::McpMessageReply;
use whimbrel_wire::options::McpServerConfig;

use super::server_policy::ServerPolicy;
use super::config::{ServerEntry, ServerConfigs};
use super::server_pool::ServerPool;
use super::server::{ServerPhase, ServerHandle};
use super::slot::{SlotState, ServerSlot};
use super::deps::ServerDeps;

/// The servers of a session. Cheap to clone.
#[derive(Clone)]
pub struct ServerRegistry(Arc<RegistryInner>);

/// What the handles share.
pub(super) struct RegistryInner {
    pub(super) deps: ServerDeps,
    pool: Option<ServerPool>,
    policy: ServerPolicy,
    slots: Mutex<BTreeMap<String, ServerSlot>>,
    /// Counts the changes of whatever can be seen from outside.
    version: watch::Sender<u64>,
}

/// Whether a server is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Yes.
    On,
    /// No.
    Off,
}

impl Toggle {
    /// As a host writes it.
    pub fn from_enabled(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

impl From<Arc<RegistryInner>> for ServerRegistry {
    fn from(inner: Arc<RegistryInner>) -> Self {
        Self(inner)
    }
}

impl ServerRegistry {
    /// Starts all servers, side by side, and waits for none.
    pub fn start(servers: ServerConfigs, deps: ServerDeps) -> Self {
        Self::start_with_pool(servers, deps, None)
    }

    /// The same, with servers that other sessions of the process use too.
    pub fn start_shared(servers: ServerConfigs, deps: ServerDeps, pool: ServerPool) -> Self {
        Self::start_with_pool(servers, deps, Some(pool))
    }

    fn start_with_pool(servers: ServerConfigs, deps: ServerDeps, pool: Option<ServerPool>) -> Self {
        let admission = servers.policy.clone();
        let (slots, version) = (Mutex::default(), watch::Sender::default());
        let inner = RegistryInner { deps, pool, policy: admission, slots, version };
        let roster = Self(Arc::new(inner));
        roster.add(servers);
        roster
    }

    /// Starts further servers, and waits for none. A name that is there already keeps its server, so that a host may
    /// declare one in two ways.
    pub fn add(&self, servers: ServerConfigs) {
        for (name, entry) in servers.entries {
            if !self.slots().contains_key(&name) {
                self.insert(name, entry);
            }
        }
    }

    /// Waits until every server has been tried to connect to, but not longer than `limit`.
    pub async fn wait_ready(&self, limit: Duration) {
        self.wait_settled(self.enabled_servers(), limit).await;
    }

    /// The same, without servers in the host's own process: they wait for the host, which may wait for us.
    pub async fn wait_ready_external(&self, limit: Duration) {
        let hosted = |server: &Arc<ServerHandle>| matches!(server.config, McpServerConfig::Sdk(_));
        let outside = self.enabled_servers().into_iter().filter(|server| !hosted(server));
        self.wait_settled(outside.collect(), limit).await;
    }

    /// Waits until servers have been tried to connect to, but not longer than `limit`.
    async fn wait_settled(&self, servers: Vec<Arc<ServerHandle>>, limit: Duration) {
        let settled = join_all(servers.iter().map(|server| server.wait_settled()));
        let _ = timeout(limit, settled).await;
        // Whoever counts the changes of a server may come after us. What we waited for must be seen now.
        self.bump_version();
    }

    /// Counts the changes of servers, tools and prompts.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// How many changes there have been.
    pub fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Whether there are no servers at all.
    pub fn is_empty(&self) -> bool {
        self.slots().is_empty()
    }

    /// Connects to a server anew, and waits for it. A server that was switched off is switched on.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = match self.slot(name)?.state {
            SlotState::Enabled(server, _) => server,
            SlotState::InProcess(_) => return Ok(()),
            SlotState::Disabled => {
                self.toggle(name, Toggle::On).await?;
                return self.wait_connected(name).await;
            }
            SlotState::Invalid(problem) => return Err(format!("MCP server {name}: {problem}")),
        };
        let connected = server.reconnect().await;
        self.bump_version();
        connected.map_err(|fault| format!("MCP server {name}: {fault}"))
    }

    /// Waits until a server has been tried to connect to, and says how that went.
    async fn wait_connected(&self, name: &str) -> Result<(), String> {
        let SlotState::Enabled(server, _) = self.slot(name)?.state else { return Ok(()) };
        let phase = server.wait_settled().await.phase;
        self.bump_version();
        match phase {
            ServerPhase::Failed(fault) => Err(format!("MCP server {name}: {fault}")),
            ServerPhase::Starting | ServerPhase::Connected(_) | ServerPhase::Reconnecting(_) => Ok(()),
        }
    }

    /// Switches a server on or off. One that is switched off is ended; one that is switched on is not waited for.
    pub async fn toggle(&self, name: &str, switch: Toggle) -> Result<(), String> {
        let slot = self.slot(name)?;
        match (slot.state, switch) {
            (SlotState::Invalid(problem), Toggle::On) => return Err(format!("MCP server {name}: {problem}")),
            (SlotState::Enabled(..) | SlotState::InProcess(_), Toggle::On) | (SlotState::Disabled, Toggle::Off) => {}
            (SlotState::Disabled, Toggle::On) => {
                self.slots().remove(name);
                self.insert(name.to_owned(), slot.entry);
            }
            (life @ (SlotState::Enabled(..) | SlotState::InProcess(_) | SlotState::Invalid(_)), Toggle::Off) => {
                if let Some(slot) = self.slots().get_mut(name) {
                    slot.state = SlotState::Disabled;
                }
                self.bump_version();
                life.shut_down().await;
            }
        }
        Ok(())
    }

    /// Takes what a server in the host's process says by itself. Should that be a question, our answer goes to the host
    /// as a message of its own.
    pub fn handle_host_message(&self, name: &str, message: &RawJson) -> Result<McpMessageReply, String> {
        let SlotState::Enabled(server, _) = self.slot(name)?.state else { return Err(not_found(name)) };
        if !server.deliver(message) {
            return Err(format!(
                "MCP server {name}: this message cannot be read, or the server is not connected."
            ));
        }
        let done = serde_json::json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        let mcp_response = RawJson::from_value(&done).map_err(|error| error.to_string())?;
        Ok(McpMessageReply { mcp_response })
    }

    /// Ends all servers, and waits until they are gone. Servers that others use live on.
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

    /// The entry, if the settings let the server in.
    fn check_policy(
        &self,
        name: &str,
        config: Result<McpServerConfig, String>,
    ) -> Result<McpServerConfig, String> {
        config.and_then(|config| self.0.policy.denial_reason(name, &config).map_or(Ok(config), Err))
    }

    fn insert(&self, name: String, entry: ServerEntry) {
        let entry = ServerEntry { config: self.check_policy(&name, entry.config), ..entry };
        let managed = matches!(entry.config, Ok(McpServerConfig::Sdk(_)));
        let life = match &entry.config {
            Err(problem) => SlotState::Invalid(problem.clone()),
            Ok(McpServerConfig::Sdk(_)) if let Some(server) = self.0.deps.local_servers.get(&name) => {
                SlotState::InProcess(server.clone())
            }
            Ok(config) => {
                let server = self.start_server(&name, config);
                let watcher = tokio::spawn(forward_changes(server.changes(), self.0.version.clone()));
                SlotState::Enabled(server, Arc::new(AbortOnDropHandle::new(watcher)))
            }
        };
        self.slots().insert(name, ServerSlot { entry, host_managed: managed, state: life });
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

    pub(super) fn inner(&self) -> &Arc<RegistryInner> {
        &self.0
    }

    /// All places, in the order of their names.
    pub(super) fn all_slots(&self) -> Vec<(String, ServerSlot)> {
        self.slots().iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    /// All servers that are switched on.
    pub(super) fn enabled_servers(&self) -> Vec<Arc<ServerHandle>> {
        let on = |slot: &ServerSlot| match &slot.state {
            SlotState::Enabled(server, _) => Some(Arc::clone(server)),
            SlotState::InProcess(_) | SlotState::Disabled | SlotState::Invalid(_) => None,
        };
        self.slots().values().filter_map(on).collect()
    }

    fn slot(&self, name: &str) -> Result<ServerSlot, String> {
        self.slots().get(name).cloned().ok_or_else(|| not_found(name))
    }

    fn bump_version(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    /// A slot is put in or taken out whole; a panic elsewhere cannot leave one half changed.
    fn slots(&self) -> MutexGuard<'_, BTreeMap<String, ServerSlot>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(name: &str) -> String {
    format!("Server not found: {name}")
}

/// Counts the changes of one server.
async fn forward_changes<T>(mut changes: watch::Receiver<T>, version: watch::Sender<u64>) {
    while changes.changed().await.is_ok() {
        version.send_modify(|version| *version += 1);
    }
}
