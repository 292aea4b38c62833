//! The owner of a session: one task that takes everything off the inbox and starts turns.
//!
//! "Input finished" and "stop" are different facts. When the host finishes its input the session goes on until nothing
//! runs and nothing is queued; only the link's stop token ends it at once. How turns begin and end is in `turns`, what
//! slash commands start in `command`, what a session's agents are made from in `outfit`.

mod command;
mod crew;
mod extensions;
mod kind;
mod outfit;
mod turns;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::codec::WireError;
use whimbrel_wire::control::ControlResponse;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};
use whimbrel_wire::system::WireErrorNotice;
use whimbrel_wire::{Frame, Role};

use crate::agent::Agent;
use crate::agents::notices;
use crate::agents::team::Teams;
use crate::ask::Ask;
use crate::context::usage::Gauge;
use crate::engine::Engine;
use crate::hooks::Lookout;
use crate::in_short::in_short;
use crate::inbox::{Inbox, News, Post, Posts, inbox};
use crate::key_helper::KeyHelper;
use crate::knobs::KnobsWriter;
use crate::life::{Course, Input, Moment};
use crate::link::{Line, Link};
use crate::one_by_one::OneByOne;
use crate::outbox::Outbox;
use crate::queue::{Due, Queue};
use crate::report;
use crate::session::bulletin;
use crate::setup::{Setup, SetupError, Start, resume};
use crate::state::StateSign;
use crate::tasks::Tasks;
use crate::turn::Ending;
use crate::{clock, control, files, ids, task_news};
use control::Books;
use crew::Crew;
pub(crate) use outfit::lookout;
use turns::{Running, turn_end};

/// How long an interrupted turn may take to wind up when the session is stopped.
const WIND_UP: Duration = Duration::from_millis(1500);

/// How long hooks may go on that hear of the end of a session that is stopped.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long a host is heard whose session cannot begin.
const HEAR_OUT: Duration = Duration::from_secs(1);

/// How a session ended.
#[derive(Debug, Clone, Default)]
pub struct Farewell {
    /// How the last turn ended, if there was one.
    pub last_turn: Option<LastTurn>,
    /// Why the session never began, if it did not.
    pub not_started: Option<SetupError>,
}

/// How a turn ended: what is kept of a result that the host has.
#[derive(Debug, Clone, PartialEq)]
pub struct LastTurn {
    /// The kind of end.
    pub outcome: Outcome,
    /// Whether it failed.
    pub is_error: bool,
    /// A finer reason.
    pub reason: Option<TerminalReason>,
}

impl From<&TurnResult> for LastTurn {
    fn from(result: &TurnResult) -> Self {
        Self { outcome: result.subtype, is_error: result.is_error, reason: result.terminal_reason.clone() }
    }
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
            // What was posted by now is told with it.
            session.take_in_all(&mut posts).await;
            Box::pin(session.start_what_is_due()).await;
        }
        if let Some(error) = session.refused.take() {
            session.crew.close(&link.stop).await;
            session.tasks.shutdown().await;
            return Box::pin(refuse(&mut link, error, session.setup.session.clone())).await;
        }
        let moment = session.moment(input, &posts);
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
            line = link.incoming.recv(), if input != Input::Gone => line.map_or(Wake::HostGone, Wake::Host),
            () = link.finished.cancelled(), if input == Input::Open => Wake::InputFinished,
            Some(post) = posts.recv() => Wake::Post(post),
            ended = turn_end(&mut session.running) => Wake::TurnEnded(ended),
            () = until(limit) => Wake::TimeIsUp,
        };
        match wake {
            Wake::Host(line) => {
                Box::pin(session.hear(line)).await;
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
                session.take_in_all(&mut posts).await;
                Box::pin(session.end_turn(ended)).await;
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
    // Nobody reads answers any more: whoever waits for one goes on without.
    session.ask.close();
    session.tasks.shutdown().await;
    session.take_in_all(&mut posts).await;
    session.teams.settle().await;
    if let Some(text) = session.engine.providers().unplayed().filter(|_| session.opened) {
        let _ = tokio::time::timeout(WIND_UP, session.outbox.warn(text)).await;
    }
    bulletin::close(&session.setup.keeping, WIND_UP, &session.outbox).await;
    if session.setup.leaves_nothing && outlived == 0 {
        // What cannot be removed is the temporary folder's business.
        let _ = files::remove_folder(session.setup.workspace.spill());
    }
    Farewell { last_turn: session.last_turn, not_started: None }
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

/// Ends at an instant; never, if there is none.
async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Whatever can wake a session.
enum Wake {
    Host(Line),
    HostGone,
    InputFinished,
    Post(Post),
    TurnEnded((Box<Agent>, Box<Ending>)),
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
    pub(crate) lookout: Lookout,
    /// Changes of settings files that are under way.
    pub(crate) keeping: OneByOne,
    /// Switches of the model that are under way.
    pub(crate) switches: OneByOne,
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
    /// Whether the host knows that an id of its own was not fit.
    misnamed: bool,
    /// When it was opened.
    pub(crate) started: std::time::Instant,
    results: u32,
    last_turn: Option<LastTurn>,
    /// Set when `initialize` asked for something that cannot be had: the session must not go on without it.
    pub(crate) refused: Option<SetupError>,
}

/// Tells the host why there is no session, and hears it out for a moment: a host that is still writing when its engine
/// goes would see a broken pipe instead of the reason.
async fn refuse(link: &mut Link, error: SetupError, session: String) -> Farewell {
    let result = report::not_started(error.to_string(), session, ids::uuid());
    let last_turn = LastTurn::from(&result);
    // A host that is gone does not need the reason.
    let _ = link.outgoing.send(result.into()).await;
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
    Farewell { last_turn: Some(last_turn), not_started: Some(error) }
}

impl Session {
    fn new(engine: Engine, mut setup: Box<Setup>, link: &Link, inbox: Inbox) -> Self {
        let outbox = Outbox::new(setup.session.as_str().into(), link.outgoing.clone(), link.stop.clone())
            .with_log(engine.log().clone());
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
            keeping: OneByOne::default(),
            switches: OneByOne::default(),
            state,
            agent: None,
            running: None,
            gauge: Gauge::default(),
            books: None,
            queue: Queue::default(),
            opened: false,
            misnamed: false,
            started: clock::monotonic(),
            results: 0,
            last_turn: None,
            refused: None,
            outbox,
            setup,
            engine,
        }
    }

    /// How the run stands, with what was posted and has not been taken in.
    fn moment(&self, input: Input, posts: &Posts) -> Moment {
        // Who ends posts its news first and is counted no more afterwards. Looked at in the other order, news that comes
        // in between would be missed, and with it the reason to go on.
        let at_work = self.moment_of_work(input);
        Moment { due: at_work.due || !posts.is_empty(), ..at_work }
    }

    /// The same without what was posted.
    fn moment_of_work(&self, input: Input) -> Moment {
        Moment {
            input,
            turn: self.running.is_some(),
            due: self.queue.wakes(),
            questions: self.state.questions(),
            agents: self.tasks.agents() + self.teams.active(),
            commands: self.tasks.running(),
        }
    }

    /// Whether a turn runs or waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some() || self.queue.wakes()
    }

    /// Shows the host that a turn runs.
    async fn show_turn(&mut self) {
        self.state.show_turn(self.moment_of_work(Input::Open)).await;
    }

    /// Whether the session has begun: from then on its prompt and tools are fixed.
    pub(crate) fn has_begun(&self) -> bool {
        self.agent.is_some() || self.running.is_some()
    }

    /// Takes in one line of the host.
    async fn hear(&mut self, line: Line) {
        if let Ok(frame) = &line {
            in_short(self.engine.log(), "in", frame);
        }
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
            Ok(other) => {
                let error = WireError::NotForEngine { kind: other.kind().to_owned() };
                self.complain(&error.to_string()).await;
            }
            Err(error) => self.complain(&error.to_string()).await,
        }
    }

    async fn complain(&mut self, message: &str) {
        self.outbox.notify(WireErrorNotice { message: message.to_owned(), line: None }).await;
    }

    /// Takes in all that was posted by now.
    async fn take_in_all(&mut self, posts: &mut Posts) {
        while let Ok(post) = posts.try_recv() {
            self.take_in(post).await;
        }
    }

    /// Takes in what was posted from within.
    async fn take_in(&mut self, post: Post) {
        match post {
            Post::News(news) => self.tell(*news),
            Post::Quiet => {}
            Post::Task(event) => {
                for notice in task_news::notices(&event) {
                    self.outbox.notify(notice).await;
                }
                self.outbox.notify(notices::list(&self.tasks.beside())).await;
                if let Some(news) = task_news::for_model(&event) {
                    self.tell_owner(event.task_id(), news);
                }
            }
        }
    }

    /// Tells whoever started background work of it: a teammate that is there, or else the main agent.
    fn tell_owner(&mut self, task_id: &str, news: News) {
        let owner = self.tasks.owner(task_id);
        if let Some(text) = self.teams.tell(owner.as_deref(), news.text) {
            self.tell(News { text, ..news });
        }
    }

    /// Tells the model something, in a turn of its own if it is worth that. Once the host has been told that the budget is
    /// used up, news that nobody can answer do not tell it again and again.
    fn tell(&mut self, news: News) {
        let wakes = news.wakes && !self.is_broke();
        self.queue.push(Due::News(News { wakes, ..news }));
    }

    /// Whether the host has been told that the budget is used up.
    fn is_broke(&self) -> bool {
        self.last_turn.as_ref().is_some_and(|turn| turn.outcome == Outcome::ErrorMaxBudgetUsd)
    }

    /// Interrupts the turn under way, if there is one. Its questions are taken back as it ends; what works beside it goes
    /// on, and its questions stay. A prompt that came just before is under way for whoever sent it: its turn begins, and
    /// ends like any that is interrupted.
    pub(crate) async fn interrupt(&mut self) {
        if self.turn_is_due() && self.queue.prompts() > 0 {
            Box::pin(self.start_what_is_due()).await;
        }
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
