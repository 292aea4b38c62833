//! The turns of a session: what is due becomes a turn or a command's work, runs beside everything else, and ends with a
//! result.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::message::{Origin, User};

use super::crew::{self, Arrival};
use super::{LastTurn, Session, WIND_UP};
use crate::agent::Agent;
use crate::commands::{self, Job};
use crate::context::changes;
use crate::control::Books;
use crate::opening::{self, Echo, Notices, Opening};
use crate::queue::{Batch, Due};
use crate::report::{Report, report};
use crate::setup::resume;
use crate::turn::{self, Ending};
use crate::verdict::End;
use crate::{clock, ids, rewind};

/// A turn under way.
pub(super) struct Running {
    turn: BoxFuture<'static, (Box<Agent>, Box<Ending>)>,
    pub(super) cancel: CancellationToken,
    started: std::time::Instant,
    origin: Option<Origin>,
}

/// What a turn does.
pub(super) enum Work {
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
pub(super) async fn turn_end(running: &mut Option<Running>) -> (Box<Agent>, Box<Ending>) {
    match running {
        Some(running) => (&mut running.turn).await,
        None => std::future::pending().await,
    }
}

/// What started a turn that no prompt did.
fn origin(dues: &[Due]) -> Option<Origin> {
    let news = |due: &Due| match due {
        Due::News(news) => Some((news.wakes, news.origin.clone())),
        Due::Prompt(_) => None,
    };
    let news: Option<Vec<(bool, Origin)>> = dues.iter().map(news).collect();
    news?.into_iter().find(|(wakes, _)| *wakes).map(|(_, origin)| origin)
}

impl Session {
    /// Whether something waits and no turn runs.
    pub(super) fn turn_is_due(&self) -> bool {
        self.running.is_none() && self.queue.wakes()
    }

    /// Starts a turn. Everything that waits becomes one.
    pub(super) async fn start_what_is_due(&mut self) {
        self.become_its_kind();
        if self.refused.is_some() {
            return;
        }
        let Some(mut batch) = self.queue.take(&self.setup.commands) else { return };
        let mut agent = match self.agent.take() {
            Some(agent) => agent,
            None => {
                let past = self.setup.past.take().map(|past| *past);
                let mut agent = Box::new(self.agents().main(self.system(), past));
                if self.setup.origin != resume::Origin::Fresh
                    && let Some(told) = self.teams.left_behind().await
                {
                    agent.conversation.brief(&told);
                }
                agent
            }
        };
        self.name(batch.prompts(), &mut agent);
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
            Batch::Said(dues) => self.start_turn(agent, dues).await,
            Batch::Command { called, prompt } => self.start_command(agent, called, *prompt).await,
        }
    }

    /// Gives each message an id of its own: one that is empty or taken would spoil the transcript. The host is told once.
    fn name(&mut self, prompts: Vec<&mut User>, agent: &mut Agent) {
        for user in prompts {
            let is_fit = |id: &String| !id.trim().is_empty() && agent.conversation.take_name(id);
            let given = user.uuid.take();
            let has_id = given.is_some();
            user.uuid = given.filter(is_fit);
            if user.uuid.is_some() {
                continue;
            }
            user.uuid = Some(ids::uuid());
            if has_id && !std::mem::replace(&mut self.misnamed, true) {
                let text = "A message came with an id that is empty or that another message has. It has got a new one, and so will others like it.";
                let told = self.setup.warning.take().into_iter().chain([text.to_owned()]);
                self.setup.warning = Some(told.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    pub(super) async fn start_turn(&mut self, mut agent: Box<Agent>, dues: Vec<Due>) {
        let echo = self.echo();
        if !dues.iter().any(Due::asks) {
            let (remarks, news): (Vec<Due>, Vec<Due>) =
                dues.into_iter().partition(|due| matches!(due, Due::Prompt(_)));
            for due in remarks {
                if let Due::Prompt(user) = due {
                    let user = *user;
                    rewind::begin(&self.setup.workspace, user.uuid.as_deref()).await;
                    opening::record(&mut agent, &user);
                    if echo == Echo::Wanted {
                        opening::replay(&self.outbox, user).await;
                    }
                }
            }
            // What the model has not been told waits on.
            news.into_iter().rev().for_each(|due| self.queue.push_first(due));
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
    pub(super) fn run(&mut self, mut agent: Box<Agent>, work: Work, origin: Option<Origin>) {
        agent.ledger.begin_turn();
        agent.bench.gate.lookout.begin_turn();
        let cancel = CancellationToken::new();
        Arc::make_mut(&mut agent.bench).call.cancel = cancel.clone();
        let token = cancel.clone();
        let arrival = self.crew.arrival(&self.setup.commands, &work);
        // How it ends is on the heap, so that there is no room for it beside the turn itself.
        let turn = Box::pin(async move {
            let work = crew::await_servers(arrival.as_ref(), &mut agent, work, &token).await;
            let ending = match work {
                Work::Turn(opening) => {
                    let ended = Box::pin(opening::open(&mut agent, *opening, &token)).await.map(Box::new);
                    arrival.iter().for_each(Arrival::announced);
                    match ended {
                        Some(ending) => {
                            agent.conversation.settle().await;
                            ending
                        }
                        None => {
                            let ending = Box::new(turn::run(&mut agent, &token).await);
                            // Agents that were stopped with the turn are paid for in its result.
                            agent.bench.call.tasks.stopped_is_gone(WIND_UP).await;
                            ending
                        }
                    }
                }
                Work::Command { job, notices, first } => {
                    match opening::begin(&mut agent, first, &token).await {
                        true => {
                            Box::pin(notices.tell(&agent.outbox)).await;
                            Box::new(Ending::new(End::HookStopped))
                        }
                        false => Box::new(Box::pin(commands::run(&mut agent, job, *notices, &token)).await),
                    }
                }
            };
            arrival.iter().for_each(Arrival::announced);
            (agent, ending)
        });
        self.running = Some(Running { turn, cancel, started: clock::monotonic(), origin });
    }

    /// How the session begins, if it has not begun yet.
    pub(super) fn first(&mut self) -> Option<&'static str> {
        (!std::mem::replace(&mut self.opened, true)).then_some(self.setup.origin.name())
    }

    /// Whether the host sees its prompts again.
    pub(super) fn echo(&self) -> Echo {
        if self.setup.replay_user_messages { Echo::Wanted } else { Echo::Unwanted }
    }

    /// Ends a turn with its result.
    pub(super) async fn end_turn(&mut self, (agent, ending): (Box<Agent>, Box<Ending>)) {
        let Some(running) = self.running.take() else { return };
        let result = report(Report {
            ending: *ending,
            spend: &agent.ledger.read(),
            denials: agent.denials.take(),
            took: clock::monotonic() - running.started,
            origin: running.origin,
            limits: &agent.limits,
            index: self.results,
            queued: self.queue.prompts(),
            session_id: self.outbox.session().to_owned(),
            uuid: ids::uuid(),
        });
        self.results += 1;
        // What a skill or a command has lent counts for its turn.
        self.setup.rights.take_back();
        agent.knobs.take_back();
        rewind::tell_losses(&self.setup.workspace, &self.outbox).await;
        self.teams.settle().await;
        self.agent = Some(agent);
        self.last_turn = Some(LastTurn::from(&result));
        if self.is_broke() {
            self.queue.lull();
        }
        // The result is sent even if everything is to stop meanwhile; `stop` limits how long that may take.
        self.outbox.send_last(result).await;
    }
}
