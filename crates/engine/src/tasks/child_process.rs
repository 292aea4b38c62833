//! A program that we talk with as long as it lives: its input is ours to write, its output ours to read, and of its
//! complaints the end is kept. It has a roster of its own, so that all it has started can be ended with it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::pipe::{DrainWindow, OutputPipe};
use super::process::{ProcessTree, ProcessExit, CommandSpec, SpawnError};
use super::plain_text::to_plain_text;
use super::process_groups::ProcessGroups;
use super::shell_script::ShellScript;

/// How much is kept of the complaints.
const MAX_STDERR_BYTES: usize = 8 * 1024;
/// How long a program may take to end by itself once it has no input any more.
const EXIT_GRACE: Duration = Duration::from_millis(300);

/// A program, and where and in which surroundings it runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramSpec {
    /// The program: a path, or a name to look for.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// The folder.
    pub(crate) cwd: PathBuf,
    /// All variables that it sees.
    pub(crate) environment: BTreeMap<String, String>,
}

/// A running program that we talk with. Dropped, it ends with all that it has started.
pub(crate) struct ChildProcess {
    stdin: Option<ChildStdin>,
    stdout: OutputPipe,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_task: AbortOnDropHandle<()>,
    process: ProcessTree,
    exit: Option<(ProcessExit, DrainWindow)>,
    // The last, so that what the program has left is ended after the program.
    groups: Arc<ProcessGroups>,
}

/// Holds on to a program from outside, to end it whoever has it.
#[derive(Clone)]
pub(crate) struct KillHandle(Arc<ProcessGroups>);

impl ChildProcess {
    /// Starts a program.
    pub(crate) fn spawn(program: &ProgramSpec) -> Result<Self, SpawnError> {
        let roster = Arc::new(ProcessGroups::new());
        let order = CommandSpec {
            command: program.exec_command(),
            cwd: program.cwd.clone(),
            environment: program.environment.clone(),
        };
        let (output, output_writer) = OutputPipe::create()?;
        let (complaints, complaints_writer) = OutputPipe::create()?;
        let script = ShellScript::with_piped_stdin(&order.command)?;
        let mut body = ProcessTree::spawn_tagged(&order, &script, &roster, output_writer, complaints_writer)?;
        let kept = Arc::default();
        let listener = AbortOnDropHandle::new(tokio::spawn(keep_stderr_tail(complaints, Arc::clone(&kept))));
        Ok(Self { stdin: body.take_stdin(), stdout: output, stderr: kept, stderr_task: listener, process: body, exit: None, groups: roster })
    }

    /// A hold on it from outside.
    pub(crate) fn kill_handle(&self) -> KillHandle {
        KillHandle(Arc::clone(&self.groups))
    }

    /// Its input, once. Dropping it tells the program that we are done.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// The next bytes of its output; none once it has ended or closed it. May be dropped and called again.
    pub(crate) async fn read_stdout(&mut self) -> Option<&[u8]> {
        let mut said = false;
        while !said && self.stdout.is_open {
            said = match &self.exit {
                None => tokio::select! {
                    biased;
                    said = self.stdout.fill() => said,
                    ending = self.process.wait() => {
                        self.exit = Some((ending, DrainWindow::start()));
                        false
                    }
                },
                // Something that it has started may hold the output open for ever.
                Some((_, drain)) if !drain.wait_for_more(self.stdout.fill()).await => return None,
                Some(_) => !self.stdout.buffer.is_empty(),
            };
        }
        said.then_some(self.stdout.buffer.as_slice())
    }

    /// How it ended; waits a moment for it. None if it still runs.
    pub(crate) async fn wait_for_exit(&mut self) -> Option<ProcessExit> {
        match &self.exit {
            Some((ending, _)) => Some(*ending),
            None => {
                let ending = timeout(EXIT_GRACE, self.process.wait()).await.ok()?;
                self.exit = Some((ending, DrainWindow::start()));
                Some(ending)
            }
        }
    }

    /// The end of what it has complained about, for people to read. Of one that has ended, all is heard first.
    pub(crate) async fn stderr_tail(&mut self) -> String {
        if self.exit.is_some() && !self.stderr_task.is_finished() {
            let _ = timeout(EXIT_GRACE, &mut self.stderr_task).await;
        }
        let mut kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        to_plain_text(kept.make_contiguous()).trim().to_owned()
    }

    /// Tells the program that we are done, and gives it a moment to end by itself.
    pub(crate) async fn close_stdin_and_wait(&mut self) {
        self.stdin = None;
        if self.exit.is_none() {
            let _ = timeout(EXIT_GRACE, self.process.wait()).await;
        }
    }
}

impl KillHandle {
    /// Ends the program and everything that it has started, and waits until they are gone.
    pub(crate) async fn kill(&self) {
        self.0.close().await;
    }
}

impl ProgramSpec {
    /// What the shell is told: to become the program, with each word as it is.
    fn exec_command(&self) -> String {
        let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        let words: Vec<String> = [&self.command].into_iter().chain(&self.args).map(quoted).collect();
        format!("exec {}", words.join(" "))
    }
}

/// Keeps the last of what comes.
async fn keep_stderr_tail(mut pipe: OutputPipe, kept: Arc<Mutex<VecDeque<u8>>>) {
    while pipe.is_open {
        if pipe.fill().await {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = &pipe.buffer[pipe.buffer.len().saturating_sub(MAX_STDERR_BYTES)..];
            let surplus = (kept.len() + bytes.len()).saturating_sub(MAX_STDERR_BYTES);
            kept.drain(..surplus);
            kept.extend(bytes);
        }
    }
}
