//! The MCP servers that work for a session: started with it, waited for before its first turn, watched while it lasts,
//! ended with it. Whatever waits for a server runs beside the owner's task, because a server in the host's own process
//! answers through it.

mod elicit;
mod news;

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

use super::turns::Work;
use crate::agent::Agent;
use crate::agents::hired::Hiring;
use crate::ask::Ask;
use crate::commands::{Commands, Job};
use crate::hooks::Lookout;
use crate::mcp::{
    Admission, LocalServer, News, Origin, Progress, Roster, Servers, Supply, Surroundings, Tell,
};
use crate::outbox::Outbox;
use crate::setup::Setup;
use crate::state::StateSign;
use crate::workspace::Workspace;
use crate::{clock, ids};

/// How long a turn waits for servers that are starting. One that comes later is there from the next model call on.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the host waits for the list of commands, to which servers contribute.
const WELCOME: Duration = Duration::from_secs(2);

/// How long servers may take to end.
const FAREWELL: Duration = Duration::from_secs(6);

/// How long they may take when everything is to stop.
const HURRY: Duration = Duration::from_millis(1500);

/// How long the answers to requests are waited for that came before the end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// How often the host hears that a call goes on.
const BEAT: Duration = Duration::from_millis(100);

/// The servers of a session.
pub(crate) struct Crew {
    supply: Supply,
    lent: Arc<Lent>,
    /// Who may come in.
    admission: Arc<Admission>,
    /// Servers that have not been started yet, and who may come in.
    waiting: Servers,
    /// Whether somebody should wait for servers before the next turn.
    due: bool,
    /// Fires when the session has been announced: nothing is told of servers before.
    opened: CancellationToken,
    watcher: Option<AbortOnDropHandle<()>>,
    /// Requests of the host that take their time.
    errands: JoinSet<()>,
    /// Changes of the list of servers are made one after the other.
    turns: Arc<tokio::sync::Mutex<()>>,
}

/// What a session lends to its servers.
struct Lent {
    workspace: Arc<Workspace>,
    ask: Ask,
    outbox: Outbox,
    state: StateSign,
    lookout: watch::Sender<Lookout>,
    local: Arc<BTreeMap<String, LocalServer>>,
}

impl Crew {
    /// Starts the servers that the session was set up with, and waits for none.
    pub(crate) fn start(
        setup: &mut Setup,
        (ask, outbox): (&Ask, &Outbox),
        state: &StateSign,
        lookout: &Lookout,
    ) -> Self {
        let lent = Arc::new(Lent {
            workspace: Arc::clone(&setup.workspace),
            ask: ask.clone(),
            outbox: outbox.clone(),
            state: state.clone(),
            lookout: watch::Sender::new(lookout.clone()),
            local: Arc::clone(&setup.local_servers),
        });
        let mut crew = Self {
            supply: setup.supply.clone(),
            lent,
            admission: Arc::new(setup.servers.admission.clone()),
            waiting: std::mem::take(&mut setup.servers),
            due: false,
            opened: CancellationToken::new(),
            watcher: None,
            errands: JoinSet::new(),
            turns: Arc::default(),
        };
        if !crew.waiting.entries.is_empty() {
            crew.roster();
        }
        crew
    }

    /// The servers. Few sessions have any: the others do not pay for them.
    pub(crate) fn roster(&mut self) -> Roster {
        if let Some(roster) = self.supply.roster() {
            return roster.clone();
        }
        let servers = std::mem::take(&mut self.waiting);
        self.due = true;
        let roster = Roster::start(servers, self.lent.surroundings());
        let watching = news::watch(roster.clone(), self.lent.outbox.clone(), self.opened.clone());
        self.watcher = Some(AbortOnDropHandle::new(tokio::spawn(watching)));
        self.supply.connect(roster.clone());
        roster
    }

    /// How servers are started that work for one agent alone. They are let in like all others.
    pub(crate) fn hiring(&self) -> Hiring {
        let (lent, admission) = (Arc::clone(&self.lent), Arc::clone(&self.admission));
        Hiring::new(move |servers| {
            let admission = Admission::clone(&admission);
            Roster::start(Servers { admission, ..servers }, lent.surroundings())
        })
    }

    /// The servers, if there are any.
    pub(crate) fn hired(&self) -> Option<&Roster> {
        self.supply.roster()
    }

    /// Adds the servers that the host runs itself. One that was named before is the same one.
    pub(crate) fn add_hosted(&mut self, initialize: &Initialize) {
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
        let mut servers = Servers::default();
        servers.add(Origin::Dynamic, &names.iter().map(entry).collect(), &|_| None);
        self.roster().add(servers);
        self.due = true;
    }

    /// From now on hooks are told by this one.
    pub(crate) fn set_lookout(&self, lookout: &Lookout) {
        self.lent.lookout.send_replace(lookout.clone());
    }

    /// Servers may be starting: the next turn waits for them.
    pub(crate) fn expect_some(&mut self) {
        self.due = true;
    }

    /// Changes of the list of servers take turns.
    pub(crate) fn turns(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.turns)
    }

    /// Answers the host later, beside everything else.
    pub(crate) fn later(&mut self, answer: impl Future<Output = ControlResponse> + Send + 'static) {
        while self.errands.try_join_next().is_some() {}
        let outbox = self.lent.outbox.clone();
        self.errands.spawn(async move { outbox.send(answer.await).await });
    }

    /// The wait for servers that may have prompts, if there is one to wait for.
    pub(crate) fn welcome(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let roster = self.hired()?.clone();
        Some(async move { roster.ready_outside(WELCOME).await })
    }

    /// How the servers are, for the notice that begins a turn.
    pub(crate) fn for_init(&self) -> Vec<InitServer> {
        self.hired().map(Roster::for_init).unwrap_or_default()
    }

    /// What a turn does about servers before it begins.
    pub(super) fn arrival(&mut self, commands: &Commands, work: &Work) -> Option<Arrival> {
        let roster = self.hired()?.clone();
        // What the engine answers itself needs no servers.
        let needs = !matches!(
            work,
            Work::Command {
                job: Job::Answer { .. } | Job::Clear { .. } | Job::Model { .. } | Job::Compact(_),
                ..
            }
        );
        let patience = (needs && std::mem::take(&mut self.due)).then_some(PATIENCE);
        Some(Arrival { roster, patience, commands: commands.clone(), opened: self.opened.clone() })
    }

    /// Ends all servers and what is being done about them; in a hurry if everything is to stop.
    pub(crate) async fn close(&mut self, stop: &CancellationToken) {
        self.watcher = None;
        let answered = async { while self.errands.join_next().await.is_some() {} };
        let _ = stop.run_until_cancelled(tokio::time::timeout(LAST_ANSWERS, answered)).await;
        self.errands.shutdown().await;
        if let Some(roster) = self.supply.roster() {
            let hurry = async {
                stop.cancelled().await;
                tokio::time::sleep(HURRY).await;
            };
            // What does not end in time is ended when it is dropped.
            tokio::select! {
                biased;
                _ = tokio::time::timeout(FAREWELL, roster.close()) => {}
                () = hurry => {}
            }
        }
    }
}

/// A turn's view of servers that may be arriving.
pub(crate) struct Arrival {
    roster: Roster,
    patience: Option<Duration>,
    commands: Commands,
    opened: CancellationToken,
}

impl Arrival {
    /// Waits for servers as long as that makes sense, and gives the agent what they brought.
    async fn wait(&self, agent: &mut Agent, cancel: &CancellationToken) {
        if let Some(patience) = self.patience {
            cancel.run_until_cancelled(self.roster.ready(patience)).await;
        }
        agent.refit();
    }

    /// Tells in the notice what has come meanwhile.
    fn complete(&self, init: &mut Init, agent: &Agent) {
        init.tools = agent.bench.toolbox.names_for_init();
        init.mcp_servers = self.roster.for_init();
        init.slash_commands = self.commands.names();
    }

    /// The session has been announced.
    pub(crate) fn announced(&self) {
        self.opened.cancel();
    }
}

/// Waits for servers before a turn, as far as there are any, and has its notice tell what they brought.
pub(super) async fn await_servers(
    arrival: Option<&Arrival>,
    agent: &mut Agent,
    mut work: Work,
    cancel: &CancellationToken,
) -> Work {
    let Some(arrival) = arrival else { return work };
    arrival.wait(agent, cancel).await;
    match &mut work {
        Work::Turn(opening) => arrival.complete(&mut opening.init, agent),
        Work::Command { notices, .. } => arrival.complete(&mut notices.init, agent),
    }
    work
}

impl Lent {
    fn surroundings(&self) -> Surroundings {
        let Self { workspace, ask, outbox, state, lookout, local } = self;
        let around = Surroundings::new(workspace.root().to_path_buf(), workspace.environment());
        Surroundings {
            roots: workspace.folders(),
            ask: Some(ask.clone()),
            local: Arc::clone(local),
            elicit: Some(elicit::through(ask.clone(), state.clone(), lookout.subscribe())),
            tell: Some(telling(outbox.clone())),
            ..around
        }
    }
}

/// Tells the host what servers tell; how calls go on, not at every step.
fn telling(outbox: Outbox) -> Tell {
    let last: Mutex<Option<(String, Instant)>> = Mutex::default();
    Arc::new(move |news| match news {
        News::Progress(progress) => {
            let now = clock::monotonic();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.as_ref().is_some_and(|(id, at)| *id == progress.tool_use_id && now - *at < BEAT) {
                return;
            }
            *last = Some((progress.tool_use_id.clone(), now));
            outbox.try_send(goes_on(progress, &outbox));
        }
        News::Answered { server, id } => {
            let event = ElicitationComplete { mcp_server_name: server, elicitation_id: id }.into();
            outbox.post(System { event, uuid: ids::uuid(), session_id: outbox.session().to_owned() });
        }
    })
}

fn goes_on(progress: Progress, outbox: &Outbox) -> ToolProgress {
    ToolProgress {
        tool_use_id: progress.tool_use_id,
        tool_name: progress.tool,
        parent_tool_use_id: None,
        elapsed_time_seconds: progress.elapsed.as_secs_f64(),
        task_id: None,
        heartbeat: None,
        subagent_type: None,
        subagent_retry: None,
        uuid: ids::uuid(),
        session_id: outbox.session().to_owned(),
    }
}
