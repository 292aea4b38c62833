//! Transports: one type for all kinds of servers, so that other modules do not depend on the kind.
//!
//! - `stdio`: a program
//! - `http`: streamable HTTP; `sse`: the older HTTP transport; `authenticated_endpoint`: requests of both with
//!   credentials; `headers_command`: headers printed by a command; `event_limit`: maximum event size
//! - `hosted`: servers in the host's process
//! - `message`: parses messages; `json_depth`: truncates deep JSON; `connection_state`: loss and last error of a
//!   connection

mod authenticated_endpoint;
mod connection_state;
mod event_limit;
mod headers_command;
mod hosted;
mod http;
mod json_depth;
mod message;
mod sse;
mod stdio;

use std::pin::Pin;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use whimbrel_process::{ChildProcessSpec, KillHandle, SHELL_PREFIX_VARIABLE};
use whimbrel_wire::options::{McpServerConfig, StdioServer};

use self::authenticated_endpoint::RemoteEndpoint;
pub(super) use self::connection_state::ConnectionState;
pub(super) use self::hosted::HostedInbox;
use self::hosted::HostedTransport;
use self::http::HttpTransport;
use self::sse::SseTransport;
use self::stdio::StdioTransport;
use super::deps::ServerDeps;
use super::error::McpError;

/// Transport to one server.
pub(super) struct McpTransport {
    kind: TransportKind,
    state: ConnectionState,
}

enum TransportKind {
    Stdio(Box<StdioTransport>),
    Http(HttpTransport),
    Sse(SseTransport),
    Hosted(HostedTransport),
}

impl McpTransport {
    /// Opens the transport. A program is started; its kill handle ends it whatever happens to the transport.
    pub(super) async fn open(
        name: &str,
        config: &McpServerConfig,
        deps: &ServerDeps,
        inbox: &HostedInbox,
        state: ConnectionState,
    ) -> Result<(Self, Option<KillHandle>), McpError> {
        let (kind, kill_handle) = match config {
            McpServerConfig::Stdio(server) => {
                let (stdio, kill_handle) =
                    StdioTransport::start(&build_program(server, deps), state.clone())?;
                (TransportKind::Stdio(Box::new(stdio)), Some(kill_handle))
            }
            McpServerConfig::Http(server) => {
                let endpoint = RemoteEndpoint::connect(name, server, deps).await?;
                (TransportKind::Http(http::new_transport(endpoint, state.clone())), None)
            }
            McpServerConfig::Sse(server) => {
                let endpoint = RemoteEndpoint::connect(name, server, deps).await?;
                (TransportKind::Sse(SseTransport::connect(endpoint, state.clone()).await?), None)
            }
            McpServerConfig::Sdk(_) => {
                let no_host = || McpError::Permanent("no host is connected to run it.".into());
                let host = deps.host.clone().ok_or_else(no_host)?;
                (TransportKind::Hosted(HostedTransport::new(name, host, inbox, state.clone())), None)
            }
        };
        Ok((Self { kind, state }, kill_handle))
    }
}

fn build_program(server: &StdioServer, deps: &ServerDeps) -> ChildProcessSpec {
    let mut environment = deps.program_environment();
    environment.extend(server.env.clone());
    ChildProcessSpec {
        command: server.command.clone(),
        args: server.args.clone(),
        cwd: deps.cwd.clone(),
        environment,
        prefix: deps.environment.get(SHELL_PREFIX_VARIABLE).cloned(),
    }
}

type SendFuture = Pin<Box<dyn Future<Output = Result<(), McpError>> + Send>>;

impl Transport<RoleClient> for McpTransport {
    type Error = McpError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + Send + 'static {
        let sent: SendFuture = match &mut self.kind {
            TransportKind::Stdio(stdio) => Box::pin(stdio.send(&item)),
            TransportKind::Http(http) => {
                let sent = http.send(item);
                Box::pin(async move { sent.await.map_err(|error| http::to_mcp_error(&error)) })
            }
            TransportKind::Sse(sse) => Box::pin(sse.send(&item)),
            TransportKind::Hosted(hosted) => Box::pin(hosted.send(item)),
        };
        sent
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = match &mut self.kind {
            TransportKind::Stdio(stdio) => stdio.receive().await,
            TransportKind::Http(http) => http.receive().await,
            TransportKind::Sse(sse) => sse.receive().await,
            TransportKind::Hosted(hosted) => hosted.receive().await,
        };
        if message.is_none() {
            self.state.mark_lost();
        }
        message
    }

    async fn close(&mut self) -> Result<(), McpError> {
        self.state.mark_lost();
        match &mut self.kind {
            TransportKind::Stdio(stdio) => stdio.close().await,
            TransportKind::Http(http) => {
                http.close().await.map_err(|error| http::to_mcp_error(&error))?;
            }
            TransportKind::Sse(_) | TransportKind::Hosted(_) => {}
        }
        Ok(())
    }
}

impl Drop for McpTransport {
    fn drop(&mut self) {
        self.state.mark_lost();
    }
}
