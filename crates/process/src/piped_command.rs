//! A command with piped stdin and separately captured stdout and stderr.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;
use whimbrel_os::byte_size::format_size;

use crate::ProcessGroups;
use crate::captured_command::{Launch, ProcessTree};
use crate::pipe::{DrainWindow, OutputPipe};
use crate::plain_text::to_plain_text;
use crate::{ProcessExit, SpawnError};

/// Bytes kept of stdout, and of stderr and the combined output. The rest is read and dropped.
const MAX_STDOUT_BYTES: usize = 1024 * 1024;
const MAX_STDERR_BYTES: usize = 64 * 1024;
/// Bytes of output shown in a frame to the host.
const MAX_SHOWN_BYTES: usize = 30_000;

/// A running command. Dropping it kills the command and its children.
pub struct PipedCommand {
    stdin: Option<PendingStdin>,
    stdout: OutputPipe,
    stderr: OutputPipe,
    process: ProcessTree,
    output: CommandOutput,
    closed: CancellationToken,
}

/// Input that is still to be written.
struct PendingStdin {
    pipe: ChildStdin,
    rest: Bytes,
}

/// Output so far.
#[derive(Debug)]
pub struct CommandOutput {
    pub stdout: OutputHead,
    pub stderr: OutputHead,
    /// Stdout and stderr interleaved as they arrived.
    pub combined: OutputHead,
}

/// The first bytes of an output.
#[derive(Debug)]
pub struct OutputHead {
    bytes: Vec<u8>,
    /// End of the first line. Searched in new bytes only, because output may arrive in many pieces.
    line_end: Option<usize>,
    limit: usize,
    total: u64,
}

/// Next event of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEvent {
    /// The command printed something.
    Output,
    /// The command has exited and all its output has been read.
    Exited(ProcessExit),
    /// The session is closing: the command must stop.
    SessionClosing,
}

impl PipedCommand {
    /// Starts a command and writes `input` to its stdin. Fails if the command exceeds the argument limit of the system.
    pub fn spawn<'a>(
        groups: &Arc<ProcessGroups>,
        launch: impl Into<Launch<'a>>,
        input: Bytes,
    ) -> Result<Self, SpawnError> {
        let (stdout, stdout_writer) = OutputPipe::create()?;
        let (stderr, stderr_writer) = OutputPipe::create()?;
        let mut process =
            ProcessTree::spawn_piped(launch.into(), groups, [stdout_writer.into(), stderr_writer.into()])?;
        let input = process.take_stdin().map(|pipe| PendingStdin { pipe, rest: input });
        Ok(Self {
            stdin: input,
            stdout,
            stderr,
            process,
            output: CommandOutput::new(),
            closed: groups.closed.clone(),
        })
    }

    pub fn output(&self) -> &CommandOutput {
        &self.output
    }

    /// Waits for the exit and collects the output; `None` if the process groups are closed first. Cancel-safe.
    pub async fn wait_for_exit(&mut self) -> Option<ProcessExit> {
        loop {
            match self.next_event().await {
                CommandEvent::Output => {}
                CommandEvent::Exited(exit) => return Some(exit),
                CommandEvent::SessionClosing => return None,
            }
        }
    }

    /// Waits for the next event. Cancel-safe.
    pub async fn next_event(&mut self) -> CommandEvent {
        let exit = loop {
            let Self { stdin: input, stdout, stderr, process, output, closed } = self;
            tokio::select! {
                biased;
                () = closed.cancelled() => return CommandEvent::SessionClosing,
                exit = process.wait() => break exit,
                has_output = read_outputs(stdout, stderr, output) => if has_output { return CommandEvent::Output },
                () = write_stdin(input), if input.is_some() => {}
            }
        };
        self.stdin = None;
        self.drain().await;
        if let Some(error) = self.process.take_setup_error() {
            self.output.stderr.push(error.as_bytes());
        }
        CommandEvent::Exited(exit)
    }

    /// Stops the command and its children, reading their output until they are gone.
    pub async fn stop(mut self) -> CommandOutput {
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

    /// Returns the output. Leftover processes may go on printing; their output is discarded.
    pub fn into_output(self) -> CommandOutput {
        for pipe in [self.stdout, self.stderr].into_iter().filter(|pipe| pipe.is_open) {
            let closed = self.closed.clone();
            tokio::spawn(async move { closed.run_until_cancelled(pipe.discard()).await });
        }
        self.output
    }

    async fn drain(&mut self) {
        let drain = DrainWindow::start();
        while (self.stdout.is_open || self.stderr.is_open)
            && drain.wait_for_more(read_outputs(&mut self.stdout, &mut self.stderr, &mut self.output)).await
        {
        }
    }
}

/// Writes the next piece of stdin. Stops if the command closed it.
async fn write_stdin(input: &mut Option<PendingStdin>) {
    let Some(PendingStdin { pipe, rest }) = input else { return };
    match pipe.write(rest).await {
        Ok(count) if count > 0 && count < rest.len() => {
            let _ = rest.split_to(count);
        }
        // Everything is written, or the command closed stdin: close the pipe.
        Ok(_) | Err(_) => *input = None,
    }
}

/// Reads from either output; returns whether there was anything. Pends forever once both are closed.
async fn read_outputs(stdout: &mut OutputPipe, stderr: &mut OutputPipe, output: &mut CommandOutput) -> bool {
    tokio::select! {
        biased;
        has_output = stdout.fill(), if stdout.is_open => {
            if has_output {
                output.stdout.push(&stdout.buffer);
                output.combined.push(&stdout.buffer);
            }
            has_output
        }
        has_output = stderr.fill(), if stderr.is_open => {
            if has_output {
                output.stderr.push(&stderr.buffer);
                output.combined.push(&stderr.buffer);
            }
            has_output
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

    /// Returns whether the output exceeds the limit.
    pub fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// Total size, formatted.
    pub fn size(&self) -> String {
        format_size(self.total)
    }

    /// The bytes as text; invalid UTF-8 is replaced.
    pub fn raw(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Plain text without escape sequences; a note at the end tells if it is truncated.
    pub fn text(&self) -> String {
        let mut text = to_plain_text(&self.bytes);
        if self.is_truncated() {
            text += &self.truncation_note();
        }
        text
    }

    /// The same for a frame to the host, shortened further.
    pub fn shown_text(&self) -> String {
        let mut text = to_plain_text(&self.bytes[..self.bytes.len().min(MAX_SHOWN_BYTES)]);
        if self.total > MAX_SHOWN_BYTES as u64 {
            text += &self.truncation_note();
        }
        text
    }

    fn truncation_note(&self) -> String {
        format!("\n[... truncated: {} in total]", format_size(self.total))
    }

    /// The first line, once it is complete.
    pub fn first_line(&self) -> Option<Cow<'_, str>> {
        self.line_end.map(|end| String::from_utf8_lossy(&self.bytes[..end]))
    }
}

#[cfg(any(test, feature = "test-support"))]
impl CommandOutput {
    pub fn for_test(stdout: &str, stderr: &str) -> Self {
        let mut output = Self::new();
        output.stdout.push(stdout.as_bytes());
        output.stderr.push(stderr.as_bytes());
        output
    }
}
