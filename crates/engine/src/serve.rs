//! The owner of a session: one task that takes everything off the inbox and starts turns.
//!
//! "Input finished" and "stop" are different facts. When the host finishes its input the session goes on until nothing
//! runs and nothing is queued; only the link's stop token ends it at once. What slash commands start is in `command`,
//! what people and plugins add in `extensions`.

mod command;
mod crew;
mod extensions;
mod kind;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::control::ControlResponse;
use whimbrel_wire::hook::{HookBase, HookEvent};
use whimbrel_wire::message::{Origin, TurnResult, User};
use whimbrel_wire::system::{Init, WireErrorNotice};
use whimbrel_wire::{Frame, PROTOCOL_VERSION, Role, WireError};

use crate::agent::Agent;
use crate::agents::desk::Desk;
use crate::agents::places::Places;
use crate::agents::team::Teams;
use crate::agents::{Agents, Home, notices};
use crate::ask::Ask;
use crate::commands::{self, Job};
use crate::context::memory::Memory;
use crate::context::usage::Gauge;
use crate::context::{changes, prompt, surroundings};
use crate::cost::Ledger;
use crate::denials::Denials;
use crate::engine::Engine;
use crate::gate::{Asks, Gate};
use crate::hooks::{self, HookSet, Hooks, Lookout};
use crate::inbox::{Inbox, News, Post, inbox};
use crate::key_helper::KeyHelper;
use crate::knobs::KnobsWriter;
use crate::life::{Course, Input, Moment};
use crate::link::Link;
use crate::opening::{self, Echo, Notices, Opening};
use crate::outbox::Outbox;
use crate::queue::{Batch, Due, Queue};
use crate::report::{self, Report, report};
use crate::session::bulletin;
use crate::session::log::Identity;
use crate::setup::{Setup, SetupError, Start, resume};
use crate::state::StateSign;
use crate::tasks::Tasks;
use crate::turn::{self, Ending};
use crate::verdict::End;
use crate::{clock, control, files, ids, rewind, task_news};
use control::Books;
use crew::{Arrival, Crew};

/// How long an interrupted turn may take to wind up when the session is stopped.
const WIND_UP: Duration = Duration::from_millis(1500);

/// How long hooks may go on that hear of the end of a session that is stopped.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long a host is heard whose session cannot begin.
const HEAR_OUT: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Debug, Clone, Default)]
pub struct Farewell {
    /// The last result, if there was one.
    pub last_result: Option<TurnResult>,
    /// Why the session never began, if it did not.
    pub not_started: Option<SetupError>,
}

/// Serves a session until it is over.
///
/// Thousands of sessions may be at rest in one process, so this future holds what a resting session needs: whatever takes
/// more room than that is on the heap while it lasts.
pub fn serve(engine: Engine, link: Link, start: Start) -> impl Future<Output = Farewell> + Send {
    // A future has room for its arguments to the end.
    attend(engine, link, Box::new(start))
}

async fn attend(engine: Engine, mut link: Link, start: Box<Start>) -> Farewell {
    let setup = Box::pin(async { resume::resolve(&engine, *start).await.map(Box::new) });
    let setup = match link.stop.run_until_cancelled(setup).await {
        Some(Ok(setup)) => setup,
        Some(Err(error)) => return Box::pin(refuse(&mut link, error, ids::uuid())).await,
        None => return Farewell::default(),
    };
    let (inbox, mut posts) = inbox();
    let mut session = Box::new(Session::new(engine, setup, &link, inbox));
    // Whoever drops this run drops everything that it has started.
    let _guard = session.tasks.guard();
    let mut input = Input::Open;
    let mut quiet_since = None;
    loop {
        if session.turn_is_due() {
            Box::pin(session.start_what_is_due()).await;
        }
        if let Some(error) = session.refused.take() {
            session.crew.close(&link.stop).await;
            session.tasks.shutdown().await;
            return Box::pin(refuse(&mut link, error, session.setup.session.clone())).await;
        }
        let moment = session.moment(input, !posts.is_empty());
        session.state.show(moment).await;
        let limit = match moment.course(session.setup.at_end, session.setup.ceiling) {
            Course::Over => break,
            Course::On => {
                quiet_since = None;
                None
            }
            // It is counted from when nothing else was due; what wakes us meanwhile does not prolong it.
            Course::Until(limit) => {
                let since = *quiet_since.get_or_insert_with(|| Instant::from_std(clock::monotonic()));
                limit.map(|limit| since + limit)
            }
        };
        let wake = tokio::select! {
            biased;
            () = link.stop.cancelled() => Wake::Stop,
            line = link.incoming.recv(), if input != Input::Gone => line.map_or(Wake::HostGone, |line| Wake::Host(Box::new(line))),
            () = link.finished.cancelled(), if input == Input::Open => Wake::InputFinished,
            Some(post) = posts.recv() => Wake::Post(post),
            ended = turn_end(&mut session.running) => Wake::TurnEnded(Box::new(ended)),
            () = until(limit) => Wake::TimeIsUp,
        };
        match wake {
            Wake::Host(line) => {
                Box::pin(session.hear(*line)).await;
                // What has come along with it belongs to the same turn.
                while let Ok(line) = link.incoming.try_recv() {
                    Box::pin(session.hear(line)).await;
                }
            }
            Wake::InputFinished => input = Input::Finished,
            Wake::HostGone => {
                input = Input::Gone;
                session.ask.close();
            }
            Wake::Post(post) => session.take_in(post).await,
            Wake::TurnEnded(ended) => {
                // What began in the turn is told before its result.
                while let Ok(post) = posts.try_recv() {
                    session.take_in(post).await;
                }
                Box::pin(session.end_turn(*ended)).await;
            }
            Wake::TimeIsUp => break,
            Wake::Stop => {
                Box::pin(session.stop()).await;
                break;
            }
        }
    }
    if session.opened {
        Box::pin(say_goodbye(&session.lookout.clone(), &link.stop)).await;
    }
    session.crew.close(&link.stop).await;
    // Whoever stops a session stops everything; one that ends by itself lets go what may outlive it.
    let outlived = if link.stop.is_cancelled() { 0 } else { session.tasks.let_outlive().await };
    session.tasks.shutdown().await;
    while let Ok(post) = posts.try_recv() {
        session.take_in(post).await;
    }
    session.teams.settle().await;
    bulletin::close(&session.setup.keeping, WIND_UP, &session.outbox).await;
    if session.setup.leaves_nothing && outlived == 0 {
        // What cannot be removed is the temporary folder's business.
        let _ = files::remove_folder(session.setup.workspace.spill());
    }
    Farewell { last_result: session.last_result, not_started: None }
}

/// Tells the hooks that the session ends. Whoever wants everything to stop does not wait for them long.
async fn say_goodbye(lookout: &Lookout, stop: &CancellationToken) {
    let cancel = CancellationToken::new();
    let hurry = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        _ = lookout.raise(HookEvent::SessionEnd, |scene| scene.session_end("other"), &cancel) => {}
        () = hurry => {}
    }
}

/// The way to the session's hooks.
pub(crate) fn lookout(setup: &Setup, ask: &Ask, tasks: &Tasks, outbox: &Outbox) -> Lookout {
    let transcript = setup.place.as_ref().map(|place| place.transcript(&setup.session));
    let desk = hook_desk(setup, ask, tasks, outbox);
    let base = HookBase {
        session_id: setup.session.clone(),
        transcript_path: transcript.map(|path| path.display().to_string()).unwrap_or_default(),
        ..HookBase::default()
    };
    let hooks = Hooks::new(setup.hooks.clone(), desk);
    Lookout::new(hooks, setup.rights.clone(), Arc::clone(&setup.workspace), outbox.clone(), base)
}

/// What hooks are run with.
fn hook_desk(setup: &Setup, ask: &Ask, tasks: &Tasks, outbox: &Outbox) -> hooks::Desk {
    hooks::Desk {
        ask: ask.clone(),
        outbox: outbox.clone(),
        tasks: tasks.clone(),
        workspace: Arc::clone(&setup.workspace),
        announce: setup.announce,
    }
}

/// What started a turn that no prompt did.
fn origin(dues: &[Due]) -> Option<Origin> {
    let of_news = |due: &Due| match due {
        Due::News(news) => Some(news.origin.clone()),
        Due::Prompt(_) => None,
    };
    let origins: Option<Vec<Origin>> = dues.iter().map(of_news).collect();
    origins?.into_iter().next()
}

/// Ends at an instant; never, if there is none.
async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Whatever can wake a session.
enum Wake {
    Host(Box<Result<Frame, WireError>>),
    HostGone,
    InputFinished,
    Post(Post),
    TurnEnded(Box<(Box<Agent>, Ending)>),
    TimeIsUp,
    Stop,
}

/// A session that is being served.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) setup: Box<Setup>,
    pub(crate) outbox: Outbox,
    pub(crate) ask: Ask,
    pub(crate) knobs: KnobsWriter,
    pub(crate) tasks: Tasks,
    pub(crate) crew: Crew,
    inbox: Inbox,
    teams: Teams,
    /// What the model is told with whatever comes next.
    asides: Vec<News>,
    pub(crate) lookout: Lookout,
    /// Resolves when the last change of a settings file is done.
    pub(crate) kept: Option<oneshot::Receiver<()>>,
    state: StateSign,
    /// The agent, while no turn owns it. Made with the first turn, so that `initialize` can still shape it.
    agent: Option<Box<Agent>>,
    running: Option<Running>,
    /// How full the context of the agent is.
    gauge: Gauge,
    /// What can be asked about the agent while a turn owns it.
    pub(crate) books: Option<Books>,
    pub(crate) queue: Queue,
    /// Whether the first turn has begun.
    opened: bool,
    results: u32,
    last_result: Option<TurnResult>,
    /// Set when `initialize` asked for something that cannot be had: the session must not go on without it.
    pub(crate) refused: Option<SetupError>,
}

/// A turn under way.
struct Running {
    turn: BoxFuture<'static, (Box<Agent>, Ending)>,
    cancel: CancellationToken,
    started: std::time::Instant,
    origin: Option<Origin>,
}

/// What a turn does.
enum Work {
    /// The model answers.
    Turn(Box<Opening>),
    /// A command is run.
    Command {
        /// What it does.
        job: Job,
        /// What the host is told before.
        notices: Box<Notices>,
        /// How the session begins, if this is its first turn.
        first: Option<&'static str>,
    },
}

/// Ends when the turn under way ends; never, if there is none.
async fn turn_end(running: &mut Option<Running>) -> (Box<Agent>, Ending) {
    match running {
        Some(running) => (&mut running.turn).await,
        None => std::future::pending().await,
    }
}

/// Tells the host why there is no session, and hears it out for a moment: a host that is still writing when its engine
/// goes would see a broken pipe instead of the reason.
async fn refuse(link: &mut Link, error: SetupError, session: String) -> Farewell {
    let result = report::not_started(error.to_string(), session, ids::uuid());
    // A host that is gone does not need the reason.
    let _ = link.outgoing.send(result.clone().into()).await;
    let hear_out = async {
        while let Some(line) = link.incoming.recv().await {
            if let Ok(Frame::ControlRequest(request)) = line {
                let answer = ControlResponse::error(request.request_id, error.to_string());
                let _ = link.outgoing.send(answer.into()).await;
            }
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(HEAR_OUT, hear_out) => {}
        () = link.stop.cancelled() => {}
        () = link.finished.cancelled() => {}
    }
    Farewell { last_result: Some(result), not_started: Some(error) }
}

impl Session {
    fn new(engine: Engine, mut setup: Box<Setup>, link: &Link, inbox: Inbox) -> Self {
        let outbox = Outbox::new(setup.session.as_str().into(), link.outgoing.clone(), link.stop.clone());
        let (ask, tasks) = (Ask::new(outbox.clone()), Tasks::of_session(inbox.clone(), setup.at_end));
        let lookout = lookout(&setup, &ask, &tasks, &outbox);
        let state = StateSign::new(outbox.clone(), setup.state_wanted);
        let engine = engine.with_key_source(KeyHelper::of(&setup, &tasks));
        let config = setup.ground.config.clone().filter(|_| !setup.leaves_nothing);
        Self {
            crew: Crew::start(&mut setup, (&ask, &outbox), &state, &lookout),
            lookout,
            knobs: watch::Sender::new(setup.knobs.clone()),
            ask,
            tasks,
            teams: Teams::new(inbox.clone(), config, setup.session.clone(), setup.team_letters),
            inbox,
            asides: Vec::new(),
            kept: None,
            state,
            agent: None,
            running: None,
            gauge: Gauge::default(),
            books: None,
            queue: Queue::default(),
            opened: false,
            results: 0,
            last_result: None,
            refused: None,
            outbox,
            setup,
            engine,
        }
    }

    /// How the run stands; `posted` says whether something was posted that has not been taken in.
    fn moment(&self, input: Input, posted: bool) -> Moment {
        Moment {
            input,
            turn: self.running.is_some(),
            due: posted || !self.queue.is_empty(),
            questions: self.state.questions(),
            agents: self.tasks.agents() + self.teams.active(),
            commands: self.tasks.running(),
        }
    }

    /// Whether a turn runs or waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some() || !self.queue.is_empty()
    }

    /// Shows the host that a turn runs.
    async fn show_turn(&mut self) {
        self.state.show_turn(self.moment(Input::Open, false)).await;
    }

    /// Whether the session has begun: from then on its prompt and tools are fixed.
    pub(crate) fn has_begun(&self) -> bool {
        self.agent.is_some() || self.running.is_some()
    }

    /// Takes in one line of the host.
    async fn hear(&mut self, line: Result<Frame, WireError>) {
        match line {
            Ok(Frame::User(user)) if user.message.role == Role::User => {
                self.queue.push(Due::Prompt(user));
            }
            Ok(Frame::User(_)) => self.complain("a \"user\" line must have the role \"user\"").await,
            Ok(Frame::ControlRequest(asked)) => {
                if let Some(response) = control::answer(self, asked.request_id, asked.request).await {
                    self.outbox.send(response).await;
                }
            }
            Ok(Frame::ControlResponse(answer)) => self.ask.answered(answer.response),
            Ok(Frame::EnvironmentUpdate(update)) => self.setup.workspace.set_variables(update.variables),
            Ok(Frame::KeepAlive(_) | Frame::ControlCancel(_) | Frame::Unknown(_)) => {}
            Ok(other) => self.complain(&format!("a \"{}\" line is not for the engine", other.kind())).await,
            Err(error) => self.complain(&error.to_string()).await,
        }
    }

    async fn complain(&mut self, message: &str) {
        self.outbox.notify(WireErrorNotice { message: message.to_owned(), line: None }).await;
    }

    /// Takes in what was posted from within.
    async fn take_in(&mut self, post: Post) {
        match post {
            Post::News(news) if news.wakes => self.queue.push(Due::News(*news)),
            Post::News(news) => self.asides.push(*news),
            Post::Quiet => {}
            Post::Task(event) => {
                for notice in task_news::notices(&event) {
                    self.outbox.notify(notice).await;
                }
                self.outbox.notify(notices::list(&self.tasks.beside())).await;
                if let Some(text) = task_news::for_model(&event) {
                    self.queue.push(Due::News(News::of_task(text)));
                }
            }
        }
    }

    /// Whether something waits and no turn runs.
    fn turn_is_due(&self) -> bool {
        self.running.is_none() && !self.queue.is_empty()
    }

    /// Starts a turn. Everything that waits becomes one.
    async fn start_what_is_due(&mut self) {
        self.become_its_kind();
        if self.refused.is_some() {
            return;
        }
        let Some(batch) = self.queue.take(&self.setup.commands) else { return };
        let mut agent = match self.agent.take() {
            Some(agent) => agent,
            None => {
                let past = self.setup.past.take();
                Box::new(self.agents().main(self.system(), past))
            }
        };
        if let Some(title) = self.setup.title.take() {
            agent.conversation.journal().call_it(&title);
        }
        self.gauge = agent.conversation.gauge().clone();
        self.books = Some(Books::of(&agent));
        self.equip(&mut agent);
        if let Some(changed) = changes::since_seen(&self.setup.workspace) {
            agent.conversation.brief(&changed);
        }
        match batch {
            Batch::Said(dues) => {
                let asides = std::mem::take(&mut self.asides).into_iter().map(Due::News);
                self.start_turn(agent, asides.chain(dues).collect()).await;
            }
            Batch::Command { called, prompt } => self.start_command(agent, called, *prompt).await,
        }
    }

    async fn start_turn(&mut self, mut agent: Box<Agent>, dues: Vec<Due>) {
        let echo = self.echo();
        if !dues.iter().any(Due::asks) {
            for due in dues {
                if let Due::Prompt(user) = due {
                    let user = User { uuid: user.uuid.clone().or_else(|| Some(ids::uuid())), ..*user };
                    rewind::begin(&self.setup.workspace, user.uuid.as_deref()).await;
                    opening::record(&mut agent, &user);
                    if echo == Echo::Wanted {
                        opening::replay(&self.outbox, user).await;
                    }
                }
            }
            self.agent = Some(agent);
            return;
        }
        self.show_turn().await;
        let origin = origin(&dues);
        let first = self.first();
        let (init, warning) = (self.init(), self.setup.warning.take());
        let opening = Opening { first, init, warning, dues, echo };
        self.run(agent, Work::Turn(Box::new(opening)), origin);
    }

    /// Runs a turn, or what a command does in its place, beside everything else.
    fn run(&mut self, mut agent: Box<Agent>, work: Work, origin: Option<Origin>) {
        agent.ledger.begin_turn();
        agent.bench.gate.lookout.begin_turn();
        let cancel = CancellationToken::new();
        agent.bench.call.cancel = cancel.clone();
        let token = cancel.clone();
        let arrival = self.crew.arrival(&self.setup.commands, &work);
        let turn = Box::pin(async move {
            let work = crew::await_servers(arrival.as_ref(), &mut agent, work, &token).await;
            let ending = match work {
                Work::Turn(opening) => {
                    let ended = opening::open(&mut agent, *opening, &token).await;
                    arrival.iter().for_each(Arrival::announced);
                    match ended {
                        Some(ending) => {
                            agent.conversation.settle().await;
                            ending
                        }
                        None => {
                            let ending = turn::run(&mut agent, &token).await;
                            // Agents that were stopped with the turn are paid for in its result.
                            agent.bench.call.tasks.stopped_is_gone(WIND_UP).await;
                            ending
                        }
                    }
                }
                Work::Command { job, notices, first } => {
                    match opening::begin(&mut agent, first, &token).await {
                        true => {
                            notices.tell(&agent.outbox).await;
                            Ending::new(End::HookStopped)
                        }
                        false => Box::pin(commands::run(&mut agent, job, *notices, &token)).await,
                    }
                }
            };
            arrival.iter().for_each(Arrival::announced);
            (agent, ending)
        });
        self.running = Some(Running { turn, cancel, started: clock::monotonic(), origin });
    }

    /// How the session begins, if it has not begun yet.
    fn first(&mut self) -> Option<&'static str> {
        (!std::mem::replace(&mut self.opened, true)).then_some(self.setup.origin.name())
    }

    /// Whether the host sees its prompts again.
    fn echo(&self) -> Echo {
        if self.setup.replay_user_messages { Echo::Wanted } else { Echo::Unwanted }
    }

    /// Ends a turn with its result.
    async fn end_turn(&mut self, (agent, ending): (Box<Agent>, Ending)) {
        let Some(running) = self.running.take() else { return };
        let result = report(Report {
            ending,
            spend: &agent.ledger.read(),
            denials: agent.denials.take(),
            took: clock::monotonic() - running.started,
            origin: running.origin,
            limits: &agent.limits,
            index: self.results,
            session_id: self.outbox.session().to_owned(),
            uuid: ids::uuid(),
        });
        self.results += 1;
        // What a skill has allowed counts for its turn.
        self.setup.rights.take_back();
        rewind::tell_losses(&self.setup.workspace, &self.outbox).await;
        self.teams.settle().await;
        self.agent = Some(agent);
        self.last_result = Some(result.clone());
        // The result is sent even if everything is to stop meanwhile; `stop` limits how long that may take.
        self.outbox.send_last(result).await;
    }

    /// Interrupts the turn under way, if there is one. Its questions are taken back as it ends; what works beside it goes
    /// on, and its questions stay.
    pub(crate) fn interrupt(&mut self) {
        if let Some(running) = &self.running {
            running.cancel.cancel();
        }
    }

    /// Stops at once: the turn winds up, its result goes out if the host still listens.
    async fn stop(&mut self) {
        self.queue.clear();
        self.ask.close();
        let Some(running) = &self.running else { return };
        running.cancel.cancel();
        if let Ok(ended) = tokio::time::timeout(WIND_UP, turn_end(&mut self.running)).await {
            // The host may have stopped reading.
            let _ = tokio::time::timeout(WIND_UP, self.end_turn(ended)).await;
        }
    }

    fn init(&self) -> Init {
        let knobs = self.knobs.borrow();
        self.with_extensions(Init {
            cwd: self.setup.workspace.base().display().to_string(),
            tools: self.setup.toolbox.names_for_init(),
            agents: Some(self.setup.kinds.names()),
            model: knobs.model.clone(),
            permission_mode: self.setup.rights.mode(),
            api_key_source: self.engine.key_source().into(),
            claude_code_version: PROTOCOL_VERSION.into(),
            mcp_servers: self.crew.for_init(),
            betas: (!self.setup.limits.betas.is_empty()).then(|| self.setup.limits.betas.clone()),
            ..Init::default()
        })
    }

    fn system(&self) -> Vec<String> {
        let Setup { system_prompt, append_system_prompt, extensions, .. } = &*self.setup;
        prompt::system(system_prompt.as_ref(), extensions.style.as_deref(), append_system_prompt.as_deref())
    }

    /// What makes the session's agents.
    fn agents(&self) -> Agents {
        let Setup { workspace, place, session, toolbox, limits, small_model, kinds, shape, .. } =
            &*self.setup;
        Agents::new(Home {
            engine: self.engine.clone(),
            outbox: self.outbox.clone(),
            knobs: self.knobs.subscribe(),
            toolbox: Arc::clone(toolbox),
            on_demand: self.setup.on_demand.clone(),
            gate: self.gate(),
            limits: limits.clone(),
            ledger: Ledger::within(limits.max_budget),
            denials: Denials::default(),
            identity: Identity {
                session: session.clone(),
                cwd: workspace.root().display().to_string(),
                git_branch: surroundings::git_branch(workspace.root()).unwrap_or_default(),
                entrypoint: self.setup.entrypoint.clone(),
            },
            place: place.clone(),
            keeping: self.setup.keeping.clone(),
            kinds: kinds.clone(),
            places: Places::new(self.setup.agents_at_once),
            desk: Desk::default(),
            teams: self.teams.clone(),
            inbox: self.inbox.clone(),
            workspace: Arc::clone(workspace),
            tasks: self.tasks.clone(),
            agenda: self.setup.agenda.clone(),
            small_model: small_model.clone(),
            shape: shape.clone(),
            aloud: self.setup.forward_subagent_text,
            memory: Memory::new(Arc::clone(&self.setup.ground), workspace.home().as_deref()),
            skills: self.setup.extensions.skills.clone(),
            ground: Arc::clone(&self.setup.ground),
            hook_desk: (self.setup.extensions.run_hooks())
                .then(|| hook_desk(&self.setup, &self.ask, &self.tasks, &self.outbox)),
        })
    }

    fn gate(&self) -> Gate {
        Gate {
            rights: self.setup.rights.clone(),
            asks: match &self.setup.prompt_tool {
                Some(tool) => Asks::Tool(self.setup.supply.clone(), tool.clone()),
                None if self.setup.host_answers => Asks::Host(self.ask.clone()),
                None => Asks::Nobody,
            },
            state: self.state.clone(),
            outbox: self.outbox.clone(),
            lookout: self.lookout.clone(),
            patience: self.setup.patience,
        }
    }

    /// The hooks that a host brings along come to those of the settings.
    pub(crate) fn add_hooks(&mut self, more: HookSet) {
        let warnings = self.setup.warning.take().into_iter().chain(more.warnings().iter().cloned());
        self.setup.warning = warnings.reduce(|one, other| format!("{one}\n{other}"));
        self.setup.hooks.append(more);
        self.lookout = lookout(&self.setup, &self.ask, &self.tasks, &self.outbox);
        self.crew.set_lookout(&self.lookout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_can_be_served_on_any_thread() {
        fn is_send<T: Send>(_: &T) {}
        let _ = |engine, link, start| is_send(&serve(engine, link, start));
    }
}
