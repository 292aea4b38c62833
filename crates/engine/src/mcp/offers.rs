//! What the servers of a session offer, all together: tools, prompts, words for the model.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_wire::options::McpServerConfig;

use super::listing::{Listed, Offer};
use super::local::LocalServer;
use super::names;
use super::prompts::{self, PromptCommand};
use super::resources::{ListMcpResources, ReadMcpResource};
use super::roster::Roster;
use super::server::{Phase, Server};
use super::slot::{Life, Slot};
use super::terms::{Terms, terms};
use super::tool::{McpTool, Owner, Reach, patience};
use crate::tools::AnyTool;

impl Roster {
    /// The tools of all servers, in a fixed order. Those of a server that is being looked for stay, those of one that
    /// has failed do not.
    pub fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        let mut tools: Vec<Arc<dyn AnyTool>> = Vec::new();
        let mut taken = HashSet::new();
        let mut has_resources = false;
        let limits = self.inner().surroundings.limits;
        let all = self.all();
        let source = |name: &str| all.iter().find(|(other, _)| other == name).map(|(_, slot)| slot.source());
        for (server, prefix, offer) in self.offers() {
            has_resources |= offer.has_resources;
            let source = source(&server.name).unwrap_or_default();
            let owner = Owner { name: Arc::clone(&server.name), prefix: prefix.clone(), source };
            for listed in &offer.tools {
                let name = names::tool(&prefix, &listed.name, &mut taken);
                let Some(listed) = admitted(listed.clone(), &server.config) else { continue };
                let reach = Reach::There(Arc::downgrade(&server));
                let usual = always_load(&server.config);
                tools.push(Arc::new(McpTool::new(name, owner.clone(), listed, usual, reach, limits)));
            }
        }
        for (server, prefix, config, local) in self.locals() {
            let owner = Owner { name: server.into(), prefix: prefix.clone(), source: "sdk" };
            let patience = patience(&config, limits).total;
            for tool in local.tools() {
                let name = names::tool(&prefix, &tool.name, &mut taken);
                let Some(listed) = admitted(tool.listed(), &config) else { continue };
                let reach = Reach::Here { work: Arc::clone(&tool.work), patience };
                tools.push(Arc::new(McpTool::new(name, owner.clone(), listed, None, reach, limits)));
            }
        }
        if has_resources {
            tools.push(Arc::new(ListMcpResources(Arc::downgrade(self.inner()))));
            tools.push(Arc::new(ReadMcpResource(Arc::downgrade(self.inner()))));
        }
        tools
    }

    /// What servers want the model to know, by server.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let said = |(server, _, offer): (Arc<Server>, String, Arc<Offer>)| {
            let text = offer.instructions.clone().filter(|text| !text.trim().is_empty())?;
            Some((server.name.to_string(), text))
        };
        let here = self.locals().into_iter();
        let here = here.filter_map(|(name, _, _, local)| Some((name, local.instructions()?.to_owned())));
        self.offers().into_iter().filter_map(said).chain(here).collect()
    }

    /// The servers that are code in this process: name, how it stands in names, its entry.
    pub(super) fn locals(&self) -> Vec<(String, String, McpServerConfig, LocalServer)> {
        let all = self.all();
        let prefixes = names::prefixes(all.iter().map(|(name, _)| name.as_str()));
        let of = |(name, slot): (String, Slot)| match (slot.life, slot.entry.config) {
            (Life::Here(local), Ok(config)) => {
                let prefix = prefixes.get(&name)?.clone();
                Some((name, prefix, config, local))
            }
            _ => None,
        };
        all.into_iter().filter_map(of).collect()
    }

    /// The prompts of all servers, as commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let mut taken = HashSet::new();
        let mut commands = Vec::new();
        for (server, prefix, offer) in self.offers() {
            for prompt in &offer.prompts {
                commands.push(PromptCommand {
                    name: names::tool(&prefix, &prompt.name, &mut taken),
                    server: server.name.to_string(),
                    prompt: prompt.name.clone(),
                    description: prompt.description.clone().unwrap_or_default(),
                    arguments: prompts::names(prompt.arguments.as_ref()),
                });
            }
        }
        commands
    }

    /// Whether a command may be a prompt of a server that is still starting.
    pub fn may_bring(&self, command: &str) -> bool {
        let all = self.all();
        let prefixes = names::prefixes(all.iter().map(|(name, _)| name.as_str()));
        let starting =
            self.servers().into_iter().filter(|server| matches!(server.state().phase, Phase::Starting));
        let mut prefixes = starting.filter_map(|server| prefixes.get(&*server.name).cloned());
        prefixes.any(|prefix| command.starts_with(&format!("mcp__{prefix}__")))
    }

    /// How a server stands in the names of its tools.
    pub fn prefix(&self, server: &str) -> Option<String> {
        let all = self.all();
        names::prefixes(all.iter().map(|(name, _)| name.as_str())).remove(server)
    }

    /// How long a server may take to start.
    pub fn patience(&self) -> Duration {
        self.inner().surroundings.limits.connect
    }

    /// How many bytes of text a result may have.
    pub(super) fn output_limit(&self) -> usize {
        self.inner().surroundings.limits.output
    }

    /// The servers that can be used or are being looked for, how each stands in names, and what it offers.
    pub(super) fn offers(&self) -> Vec<(Arc<Server>, String, Arc<Offer>)> {
        let all = self.all();
        let prefixes = names::prefixes(all.iter().map(|(name, _)| name.as_str()));
        let of = |server: Arc<Server>| {
            let state = server.state();
            match state.phase {
                Phase::Connected(_) | Phase::Lost(_) => {
                    let prefix = prefixes.get(&*server.name)?.clone();
                    Some((server, prefix, state.offer))
                }
                Phase::Starting | Phase::Failed(_) => None,
            }
        };
        self.servers().into_iter().filter_map(of).collect()
    }

    /// A server by its name, or as it stands in the names of its tools.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Server>, String> {
        let servers = self.servers();
        let known = || servers.iter().map(|server| server.name.to_string()).collect::<Vec<_>>().join(", ");
        let exact = servers.iter().find(|server| *server.name == *name);
        exact
            .or_else(|| servers.iter().find(|server| names::normal(&server.name) == name))
            .cloned()
            .ok_or_else(|| format!("Server not found: {name}. There are: {}.", known()))
    }
}

/// A tool on the terms of its server's entry; none if it is not offered at all.
fn admitted(listed: Listed, config: &McpServerConfig) -> Option<Listed> {
    match terms(config, &listed.name) {
        Terms::Usual => Some(listed),
        Terms::Asked => Some(Listed { interactive: true, ..listed }),
        Terms::Denied => None,
    }
}

/// What the entry of a server says about showing its tools.
fn always_load(config: &McpServerConfig) -> Option<bool> {
    match config {
        McpServerConfig::Stdio(server) => server.always_load,
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => server.always_load,
        McpServerConfig::Sdk(_) => None,
    }
}
