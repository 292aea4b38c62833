//! A command as a hook: it is told what happened, and its exit code and output say what it thinks of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::inputs::HookCall;
use super::progress::ProgressReporter;
use super::async_results::AsyncResults;
use super::truncate;
use super::output::{ParsedOutput, parse_async_request, parse_late_output};
use super::executor::HookDeps;
use crate::tasks::{ProcessExit, PipedCommand, CommandOutput, CommandSpec, SpawnError, CommandEvent};

/// How often the host hears what a hook prints, at most.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How long a hook may go on that asks for time without saying how much.
const DEFAULT_ASYNC_TIMEOUT: Duration = Duration::from_secs(15);

/// A command to run.
pub(super) struct CommandHookRun<'a> {
    /// What it needs.
    pub(super) deps: &'a HookDeps,
    /// Where its answer goes if it comes late.
    pub(super) async_results: &'a Arc<AsyncResults>,
    /// The hook, as people are told of it.
    pub(super) hook: Arc<str>,
    /// The event.
    pub(super) event: HookEvent,
    /// What happened.
    pub(super) call: &'a HookCall,
    /// The same as the command reads it.
    pub(super) input: Bytes,
    /// What the shell is told.
    pub(super) command: &'a str,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// Variables of its own.
    pub(super) environment: &'a BTreeMap<String, String>,
}

/// A command at work. Dropped half way, it ends, and the host hears that too.
struct RunningHook {
    /// None once it is over.
    exchange: Option<PipedCommand>,
    progress: ProgressReporter,
    /// Whether it can still ask for time: that is the first thing it says, or it does not.
    may_defer: bool,
}

/// Why we listen no longer.
enum ListenEnd {
    /// It is over.
    Finished(RunEnd),
    /// It goes on by itself, for so long.
    Detached(Duration),
}

/// How a run came to its end.
enum RunEnd {
    /// The command has ended.
    Ended(ProcessExit),
    /// Its time is up.
    TimedOut(Duration),
    /// Nobody waits for it any more.
    Cancelled,
}

impl CommandHookRun<'_> {
    /// Runs the command and waits for what it says.
    pub(super) async fn run(self, cancel: &CancellationToken) -> ParsedOutput {
        let mut run = match self.start().await {
            Ok(run) => run,
            Err(fault) => return start_error(&fault),
        };
        match run.listen(self.timeout, cancel).await {
            // It asked for time and was done before anybody looked.
            ListenEnd::Finished(over @ RunEnd::Ended(_)) if run.take_async_timeout().is_some() => {
                let mut said = run.finish(over, self.event, parse_late_output).await;
                truncate::truncate_texts(&mut said, self.deps.workspace.output_dir());
                let agent_id = self.call.input.base.agent_id.clone();
                self.async_results.add(&self.hook, self.event, agent_id, said);
                ParsedOutput::Async
            }
            ListenEnd::Finished(over) => run.finish(over, self.event, ParsedOutput::from_command).await,
            ListenEnd::Detached(limit) => {
                self.detach(run, limit);
                ParsedOutput::Async
            }
        }
    }

    /// Starts the command and does not wait. Only a command that does not even start has something to say now.
    pub(super) async fn run_in_background(self) -> ParsedOutput {
        match self.start().await {
            Ok(run) => {
                self.detach(run, self.timeout);
                ParsedOutput::Async
            }
            Err(fault) => start_error(&fault),
        }
    }

    async fn start(&self) -> Result<RunningHook, SpawnError> {
        let workspace = &self.deps.workspace;
        let mut environment = workspace.environment();
        environment.retain(|name, _| !name.starts_with("OTEL_"));
        environment.insert("CLAUDE_PROJECT_DIR".into(), workspace.root().display().to_string());
        if let Some(effort) = &self.call.input.base.effort {
            environment.insert("CLAUDE_EFFORT".into(), effort.level.clone());
        }
        environment.extend(self.environment.clone());
        // Not where the shell stands: a path in a hook means the same file all along.
        let cwd = existing_dir(workspace.root());
        let order = CommandSpec { command: self.command.to_owned(), cwd, environment };
        let exchange = PipedCommand::spawn(&self.deps.tasks, &order, self.input.clone())?;
        let mut herald = ProgressReporter::new(&self.deps.frames, self.deps.progress, self.event, self.call);
        herald.report_started().await;
        Ok(RunningHook { exchange: Some(exchange), progress: herald, may_defer: true })
    }

    /// Lets the command go on by itself. What it says later waits for the next model call.
    fn detach(&self, mut run: RunningHook, mut limit: Duration) {
        let (hook, event, late) = (Arc::clone(&self.hook), self.event, Arc::clone(self.async_results));
        let agent_id = self.call.input.base.agent_id.clone();
        let spill = self.deps.workspace.output_dir().to_path_buf();
        tokio::spawn(async move {
            // Only the end of the session stops it.
            let unheard = CancellationToken::new();
            let over = loop {
                match run.listen(limit, &unheard).await {
                    ListenEnd::Finished(over) => break over,
                    ListenEnd::Detached(more) => limit = more,
                }
            };
            let mut said = run.finish(over, event, parse_late_output).await;
            truncate::truncate_texts(&mut said, &spill);
            late.add(&hook, event, agent_id, said);
        });
    }
}

impl RunningHook {
    /// Listens until the command has ended, its time is up, or nobody waits any more.
    async fn listen(&mut self, limit: Duration, cancel: &CancellationToken) -> ListenEnd {
        let mut deadline = std::pin::pin!(sleep(limit));
        let mut pace = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut news = false;
        loop {
            let Some(exchange) = &mut self.exchange else { return ListenEnd::Finished(RunEnd::Cancelled) };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return ListenEnd::Finished(RunEnd::Cancelled),
                () = &mut deadline => return ListenEnd::Finished(RunEnd::TimedOut(limit)),
                step = exchange.next_event() => match step {
                    CommandEvent::SessionClosing => return ListenEnd::Finished(RunEnd::Cancelled),
                    CommandEvent::Exited(ending) => return ListenEnd::Finished(RunEnd::Ended(ending)),
                    CommandEvent::Output => news = true,
                },
                _ = pace.tick(), if news && self.progress.is_enabled() => {
                    self.progress.report_output(exchange.output());
                    news = false;
                }
            }
            if let Some(time) = self.take_async_timeout() {
                return ListenEnd::Detached(time);
            }
        }
    }

    /// How much time the command asks for, if it does so now.
    fn take_async_timeout(&mut self) -> Option<Duration> {
        if !self.may_defer {
            return None;
        }
        let line = self.exchange.as_ref()?.output().stdout.first_line()?;
        self.may_defer = false;
        let later = parse_async_request(&line)?;
        Some(later.async_timeout.map_or(DEFAULT_ASYNC_TIMEOUT, Duration::from_millis))
    }

    /// Ends what still runs, tells the host, and reads what the command said.
    async fn finish(
        mut self,
        over: RunEnd,
        event: HookEvent,
        read: impl FnOnce(HookEvent, ProcessExit, &CommandOutput) -> ParsedOutput,
    ) -> ParsedOutput {
        match over {
            RunEnd::Ended(ending) => {
                let Some(heard) = self.exchange.take().map(PipedCommand::into_output) else { return ParsedOutput::Cancelled };
                self.progress.report_finished(Some(ending), &heard).await;
                read(event, ending, &heard)
            }
            RunEnd::TimedOut(limit) => {
                let Some(exchange) = self.exchange.take() else { return ParsedOutput::Cancelled };
                self.progress.report_finished(None, &exchange.stop().await).await;
                ParsedOutput::TimedOut(limit)
            }
            // Whoever interrupts does not wait for a command that clings to life.
            RunEnd::Cancelled => ParsedOutput::Cancelled,
        }
    }
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            self.progress.report_cancelled(Some(exchange.output()));
        }
    }
}

/// The folder, or if it is gone the nearest one above that is there: who takes away a folder does not take away the guards.
fn existing_dir(folder: &Path) -> PathBuf {
    folder.ancestors().find(|above| above.is_dir()).unwrap_or(folder).to_path_buf()
}

fn start_error(fault: &SpawnError) -> ParsedOutput {
    match fault {
        SpawnError::SessionEnded => ParsedOutput::Cancelled,
        SpawnError::MissingDir(_) | SpawnError::EnvironmentTooLarge | SpawnError::Io(_) => {
            ParsedOutput::Failed(fault.to_string())
        }
    }
}
