//! Background commands: starts and watches them, reports their end, and moves foreground work to the background.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_process::{
    CapturedCommand, CommandSpec, Launch, Leftover, OutputCapture, SpawnError, line_channel,
};
use whimbrel_sandbox::violations::MAX_SEARCHED;

use super::{
    BackgroundPolicy, NewTask, NotifyModel, TaskCommand, TaskInfo, TaskKind, TaskRegistry, TaskRow,
    TaskSnapshot, TaskState, TaskStatus, TaskTable, detach, monitor_output,
};
use crate::internal_events::{EventSender, InternalEvent};
use crate::live_output::LiveStream;
use crate::sandbox::ConfinedRun;
use crate::sandbox::report::ViolationReport;
use crate::tasks::detach::OutputFollower;

/// How a command is detached, and what reads its output until then.
struct Detachable {
    token: CancellationToken,
    follower: Option<OutputFollower>,
}

/// Watches one background command.
struct CommandWatcher {
    info: TaskInfo,
    stop: CancellationToken,
    /// Fires before `stop` if the host stops it.
    stopped_by_host: CancellationToken,
    /// Fires when the command is detached from the session.
    detach: CancellationToken,
    closed: CancellationToken,
    state: watch::Sender<TaskState>,
    events: EventSender,
    limit: Option<Duration>,
    confined: Option<ConfinedRun>,
}

/// What differs between the commands that are watched.
#[derive(Default)]
struct WatchOptions {
    /// Set for a confined command, which reports what was refused at the end of its output.
    confined: Option<ConfinedRun>,
    limit: Option<Duration>,
    /// Set for a command that may be detached.
    detachable: Option<Detachable>,
}

impl TaskRegistry {
    /// Starts a command in the background. Its output goes to a file below `output_dir`.
    pub fn start_command<'a>(
        &self,
        command: impl Into<TaskCommand<'a>>,
        output_dir: &Path,
        new_task: NewTask,
    ) -> Result<TaskInfo, SpawnError> {
        let TaskCommand { launch, confined } = command.into();
        let (info, capture, live_stream) = self.table.prepare_command(launch.spec(), output_dir, new_task)?;
        match (self.table.at_end, &launch) {
            // A confined command always ends with the session.
            (BackgroundPolicy::Detach, Launch::Unconfined(spec)) => {
                let (process, detach_token) = detach::spawn_detachable(spec, &self.table.groups, &capture)?;
                let follower = OutputFollower::new(&capture, live_stream);
                let detachable = Detachable { token: detach_token, follower };
                let options = WatchOptions { detachable: Some(detachable), ..WatchOptions::default() };
                self.table.start_watcher(info.clone(), process, capture, options);
            }
            _ => {
                let process = CapturedCommand::spawn(launch, &self.table.groups)?;
                let capture = capture.with_observer(live_stream.observer());
                self.table.watch(info.clone(), process, capture, confined, None);
            }
        }
        Ok(info)
    }

    /// Starts a background command whose output lines are reported as notifications, for at most `limit`.
    pub fn start_monitor<'a>(
        &self,
        command: impl Into<TaskCommand<'a>>,
        output_dir: &Path,
        new_task: NewTask,
        limit: Duration,
    ) -> Result<TaskInfo, SpawnError> {
        let TaskCommand { launch, confined } = command.into();
        let (info, capture, live_stream) = self.table.prepare_command(launch.spec(), output_dir, new_task)?;
        let process = CapturedCommand::spawn(launch, &self.table.groups)?;
        let (lines, receiver) = line_channel::line_channel();
        let capture = capture.with_observer(live_stream.observer()).with_observer(lines);
        let stop = self.table.watch(info.clone(), process, capture, confined, Some(limit));
        tokio::spawn(monitor_output::report_lines(receiver, info.clone(), self.table.events.clone(), stop));
        Ok(info)
    }

    /// Moves foreground work of the main turn to the background: all of it, or the work of one call. Work of a subagent
    /// is skipped, because notifications would not reach the subagent. Returns the moved tasks.
    pub fn move_to_background(&self, call: Option<&str>) -> Vec<TaskSnapshot> {
        let rows = self.table.rows();
        let foreground = rows.iter().filter(|task| {
            let is_selected = call.is_none_or(|call| call == task.info.tool_use_id);
            let is_main = task.info.owner.is_none();
            is_selected && is_main && !task.background_locked && *task.state.borrow() == TaskState::Running
        });
        let moved = foreground.filter(|task| !task.background.send_replace(true));
        moved.map(TaskRow::snapshot).collect()
    }

    /// Running background tasks.
    pub fn running_in_background(&self) -> Vec<TaskSnapshot> {
        self.table.rows().iter().filter(|task| task.is_in_background()).map(TaskRow::snapshot).collect()
    }
}

impl TaskTable {
    /// Creates the info of a background command, its output file below `output_dir`, and its live output.
    fn prepare_command(
        &self,
        spec: &CommandSpec,
        output_dir: &Path,
        new_task: NewTask,
    ) -> Result<(TaskInfo, OutputCapture, LiveStream), SpawnError> {
        let task_id = ids::new_task_id('b');
        let capture = OutputCapture::in_file(output_dir.join("tasks").join(format!("{task_id}.output")))?;
        let output_file = capture.path().map(Path::to_path_buf).unwrap_or_default();
        let live_stream = self.open_live_stream(&new_task, Some(&task_id));
        let info = TaskInfo {
            task_id,
            tool_use_id: new_task.tool_use_id,
            owner: new_task.owner,
            kind: TaskKind::Command,
            description: new_task.description,
            command: spec.command.clone(),
            agent_type: None,
            name: None,
            output_file,
        };
        Ok((info, capture, live_stream))
    }

    /// Watches a background command; returns its stop token.
    pub(super) fn watch(
        &self,
        info: TaskInfo,
        process: CapturedCommand,
        capture: OutputCapture,
        confined: Option<ConfinedRun>,
        limit: Option<Duration>,
    ) -> CancellationToken {
        self.start_watcher(info, process, capture, WatchOptions { confined, limit, detachable: None })
    }

    fn start_watcher(
        &self,
        info: TaskInfo,
        process: CapturedCommand,
        capture: OutputCapture,
        options: WatchOptions,
    ) -> CancellationToken {
        let WatchOptions { confined, limit, detachable } = options;
        let (detach, follower) = match detachable {
            Some(Detachable { token, follower }) => (Some(token), follower),
            None => (None, None),
        };
        let (state_sender, state) = watch::channel(TaskState::Running);
        let closed = self.groups.closed.clone();
        let stop = closed.child_token();
        let (background, stopped_by_host) = (watch::Sender::new(true), CancellationToken::new());
        self.rows().push(TaskRow {
            info: info.clone(),
            state,
            stop: stop.clone(),
            stopped_by_host: stopped_by_host.clone(),
            background,
            background_locked: false,
            detach: detach.clone(),
        });
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(info.started_event())));
        let token = stop.clone();
        let detach = detach.unwrap_or_default();
        let events = self.events.clone();
        let watcher = CommandWatcher {
            info,
            stop,
            stopped_by_host,
            detach,
            closed,
            state: state_sender,
            events,
            limit,
            confined,
        };
        tokio::spawn(watcher.run(process, capture, follower));
        token
    }
}

impl CommandWatcher {
    async fn run(
        self,
        mut process: CapturedCommand,
        mut capture: OutputCapture,
        mut follower: Option<OutputFollower>,
    ) {
        let finish = with_optional_timeout(self.limit, process.run_to_end(&mut capture));
        let end = tokio::select! {
            biased;
            end = self.stop.run_until_cancelled(finish) => end,
            () = self.detach.cancelled() => return self.detach(process),
            never = follow(follower.as_mut()) => match never {},
        };
        let timed_out = matches!(end, Some(None));
        let notify = match &end {
            Some(_) => NotifyModel::Now,
            None if self.stopped_by_host.is_cancelled() => NotifyModel::WithNextInput,
            None => NotifyModel::Never,
        };
        let (status, exit_code) = match end.flatten() {
            Some((exit, leftover)) => {
                if leftover == Leftover::Running {
                    process.discard_output(self.closed);
                }
                TaskStatus::from_exit(exit)
            }
            None => {
                process.stop(&mut capture).await;
                (TaskStatus::Stopped, None)
            }
        };
        let report = self.confined.map(|run| run.finish(&capture.last_text(MAX_SEARCHED)));
        if let Some(report) = report.as_ref().and_then(ViolationReport::render) {
            capture.push(format!("\n{report}\n").as_bytes());
        }
        capture.finish();
        // The end of the output comes before the notice.
        follower.iter_mut().for_each(OutputFollower::read_new);
        drop(follower);
        let ended = match timed_out {
            true => self.info.timed_out_event(),
            false => self.info.ended_event(status, exit_code, notify),
        };
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(ended)));
        self.state.send_replace(TaskState::Ended { status, exit_code });
    }

    /// Detaches the command and stops watching it.
    fn detach(self, process: CapturedCommand) {
        let event = self.info.detached_event(process.detach());
        // The session may be gone.
        let _ = self.events.send(InternalEvent::Task(Box::new(event)));
        self.state.send_replace(TaskState::Ended { status: TaskStatus::Stopped, exit_code: None });
    }
}

/// Follows the output of a detachable command; waits forever for others.
async fn follow(follower: Option<&mut OutputFollower>) -> Infallible {
    match follower {
        Some(follower) => follower.follow().await,
        None => std::future::pending().await,
    }
}

/// Awaits `work`, with a timeout if there is a limit.
async fn with_optional_timeout<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}
