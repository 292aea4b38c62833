//! `mcp_set_servers`: the host replaces the servers that it set before.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use whimbrel_wire::control::McpSetServersReply;
use whimbrel_wire::options::McpServerConfig;

use super::ServerRegistry;
use crate::config::{ServerEntry, ServerOrigin, validate};
use crate::expand::VariableExpander;
use crate::server_lifecycle::{ServerHandle, ServerPhase};
use crate::slot::ServerSlot;

impl ServerRegistry {
    /// Replaces the servers that the host set before by these. Servers of the settings stay unless a name matches.
    /// Waits for new programs and URLs, but not for servers in the host's process, because the host is waiting for this
    /// reply.
    pub async fn set_servers(&self, servers: &BTreeMap<String, McpServerConfig>) -> McpSetServersReply {
        let mut reply = McpSetServersReply::default();
        let removed: Vec<String> = {
            let slots = self.slots();
            let omitted =
                |(name, slot): &(&String, &ServerSlot)| slot.host_managed && !servers.contains_key(*name);
            slots.iter().filter(omitted).map(|(name, _)| name.clone()).collect()
        };
        for name in removed {
            self.remove(&name).await;
            reply.removed.push(name);
        }
        for (name, config) in servers {
            self.set_server(name, config, &mut reply).await;
        }
        self.add_errors(&mut reply).await;
        reply
    }

    /// Replaces the server of that name unless its config is the same.
    async fn set_server(&self, name: &str, config: &McpServerConfig, reply: &mut McpSetServersReply) {
        if name.trim().is_empty() {
            reply.errors.insert(name.to_owned(), "it has no name. Add one.".into());
            return;
        }
        let variable = |name: &str| self.0.deps.environment.get(name).cloned();
        let config = self.check_policy(name, validate(config.clone(), &mut VariableExpander::new(&variable)));
        if let Some(slot) = self.slots().get_mut(name).filter(|slot| slot.entry.config == config) {
            slot.host_managed = true;
            return;
        }
        self.remove(name).await;
        match &config {
            Ok(_) => reply.added.push(name.to_owned()),
            Err(error) => {
                reply.errors.insert(name.to_owned(), error.clone());
            }
        }
        self.insert(name.to_owned(), ServerEntry { origin: ServerOrigin::Dynamic, config });
        if let Some(slot) = self.slots().get_mut(name) {
            slot.host_managed = true;
        }
    }

    /// Waits for the new servers and adds the errors of those that failed.
    async fn add_errors(&self, reply: &mut McpSetServersReply) {
        let is_hosted = |server: &Arc<ServerHandle>| matches!(server.config, McpServerConfig::Sdk(_));
        let is_new = |server: &Arc<ServerHandle>| reply.added.iter().any(|name| **name == *server.name);
        let new_servers =
            self.enabled_servers().into_iter().filter(|server| !is_hosted(server) && is_new(server));
        let settled =
            join_all(new_servers.map(async |server| (server.name.to_string(), server.wait_settled().await)));
        for (name, state) in settled.await {
            if let ServerPhase::Failed(error) = state.phase {
                reply.errors.insert(name, error.to_string());
            }
        }
    }
}
