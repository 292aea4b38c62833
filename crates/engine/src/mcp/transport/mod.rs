//! How messages go to a server and come back: one transport for all kinds of servers, so that the rest need not know.
//!
//! - `stdio`: a program; `lines`: its output cut into lines
//! - `http`: at an address; `sse`: the same, the older way; `line`: requests of both, and who we are there; `helper`: a
//!   command that knows; `bounded`: events of a bearable size
//! - `hosted`: in the host's own process
//! - `message`: bytes as messages; `depth`: those that lie too deep in themselves; `fate`: what becomes of a connection

mod event_limit;
mod json_depth;
mod connection_state;
mod headers_command;
mod hosted;
mod http;
mod endpoint;
mod line_splitter;
mod message;
mod sse;
mod stdio;

use std::pin::Pin;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use whimbrel_wire::options::{McpServerConfig, StdioServer};

use self::hosted::HostedTransport;
use self::http::HttpTransport;
use self::endpoint::RemoteEndpoint;
use self::sse::SseTransport;
use self::stdio::StdioTransport;
use super::error::McpError;
use super::deps::ServerDeps;
use crate::tasks::{KillHandle, ProgramSpec};

pub(super) use self::connection_state::ConnectionState;
pub(super) use self::hosted::HostedInbox;

/// The way to one server.
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
    /// Opens the way. A program is started; its leash ends it whatever becomes of the rest.
    pub(super) async fn open(
        name: &str,
        config: &McpServerConfig,
        surroundings: &ServerDeps,
        letterbox: &HostedInbox,
        fate: ConnectionState,
    ) -> Result<(Self, Option<KillHandle>), McpError> {
        let (kind, leash) = match config {
            McpServerConfig::Stdio(server) => {
                let (stdio, leash) = StdioTransport::start(&build_program(server, surroundings), fate.clone())?;
                (TransportKind::Stdio(Box::new(stdio)), Some(leash))
            }
            McpServerConfig::Http(server) => {
                let line = RemoteEndpoint::connect(name, server, surroundings).await?;
                (TransportKind::Http(http::new_transport(line, fate.clone())), None)
            }
            McpServerConfig::Sse(server) => {
                let line = RemoteEndpoint::connect(name, server, surroundings).await?;
                (TransportKind::Sse(SseTransport::connect(line, fate.clone()).await?), None)
            }
            McpServerConfig::Sdk(_) => {
                let nobody = || McpError::Permanent("no host is there that could run it.".into());
                let ask = surroundings.host.clone().ok_or_else(nobody)?;
                (TransportKind::Hosted(HostedTransport::new(name, ask, letterbox, fate.clone())), None)
            }
        };
        Ok((Self { kind, state: fate }, leash))
    }
}

fn build_program(server: &StdioServer, surroundings: &ServerDeps) -> ProgramSpec {
    let mut environment = surroundings.environment.clone();
    environment.extend(server.env.clone());
    ProgramSpec {
        command: server.command.clone(),
        args: server.args.clone(),
        cwd: surroundings.cwd.clone(),
        environment,
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
                Box::pin(async move { sent.await.map_err(|failure| http::to_mcp_error(&failure)) })
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
            TransportKind::Http(http) => http.close().await.map_err(|failure| http::to_mcp_error(&failure))?,
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
