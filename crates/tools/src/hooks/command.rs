//! Command hooks: the command reads the hook input on stdin; its exit code and output are the hook's output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;
use whimbrel_process::{CommandEvent, CommandOutput, CommandSpec, PipedCommand, ProcessExit, SpawnError};
use whimbrel_wire::hook::HookEvent;

use super::async_results::AsyncResults;
use super::event_table::DEFAULT_ASYNC_TIMEOUT;
use super::executor::HookDeps;
use super::inputs::HookCall;
use super::output::{ParsedOutput, parse_async_request, parse_late_output, truncate_texts};
use super::progress::ProgressReporter;
use crate::workspace::ENV_FILE_VARIABLE;

/// Minimum interval between progress frames.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// One run of a command hook.
pub(super) struct CommandHookRun<'a> {
    pub(super) deps: &'a HookDeps,
    /// Receives the output if the hook goes async.
    pub(super) async_results: &'a Arc<AsyncResults>,
    /// Display name of the hook.
    pub(super) hook: Arc<str>,
    pub(super) event: HookEvent,
    pub(super) call: &'a HookCall,
    /// Hook input as JSON.
    pub(super) input: Bytes,
    /// Shell command.
    pub(super) command: &'a str,
    pub(super) timeout: Duration,
    /// Environment variables of the hook.
    pub(super) environment: &'a BTreeMap<String, String>,
}

/// Running command. Dropping it kills the process and reports the cancellation to the host.
struct RunningHook {
    /// `None` once it has ended.
    exchange: Option<PipedCommand>,
    progress: ProgressReporter,
    /// Whether the hook can still go async: only its first line of output can request that.
    may_defer: bool,
}

/// Why listening ended.
enum ListenEnd {
    Finished(RunEnd),
    /// The hook went async, with this timeout.
    Detached(Duration),
}

/// How a run ended.
enum RunEnd {
    Ended(ProcessExit),
    TimedOut(Duration),
    /// The turn was cancelled or the session ends.
    Cancelled,
}

impl CommandHookRun<'_> {
    /// Runs the command and waits for its output.
    pub(super) async fn run(self, cancel: &CancellationToken) -> ParsedOutput {
        let mut run = match self.start().await {
            Ok(run) => run,
            Err(error) => return start_error(&error),
        };
        match run.listen(self.timeout, cancel).await {
            // It went async and ended before we noticed.
            ListenEnd::Finished(end @ RunEnd::Ended(_)) if run.take_async_timeout().is_some() => {
                let mut output = run.finish(end, self.event, parse_late_output).await;
                truncate_texts(&mut output, self.deps.workspace.output_dir());
                let agent_id = self.call.input.base.agent_id.clone();
                self.async_results.add(&self.hook, self.event, agent_id, output);
                ParsedOutput::Async
            }
            ListenEnd::Finished(end) => run.finish(end, self.event, ParsedOutput::from_command).await,
            ListenEnd::Detached(limit) => {
                self.detach(run, limit);
                ParsedOutput::Async
            }
        }
    }

    /// Starts the command without waiting. Only a failure to start gives an output now.
    pub(super) async fn run_in_background(self) -> ParsedOutput {
        match self.start().await {
            Ok(run) => {
                self.detach(run, self.timeout);
                ParsedOutput::Async
            }
            Err(error) => start_error(&error),
        }
    }

    async fn start(&self) -> Result<RunningHook, SpawnError> {
        let workspace = &self.deps.workspace;
        let mut environment = workspace.program_environment();
        environment.retain(|name, _| !name.starts_with("OTEL_"));
        environment.insert("CLAUDE_PROJECT_DIR".into(), workspace.root().display().to_string());
        if let Some(effort) = &self.call.input.base.effort {
            environment.insert("CLAUDE_EFFORT".into(), effort.level.clone());
        }
        if sets_up_environment(self.event)
            && let Some(file) = workspace.hook_env_file()
        {
            environment.insert(ENV_FILE_VARIABLE.into(), file.display().to_string());
        }
        environment.extend(self.environment.clone());
        // The project root, not the shell's directory, so that relative paths in hooks are stable.
        let cwd = existing_dir(workspace.root());
        let command = workspace.add_shell_prefix(self.command.to_owned());
        let spec = CommandSpec { command, cwd, environment };
        let exchange = PipedCommand::spawn(self.deps.tasks.process_groups(), &spec, self.input.clone())?;
        let mut progress =
            ProgressReporter::new(&self.deps.frames, self.deps.progress, self.event, self.call);
        progress.report_started().await;
        Ok(RunningHook { exchange: Some(exchange), progress, may_defer: true })
    }

    /// Detaches the command. Its output is injected with the next model call.
    fn detach(&self, mut run: RunningHook, mut limit: Duration) {
        let (hook, event, async_results) =
            (Arc::clone(&self.hook), self.event, Arc::clone(self.async_results));
        let agent_id = self.call.input.base.agent_id.clone();
        let output_dir = self.deps.workspace.output_dir().to_path_buf();
        tokio::spawn(async move {
            // Only the end of the session cancels it.
            let never_cancelled = CancellationToken::new();
            let end = loop {
                match run.listen(limit, &never_cancelled).await {
                    ListenEnd::Finished(end) => break end,
                    ListenEnd::Detached(new_limit) => limit = new_limit,
                }
            };
            let mut output = run.finish(end, event, parse_late_output).await;
            truncate_texts(&mut output, &output_dir);
            async_results.add(&hook, event, agent_id, output);
        });
    }
}

impl RunningHook {
    /// Waits until the command ends, times out, is cancelled or goes async.
    async fn listen(&mut self, limit: Duration, cancel: &CancellationToken) -> ListenEnd {
        let mut deadline = std::pin::pin!(sleep(limit));
        let mut progress_timer = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        progress_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_output = false;
        loop {
            let Some(exchange) = &mut self.exchange else { return ListenEnd::Finished(RunEnd::Cancelled) };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return ListenEnd::Finished(RunEnd::Cancelled),
                () = &mut deadline => return ListenEnd::Finished(RunEnd::TimedOut(limit)),
                event = exchange.next_event() => match event {
                    CommandEvent::SessionClosing => return ListenEnd::Finished(RunEnd::Cancelled),
                    CommandEvent::Exited(exit) => return ListenEnd::Finished(RunEnd::Ended(exit)),
                    CommandEvent::Output => has_output = true,
                },
                _ = progress_timer.tick(), if has_output && self.progress.is_enabled() => {
                    self.progress.report_output(exchange.output());
                    has_output = false;
                }
            }
            if let Some(time) = self.take_async_timeout() {
                return ListenEnd::Detached(time);
            }
        }
    }

    /// Timeout of a hook that has just gone async. Checks the first line of output once.
    fn take_async_timeout(&mut self) -> Option<Duration> {
        if !self.may_defer {
            return None;
        }
        let line = self.exchange.as_ref()?.output().stdout.first_line()?;
        self.may_defer = false;
        let request = parse_async_request(&line)?;
        Some(request.async_timeout.map_or(DEFAULT_ASYNC_TIMEOUT, Duration::from_millis))
    }

    /// Ends the process if it still runs, reports the end to the host and parses the output.
    async fn finish(
        mut self,
        end: RunEnd,
        event: HookEvent,
        parse: impl FnOnce(HookEvent, ProcessExit, &CommandOutput) -> ParsedOutput,
    ) -> ParsedOutput {
        match end {
            RunEnd::Ended(exit) => {
                let Some(output) = self.exchange.take().map(PipedCommand::into_output) else {
                    return ParsedOutput::Cancelled;
                };
                self.progress.report_finished(Some(exit), &output).await;
                parse(event, exit, &output)
            }
            RunEnd::TimedOut(limit) => {
                let Some(exchange) = self.exchange.take() else { return ParsedOutput::Cancelled };
                self.progress.report_finished(None, &exchange.stop().await).await;
                ParsedOutput::TimedOut(limit)
            }
            // The process is killed on drop, without waiting for its exit.
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

/// Returns whether hooks of the event may add variables for later Bash commands.
fn sets_up_environment(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::SessionStart | HookEvent::Setup | HookEvent::CwdChanged | HookEvent::FileChanged
    )
}

/// Nearest existing ancestor directory: removing the project directory must not disable guards.
fn existing_dir(dir: &Path) -> PathBuf {
    dir.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(dir).to_path_buf()
}

fn start_error(error: &SpawnError) -> ParsedOutput {
    match error {
        SpawnError::SessionEnded => ParsedOutput::Cancelled,
        SpawnError::MissingDir(_) | SpawnError::EnvironmentTooLarge | SpawnError::Io(_) => {
            ParsedOutput::Failed(error.to_string())
        }
    }
}
