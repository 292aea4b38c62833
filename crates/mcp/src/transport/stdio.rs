//! Stdio transport: one message per line in both directions.

use std::collections::VecDeque;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_os::byte_size::format_size;
use whimbrel_process::{ChildProcess, ChildProcessSpec, KillHandle, ProcessExit, SpawnError};
use whimbrel_transport::line_reader::{Line, LineBuffer};

use super::connection_state::ConnectionState;
use super::message::{ParsedInput, parse_messages};
use crate::error::McpError;
use crate::limits;

/// Messages that may queue up for a program that does not read.
const QUEUE_CAPACITY: usize = 64;
/// Time for flushing queued messages when closing.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_SHOWN_STDERR_BYTES: usize = 1000;

/// Server program with its pipes.
pub(super) struct StdioTransport {
    child: ChildProcess,
    lines: LineBuffer,
    messages: VecDeque<ServerJsonRpcMessage>,
    writer: Option<Writer>,
    state: ConnectionState,
    /// Count of lines that were not messages, until the first message arrives.
    ignored_lines: Option<u64>,
}

/// Writes messages in a task of its own, so that a program that does not read blocks no sender.
struct Writer {
    queue: mpsc::Sender<Vec<u8>>,
    task: AbortOnDropHandle<()>,
}

impl StdioTransport {
    pub(super) fn start(
        program: &ChildProcessSpec,
        state: ConnectionState,
    ) -> Result<(Self, KillHandle), McpError> {
        let mut child = ChildProcess::spawn(program).map_err(|error| start_error(&error))?;
        let kill_handle = child.kill_handle();
        let writer = child.take_stdin().map(Writer::spawn);
        let lines = LineBuffer::new(limits::MAX_MESSAGE_BYTES);
        Ok((
            Self { child, lines, messages: VecDeque::new(), writer, state, ignored_lines: Some(0) },
            kill_handle,
        ))
    }

    /// Queues a message. Fails once the program has closed its input.
    pub(super) fn send(
        &self,
        item: &ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + use<> {
        let queue = self.writer.as_ref().map(|writer| writer.queue.clone());
        let line = serde_json::to_vec(item).map(|mut line| {
            line.push(b'\n');
            line
        });
        async move {
            let closed = || McpError::Disconnected("it no longer accepts messages.".into());
            let line = line.map_err(|error| McpError::ErrorResponse(error.to_string()))?;
            queue.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    /// Next message; `None` once the program has ended or broke a limit.
    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let Some(bytes) = self.child.read_stdout().await else {
                let error = self.exit_error().await;
                self.state.record_error(error);
                return None;
            };
            self.lines.push(bytes);
            if !self.parse_lines() {
                let limit = format_size(limits::MAX_MESSAGE_BYTES as u64);
                self.state.record_error(McpError::Disconnected(format!(
                    "it sent more than {limit} in one line and was stopped."
                )));
                return None;
            }
        }
    }

    /// Parses the lines received so far; returns false if one is too long.
    fn parse_lines(&mut self) -> bool {
        while let Some(line) = self.lines.next_line() {
            let Line::Complete(line) = line else { return false };
            match parse_messages(line) {
                ParsedInput::Messages(messages) => {
                    self.ignored_lines = None;
                    self.messages.extend(messages);
                }
                ParsedInput::Ignored if line.trim_ascii().is_empty() => {}
                ParsedInput::Ignored => self.ignored_lines = self.ignored_lines.map(|lines| lines + 1),
            }
        }
        true
    }

    /// Flushes the queue for a moment, then closes the program's input.
    pub(super) async fn close(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.queue);
            let _ = timeout(FLUSH_TIMEOUT, writer.task).await;
        }
        self.child.close_stdin_and_wait().await;
    }

    /// Error that describes the program's exit and the end of its stderr.
    async fn exit_error(&mut self) -> McpError {
        let exit = self.child.wait_for_exit().await;
        let description = match exit {
            Some(ProcessExit::Exited(127)) => "its program was not found".to_owned(),
            Some(ProcessExit::Exited(126)) => "its program cannot be run".to_owned(),
            Some(ProcessExit::Exited(code)) => format!("its program exited with code {code}"),
            Some(ProcessExit::Killed(signal)) => format!("its program was killed by signal {signal}"),
            Some(ProcessExit::TimedOut | ProcessExit::Unknown) => "its program ended".to_owned(),
            None => "its program closed its output".to_owned(),
        };
        let ignored = match self.ignored_lines {
            None | Some(0) => String::new(),
            Some(lines) => format!(" (none of its {lines} output lines is a message)"),
        };
        let stderr_tail = self.child.stderr_tail().await;
        let stderr = tail(&stderr_tail, MAX_SHOWN_STDERR_BYTES);
        let text = match stderr {
            "" => format!("{description}{ignored}."),
            stderr => format!("{description}{ignored}. Its stderr: {stderr}"),
        };
        match exit {
            Some(ProcessExit::Exited(126 | 127)) => McpError::Permanent(text),
            _ => McpError::Disconnected(text),
        }
    }
}

impl Writer {
    fn spawn(mut input: ChildStdin) -> Self {
        let (queue, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUE_CAPACITY);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(line) = receiver.recv().await {
                if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
        }));
        Self { queue, task }
    }
}

fn start_error(error: &SpawnError) -> McpError {
    let text = format!("its program could not be started: {error}.");
    match error {
        SpawnError::MissingDir(_) | SpawnError::EnvironmentTooLarge | SpawnError::SessionEnded => {
            McpError::Permanent(text)
        }
        SpawnError::Io(_) => McpError::Disconnected(text),
    }
}

/// Last part of a text, from a character boundary.
fn tail(text: &str, length: usize) -> &str {
    let start = text.len().saturating_sub(length);
    let start = (start..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    &text[start..]
}
