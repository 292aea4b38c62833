//! What the servers of a session offer, all together: tools, prompts, resources, words for the model.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::{
    ClientRequest, CustomResult, JsonObject, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Block;
use whimbrel_wire::control::{McpReadResourceReply, McpResourceContents};
use whimbrel_wire::options::McpServerConfig;

use super::connection::Caller;
use super::fault::Fault;
use super::listing::{self, Listed, Offer};
use super::local::{LocalServer, LocalTool};
use super::names;
use super::prompts::{self, PromptCommand};
use super::resources::{ListMcpResources, ReadMcpResource};
use super::result::Shelf;
use super::roster::{Life, Roster, Slot};
use super::server::{Phase, Server};
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
    fn locals(&self) -> Vec<(String, String, McpServerConfig, LocalServer)> {
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

    /// What a prompt says, given what was written after its command. Long things go below `spill`.
    pub async fn prompt(
        &self,
        command: &PromptCommand,
        written: &str,
        spill: &Path,
    ) -> Result<Vec<Block>, String> {
        let server = self.find(&command.server)?;
        let limits = self.inner().surroundings.limits;
        let shelf = Shelf { spill: spill.to_path_buf(), limit: limits.output };
        let asked = async {
            let connection = server.connection().await?;
            let patience = patience(&server.config, limits);
            prompts::get(&connection, &command.prompt, command.fill(written), patience, shelf).await
        };
        asked.await.map_err(|fault| failed(&server, &fault))
    }

    /// The resources of one server or all, as hosts and models see them, and what went wrong with some.
    pub async fn resources(&self, server: Option<&str>) -> Result<(Vec<Value>, Vec<String>), String> {
        let servers = match server {
            Some(name) => vec![self.find(name)?],
            None => self
                .offers()
                .into_iter()
                .filter(|(_, _, offer)| offer.has_resources)
                .map(|(server, ..)| server)
                .collect(),
        };
        let limit = self.inner().surroundings.limits.connect;
        let asked = join_all(servers.iter().map(async |server| {
            let connection = server.connection().await?;
            listing::resources(&connection, limit).await
        }));
        let (mut resources, mut problems) = (Vec::new(), Vec::new());
        for (server, answer) in servers.iter().zip(asked.await) {
            match answer {
                Ok(list) => resources.extend(list.into_iter().filter_map(|resource| {
                    let known = serde_json::to_value(&resource).ok()?;
                    let kept = ["uri", "name", "mimeType", "description"];
                    let kept =
                        kept.iter().filter_map(|key| Some(((*key).to_owned(), known.get(*key)?.clone())));
                    let server = ("server".to_owned(), Value::from(&*server.name));
                    Some(Value::Object(kept.chain([server]).collect()))
                })),
                Err(fault) => problems.push(failed(server, &fault)),
            }
        }
        Ok((resources, problems))
    }

    /// What is in a resource.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<McpReadResourceReply, String> {
        let server = self.find(server)?;
        let asked = async {
            let connection = server.connection().await?;
            let params = ReadResourceRequestParams::new(uri);
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            let never = CancellationToken::new();
            let caller = Caller { tool: uri, tool_use_id: "", cancel: &never };
            let limits = self.inner().surroundings.limits;
            contents(connection.request(request, patience(&server.config, limits), caller).await?)
        };
        asked.await.map_err(|fault| failed(&server, &fault))
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
    fn offers(&self) -> Vec<(Arc<Server>, String, Arc<Offer>)> {
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
    fn find(&self, name: &str) -> Result<Arc<Server>, String> {
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

fn failed(server: &Server, fault: &Fault) -> String {
    format!("MCP server {}: {fault}", server.name)
}

fn contents(result: ServerResult) -> Result<McpReadResourceReply, Fault> {
    let value = match result {
        ServerResult::ReadResourceResult(result) => serde_json::to_value(result.contents).ok(),
        ServerResult::CustomResult(CustomResult(mut value)) => value.get_mut("contents").map(Value::take),
        _ => None,
    };
    let Some(Value::Array(parts)) = value else { return Err(Fault::Nonsense("this is no resource.".into())) };
    let parts = parts.into_iter().filter_map(|part| serde_json::from_value::<McpResourceContents>(part).ok());
    Ok(McpReadResourceReply { contents: parts.collect() })
}

impl Roster {
    /// Calls a tool by its whole name, as a host may do beside the conversation. The answer is the server's own.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        for (_, prefix, _, local) in self.locals() {
            let called = |own: &&LocalTool| tool == format!("mcp__{prefix}__{}", names::normal(&own.name));
            if let Some(own) = local.tools().iter().find(called) {
                let answer = cancel.run_until_cancelled(own.answer(Value::Object(arguments))).await;
                return answer.ok_or_else(|| Fault::Cancelled.to_string());
            }
        }
        let mut taken = HashSet::new();
        let mut all = self.offers().into_iter().flat_map(|(server, prefix, offer)| {
            let names = offer
                .tools
                .iter()
                .map(|listed| (names::tool(&prefix, &listed.name, &mut taken), listed.name.clone()));
            names.map(|(whole, name)| (whole, name, Arc::clone(&server))).collect::<Vec<_>>()
        });
        let found = all.find(|(whole, ..)| whole == tool);
        let (_, name, server) = found.ok_or_else(|| format!("Tool not found: {tool}"))?;
        let asked = async {
            let connection = server.connection().await?;
            let patience = patience(&server.config, self.inner().surroundings.limits);
            let caller = Caller { tool, tool_use_id: "", cancel };
            super::tool::call_tool(&connection, &name, arguments, patience, caller).await
        };
        let result = asked.await.map_err(|fault| failed(&server, &fault))?;
        serde_json::to_value(result).map_err(|error| error.to_string())
    }
}
