//! A tool of a server, as the engine's other tools are.

use std::pin::Pin;
use std::sync::{Arc, Weak};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult};
use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::permission::McpServerProvenance;

use super::connection::{Caller, Connection, Patience};
use super::fault::Fault;
use super::limits::{self, Limits};
use super::listing::Listed;
use super::result::{Shelf, output};
use super::server::Server;
use crate::tools::{AnyTool, Call, Example, Output, Touches, Trouble};

/// One tool of one server. It does not keep the server alive.
pub struct McpTool {
    /// The whole name.
    name: String,
    /// The server as it stands in the name.
    prefix: String,
    server_name: Arc<str>,
    /// Where the server comes from, in a word.
    source: &'static str,
    server: Weak<Server>,
    listed: Listed,
    limits: Limits,
}

impl McpTool {
    pub(super) fn new(
        name: String,
        (server, prefix, source): (&Arc<Server>, String, &'static str),
        listed: Listed,
        limits: Limits,
    ) -> Self {
        let server_name = Arc::clone(&server.name);
        Self { name, prefix, server_name, source, server: Arc::downgrade(server), listed, limits }
    }

    async fn ask(&self, arguments: JsonObject, call: &Call) -> Result<ServerResult, Fault> {
        let Some(server) = self.server.upgrade() else {
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

    fn failed(&self, fault: &Fault) -> Trouble {
        Trouble::Failed(match fault {
            // The server's own words.
            Fault::Refused(text) => text.clone(),
            fault => format!("MCP server {}: {fault}", self.server_name),
        })
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

    fn touches(&self, input: &Value) -> Result<Touches, Trouble> {
        arguments(&self.name, input)?;
        Ok(if self.listed.read_only { Touches::Reads(Vec::new()) } else { Touches::Runs })
    }

    fn run<'a>(&'a self, input: Value, call: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async move {
            let arguments = arguments(&self.name, &input)?;
            let result = self.ask(arguments, &call).await.map_err(|fault| self.failed(&fault))?;
            let shelf = Shelf { spill: call.workspace.spill().to_path_buf(), limit: self.limits.output };
            output(result, shelf).await
        })
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.prefix)
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        let details = [("source".to_owned(), self.source.into())].into();
        Some(McpServerProvenance { name: Some(self.server_name.to_string()), details })
    }

    fn needs_person(&self) -> bool {
        self.listed.interactive
    }
}
