//! Cost of MCP tool calls, for `cargo xtask bench mcp`: prints the medians in microseconds as JSON.
//!
//! Compares a plain function with the same function as a tool of an in-process server, and a server process (this
//! program with the argument `serve`) called by rmcp's bare client and by the engine.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{ClientLifecycleMode, RequestContext, serve_client_with_lifecycle};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use whimbrel_mcp::{InProcessServer, InProcessTool, ServerConfigs, ServerDeps, ServerOrigin, ServerRegistry};
use whimbrel_wire::control::{McpServerInfo, McpToolAnnotations};
use whimbrel_wire::{Block, RawJson};

/// Number of measured calls, and of warm-up calls before them.
const CALLS: usize = 2000;
const WARM_UP: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        Echo.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
        return Ok(());
    }
    let (function, in_process_tool) = in_process().await?;
    let (bare, engine) = over_stdio().await?;
    print(&json!({"function": function, "in_process": in_process_tool, "bare": bare, "engine": engine}));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures are the output")]
fn print(medians: &Value) {
    println!("{medians}");
}

fn input() -> Map<String, Value> {
    Map::from_iter([("word".to_owned(), "hey".into())])
}

/// Measures a function, and the same function as a tool.
async fn in_process() -> Result<(f64, f64)> {
    let echo = async |input: Value| vec![Block::text(input["word"].as_str().unwrap_or_default())];
    let function = median(async || {
        // Boxed, as the future of a tool is.
        std::hint::black_box(Box::pin(echo(Value::Object(input()))).await);
        Ok(())
    });
    let function = function.await?;
    let tool = InProcessTool {
        name: "echo".into(),
        description: "Gives the word back".into(),
        schema: RawJson::from_value(&json!({"type": "object"}))?,
        annotations: McpToolAnnotations::default(),
        always_load: None,
        function: Arc::new(move |input: Value, _| Box::pin(async move { Ok(echo(input).await) })),
    };
    let server = InProcessServer::new(McpServerInfo::default(), None, vec![tool]);
    let deps =
        ServerDeps { in_process_servers: Arc::new([("own".to_owned(), server)].into()), ..server_deps()? };
    let registry = ServerRegistry::start(server_config("own", &json!({"type": "sdk", "name": "own"}))?, deps);
    let in_process_tool = median_call_time(&registry, "mcp__own__echo").await?;
    Ok((function, in_process_tool))
}

/// Measures a server process called by rmcp alone and by the engine.
async fn over_stdio() -> Result<(f64, f64)> {
    let own_program = std::env::current_exe()?;
    #[expect(clippy::disallowed_methods, reason = "the bare client has no engine to start its server")]
    let mut command = tokio::process::Command::new(&own_program);
    command.arg("serve").kill_on_drop(true);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn()?;
    let pipes = (child.stdout.take().context("no stdout")?, child.stdin.take().context("no stdin")?);
    let client = serve_client_with_lifecycle((), pipes, ClientLifecycleMode::Initialize).await?;
    let bare = median(async || {
        client.call_tool(CallToolRequestParams::new("echo").with_arguments(input())).await?;
        Ok(())
    });
    let bare = bare.await?;
    client.cancel().await?;
    let program = json!({"command": own_program, "args": ["serve"]});
    let registry = ServerRegistry::start(server_config("echo", &program)?, server_deps()?);
    registry.wait_ready(registry.connect_timeout()).await;
    let engine = median_call_time(&registry, "mcp__echo__echo").await?;
    registry.close().await;
    Ok((bare, engine))
}

async fn median_call_time(registry: &ServerRegistry, tool: &str) -> Result<f64> {
    let never = CancellationToken::new();
    median(async || {
        let result = registry.call_tool(tool, input(), &never).await.map_err(anyhow::Error::msg)?;
        ensure!(result["content"][0]["text"] == "hey", "{result}");
        Ok(())
    })
    .await
}

fn server_config(name: &str, entry: &Value) -> Result<ServerConfigs> {
    let mut servers = ServerConfigs::default();
    let text = json!({"mcpServers": {name: entry}}).to_string();
    servers.add_json(ServerOrigin::Dynamic, "bench", &text, &|_| None);
    ensure!(servers.warnings.is_empty(), "{:?}", servers.warnings);
    Ok(servers)
}

fn server_deps() -> Result<ServerDeps> {
    Ok(ServerDeps::new(std::env::current_dir()?, std::env::vars().collect()))
}

/// Median time of a call in microseconds.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn median(call: impl AsyncFn() -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(CALLS);
    for number in 0..WARM_UP + CALLS {
        let started_at = Instant::now();
        call().await?;
        if number >= WARM_UP {
            times.push(started_at.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[CALLS / 2])
}

/// An MCP server with one tool.
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = JsonObject::from_iter([("type".to_owned(), "object".into())]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Gives the word back", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let fields = call.arguments.unwrap_or_default();
        let word = fields.get("word").and_then(Value::as_str).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(word)]).into())
    }
}
