//! Foreground commands: a call waits for the command until it ends or the host moves it to the background.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_process::Leftover;
use whimbrel_process::bounded_output::OutputCapture;
use whimbrel_process::{CapturedCommand, ProcessExit, SpawnError};
use whimbrel_sandbox::violations::MAX_SEARCHED;

use super::{
    FinishedCommand, NewTask, TaskCommand, TaskInfo, TaskKind, TaskRegistry, TaskRow, TaskState, TaskTable,
};
use crate::sandbox::ConfinedRun;

/// Outcome of a foreground command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandRun {
    Finished(FinishedCommand),
    /// The host moved it to the background.
    Backgrounded(TaskInfo),
}

enum RunState {
    Finished(FinishedCommand),
    Running(Box<(CapturedCommand, OutputCapture, Option<ConfinedRun>)>),
}

impl TaskRegistry {
    /// Runs a command and waits at most `limit`. Output too long to show goes to a file below `output_dir`. Dropping the
    /// future kills the command and its children.
    pub async fn run_command<'a>(
        &self,
        command: impl Into<TaskCommand<'a>>,
        output_dir: &Path,
        limit: Duration,
    ) -> Result<FinishedCommand, SpawnError> {
        let capture = new_capture(output_dir);
        match self.run_until_backgrounded(command.into(), capture, limit, std::future::pending()).await? {
            RunState::Finished(finished) => Ok(finished),
            // Impossible: the future that moves it to the background never completes.
            RunState::Running(_) => Err(SpawnError::SessionEnded),
        }
    }

    /// Like [`run_command`](Self::run_command), but the host may move the command to the background
    /// ([`move_to_background`](Self::move_to_background)). Then it runs without a time limit, and its output file holds
    /// all output so far. `command` is the model's original text.
    pub async fn run_or_background<'a>(
        &self,
        started: impl Into<TaskCommand<'a>>,
        command: &str,
        output_dir: &Path,
        limit: Duration,
        new_task: NewTask,
    ) -> Result<CommandRun, SpawnError> {
        let live_stream = self.table.open_live_stream(&new_task, None);
        let task_id = ids::new_task_id('b');
        let mut info = TaskInfo {
            output_file: output_dir.join("tasks").join(format!("{task_id}.output")),
            task_id,
            tool_use_id: new_task.tool_use_id,
            owner: new_task.owner,
            kind: TaskKind::Command,
            description: new_task.description,
            command: command.to_owned(),
            agent_type: None,
            name: None,
        };
        let (row, mut in_background) = self.table.add_foreground_row(&info);
        let moved_to_background = async {
            // The sender lives in the table row, which exists as long as `row`.
            let _ = in_background.wait_for(|in_background| *in_background).await;
        };
        let capture = new_capture(output_dir).with_observer(live_stream.observer());
        match self.run_until_backgrounded(started.into(), capture, limit, moved_to_background).await? {
            RunState::Finished(finished) => Ok(CommandRun::Finished(finished)),
            RunState::Running(running) => {
                let (process, mut capture, confined) = *running;
                drop(row);
                live_stream.set_task(&info.task_id);
                info.output_file = capture.continue_in_file(info.output_file);
                self.table.watch(info.clone(), process, capture, confined, None);
                Ok(CommandRun::Backgrounded(info))
            }
        }
    }

    /// Runs a command until it exits, times out, or `moved_to_background` completes.
    async fn run_until_backgrounded(
        &self,
        command: TaskCommand<'_>,
        mut capture: OutputCapture,
        limit: Duration,
        moved_to_background: impl Future<Output = ()>,
    ) -> Result<RunState, SpawnError> {
        let closed = &self.table.groups.closed;
        let TaskCommand { launch, confined } = command;
        let mut process = CapturedCommand::spawn(launch, &self.table.groups)?;
        let finish = tokio::time::timeout(limit, process.run_to_end(&mut capture));
        let finish = tokio::select! {
            biased;
            finish = closed.run_until_cancelled(finish) => finish.ok_or(SpawnError::SessionEnded)?,
            () = moved_to_background => return Ok(RunState::Running(Box::new((process, capture, confined)))),
        };
        let (exit, leftover) = finish.unwrap_or((ProcessExit::TimedOut, Leftover::Nothing));
        match (exit, leftover) {
            (ProcessExit::TimedOut, _) => process.stop(&mut capture).await,
            (_, Leftover::Running) => process.discard_output(closed.clone()),
            (_, Leftover::Nothing) => {}
        }
        let report = confined.map(|run| run.finish(&capture.last_text(MAX_SEARCHED)));
        Ok(RunState::Finished(FinishedCommand { exit, output: capture.finish(), leftover, report }))
    }
}

/// Captures the output of a foreground command. If it is too long to show, it goes to a file below `output_dir`.
fn new_capture(output_dir: &Path) -> OutputCapture {
    OutputCapture::in_memory(output_dir.join(format!("{}.txt", ids::new_task_id('o'))))
}

/// Table row of a foreground command; removed on drop.
struct ForegroundRow<'a> {
    table: &'a TaskTable,
    task_id: String,
}

impl TaskTable {
    /// Adds a row for a foreground command, and returns a receiver that tells when it moves to the background.
    fn add_foreground_row(&self, info: &TaskInfo) -> (ForegroundRow<'_>, watch::Receiver<bool>) {
        let background = watch::Sender::new(false);
        let receiver = background.subscribe();
        self.rows().push(TaskRow {
            info: info.clone(),
            state: watch::channel(TaskState::Running).1,
            stop: self.groups.closed.child_token(),
            stopped_by_host: CancellationToken::new(),
            background,
            background_locked: false,
            detach: None,
        });
        (ForegroundRow { table: self, task_id: info.task_id.clone() }, receiver)
    }
}

impl Drop for ForegroundRow<'_> {
    fn drop(&mut self) {
        self.table.rows().retain(|task| task.info.task_id != self.task_id);
    }
}
