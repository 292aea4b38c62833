//! The MCP servers that work for a session: started with it, waited for before its first turn, watched while it lasts,
//! ended with it. Whatever waits for a server runs beside the owner's task, because a server in the host's own process
//! answers through it.

mod elicitation;
mod status_watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_wire::control::{ControlResponse, Initialize};
use whimbrel_wire::message::ToolProgress;
use whimbrel_wire::options::{McpServerConfig, SdkServer};
use whimbrel_wire::system::{ElicitationComplete, Init, InitServer, System};

use super::turns::TurnWork;
use crate::agent::Agent;
use crate::agents::mcp_servers::ServerStarter;
use crate::host_requests::HostRequests;
use crate::commands::{Commands, CommandJob};
use crate::hooks::HookDispatcher;
use crate::mcp::{
    ServerPolicy, LocalServer, ServerNotification, ServerOrigin, McpCallProgress, ServerRegistry, ServerConfigs, ToolCache, ServerDeps, NotifyFn,
};
use crate::frame_sender::FrameSender;
use crate::setup::Setup;
use crate::state_notifier::StateNotifier;
use crate::workspace::Workspace;
use crate::{clock, ids};

/// How long a turn waits for servers that are starting. One that comes later is there from the next model call on.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the host waits for the list of commands, to which servers contribute.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long servers may take to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// How long they may take when everything is to stop.
const FORCED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

/// How long the answers to requests are waited for that came before the end.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// How often the host hears that a call goes on.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The servers of a session.
pub(crate) struct SessionMcp {
    tool_cache: ToolCache,
    deps: Arc<SessionDeps>,
    /// Who may come in.
    server_policy: Arc<ServerPolicy>,
    /// Servers that have not been started yet, and who may come in.
    unstarted: ServerConfigs,
    /// Whether somebody should wait for servers before the next turn.
    wait_before_turn: bool,
    /// Fires when the session has been announced: nothing is told of servers before.
    session_announced: CancellationToken,
    status_watcher: Option<AbortOnDropHandle<()>>,
    /// Requests of the host that take their time.
    deferred_responses: JoinSet<()>,
    /// Changes of the list of servers are made one after the other.
    change_lock: Arc<tokio::sync::Mutex<()>>,
}

/// What a session lends to its servers.
struct SessionDeps {
    workspace: Arc<Workspace>,
    host_requests: HostRequests,
    frame_sender: FrameSender,
    state_notifier: StateNotifier,
    hooks: watch::Sender<HookDispatcher>,
    local_servers: Arc<BTreeMap<String, LocalServer>>,
}

impl SessionMcp {
    /// Starts the servers that the session was set up with, and waits for none.
    pub(crate) fn start(
        setup: &mut Setup,
        (ask, outbox): (&HostRequests, &FrameSender),
        state: &StateNotifier,
        lookout: &HookDispatcher,
    ) -> Self {
        let lent = Arc::new(SessionDeps {
            workspace: Arc::clone(&setup.workspace),
            host_requests: ask.clone(),
            frame_sender: outbox.clone(),
            state_notifier: state.clone(),
            hooks: watch::Sender::new(lookout.clone()),
            local_servers: Arc::clone(&setup.local_servers),
        });
        let mut crew = Self {
            tool_cache: setup.mcp_tool_cache.clone(),
            deps: lent,
            server_policy: Arc::new(setup.servers.policy.clone()),
            unstarted: std::mem::take(&mut setup.servers),
            wait_before_turn: false,
            session_announced: CancellationToken::new(),
            status_watcher: None,
            deferred_responses: JoinSet::new(),
            change_lock: Arc::default(),
        };
        if !crew.unstarted.entries.is_empty() {
            crew.ensure_registry();
        }
        crew
    }

    /// The servers. Few sessions have any: the others do not pay for them.
    pub(crate) fn ensure_registry(&mut self) -> ServerRegistry {
        if let Some(roster) = self.tool_cache.registry() {
            return roster.clone();
        }
        let servers = std::mem::take(&mut self.unstarted);
        self.wait_before_turn = true;
        let roster = ServerRegistry::start(servers, self.deps.server_deps());
        let watching = status_watch::watch_status(roster.clone(), self.deps.frame_sender.clone(), self.session_announced.clone());
        self.status_watcher = Some(AbortOnDropHandle::new(tokio::spawn(watching)));
        self.tool_cache.set_registry(roster.clone());
        roster
    }

    /// How servers are started that work for one agent alone. They are let in like all others.
    pub(crate) fn server_starter(&self) -> ServerStarter {
        let (lent, admission) = (Arc::clone(&self.deps), Arc::clone(&self.server_policy));
        ServerStarter::new(move |servers| {
            let admission = ServerPolicy::clone(&admission);
            ServerRegistry::start(ServerConfigs { policy: admission, ..servers }, lent.server_deps())
        })
    }

    /// The servers, if there are any.
    pub(crate) fn registry(&self) -> Option<&ServerRegistry> {
        self.tool_cache.registry()
    }

    /// Adds the servers that the host runs itself. One that was named before is the same one.
    pub(crate) fn add_sdk_servers(&mut self, initialize: &Initialize) {
        let names = initialize.sdk_mcp_servers.as_deref().unwrap_or_default();
        if names.is_empty() {
            return;
        }
        let terms = |name: &String| initialize.sdk_mcp_server_configs.as_ref()?.get(name).cloned();
        let entry = |name: &String| {
            let terms = terms(name).unwrap_or_default();
            let server = SdkServer { name: name.clone(), timeout: terms.timeout, tools: terms.tools };
            (name.clone(), McpServerConfig::Sdk(server))
        };
        let mut servers = ServerConfigs::default();
        servers.add_configs(ServerOrigin::Dynamic, &names.iter().map(entry).collect(), &|_| None);
        self.ensure_registry().add(servers);
        self.wait_before_turn = true;
    }

    /// From now on hooks are told by this one.
    pub(crate) fn set_hooks(&self, lookout: &HookDispatcher) {
        self.deps.hooks.send_replace(lookout.clone());
    }

    /// Servers may be starting: the next turn waits for them.
    pub(crate) fn mark_starting(&mut self) {
        self.wait_before_turn = true;
    }

    /// Changes of the list of servers take turns.
    pub(crate) fn change_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.change_lock)
    }

    /// Answers the host later, beside everything else.
    pub(crate) fn respond_later(&mut self, answer: impl Future<Output = ControlResponse> + Send + 'static) {
        while self.deferred_responses.try_join_next().is_some() {}
        let outbox = self.deps.frame_sender.clone();
        self.deferred_responses.spawn(async move { outbox.send(answer.await).await });
    }

    /// The wait for servers that may have prompts, if there is one to wait for.
    pub(crate) fn startup_wait(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let roster = self.registry()?.clone();
        Some(async move { roster.wait_ready_external(INITIALIZE_TIMEOUT).await })
    }

    /// How the servers are, for the notice that begins a turn.
    pub(crate) fn init_statuses(&self) -> Vec<InitServer> {
        self.registry().map(ServerRegistry::init_servers).unwrap_or_default()
    }

    /// What a turn does about servers before it begins.
    pub(super) fn startup_barrier(&mut self, commands: &Commands, work: &TurnWork) -> Option<StartupBarrier> {
        let roster = self.registry()?.clone();
        // What the engine answers itself needs no servers.
        let needs = !matches!(
            work,
            TurnWork::Command {
                job: CommandJob::Answer { .. } | CommandJob::Clear { .. } | CommandJob::Model { .. } | CommandJob::Compact(_),
                ..
            }
        );
        let patience = (needs && std::mem::take(&mut self.wait_before_turn)).then_some(STARTUP_TIMEOUT);
        Some(StartupBarrier { registry: roster, timeout: patience, commands: commands.clone(), session_announced: self.session_announced.clone() })
    }

    /// Ends all servers and what is being done about them; in a hurry if everything is to stop.
    pub(crate) async fn close(&mut self, stop: &CancellationToken) {
        self.status_watcher = None;
        let answered = async { while self.deferred_responses.join_next().await.is_some() {} };
        let _ = stop.run_until_cancelled(tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, answered)).await;
        self.deferred_responses.shutdown().await;
        if let Some(roster) = self.tool_cache.registry() {
            let hurry = async {
                stop.cancelled().await;
                tokio::time::sleep(FORCED_SHUTDOWN_TIMEOUT).await;
            };
            // What does not end in time is ended when it is dropped.
            tokio::select! {
                biased;
                _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, roster.close()) => {}
                () = hurry => {}
            }
        }
    }
}

/// A turn's view of servers that may be arriving.
pub(crate) struct StartupBarrier {
    registry: ServerRegistry,
    timeout: Option<Duration>,
    commands: Commands,
    session_announced: CancellationToken,
}

impl StartupBarrier {
    /// Waits for servers as long as that makes sense, and gives the agent what they brought.
    async fn wait(&self, agent: &mut Agent, cancel: &CancellationToken) {
        if let Some(patience) = self.timeout {
            cancel.run_until_cancelled(self.registry.wait_ready(patience)).await;
        }
        agent.refresh_tools();
    }

    /// Tells in the notice what has come meanwhile.
    fn update_init(&self, init: &mut Init, agent: &Agent) {
        init.tools = agent.tool_env.tool_set.names_for_init();
        init.mcp_servers = self.registry.init_servers();
        init.slash_commands = self.commands.names();
    }

    /// The session has been announced.
    pub(crate) fn mark_announced(&self) {
        self.session_announced.cancel();
    }
}

/// Waits for servers before a turn, as far as there are any, and has its notice tell what they brought.
pub(super) async fn wait_for_servers(
    arrival: Option<&StartupBarrier>,
    agent: &mut Agent,
    mut work: TurnWork,
    cancel: &CancellationToken,
) -> TurnWork {
    let Some(arrival) = arrival else { return work };
    arrival.wait(agent, cancel).await;
    match &mut work {
        TurnWork::Turn(opening) => arrival.update_init(&mut opening.init, agent),
        TurnWork::Command { notices, .. } => arrival.update_init(&mut notices.init, agent),
    }
    work
}

impl SessionDeps {
    fn server_deps(&self) -> ServerDeps {
        let Self { workspace, host_requests: ask, frame_sender: outbox, state_notifier: state, hooks: lookout, local_servers: local } = self;
        let around = ServerDeps::new(workspace.root().to_path_buf(), workspace.environment());
        ServerDeps {
            roots: workspace.directories(),
            host: Some(ask.clone()),
            local_servers: Arc::clone(local),
            elicit: Some(elicitation::elicitation_handler(ask.clone(), state.clone(), lookout.subscribe())),
            notify: Some(notification_sink(outbox.clone())),
            ..around
        }
    }
}

/// Tells the host what servers tell; how calls go on, not at every step.
fn notification_sink(outbox: FrameSender) -> NotifyFn {
    let last: Mutex<Option<(String, Instant)>> = Mutex::default();
    Arc::new(move |news| match news {
        ServerNotification::Progress(progress) => {
            let now = clock::monotonic();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.as_ref().is_some_and(|(id, at)| *id == progress.tool_use_id && now - *at < PROGRESS_INTERVAL) {
                return;
            }
            *last = Some((progress.tool_use_id.clone(), now));
            outbox.try_send(progress_frame(progress, &outbox));
        }
        ServerNotification::ElicitationComplete { server, id } => {
            let event = ElicitationComplete { mcp_server_name: server, elicitation_id: id }.into();
            outbox.send_detached(System { event, uuid: ids::new_uuid(), session_id: outbox.session_id().to_owned() });
        }
    })
}

fn progress_frame(progress: McpCallProgress, outbox: &FrameSender) -> ToolProgress {
    ToolProgress {
        tool_use_id: progress.tool_use_id,
        tool_name: progress.tool,
        parent_tool_use_id: None,
        elapsed_time_seconds: progress.elapsed.as_secs_f64(),
        task_id: None,
        heartbeat: None,
        subagent_type: None,
        subagent_retry: None,
        uuid: ids::new_uuid(),
        session_id: outbox.session_id().to_owned(),
    }
}
