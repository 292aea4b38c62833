//! A tool of a server, wherever the server is, as the engine's other tools are.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult};
use serde_json::Value;
use tokio::time::timeout;
use whimbrel_models::ToolSpec;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::permission::McpServerProvenance;

use super::connection::{Caller, Connection, Patience};
use super::fault::Fault;
use super::limits::{self, Limits};
use super::listing::Listed;
use super::local::LocalWork;
use super::result::{Shelf, fitted, output};
use super::server::Server;
use crate::on_demand::Offer;
use crate::tools::{AnyTool, Call, Done, Example, Output, Touches, Trouble};

/// One tool of one server. It does not keep the server alive.
pub struct McpTool {
    /// The whole name.
    name: String,
    owner: Owner,
    listed: Listed,
    offer: Offer,
    reach: Reach,
    limits: Limits,
}

/// Whose tool it is.
#[derive(Clone)]
pub(super) struct Owner {
    /// The server.
    pub(super) name: Arc<str>,
    /// The server as it stands in the names of its tools.
    pub(super) prefix: String,
    /// Where the server comes from, in a word.
    pub(super) source: &'static str,
}

/// Where the work is done.
pub(super) enum Reach {
    /// At a server.
    There(Weak<Server>),
    /// In this process, within so much time.
    Here { work: LocalWork, patience: Duration },
}

impl McpTool {
    /// `usual` is what the server's entry says about showing its tools.
    pub(super) fn new(
        name: String,
        owner: Owner,
        listed: Listed,
        usual: Option<bool>,
        reach: Reach,
        limits: Limits,
    ) -> Self {
        let offer = offered(usual, listed.always_load);
        Self { name, owner, listed, offer, reach, limits }
    }

    async fn ask(
        &self,
        server: &Weak<Server>,
        arguments: JsonObject,
        call: &Call,
    ) -> Result<ServerResult, Fault> {
        let Some(server) = server.upgrade() else {
            return Err(Fault::Gone("it is not there any more.".into()));
        };
        let patience = patience(&server.config, self.limits);
        let connected = call.cancel.run_until_cancelled(server.connection()).await;
        // A call under way does not keep the server alive either.
        drop(server);
        let connection = connected.ok_or(Fault::Cancelled)??;
        let caller = Caller { tool: &self.name, tool_use_id: &call.id, cancel: &call.cancel };
        call_tool(&connection, &self.listed.name, arguments, patience, caller).await
    }

    async fn work(&self, work: &LocalWork, patience: Duration, input: Value, call: &Call) -> Output {
        let work = timeout(patience, work(input));
        let worked =
            call.cancel.run_until_cancelled(work).await.ok_or_else(|| self.failed(&Fault::Cancelled))?;
        let blocks = worked.map_err(|_| self.failed(&Fault::Late(patience)))?.map_err(Trouble::Failed)?;
        let blocks = fitted(blocks, self.shelf(call)).await;
        let meta = serde_json::to_value(&blocks).unwrap_or_default();
        Ok(Done { content: ResultContent::Blocks(blocks), meta })
    }

    fn shelf(&self, call: &Call) -> Shelf {
        Shelf { spill: call.workspace.spill().to_path_buf(), limit: self.limits.output }
    }

    fn failed(&self, fault: &Fault) -> Trouble {
        Trouble::Failed(match fault {
            // The server's own words.
            Fault::Refused(text) => text.clone(),
            fault => format!("MCP server {}: {fault}", self.owner.name),
        })
    }
}

/// How a tool comes to the model, by what the server's entry says and what the server says about the tool.
fn offered(entry: Option<bool>, tool: Option<bool>) -> Offer {
    match (entry, tool) {
        (Some(false), _) => Offer::OnDemand,
        (Some(true), Some(true) | None) | (None, Some(true)) => Offer::AtOnce,
        (Some(true), Some(false)) | (None, Some(false) | None) => Offer::IfRoom,
    }
}

/// Calls a tool by its name there.
pub(super) async fn call_tool(
    connection: &Connection,
    tool: &str,
    arguments: JsonObject,
    patience: Patience,
    caller: Caller<'_>,
) -> Result<ServerResult, Fault> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    connection.request(request, patience, caller).await
}

/// How long a call to this server may take. Only of one at an address silence means something: a line may be dead.
pub(super) fn patience(config: &McpServerConfig, limits: Limits) -> Patience {
    let (own, silence) = match config {
        McpServerConfig::Stdio(server) => (server.timeout, None),
        McpServerConfig::Sdk(server) => (server.timeout, None),
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => {
            (server.timeout, Some(limits.silence))
        }
    };
    let own = limits::own(own);
    // Whoever sets a limit has thought about it.
    Patience { total: own.unwrap_or(limits.call), silence: silence.filter(|_| own.is_none()) }
}

/// What a model fills in must be an object; nothing at all means an empty one.
fn arguments(name: &str, input: &Value) -> Result<JsonObject, Trouble> {
    match input {
        Value::Object(fields) => Ok(fields.clone()),
        Value::Null => Ok(JsonObject::new()),
        _ => Err(Trouble::Refused(format!("InputValidationError: {name} takes an object with fields."))),
    }
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[&str] {
        &[]
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.listed.description.clone(),
            input_schema: self.listed.schema.clone(),
        }
    }

    fn offer(&self) -> Offer {
        self.offer
    }

    fn touches(&self, input: &Value) -> Result<Touches, Trouble> {
        arguments(&self.name, input)?;
        Ok(if self.listed.read_only { Touches::Reads(Vec::new()) } else { Touches::Runs })
    }

    fn run<'a>(&'a self, input: Value, call: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async move {
            let arguments = arguments(&self.name, &input)?;
            match &self.reach {
                Reach::There(server) => {
                    let asked = self.ask(server, arguments, &call).await;
                    output(asked.map_err(|fault| self.failed(&fault))?, self.shelf(&call)).await
                }
                Reach::Here { work, patience } => {
                    self.work(work, *patience, Value::Object(arguments), &call).await
                }
            }
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.owner.prefix)
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        let details = [("source".to_owned(), self.owner.source.into())].into();
        Some(McpServerProvenance { name: Some(self.owner.name.to_string()), details })
    }

    fn needs_person(&self) -> bool {
        self.listed.interactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_and_the_server_say_how_a_tool_comes_to_the_model() {
        for (entry, tool, expected) in [
            (None, None, Offer::IfRoom),
            (None, Some(true), Offer::AtOnce),
            (None, Some(false), Offer::IfRoom),
            (Some(true), None, Offer::AtOnce),
            (Some(true), Some(false), Offer::IfRoom),
            (Some(false), None, Offer::OnDemand),
            (Some(false), Some(true), Offer::OnDemand),
        ] {
            assert_eq!(offered(entry, tool), expected, "{entry:?} {tool:?}");
        }
    }
}
