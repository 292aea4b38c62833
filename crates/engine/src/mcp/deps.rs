//! What a session lends to its servers: a place, an environment, ways out, and a person to ask.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use whimbrel_models::http::HttpClient;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::limits::McpLimits;
use super::local::LocalServer;
use crate::host_requests::HostRequests;

/// Puts a server's question to the person.
pub type ElicitFn = Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync>;

/// Hears what servers tell by themselves.
pub type NotifyFn = Arc<dyn Fn(ServerNotification) + Send + Sync>;

/// What a server tells by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNotification {
    /// A call goes on.
    Progress(McpCallProgress),
    /// A question that the person was sent elsewhere for has been answered there.
    ElicitationComplete {
        /// The server.
        server: String,
        /// The question.
        id: String,
    },
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCallProgress {
    /// The server.
    pub server: String,
    /// Its tool, by its whole name.
    pub tool: String,
    /// The call.
    pub tool_use_id: String,
    /// How long it has been under way.
    pub elapsed: Duration,
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if the server knows.
    pub total: Option<f64>,
    /// What the server says about it.
    pub message: Option<String>,
}

/// What servers are given.
#[derive(Clone)]
pub struct ServerDeps {
    /// The folder that programs are started in.
    pub cwd: PathBuf,
    /// The variables that programs see, and that limits are read from.
    pub environment: BTreeMap<String, String>,
    /// The folders that a server is told the session works in.
    pub roots: Vec<PathBuf>,
    /// The way to the network.
    pub http_client: HttpClient,
    /// The way to a host that runs servers itself.
    pub host: Option<HostRequests>,
    /// Servers of the host that are code in this process, by name.
    pub local_servers: Arc<BTreeMap<String, LocalServer>>,
    /// Whoever answers questions of servers; none: they may not ask.
    pub elicit: Option<ElicitFn>,
    /// Whoever hears what servers tell by themselves.
    pub notify: Option<NotifyFn>,
    /// Limits of time and size.
    pub limits: McpLimits,
}

impl ServerDeps {
    /// Servers that work in a folder, with nobody to ask.
    pub fn new(cwd: PathBuf, environment: BTreeMap<String, String>) -> Self {
        let variable = |name: &str| environment.get(name).cloned();
        Self {
            roots: vec![cwd.clone()],
            http_client: HttpClient::from_env(variable),
            host: None,
            local_servers: Arc::default(),
            elicit: None,
            notify: None,
            limits: McpLimits::from_env(&variable),
            cwd,
            environment,
        }
    }

    /// The same, with a host that runs servers of its own and answers their questions.
    pub fn with_host(self, ask: HostRequests) -> Self {
        let elicit = elicit_via_host(ask.clone());
        Self { host: Some(ask), elicit: Some(elicit), ..self }
    }
}

impl fmt::Debug for ServerDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("cwd", &self.cwd)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Puts questions to the host. One that cannot answer them has, as it were, gone away.
pub fn elicit_via_host(ask: HostRequests) -> ElicitFn {
    Arc::new(move |question| {
        let ask = ask.clone();
        Box::pin(async move {
            let gone = ElicitationReply { action: ElicitationAction::Cancel, content: None };
            ask.request(question).await.unwrap_or(gone)
        })
    })
}
