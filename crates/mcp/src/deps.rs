//! Dependencies that a session gives its servers: working directory, environment, HTTP client, host and user callbacks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use whimbrel_config::key_variables::HiddenVariables;
use whimbrel_models::http::HttpClient;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};

use super::in_process::InProcessServer;
use super::limits::McpLimits;
use whimbrel_transport::host_requests::HostRequests;

/// Asks the user a server's question (MCP elicitation).
pub type ElicitFn = Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync>;

/// Receives notifications from servers.
pub type NotifyFn = Arc<dyn Fn(ServerNotification) + Send + Sync>;

/// Notification from a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNotification {
    Progress(McpCallProgress),
    /// A URL elicitation was completed in the browser.
    ElicitationComplete {
        server: String,
        /// Elicitation id.
        id: String,
    },
}

/// Progress of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCallProgress {
    pub server: String,
    /// Full tool name.
    pub tool: String,
    pub tool_use_id: String,
    /// Time since the call started.
    pub elapsed: Duration,
    pub progress: f64,
    /// Value of `progress` at completion, if the server reports one.
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Dependencies of servers.
#[derive(Clone)]
pub struct ServerDeps {
    /// Working directory of server programs.
    pub cwd: PathBuf,
    /// Environment of the engine: limits, and variables in entries. Programs get
    /// [`program_environment`](Self::program_environment).
    pub environment: BTreeMap<String, String>,
    /// Key variables that programs do not get unless their entry names them.
    pub hidden_variables: HiddenVariables,
    /// Directories reported to servers as MCP roots.
    pub roots: Vec<PathBuf>,
    pub http_client: HttpClient,
    /// Channel to a host that runs `sdk` servers.
    pub host: Option<HostRequests>,
    /// Servers implemented in this process, by name.
    pub in_process_servers: Arc<BTreeMap<String, InProcessServer>>,
    /// Answers elicitations; without it the capability is not offered.
    pub elicit: Option<ElicitFn>,
    pub notify: Option<NotifyFn>,
    /// Timeouts and sizes.
    pub limits: McpLimits,
}

impl ServerDeps {
    /// Dependencies without a host and without elicitation.
    pub fn new(cwd: PathBuf, environment: BTreeMap<String, String>) -> Self {
        let variable = |name: &str| environment.get(name).cloned();
        Self {
            roots: vec![cwd.clone()],
            http_client: HttpClient::from_env(variable),
            host: None,
            in_process_servers: Arc::default(),
            elicit: None,
            notify: None,
            limits: McpLimits::from_env(&variable),
            hidden_variables: HiddenVariables::new(&[], &environment),
            cwd,
            environment,
        }
    }

    /// Environment of server programs and helper commands: without key variables.
    pub fn program_environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.environment.clone();
        self.hidden_variables.remove_from(&mut environment);
        environment
    }

    /// Adds a host that runs servers of its own and answers elicitations.
    pub fn with_host(self, host: HostRequests) -> Self {
        let elicit = elicit_via_host(host.clone());
        Self { host: Some(host), elicit: Some(elicit), ..self }
    }
}

impl fmt::Debug for ServerDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeps")
            .field("cwd", &self.cwd)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Sends elicitations to the host. A host that fails to answer counts as `cancel`.
pub fn elicit_via_host(host: HostRequests) -> ElicitFn {
    Arc::new(move |elicitation| {
        let host = host.clone();
        Box::pin(async move {
            let cancelled = ElicitationReply { action: ElicitationAction::Cancel, content: None };
            host.request(elicitation).await.unwrap_or(cancelled)
        })
    })
}
