//! All servers of a session: started side by side, switched on and off, replaced, ended. When the last handle is
//! dropped, every server is ended.

mod replace;

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

use super::admission::Admission;
use super::config::{Entry, Servers};
use super::pool::Pool;
use super::server::{Phase, Server};
use super::slot::{Life, Slot};
use super::surroundings::Surroundings;

/// The servers of a session. Cheap to clone.
#[derive(Clone)]
pub struct Roster(Arc<Inner>);

/// What the handles share.
pub(super) struct Inner {
    pub(super) surroundings: Surroundings,
    pool: Option<Pool>,
    admission: Admission,
    slots: Mutex<BTreeMap<String, Slot>>,
    /// Counts the changes of whatever can be seen from outside.
    version: watch::Sender<u64>,
}

/// Whether a server is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

impl Switch {
    /// As a host writes it.
    pub fn of(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

impl From<Arc<Inner>> for Roster {
    fn from(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

impl Roster {
    /// Starts all servers, side by side, and waits for none.
    pub fn start(servers: Servers, surroundings: Surroundings) -> Self {
        Self::start_in(servers, surroundings, None)
    }

    /// The same, with servers that other sessions of the process use too.
    pub fn start_shared(servers: Servers, surroundings: Surroundings, pool: Pool) -> Self {
        Self::start_in(servers, surroundings, Some(pool))
    }

    fn start_in(servers: Servers, surroundings: Surroundings, pool: Option<Pool>) -> Self {
        let admission = servers.admission.clone();
        let (slots, version) = (Mutex::default(), watch::Sender::default());
        let inner = Inner { surroundings, pool, admission, slots, version };
        let roster = Self(Arc::new(inner));
        roster.add(servers);
        roster
    }

    /// Starts further servers, and waits for none. A name that is there already keeps its server, so that a host may
    /// declare one in two ways.
    pub fn add(&self, servers: Servers) {
        for (name, entry) in servers.entries {
            if !self.slots().contains_key(&name) {
                self.put(name, entry);
            }
        }
    }

    /// Waits until every server has been tried to connect to, but not longer than `limit`.
    pub async fn ready(&self, limit: Duration) {
        self.settle(self.servers(), limit).await;
    }

    /// The same, without servers in the host's own process: they wait for the host, which may wait for us.
    pub async fn ready_outside(&self, limit: Duration) {
        let hosted = |server: &Arc<Server>| matches!(server.config, McpServerConfig::Sdk(_));
        let outside = self.servers().into_iter().filter(|server| !hosted(server));
        self.settle(outside.collect(), limit).await;
    }

    /// Waits until servers have been tried to connect to, but not longer than `limit`.
    async fn settle(&self, servers: Vec<Arc<Server>>, limit: Duration) {
        let settled = join_all(servers.iter().map(|server| server.settled()));
        let _ = timeout(limit, settled).await;
        // Whoever counts the changes of a server may come after us. What we waited for must be seen now.
        self.changed();
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
        let server = match self.slot(name)?.life {
            Life::On(server, _) => server,
            Life::Here(_) => return Ok(()),
            Life::Off => {
                self.toggle(name, Switch::On).await?;
                return self.arrived(name).await;
            }
            Life::Bad(problem) => return Err(format!("MCP server {name}: {problem}")),
        };
        let connected = server.reconnect().await;
        self.changed();
        connected.map_err(|fault| format!("MCP server {name}: {fault}"))
    }

    /// Waits until a server has been tried to connect to, and says how that went.
    async fn arrived(&self, name: &str) -> Result<(), String> {
        let Life::On(server, _) = self.slot(name)?.life else { return Ok(()) };
        let phase = server.settled().await.phase;
        self.changed();
        match phase {
            Phase::Failed(fault) => Err(format!("MCP server {name}: {fault}")),
            Phase::Starting | Phase::Connected(_) | Phase::Lost(_) => Ok(()),
        }
    }

    /// Switches a server on or off. One that is switched off is ended; one that is switched on is not waited for.
    pub async fn toggle(&self, name: &str, switch: Switch) -> Result<(), String> {
        let slot = self.slot(name)?;
        match (slot.life, switch) {
            (Life::Bad(problem), Switch::On) => return Err(format!("MCP server {name}: {problem}")),
            (Life::On(..) | Life::Here(_), Switch::On) | (Life::Off, Switch::Off) => {}
            (Life::Off, Switch::On) => {
                self.slots().remove(name);
                self.put(name.to_owned(), slot.entry);
            }
            (life @ (Life::On(..) | Life::Here(_) | Life::Bad(_)), Switch::Off) => {
                if let Some(slot) = self.slots().get_mut(name) {
                    slot.life = Life::Off;
                }
                self.changed();
                life.end().await;
            }
        }
        Ok(())
    }

    /// Takes what a server in the host's process says by itself. Should that be a question, our answer goes to the host
    /// as a message of its own.
    pub fn hosted_message(&self, name: &str, message: &RawJson) -> Result<McpMessageReply, String> {
        let Life::On(server, _) = self.slot(name)?.life else { return Err(not_found(name)) };
        if !server.hear(message) {
            return Err(format!(
                "MCP server {name}: this message cannot be read, or the server is not connected."
            ));
        }
        let done = serde_json::json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        let mcp_response = RawJson::of(&done).map_err(|error| error.to_string())?;
        Ok(McpMessageReply { mcp_response })
    }

    /// Ends all servers, and waits until they are gone. Servers that others use live on.
    pub async fn close(&self) {
        let slots = std::mem::take(&mut *self.slots());
        self.changed();
        join_all(slots.into_values().map(|slot| slot.life.end())).await;
    }

    async fn remove(&self, name: &str) {
        let slot = self.slots().remove(name);
        if let Some(slot) = slot {
            self.changed();
            slot.life.end().await;
        }
    }

    /// The entry, if the settings let the server in.
    fn admitted(
        &self,
        name: &str,
        config: Result<McpServerConfig, String>,
    ) -> Result<McpServerConfig, String> {
        config.and_then(|config| self.0.admission.refuses(name, &config).map_or(Ok(config), Err))
    }

    fn put(&self, name: String, entry: Entry) {
        let entry = Entry { config: self.admitted(&name, entry.config), ..entry };
        let managed = matches!(entry.config, Ok(McpServerConfig::Sdk(_)));
        let life = match &entry.config {
            Err(problem) => Life::Bad(problem.clone()),
            Ok(McpServerConfig::Sdk(_)) if let Some(server) = self.0.surroundings.local.get(&name) => {
                Life::Here(server.clone())
            }
            Ok(config) => {
                let server = self.server(&name, config);
                let watcher = tokio::spawn(pass_on(server.changes(), self.0.version.clone()));
                Life::On(server, Arc::new(AbortOnDropHandle::new(watcher)))
            }
        };
        self.slots().insert(name, Slot { entry, managed, life });
        self.changed();
    }

    fn server(&self, name: &str, config: &McpServerConfig) -> Arc<Server> {
        match (&self.0.pool, config) {
            (Some(pool), McpServerConfig::Stdio(_) | McpServerConfig::Sse(_) | McpServerConfig::Http(_)) => {
                pool.server(name, config, &self.0.surroundings)
            }
            (_, config) => Arc::new(Server::start(name, config.clone(), self.0.surroundings.clone())),
        }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// All places, in the order of their names.
    pub(super) fn all(&self) -> Vec<(String, Slot)> {
        self.slots().iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    /// All servers that are switched on.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        let on = |slot: &Slot| match &slot.life {
            Life::On(server, _) => Some(Arc::clone(server)),
            Life::Here(_) | Life::Off | Life::Bad(_) => None,
        };
        self.slots().values().filter_map(on).collect()
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        self.slots().get(name).cloned().ok_or_else(|| not_found(name))
    }

    fn changed(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    /// A slot is put in or taken out whole; a panic elsewhere cannot leave one half changed.
    fn slots(&self) -> MutexGuard<'_, BTreeMap<String, Slot>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(name: &str) -> String {
    format!("Server not found: {name}")
}

/// Counts the changes of one server.
async fn pass_on<T>(mut changes: watch::Receiver<T>, version: watch::Sender<u64>) {
    while changes.changed().await.is_ok() {
        version.send_modify(|version| *version += 1);
    }
}
