//! A command that a call waits for, until it ends, or until the host lets the turn go on beside it: then it is background
//! work like any other.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::output::Capture;
use super::process::{Ending, Leftover, Order, Process, StartFault};
use super::{Finished, Start, Table, Task, TaskFacts, TaskKind, TaskState, Tasks};
use crate::ids;

/// What became of a command that a call waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ran {
    /// It has ended.
    Finished(Finished),
    /// The turn goes on beside it.
    LetGo(TaskFacts),
}

/// How far a command has got.
enum Progress {
    Finished(Finished),
    Underway(Box<(Process, Capture)>),
}

impl Tasks {
    /// Runs a command and waits for it, at most for `limit`. Output too long to show goes to a file below `spill`.
    /// If the future is dropped, the command ends with all its children.
    pub async fn run_command(
        &self,
        order: &Order,
        spill: &Path,
        limit: Duration,
    ) -> Result<Finished, StartFault> {
        match self.run_until(order, spill, limit, std::future::pending()).await? {
            Progress::Finished(finished) => Ok(finished),
            // Nobody can have let it go.
            Progress::Underway(_) => Err(StartFault::SessionEnded),
        }
    }

    /// The same, unless the host lets the turn go on beside it ([`let_go`](Self::let_go)): then it goes on in the
    /// background, for as long as it takes, and what it has printed so far stands in its output file. `command` is what
    /// the model wrote.
    pub async fn run_or_let_go(
        &self,
        order: &Order,
        command: &str,
        spill: &Path,
        limit: Duration,
        start: Start,
    ) -> Result<Ran, StartFault> {
        let task_id = ids::task('b');
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
        let (seat, mut beside) = self.table.seat(&facts);
        let let_go = async {
            // Its row is there as long as the seat is, so the other end cannot be gone.
            let _ = beside.wait_for(|beside| *beside).await;
        };
        match self.run_until(order, spill, limit, let_go).await? {
            Progress::Finished(finished) => Ok(Ran::Finished(finished)),
            Progress::Underway(underway) => {
                let (process, mut capture) = *underway;
                drop(seat);
                facts.output_file = capture.go_on_in(facts.output_file);
                self.table.watch(facts.clone(), process, capture, None);
                Ok(Ran::LetGo(facts))
            }
        }
    }

    /// Runs a command until it has ended, its time is up, or `let_go` says that nobody waits for it any more.
    async fn run_until(
        &self,
        order: &Order,
        spill: &Path,
        limit: Duration,
        let_go: impl Future<Output = ()>,
    ) -> Result<Progress, StartFault> {
        let closed = &self.table.roster.closed;
        let mut capture = Capture::in_memory(spill.join(format!("{}.txt", ids::task('o'))));
        let mut process = Process::spawn(order, &self.table.roster)?;
        let finish = tokio::time::timeout(limit, process.finish(&mut capture));
        let finish = tokio::select! {
            biased;
            finish = closed.run_until_cancelled(finish) => finish.ok_or(StartFault::SessionEnded)?,
            () = let_go => return Ok(Progress::Underway(Box::new((process, capture)))),
        };
        let (ending, leftover) = finish.unwrap_or((Ending::TimedOut, Leftover::Nothing));
        match (ending, leftover) {
            (Ending::TimedOut, _) => process.stop(&mut capture).await,
            (_, Leftover::Running) => process.keep_open(closed.clone()),
            (_, Leftover::Nothing) => {}
        }
        Ok(Progress::Finished(Finished { ending, output: capture.finish(), leftover }))
    }
}

/// The row of a command that a call waits for; gone when it is dropped.
struct Seat<'a> {
    table: &'a Table,
    task_id: String,
}

impl Table {
    /// Notes a command that a call waits for, and what says when it no longer does.
    fn seat(&self, facts: &TaskFacts) -> (Seat<'_>, watch::Receiver<bool>) {
        let background = watch::Sender::new(false);
        let beside = background.subscribe();
        self.rows().push(Task {
            facts: facts.clone(),
            state: watch::channel(TaskState::Running).1,
            stop: self.roster.closed.child_token(),
            by_host: CancellationToken::new(),
            background,
            sealed: false,
            release: None,
        });
        (Seat { table: self, task_id: facts.task_id.clone() }, beside)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.table.rows().retain(|task| task.facts.task_id != self.task_id);
    }
}
