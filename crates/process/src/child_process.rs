//! A long-lived child process with piped stdin and stdout (for example an MCP server). The tail of stderr is kept. It
//! has its own [`ProcessGroups`], so that its descendants can be killed with it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::ProcessGroups;
use crate::captured_command::ProcessTree;
use crate::pipe::{DrainWindow, OutputPipe};
use crate::plain_text::to_plain_text;
use crate::shell_command::{CommandSpec, ShellScript};
use crate::shell_prefix::{add_shell_prefix, quote_word};
use crate::{ProcessExit, SpawnError};

/// Bytes of stderr that are kept.
const MAX_STDERR_BYTES: usize = 8 * 1024;
/// Time a process gets to exit on its own after stdin is closed.
const EXIT_GRACE: Duration = Duration::from_millis(300);

/// A program, its arguments, working directory and environment.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildProcessSpec {
    /// Path, or a name to look up in PATH.
    pub command: String,
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment.
    pub environment: BTreeMap<String, String>,
    /// Command of the user that runs the program; see [`add_shell_prefix`].
    pub prefix: Option<String>,
}

/// A running child process. Dropping it kills the process and its descendants.
pub struct ChildProcess {
    stdin: Option<ChildStdin>,
    stdout: OutputPipe,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_task: AbortOnDropHandle<()>,
    process: ProcessTree,
    exit: Option<(ProcessExit, DrainWindow)>,
    // Last field: remaining descendants are killed after the process itself.
    groups: Arc<ProcessGroups>,
}

/// Kills a child process independently of its owner.
#[derive(Clone)]
pub struct KillHandle(Arc<ProcessGroups>);

impl ChildProcess {
    pub fn spawn(program: &ChildProcessSpec) -> Result<Self, SpawnError> {
        let groups = Arc::new(ProcessGroups::new());
        let spec = CommandSpec {
            command: program.exec_command(),
            cwd: program.cwd.clone(),
            environment: program.environment.clone(),
        };
        let (stdout, stdout_writer) = OutputPipe::create()?;
        let (stderr, stderr_writer) = OutputPipe::create()?;
        let script = ShellScript::with_piped_stdin(&spec.command)?;
        let mut process = ProcessTree::spawn_tagged(&spec, &script, &groups, stdout_writer, stderr_writer)?;
        let tail = Arc::default();
        let stderr_task = AbortOnDropHandle::new(tokio::spawn(keep_stderr_tail(stderr, Arc::clone(&tail))));
        Ok(Self {
            stdin: process.take_stdin(),
            stdout,
            stderr: tail,
            stderr_task,
            process,
            exit: None,
            groups,
        })
    }

    pub fn kill_handle(&self) -> KillHandle {
        KillHandle(Arc::clone(&self.groups))
    }

    /// Takes stdin, once. Dropping it closes the pipe.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Reads the next bytes of stdout; `None` after exit or end of output. Cancel-safe.
    pub async fn read_stdout(&mut self) -> Option<&[u8]> {
        let mut has_data = false;
        while !has_data && self.stdout.is_open {
            has_data = match &self.exit {
                None => tokio::select! {
                    biased;
                    has_data = self.stdout.fill() => has_data,
                    exit = self.process.wait() => {
                        self.exit = Some((exit, DrainWindow::start()));
                        false
                    }
                },
                // A descendant may hold stdout open forever.
                Some((_, drain)) if !drain.wait_for_more(self.stdout.fill()).await => return None,
                Some(_) => !self.stdout.buffer.is_empty(),
            };
        }
        has_data.then_some(self.stdout.buffer.as_slice())
    }

    /// Waits briefly for the exit status. `None` if the process still runs.
    pub async fn wait_for_exit(&mut self) -> Option<ProcessExit> {
        match &self.exit {
            Some((exit, _)) => Some(*exit),
            None => {
                let exit = timeout(EXIT_GRACE, self.process.wait()).await.ok()?;
                self.exit = Some((exit, DrainWindow::start()));
                Some(exit)
            }
        }
    }

    /// The tail of stderr as plain text. After exit, reads the rest first.
    pub async fn stderr_tail(&mut self) -> String {
        if self.exit.is_some() && !self.stderr_task.is_finished() {
            let _ = timeout(EXIT_GRACE, &mut self.stderr_task).await;
        }
        let mut tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        to_plain_text(tail.make_contiguous()).trim().to_owned()
    }

    /// Closes stdin and gives the process time to exit on its own.
    pub async fn close_stdin_and_wait(&mut self) {
        self.stdin = None;
        if self.exit.is_none() {
            let _ = timeout(EXIT_GRACE, self.process.wait()).await;
        }
    }
}

impl KillHandle {
    /// Kills the process and its descendants, and waits until they are gone.
    pub async fn kill(&self) {
        self.0.close().await;
    }
}

impl ChildProcessSpec {
    /// Shell command that execs the program with all words quoted, after the prefix.
    fn exec_command(&self) -> String {
        let words = [&self.command].into_iter().chain(&self.args).map(|word| quote_word(word));
        let command = format!("exec {}", words.collect::<Vec<_>>().join(" "));
        add_shell_prefix(self.prefix.as_deref(), command)
    }
}

/// Keeps the last bytes of stderr.
async fn keep_stderr_tail(mut pipe: OutputPipe, tail: Arc<Mutex<VecDeque<u8>>>) {
    while pipe.is_open {
        if pipe.fill().await {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = &pipe.buffer[pipe.buffer.len().saturating_sub(MAX_STDERR_BYTES)..];
            let surplus = (tail.len() + bytes.len()).saturating_sub(MAX_STDERR_BYTES);
            tail.drain(..surplus);
            tail.extend(bytes);
        }
    }
}
