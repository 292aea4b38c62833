//! A command that is told something and answers: we write its input, and read its two outputs apart.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;

use super::TaskRegistry;
use super::pipe::{DrainWindow, OutputPipe};
use super::process::{ProcessTree, ProcessExit, CommandSpec, SpawnError};
use super::plain_text::{to_plain_text, format_size};
use super::shell_script::ShellScript;

/// How much is kept of the answer, and of complaints. What goes beyond is read and dropped.
const MAX_STDOUT_BYTES: usize = 1024 * 1024;
const MAX_STDERR_BYTES: usize = 64 * 1024;
/// How much of an output a notice to the host shows.
const MAX_SHOWN_BYTES: usize = 30_000;

/// A running command that we talk with. Dropped, it ends with all its children.
pub(crate) struct PipedCommand {
    stdin: Option<PendingStdin>,
    stdout: OutputPipe,
    stderr: OutputPipe,
    process: ProcessTree,
    output: CommandOutput,
    closed: CancellationToken,
}

/// What the command is still to be told.
struct PendingStdin {
    pipe: ChildStdin,
    rest: Bytes,
}

/// What the command has printed so far.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Its output.
    pub(crate) stdout: OutputHead,
    /// Its complaints.
    pub(crate) stderr: OutputHead,
    /// Both, as they came.
    pub(crate) combined: OutputHead,
}

/// The beginning of an output.
#[derive(Debug)]
pub(crate) struct OutputHead {
    bytes: Vec<u8>,
    /// Where the first line ends, once it does. Looked for in what is new only: an output may come in many pieces.
    line_end: Option<usize>,
    limit: usize,
    total: u64,
}

/// What happened next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEvent {
    /// The command printed something.
    Output,
    /// It has ended, and everything it printed has been read.
    Exited(ProcessExit),
    /// The session ends: the command must not go on.
    SessionClosing,
}

impl PipedCommand {
    /// Starts a command that reads `input`. It must not be longer than the system takes for an argument.
    pub(crate) fn spawn(tasks: &TaskRegistry, order: &CommandSpec, input: Bytes) -> Result<Self, SpawnError> {
        let roster = &tasks.table.groups;
        let (stdout, stdout_writer) = OutputPipe::create()?;
        let (stderr, stderr_writer) = OutputPipe::create()?;
        let script = ShellScript::with_piped_stdin(&order.command)?;
        let mut body = ProcessTree::spawn_tagged(order, &script, roster, stdout_writer, stderr_writer)?;
        let input = body.take_stdin().map(|pipe| PendingStdin { pipe, rest: input });
        Ok(Self { stdin: input, stdout, stderr, process: body, output: CommandOutput::new(), closed: roster.closed.clone() })
    }

    /// What it has printed so far.
    pub(crate) fn output(&self) -> &CommandOutput {
        &self.output
    }

    /// Waits for the next thing that happens. May be dropped and called again.
    pub(crate) async fn next_event(&mut self) -> CommandEvent {
        let ending = loop {
            let Self { stdin: input, stdout, stderr, process: body, output: heard, closed } = self;
            tokio::select! {
                biased;
                () = closed.cancelled() => return CommandEvent::SessionClosing,
                ending = body.wait() => break ending,
                said = read_outputs(stdout, stderr, heard) => if said { return CommandEvent::Output },
                () = write_stdin(input), if input.is_some() => {}
            }
        };
        self.stdin = None;
        self.drain().await;
        CommandEvent::Exited(ending)
    }

    /// Ends the command and all its children, and hears what they say until they are gone.
    pub(crate) async fn stop(mut self) -> CommandOutput {
        self.stdin = None;
        {
            let mut end = std::pin::pin!(self.process.terminate());
            loop {
                tokio::select! {
                    biased;
                    () = &mut end => break,
                    _ = read_outputs(&mut self.stdout, &mut self.stderr, &mut self.output) => {}
                }
            }
        }
        self.drain().await;
        self.into_output()
    }

    /// All that it printed. What it left running may go on printing: nobody listens.
    pub(crate) fn into_output(self) -> CommandOutput {
        for pipe in [self.stdout, self.stderr].into_iter().filter(|pipe| pipe.is_open) {
            let closed = self.closed.clone();
            tokio::spawn(async move { closed.run_until_cancelled(pipe.discard()).await });
        }
        self.output
    }

    /// Reads what is left.
    async fn drain(&mut self) {
        let drain = DrainWindow::start();
        while (self.stdout.is_open || self.stderr.is_open)
            && drain.wait_for_more(read_outputs(&mut self.stdout, &mut self.stderr, &mut self.output)).await
        {}
    }
}

/// Writes the next piece of the input. A command that does not want it does not get it.
async fn write_stdin(input: &mut Option<PendingStdin>) {
    let Some(PendingStdin { pipe, rest }) = input else { return };
    match pipe.write(rest).await {
        Ok(count) if count > 0 && count < rest.len() => {
            let _ = rest.split_to(count);
        }
        // All is said, or nobody listens: the end of the input is its end.
        Ok(_) | Err(_) => *input = None,
    }
}

/// Takes what comes next from either output, and says whether there was anything. Never ends once both are closed.
async fn read_outputs(stdout: &mut OutputPipe, stderr: &mut OutputPipe, heard: &mut CommandOutput) -> bool {
    tokio::select! {
        biased;
        said = stdout.fill(), if stdout.is_open => {
            if said {
                heard.stdout.push(&stdout.buffer);
                heard.combined.push(&stdout.buffer);
            }
            said
        }
        said = stderr.fill(), if stderr.is_open => {
            if said {
                heard.stderr.push(&stderr.buffer);
                heard.combined.push(&stderr.buffer);
            }
            said
        }
        () = std::future::pending(), if !stdout.is_open && !stderr.is_open => false,
    }
}

impl CommandOutput {
    fn new() -> Self {
        Self {
            stdout: OutputHead::with_limit(MAX_STDOUT_BYTES),
            stderr: OutputHead::with_limit(MAX_STDERR_BYTES),
            combined: OutputHead::with_limit(MAX_STDERR_BYTES),
        }
    }
}

impl OutputHead {
    fn with_limit(limit: usize) -> Self {
        Self { bytes: Vec::new(), line_end: None, limit, total: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let new = &bytes[..bytes.len().min(self.limit - self.bytes.len())];
        if self.line_end.is_none() {
            self.line_end = new.iter().position(|byte| *byte == b'\n').map(|at| self.bytes.len() + at);
        }
        self.bytes.extend_from_slice(new);
    }

    /// Whether it was too long to be kept whole.
    pub(crate) fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// How much there was, in words.
    pub(crate) fn size(&self) -> String {
        format_size(self.total)
    }

    /// As it came; broken UTF-8 is replaced.
    pub(crate) fn raw(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// For people and models: without escape sequences. If something is missing, the end says so.
    pub(crate) fn text(&self) -> String {
        let mut text = to_plain_text(&self.bytes);
        if self.is_truncated() {
            text += &self.truncation_note();
        }
        text
    }

    /// The same for a notice to the host: not more than fits one well.
    pub(crate) fn shown_text(&self) -> String {
        let mut text = to_plain_text(&self.bytes[..self.bytes.len().min(MAX_SHOWN_BYTES)]);
        if self.total > MAX_SHOWN_BYTES as u64 {
            text += &self.truncation_note();
        }
        text
    }

    fn truncation_note(&self) -> String {
        format!("\n[... cut: {} in all]", format_size(self.total))
    }

    /// The first line, once it is complete.
    pub(crate) fn first_line(&self) -> Option<Cow<'_, str>> {
        self.line_end.map(|end| String::from_utf8_lossy(&self.bytes[..end]))
    }
}

#[cfg(test)]
impl CommandOutput {
    /// As if a command had printed this.
    pub(crate) fn for_test(stdout: &str, stderr: &str) -> Self {
        let mut heard = Self::new();
        heard.stdout.push(stdout.as_bytes());
        heard.stderr.push(stderr.as_bytes());
        heard
    }
}
