//! MCP servers of a session: start with it, shutdown. `startup_wait` waits for them before a turn, `status_watch` sends
//! status notices, `notifications` forwards theirs, `elicitation` asks the host.
//!
//! Anything that waits for a server runs outside the event loop's task, because servers in the host's process answer
//! through it.

mod elicitation;
mod notifications;
pub(super) mod startup_wait;
mod status_watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_mcp::{InProcessServer, ServerConfigs, ServerDeps, ServerOrigin, ServerPolicy, ServerRegistry};
use whimbrel_tools::hooks::HookDispatcher;
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::control::{ControlResponse, Initialize};
use whimbrel_wire::options::{McpServerConfig, SdkServer};
use whimbrel_wire::system::InitServer;

use crate::agents::mcp_servers::ServerStarter;
use crate::setup::Setup;
use crate::state_notifier::StateNotifier;

/// Time for servers to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// The same when the session is stopped.
const FORCED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

/// Time for control requests that are still running at shutdown.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) struct SessionMcp {
    tool_cache: ToolCache,
    deps: Arc<SessionDeps>,
    /// Decides which servers may be started.
    server_policy: Arc<ServerPolicy>,
    /// Configurations of servers that were not started yet.
    unstarted: ServerConfigs,
    /// Whether the next turn should wait for servers.
    wait_before_turn: bool,
    /// Fires when the `init` frame was sent; status notices wait for it.
    session_announced: CancellationToken,
    status_watcher: Option<AbortOnDropHandle<()>>,
    /// Control requests that are answered asynchronously.
    deferred_responses: JoinSet<()>,
    /// Serializes changes of the set of servers.
    change_lock: Arc<tokio::sync::Mutex<()>>,
}

/// Session parts that server connections use.
struct SessionDeps {
    workspace: Arc<Workspace>,
    host_requests: HostRequests,
    frame_sender: FrameSender,
    state_notifier: StateNotifier,
    hooks: watch::Sender<HookDispatcher>,
    in_process_servers: Arc<BTreeMap<String, InProcessServer>>,
}

impl SessionMcp {
    /// Starts the configured servers without waiting for them.
    pub(crate) fn start(
        setup: &mut Setup,
        (requests, frame_sender): (&HostRequests, &FrameSender),
        state: &StateNotifier,
        dispatcher: &HookDispatcher,
    ) -> Self {
        let deps = Arc::new(SessionDeps {
            workspace: Arc::clone(&setup.session.workspace),
            host_requests: requests.clone(),
            frame_sender: frame_sender.clone(),
            state_notifier: state.clone(),
            hooks: watch::Sender::new(dispatcher.clone()),
            in_process_servers: Arc::clone(&setup.mcp.in_process_servers),
        });
        let mut mcp = Self {
            tool_cache: setup.mcp.tool_cache.clone(),
            deps,
            server_policy: Arc::new(setup.mcp.servers.policy.clone()),
            unstarted: std::mem::take(&mut setup.mcp.servers),
            wait_before_turn: false,
            session_announced: CancellationToken::new(),
            status_watcher: None,
            deferred_responses: JoinSet::new(),
            change_lock: Arc::default(),
        };
        if !mcp.unstarted.entries.is_empty() {
            mcp.ensure_registry();
        }
        mcp
    }

    /// The server registry, created on first use because few sessions have servers.
    pub(crate) fn ensure_registry(&mut self) -> ServerRegistry {
        if let Some(registry) = self.tool_cache.registry() {
            return registry.clone();
        }
        let servers = std::mem::take(&mut self.unstarted);
        self.wait_before_turn = true;
        let registry = ServerRegistry::start(servers, self.deps.server_deps());
        let watcher = status_watch::watch_status(
            registry.clone(),
            self.deps.frame_sender.clone(),
            self.session_announced.clone(),
        );
        self.status_watcher = Some(AbortOnDropHandle::new(tokio::spawn(watcher)));
        self.tool_cache.set_registry(registry.clone());
        registry
    }

    /// Starts servers that belong to a single agent, under the same server policy.
    pub(crate) fn server_starter(&self) -> ServerStarter {
        let (deps, policy) = (Arc::clone(&self.deps), Arc::clone(&self.server_policy));
        ServerStarter::new(move |servers| {
            let policy = ServerPolicy::clone(&policy);
            ServerRegistry::start(ServerConfigs { policy, ..servers }, deps.server_deps())
        })
    }

    /// The server registry, if it was created.
    pub(crate) fn registry(&self) -> Option<&ServerRegistry> {
        self.tool_cache.registry()
    }

    /// Adds the servers that run in the host's process. A name that exists already means the same server.
    pub(crate) fn add_sdk_servers(&mut self, initialize: &Initialize) {
        let names = initialize.sdk_mcp_servers.as_deref().unwrap_or_default();
        if names.is_empty() {
            return;
        }
        let config = |name: &String| initialize.sdk_mcp_server_configs.as_ref()?.get(name).cloned();
        let entry = |name: &String| {
            let config = config(name).unwrap_or_default();
            let server = SdkServer { name: name.clone(), timeout: config.timeout, tools: config.tools };
            (name.clone(), McpServerConfig::Sdk(server))
        };
        let mut servers = ServerConfigs::default();
        servers.add_configs(ServerOrigin::Dynamic, &names.iter().map(entry).collect(), &|_| None);
        self.ensure_registry().add(servers);
        self.wait_before_turn = true;
    }

    /// Replaces the hooks used for elicitations.
    pub(crate) fn set_hooks(&self, hooks: &HookDispatcher) {
        self.deps.hooks.send_replace(hooks.clone());
    }

    /// Makes the next turn wait for servers.
    pub(crate) fn mark_starting(&mut self) {
        self.wait_before_turn = true;
    }

    /// Lock that serializes changes of the set of servers.
    pub(crate) fn change_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.change_lock)
    }

    /// Answers a control request asynchronously.
    pub(crate) fn respond_later(&mut self, answer: impl Future<Output = ControlResponse> + Send + 'static) {
        while self.deferred_responses.try_join_next().is_some() {}
        let frame_sender = self.deps.frame_sender.clone();
        self.deferred_responses.spawn(async move { frame_sender.send(answer.await).await });
    }

    /// Server statuses for the `init` frame.
    pub(crate) fn init_statuses(&self) -> Vec<InitServer> {
        self.registry().map(ServerRegistry::init_servers).unwrap_or_default()
    }

    /// Closes all servers and running control requests; with short timeouts if the session is stopped.
    pub(crate) async fn close(&mut self, stop: &CancellationToken) {
        self.status_watcher = None;
        let drain = async { while self.deferred_responses.join_next().await.is_some() {} };
        let _ = stop.run_until_cancelled(tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, drain)).await;
        self.deferred_responses.shutdown().await;
        if let Some(registry) = self.tool_cache.registry() {
            let deadline = async {
                stop.cancelled().await;
                tokio::time::sleep(FORCED_SHUTDOWN_TIMEOUT).await;
            };
            // A server that does not end in time is killed on drop.
            tokio::select! {
                biased;
                _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, registry.close()) => {}
                () = deadline => {}
            }
        }
    }
}

impl SessionDeps {
    fn server_deps(&self) -> ServerDeps {
        let Self {
            workspace,
            host_requests: requests,
            frame_sender,
            state_notifier: state,
            hooks: dispatcher,
            in_process_servers,
        } = self;
        let deps = ServerDeps::new(workspace.root().to_path_buf(), workspace.environment());
        ServerDeps {
            hidden_variables: workspace.hidden_variables().clone(),
            roots: workspace.directories(),
            host: Some(requests.clone()),
            in_process_servers: Arc::clone(in_process_servers),
            elicit: Some(elicitation::elicitation_handler(
                requests.clone(),
                state.clone(),
                dispatcher.subscribe(),
            )),
            notify: Some(notifications::notification_sink(frame_sender.clone(), requests.sends_details())),
            ..deps
        }
    }
}
