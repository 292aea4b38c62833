//! A command that a call waits for, until it ends, or until the host lets the turn go on beside it: then it is background
//! work like any other.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::capture::OutputCapture;
use super::process::{ProcessExit, Leftover, CommandSpec, Process, SpawnError};
use super::{FinishedCommand, NewTask, TaskTable, TaskRow, TaskFacts, TaskKind, TaskState, TaskRegistry};
use crate::ids;

/// What became of a command that a call waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandRun {
    /// It has ended.
    Finished(FinishedCommand),
    /// The turn goes on beside it.
    Backgrounded(TaskFacts),
}

/// How far a command has got.
enum RunState {
    Finished(FinishedCommand),
    Running(Box<(Process, OutputCapture)>),
}

impl TaskRegistry {
    /// Runs a command and waits for it, at most for `limit`. Output too long to show goes to a file below `spill`.
    /// If the future is dropped, the command ends with all its children.
    pub async fn run_command(
        &self,
        order: &CommandSpec,
        spill: &Path,
        limit: Duration,
    ) -> Result<FinishedCommand, SpawnError> {
        match self.run_until_backgrounded(order, spill, limit, std::future::pending()).await? {
            RunState::Finished(finished) => Ok(finished),
            // Nobody can have let it go.
            RunState::Running(_) => Err(SpawnError::SessionEnded),
        }
    }

    /// The same, unless the host lets the turn go on beside it ([`let_go`](Self::let_go)): then it goes on in the
    /// background, for as long as it takes, and what it has printed so far stands in its output file. `command` is what
    /// the model wrote.
    pub async fn run_or_background(
        &self,
        order: &CommandSpec,
        command: &str,
        spill: &Path,
        limit: Duration,
        start: NewTask,
    ) -> Result<CommandRun, SpawnError> {
        let task_id = ids::new_task_id('b');
        let mut facts = TaskFacts {
            output_file: spill.join("tasks").join(format!("{task_id}.output")),
            task_id,
            tool_use_id: start.tool_use_id,
            owner: start.owner,
            kind: TaskKind::Command,
            description: start.description,
            command: command.to_owned(),
            agent_type: None,
            name: None,
        };
        let (seat, mut beside) = self.table.add_foreground_row(&facts);
        let let_go = async {
            // Its row is there as long as the seat is, so the other end cannot be gone.
            let _ = beside.wait_for(|beside| *beside).await;
        };
        match self.run_until_backgrounded(order, spill, limit, let_go).await? {
            RunState::Finished(finished) => Ok(CommandRun::Finished(finished)),
            RunState::Running(underway) => {
                let (process, mut capture) = *underway;
                drop(seat);
                facts.output_file = capture.continue_in_file(facts.output_file);
                self.table.watch(facts.clone(), process, capture, None);
                Ok(CommandRun::Backgrounded(facts))
            }
        }
    }

    /// Runs a command until it has ended, its time is up, or `let_go` says that nobody waits for it any more.
    async fn run_until_backgrounded(
        &self,
        order: &CommandSpec,
        spill: &Path,
        limit: Duration,
        let_go: impl Future<Output = ()>,
    ) -> Result<RunState, SpawnError> {
        let closed = &self.table.groups.closed;
        let mut capture = OutputCapture::in_memory(spill.join(format!("{}.txt", ids::new_task_id('o'))));
        let mut process = Process::spawn(order, &self.table.groups)?;
        let finish = tokio::time::timeout(limit, process.run_to_end(&mut capture));
        let finish = tokio::select! {
            biased;
            finish = closed.run_until_cancelled(finish) => finish.ok_or(SpawnError::SessionEnded)?,
            () = let_go => return Ok(RunState::Running(Box::new((process, capture)))),
        };
        let (ending, leftover) = finish.unwrap_or((ProcessExit::TimedOut, Leftover::Nothing));
        match (ending, leftover) {
            (ProcessExit::TimedOut, _) => process.stop(&mut capture).await,
            (_, Leftover::Running) => process.discard_output(closed.clone()),
            (_, Leftover::Nothing) => {}
        }
        Ok(RunState::Finished(FinishedCommand { exit: ending, output: capture.finish(), leftover }))
    }
}

/// The row of a command that a call waits for; gone when it is dropped.
struct ForegroundRow<'a> {
    table: &'a TaskTable,
    task_id: String,
}

impl TaskTable {
    /// Notes a command that a call waits for, and what says when it no longer does.
    fn add_foreground_row(&self, facts: &TaskFacts) -> (ForegroundRow<'_>, watch::Receiver<bool>) {
        let background = watch::Sender::new(false);
        let beside = background.subscribe();
        self.rows().push(TaskRow {
            facts: facts.clone(),
            state: watch::channel(TaskState::Running).1,
            stop: self.groups.closed.child_token(),
            stopped_by_host: CancellationToken::new(),
            background,
            background_frozen: false,
            detach: None,
        });
        (ForegroundRow { table: self, task_id: facts.task_id.clone() }, beside)
    }
}

impl Drop for ForegroundRow<'_> {
    fn drop(&mut self) {
        self.table.rows().retain(|task| task.facts.task_id != self.task_id);
    }
}
