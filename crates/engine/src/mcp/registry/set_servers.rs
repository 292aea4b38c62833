//! The host says which servers it wants from now on: those that it named before and no longer names go, new ones come.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use whimbrel_wire::control::McpSetServersReply;
use whimbrel_wire::options::McpServerConfig;

use super::ServerRegistry;
use crate::mcp::config::{ServerEntry, ServerOrigin, validate};
use crate::mcp::expand::VariableExpander;
use crate::mcp::server::{ServerPhase, ServerHandle};
use crate::mcp::slot::ServerSlot;

impl ServerRegistry {
    /// Uses these servers instead of those that the host has set before. Servers of the settings stay, unless they are
    /// named here. New programs and addresses are waited for; a server in the host's own process is not, for the host
    /// waits for us.
    pub async fn set_servers(&self, servers: &BTreeMap<String, McpServerConfig>) -> McpSetServersReply {
        let mut reply = McpSetServersReply::default();
        let gone: Vec<String> = {
            let slots = self.slots();
            let omitted = |(name, slot): &(&String, &ServerSlot)| slot.host_managed && !servers.contains_key(*name);
            slots.iter().filter(omitted).map(|(name, _)| name.clone()).collect()
        };
        for name in gone {
            self.remove(&name).await;
            reply.removed.push(name);
        }
        for (name, config) in servers {
            self.set_server(name, config, &mut reply).await;
        }
        self.add_errors(&mut reply).await;
        reply
    }

    /// Uses a server in place of the one with its name, unless they are the same.
    async fn set_server(&self, name: &str, config: &McpServerConfig, reply: &mut McpSetServersReply) {
        if name.trim().is_empty() {
            reply.errors.insert(name.to_owned(), "it has no name. Give it one.".into());
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
            Err(problem) => {
                reply.errors.insert(name.to_owned(), problem.clone());
            }
        }
        self.insert(name.to_owned(), ServerEntry { origin: ServerOrigin::Dynamic, config });
        if let Some(slot) = self.slots().get_mut(name) {
            slot.host_managed = true;
        }
    }

    /// Waits for the new servers, and adds why some of them failed.
    async fn add_errors(&self, reply: &mut McpSetServersReply) {
        let hosted = |server: &Arc<ServerHandle>| matches!(server.config, McpServerConfig::Sdk(_));
        let new = |server: &Arc<ServerHandle>| reply.added.iter().any(|name| **name == *server.name);
        let awaited = self.enabled_servers().into_iter().filter(|server| !hosted(server) && new(server));
        let settled = join_all(awaited.map(async |server| (server.name.to_string(), server.wait_settled().await)));
        for (name, state) in settled.await {
            if let ServerPhase::Failed(fault) = state.phase {
                reply.errors.insert(name, fault.to_string());
            }
        }
    }
}
