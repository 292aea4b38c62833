//! MCP server built with rmcp. This test program runs as the server when an environment variable is set.

#![expect(deprecated, reason = "current servers still request roots and sampling")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const TEST_SERVER_VARIABLE: &str = "WHIMBREL_TEST_MCP_SERVER";

/// Entry that starts this program as the server.
pub(super) fn entry() -> Value {
    json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["--quiet", "--nocapture", "--exact", "tests::test_server::runs_as_mcp_server_if_requested"],
        "env": {TEST_SERVER_VARIABLE: "1"},
    })
}

#[test]
fn runs_as_mcp_server_if_requested() {
    if std::env::var_os(TEST_SERVER_VARIABLE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stdio = (tokio::io::stdin(), tokio::io::stdout());
        TestMcpServer::default().serve(stdio).await.unwrap().waiting().await.unwrap();
    });
    std::process::exit(0);
}

#[derive(Default)]
pub(super) struct TestMcpServer {
    grown: AtomicBool,
}

fn tool(name: &'static str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { panic!() };
    Tool::new(name, format!("The tool {name}"), Arc::new(schema))
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

impl TestMcpServer {
    fn tools(&self) -> Vec<Tool> {
        let empty = || json!({"type": "object", "properties": {}});
        let word =
            json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]});
        let mut tools =
            vec![tool("echo", word.clone()).with_annotations(ToolAnnotations::new().read_only(true))];
        tools.push(tool("env", word.clone()));
        for name in ["boom", "die", "wait", "work", "ask", "roots", "sample", "grow", "meta", "daemon"] {
            tools.push(tool(name, empty()));
        }
        tools.push(tool("flood", json!({"type": "object", "properties": {"bytes": {"type": "number"}}})));
        if self.grown.load(Ordering::SeqCst) {
            tools.push(tool("grown", empty()));
        }
        tools
    }

    async fn elicit(peer: &rmcp::Peer<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let schema: ElicitationSchema =
            serde_json::from_value(json!({"type": "object", "properties": {"name": {"type": "string"}}}))
                .unwrap();
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Who are you?".into(),
            requested_schema: schema,
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
        Ok(text(match peer.send_request(request).await {
            Ok(ClientResult::ElicitResult(result)) => serde_json::to_string(&result).unwrap(),
            other => format!("{other:?}"),
        }))
    }
}

impl ServerHandler for TestMcpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("test-server", "1.2.3"))
            .with_instructions("Play fair.")
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let from = page.and_then(|page| page.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let tools = self.tools();
        let mut result = ListToolsResult::with_all_items(tools.iter().skip(from).take(5).cloned().collect());
        result.next_cursor = (from + 5 < tools.len()).then(|| (from + 5).to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let fields = Value::Object(call.arguments.unwrap_or_default());
        let word = fields["word"].as_str().unwrap_or_default();
        let peer = &context.peer;
        match &*call.name {
            "echo" => Ok(text(format!("echo:{word}"))),
            "env" => Ok(text(std::env::var(word).unwrap_or_default())),
            "boom" => Ok(CallToolResult::error(vec![ContentBlock::text("boom happened")]).into()),
            "die" => {
                eprintln!("I give up");
                std::process::exit(7)
            }
            "wait" => {
                std::fs::write("waiting", "yes\n").unwrap();
                context.ct.cancelled().await;
                std::fs::write("cancelled", "yes\n").unwrap();
                Err(ErrorData::internal_error("cancelled", None))
            }
            "work" => {
                let token = context.meta.get_progress_token().unwrap();
                for step in 1..=3 {
                    let notification =
                        ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
                    peer.notify_progress(notification.with_message("at it")).await.unwrap();
                }
                Ok(text("worked"))
            }
            "ask" => Self::elicit(peer).await,
            "roots" => Ok(text(format!("{:?}", peer.list_roots().await))),
            "sample" => {
                let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("hi")], 16);
                let request = ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params));
                Ok(text(format!("{:?}", peer.send_request(request).await)))
            }
            "grow" => {
                self.grown.store(true, Ordering::SeqCst);
                peer.notify_tool_list_changed().await.unwrap();
                Ok(text("grown"))
            }
            "meta" => Ok(text(serde_json::to_string(&context.meta).unwrap())),
            "daemon" => {
                #[expect(clippy::disallowed_methods, reason = "a server that leaves something behind")]
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", "setsid sh -c 'echo $$ > daemon; exec sleep 300' >/dev/null 2>&1 &"]);
                shell.status().unwrap();
                Ok(text("left behind"))
            }
            "flood" => Ok(text("x".repeat(fields["bytes"].as_u64().unwrap() as usize))),
            "grown" => Ok(text("I am new")),
            other => Err(ErrorData::invalid_params(format!("there is no {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let one = Resource::new("play://one", "one").with_mime_type("text/plain");
        Ok(ListResourcesResult::with_all_items(vec![one, Resource::new("play://bytes", "bytes")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match request.uri.as_str() {
            "play://one" => ResourceContents::text("the first", "play://one"),
            "play://bytes" => ResourceContents::blob("AQID", "play://bytes"),
            other => return Err(ErrorData::resource_not_found(format!("there is no {other}"), None)),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = Some(vec![PromptArgument::new("who")]);
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("hello", Some("says hello"), arguments)]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let who = request.arguments.and_then(|fields| fields.get("who")?.as_str().map(str::to_owned));
        let message = PromptMessage::new_text(Role::User, format!("Hello {}", who.unwrap_or("world".into())));
        Ok(GetPromptResult::new(vec![message]).into())
    }
}
