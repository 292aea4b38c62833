//! A command as a hook: it is told what happened, and its exit code and output say what it thinks of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::events::Occasion;
use super::herald::Herald;
use super::late::Late;
use super::long;
use super::outcome::{Said, asks_for_time, late_answer};
use super::run::Desk;
use crate::tasks::{Ending, Exchange, Heard, Order, StartFault, Step};

/// How often the host hears what a hook prints, at most.
const PACE: Duration = Duration::from_secs(1);

/// How long a hook may go on that asks for time without saying how much.
const USUAL_TIME: Duration = Duration::from_secs(15);

/// A command to run.
pub(super) struct Job<'a> {
    /// What it needs.
    pub(super) desk: &'a Desk,
    /// Where its answer goes if it comes late.
    pub(super) late: &'a Arc<Late>,
    /// The hook, as people are told of it.
    pub(super) hook: Arc<str>,
    /// The event.
    pub(super) event: HookEvent,
    /// What happened.
    pub(super) occasion: &'a Occasion,
    /// The same as the command reads it.
    pub(super) input: Bytes,
    /// What the shell is told.
    pub(super) command: &'a str,
    /// How long it may take.
    pub(super) limit: Duration,
    /// Variables of its own.
    pub(super) environment: &'a BTreeMap<String, String>,
}

/// A command at work. Dropped half way, it ends, and the host hears that too.
struct Run {
    /// None once it is over.
    exchange: Option<Exchange>,
    herald: Herald,
    /// Whether it can still ask for time: that is the first thing it says, or it does not.
    may_ask: bool,
}

/// Why we listen no longer.
enum Finish {
    /// It is over.
    Over(Over),
    /// It goes on by itself, for so long.
    GoesOn(Duration),
}

/// How a run came to its end.
enum Over {
    /// The command has ended.
    Ended(Ending),
    /// Its time is up.
    TimeUp(Duration),
    /// Nobody waits for it any more.
    Unwanted,
}

impl Job<'_> {
    /// Runs the command and waits for what it says.
    pub(super) async fn run(self, cancel: &CancellationToken) -> Said {
        let mut run = match self.start().await {
            Ok(run) => run,
            Err(fault) => return unstarted(&fault),
        };
        match run.listen(self.limit, cancel).await {
            // It asked for time and was done before anybody looked.
            Finish::Over(over @ Over::Ended(_)) if run.asked_for_time().is_some() => {
                let mut said = run.conclude(over, self.event, late_answer).await;
                long::shorten(&mut said, self.desk.workspace.spill());
                let agent_id = self.occasion.input.base.agent_id.clone();
                self.late.put(&self.hook, self.event, agent_id, said);
                Said::Later
            }
            Finish::Over(over) => run.conclude(over, self.event, Said::by_command).await,
            Finish::GoesOn(limit) => {
                self.leave(run, limit);
                Said::Later
            }
        }
    }

    /// Starts the command and does not wait. Only a command that does not even start has something to say now.
    pub(super) async fn run_in_background(self) -> Said {
        match self.start().await {
            Ok(run) => {
                self.leave(run, self.limit);
                Said::Later
            }
            Err(fault) => unstarted(&fault),
        }
    }

    async fn start(&self) -> Result<Run, StartFault> {
        let workspace = &self.desk.workspace;
        let mut environment = workspace.environment();
        environment.retain(|name, _| !name.starts_with("OTEL_"));
        environment.insert("CLAUDE_PROJECT_DIR".into(), workspace.root().display().to_string());
        if let Some(effort) = &self.occasion.input.base.effort {
            environment.insert("CLAUDE_EFFORT".into(), effort.level.clone());
        }
        environment.extend(self.environment.clone());
        // Not where the shell stands: a path in a hook means the same file all along.
        let cwd = standing(workspace.root());
        let order = Order { command: self.command.to_owned(), cwd, environment };
        let exchange = Exchange::start(&self.desk.tasks, &order, self.input.clone())?;
        let mut herald = Herald::new(&self.desk.outbox, self.desk.announce, self.event, self.occasion);
        herald.began().await;
        Ok(Run { exchange: Some(exchange), herald, may_ask: true })
    }

    /// Lets the command go on by itself. What it says later waits for the next model call.
    fn leave(&self, mut run: Run, mut limit: Duration) {
        let (hook, event, late) = (Arc::clone(&self.hook), self.event, Arc::clone(self.late));
        let agent_id = self.occasion.input.base.agent_id.clone();
        let spill = self.desk.workspace.spill().to_path_buf();
        tokio::spawn(async move {
            // Only the end of the session stops it.
            let unheard = CancellationToken::new();
            let over = loop {
                match run.listen(limit, &unheard).await {
                    Finish::Over(over) => break over,
                    Finish::GoesOn(more) => limit = more,
                }
            };
            let mut said = run.conclude(over, event, late_answer).await;
            long::shorten(&mut said, &spill);
            late.put(&hook, event, agent_id, said);
        });
    }
}

impl Run {
    /// Listens until the command has ended, its time is up, or nobody waits any more.
    async fn listen(&mut self, limit: Duration, cancel: &CancellationToken) -> Finish {
        let mut deadline = std::pin::pin!(sleep(limit));
        let mut pace = interval_at(Instant::now() + PACE, PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut news = false;
        loop {
            let Some(exchange) = &mut self.exchange else { return Finish::Over(Over::Unwanted) };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Finish::Over(Over::Unwanted),
                () = &mut deadline => return Finish::Over(Over::TimeUp(limit)),
                step = exchange.step() => match step {
                    Step::SessionEnds => return Finish::Over(Over::Unwanted),
                    Step::Ended(ending) => return Finish::Over(Over::Ended(ending)),
                    Step::Said => news = true,
                },
                _ = pace.tick(), if news && self.herald.is_heard() => {
                    self.herald.prints(exchange.heard());
                    news = false;
                }
            }
            if let Some(time) = self.asked_for_time() {
                return Finish::GoesOn(time);
            }
        }
    }

    /// How much time the command asks for, if it does so now.
    fn asked_for_time(&mut self) -> Option<Duration> {
        if !self.may_ask {
            return None;
        }
        let line = self.exchange.as_ref()?.heard().stdout.first_line()?;
        self.may_ask = false;
        let later = asks_for_time(&line)?;
        Some(later.async_timeout.map_or(USUAL_TIME, Duration::from_millis))
    }

    /// Ends what still runs, tells the host, and reads what the command said.
    async fn conclude(
        mut self,
        over: Over,
        event: HookEvent,
        read: impl FnOnce(HookEvent, Ending, &Heard) -> Said,
    ) -> Said {
        match over {
            Over::Ended(ending) => {
                let Some(heard) = self.exchange.take().map(Exchange::close) else { return Said::Cancelled };
                self.herald.ended(Some(ending), &heard).await;
                read(event, ending, &heard)
            }
            Over::TimeUp(limit) => {
                let Some(exchange) = self.exchange.take() else { return Said::Cancelled };
                self.herald.ended(None, &exchange.stop().await).await;
                Said::TimedOut(limit)
            }
            // Whoever interrupts does not wait for a command that clings to life.
            Over::Unwanted => Said::Cancelled,
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            self.herald.cut_off(Some(exchange.heard()));
        }
    }
}

/// The folder, or if it is gone the nearest one above that is there: who takes away a folder does not take away the guards.
fn standing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|above| above.is_dir()).unwrap_or(folder).to_path_buf()
}

fn unstarted(fault: &StartFault) -> Said {
    match fault {
        StartFault::SessionEnded => Said::Cancelled,
        StartFault::NoFolder(_) | StartFault::LargeEnvironment | StartFault::Io(_) => {
            Said::Fault(fault.to_string())
        }
    }
}
