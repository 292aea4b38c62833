//! How messages go to a server and come back: one transport for all kinds of servers, so that the rest need not know.
//!
//! - `stdio`: a program; `lines`: its output cut into lines
//! - `http`: at an address; `sse`: the same, the older way; `line`: requests of both, and who we are there; `helper`: a
//!   command that knows; `bounded`: events of a bearable size
//! - `hosted`: in the host's own process
//! - `message`: bytes as messages; `depth`: those that lie too deep in themselves; `fate`: what becomes of a connection

mod bounded;
mod depth;
mod fate;
mod helper;
mod hosted;
mod http;
mod line;
mod lines;
mod message;
mod sse;
mod stdio;

use std::pin::Pin;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use whimbrel_wire::options::{McpServerConfig, StdioServer};

use self::hosted::Hosted;
use self::http::Http;
use self::line::Line;
use self::sse::SseTransport;
use self::stdio::Stdio;
use super::fault::Fault;
use super::surroundings::Surroundings;
use crate::tasks::{Leash, Program};

pub(super) use self::fate::Fate;
pub(super) use self::hosted::Letterbox;

/// The way to one server.
pub(super) struct Wire {
    kind: Kind,
    fate: Fate,
}

enum Kind {
    Stdio(Box<Stdio>),
    Http(Http),
    Sse(SseTransport),
    Hosted(Hosted),
}

impl Wire {
    /// Opens the way. A program is started; its leash ends it whatever becomes of the rest.
    pub(super) async fn open(
        name: &str,
        config: &McpServerConfig,
        surroundings: &Surroundings,
        letterbox: &Letterbox,
        fate: Fate,
    ) -> Result<(Self, Option<Leash>), Fault> {
        let (kind, leash) = match config {
            McpServerConfig::Stdio(server) => {
                let (stdio, leash) = Stdio::start(&program(server, surroundings), fate.clone())?;
                (Kind::Stdio(Box::new(stdio)), Some(leash))
            }
            McpServerConfig::Http(server) => {
                let line = Line::to(name, server, surroundings).await?;
                (Kind::Http(http::transport(line, fate.clone())), None)
            }
            McpServerConfig::Sse(server) => {
                let line = Line::to(name, server, surroundings).await?;
                (Kind::Sse(SseTransport::connect(line, fate.clone()).await?), None)
            }
            McpServerConfig::Sdk(_) => {
                let nobody = || Fault::Hopeless("no host is there that could run it.".into());
                let ask = surroundings.ask.clone().ok_or_else(nobody)?;
                (Kind::Hosted(Hosted::new(name, ask, letterbox, fate.clone())), None)
            }
        };
        Ok((Self { kind, fate }, leash))
    }
}

fn program(server: &StdioServer, surroundings: &Surroundings) -> Program {
    let mut environment = surroundings.environment.clone();
    environment.extend(server.env.clone());
    Program {
        command: server.command.clone(),
        args: server.args.clone(),
        cwd: surroundings.cwd.clone(),
        environment,
    }
}

type Sent = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

impl Transport<RoleClient> for Wire {
    type Error = Fault;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Fault>> + Send + 'static {
        let sent: Sent = match &mut self.kind {
            Kind::Stdio(stdio) => Box::pin(stdio.send(&item)),
            Kind::Http(http) => {
                let sent = http.send(item);
                Box::pin(async move { sent.await.map_err(|failure| http::fault(&failure)) })
            }
            Kind::Sse(sse) => Box::pin(sse.send(&item)),
            Kind::Hosted(hosted) => Box::pin(hosted.send(item)),
        };
        sent
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = match &mut self.kind {
            Kind::Stdio(stdio) => stdio.receive().await,
            Kind::Http(http) => http.receive().await,
            Kind::Sse(sse) => sse.receive().await,
            Kind::Hosted(hosted) => hosted.receive().await,
        };
        if message.is_none() {
            self.fate.lose();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Fault> {
        self.fate.lose();
        match &mut self.kind {
            Kind::Stdio(stdio) => stdio.close().await,
            Kind::Http(http) => http.close().await.map_err(|failure| http::fault(&failure))?,
            Kind::Sse(_) | Kind::Hosted(_) => {}
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.fate.lose();
    }
}
