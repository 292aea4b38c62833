//! The host says which servers it wants from now on: those that it named before and no longer names go, new ones come.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use whimbrel_wire::control::McpSetServersReply;
use whimbrel_wire::options::McpServerConfig;

use super::Roster;
use crate::mcp::config::{Entry, Origin, checked};
use crate::mcp::expand::Expansion;
use crate::mcp::server::{Phase, Server};
use crate::mcp::slot::Slot;

impl Roster {
    /// Uses these servers instead of those that the host has set before. Servers of the settings stay, unless they are
    /// named here. New programs and addresses are waited for; a server in the host's own process is not, for the host
    /// waits for us.
    pub async fn set_servers(&self, servers: &BTreeMap<String, McpServerConfig>) -> McpSetServersReply {
        let mut reply = McpSetServersReply::default();
        let gone: Vec<String> = {
            let slots = self.slots();
            let omitted = |(name, slot): &(&String, &Slot)| slot.managed && !servers.contains_key(*name);
            slots.iter().filter(omitted).map(|(name, _)| name.clone()).collect()
        };
        for name in gone {
            self.remove(&name).await;
            reply.removed.push(name);
        }
        for (name, config) in servers {
            self.set_one(name, config, &mut reply).await;
        }
        self.add_faults(&mut reply).await;
        reply
    }

    /// Uses a server in place of the one with its name, unless they are the same.
    async fn set_one(&self, name: &str, config: &McpServerConfig, reply: &mut McpSetServersReply) {
        if name.trim().is_empty() {
            reply.errors.insert(name.to_owned(), "it has no name. Give it one.".into());
            return;
        }
        let variable = |name: &str| self.0.surroundings.environment.get(name).cloned();
        let config = self.admitted(name, checked(config.clone(), &mut Expansion::new(&variable)));
        if let Some(slot) = self.slots().get_mut(name).filter(|slot| slot.entry.config == config) {
            slot.managed = true;
            return;
        }
        self.remove(name).await;
        match &config {
            Ok(_) => reply.added.push(name.to_owned()),
            Err(problem) => {
                reply.errors.insert(name.to_owned(), problem.clone());
            }
        }
        self.put(name.to_owned(), Entry { origin: Origin::Dynamic, config });
        if let Some(slot) = self.slots().get_mut(name) {
            slot.managed = true;
        }
    }

    /// Waits for the new servers, and adds why some of them failed.
    async fn add_faults(&self, reply: &mut McpSetServersReply) {
        let hosted = |server: &Arc<Server>| matches!(server.config, McpServerConfig::Sdk(_));
        let new = |server: &Arc<Server>| reply.added.iter().any(|name| **name == *server.name);
        let awaited = self.servers().into_iter().filter(|server| !hosted(server) && new(server));
        let settled = join_all(awaited.map(async |server| (server.name.to_string(), server.settled().await)));
        for (name, state) in settled.await {
            if let Phase::Failed(fault) = state.phase {
                reply.errors.insert(name, fault.to_string());
            }
        }
    }
}
