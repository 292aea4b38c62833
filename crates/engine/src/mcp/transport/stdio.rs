//! A server that is a program: one message per line, both ways.

use std::collections::VecDeque;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::fate::Fate;
use super::lines::Lines;
use super::message::{Heard, read};
use crate::mcp::fault::Fault;
use crate::mcp::limits;
use crate::tasks::{Dialogue, Ending, Leash, Program, StartFault, size};

/// How many messages may wait for a program that does not read.
const WAITING: usize = 64;
/// How long a last message may take.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How much of its complaints is told.
const SHOWN: usize = 1000;

/// A server's program.
pub(super) struct Stdio {
    dialogue: Dialogue,
    lines: Lines,
    ready: VecDeque<ServerJsonRpcMessage>,
    writer: Option<Writer>,
    fate: Fate,
    /// Lines that were no messages, as long as there has been no message.
    noise: Option<u64>,
}

/// Writes messages beside whoever sends them, so that a program that does not read keeps nobody.
struct Writer {
    queue: mpsc::Sender<Vec<u8>>,
    task: AbortOnDropHandle<()>,
}

impl Stdio {
    /// Starts the program.
    pub(super) fn start(program: &Program, fate: Fate) -> Result<(Self, Leash), Fault> {
        let mut dialogue = Dialogue::start(program).map_err(|fault| not_started(&fault))?;
        let leash = dialogue.leash();
        let writer = dialogue.input().map(Writer::begin);
        let lines = Lines::up_to(limits::MESSAGE);
        Ok((Self { dialogue, lines, ready: VecDeque::new(), writer, fate, noise: Some(0) }, leash))
    }

    /// Queues a message. An error says that the program takes none any more.
    pub(super) fn send(
        &self,
        item: &ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Fault>> + use<> {
        let queue = self.writer.as_ref().map(|writer| writer.queue.clone());
        let line = serde_json::to_vec(item).map(|mut line| {
            line.push(b'\n');
            line
        });
        async move {
            let gone = || Fault::Gone("it takes no messages any more.".into());
            let line = line.map_err(|error| Fault::Refused(error.to_string()))?;
            queue.ok_or_else(gone)?.send(line).await.map_err(|_| gone())
        }
    }

    /// The next message; none once the program has ended, or is of no use.
    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let Some(bytes) = self.dialogue.hear().await else {
                let fault = self.obituary().await;
                self.fate.note(fault);
                return None;
            };
            self.lines.push(bytes);
            if self.take_lines().is_err() {
                let limit = size(limits::MESSAGE as u64);
                self.fate.note(Fault::Gone(format!("it sent more than {limit} in one line and was ended.")));
                return None;
            }
        }
    }

    fn take_lines(&mut self) -> Result<(), super::lines::TooLong> {
        while let Some(line) = self.lines.next()? {
            match read(line) {
                Heard::Messages(messages) => {
                    self.noise = None;
                    self.ready.extend(messages);
                }
                Heard::Noise if line.trim_ascii().is_empty() => {}
                Heard::Noise => self.noise = self.noise.map(|lines| lines + 1),
            }
        }
        Ok(())
    }

    /// Lets the program go: what is queued is written if it can be, then its input ends.
    pub(super) async fn close(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.queue);
            let _ = timeout(LAST_WORDS, writer.task).await;
        }
        self.dialogue.farewell().await;
    }

    /// How the program ended, and what it said last.
    async fn obituary(&mut self) -> Fault {
        let ending = self.dialogue.ending().await;
        let end = match ending {
            Some(Ending::Exited(127)) => "its program was not found".to_owned(),
            Some(Ending::Exited(126)) => "its program cannot be run".to_owned(),
            Some(Ending::Exited(code)) => format!("its program ended with exit code {code}"),
            Some(Ending::Killed(signal)) => format!("its program was killed by signal {signal}"),
            Some(Ending::TimedOut | Ending::Unknown) => "its program ended".to_owned(),
            None => "its program closed its output".to_owned(),
        };
        let noise = match self.noise {
            None | Some(0) => String::new(),
            Some(lines) => format!(" (of its output, {lines} lines were read, and none is a message)"),
        };
        let complaints = self.dialogue.complaints().await;
        let said = last(&complaints, SHOWN);
        let text = match said {
            "" => format!("{end}{noise}."),
            said => format!("{end}{noise}. It said: {said}"),
        };
        match ending {
            Some(Ending::Exited(126 | 127)) => Fault::Hopeless(text),
            _ => Fault::Gone(text),
        }
    }
}

impl Writer {
    fn begin(mut input: ChildStdin) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Vec<u8>>(WAITING);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
        }));
        Self { queue, task }
    }
}

fn not_started(fault: &StartFault) -> Fault {
    let text = format!("its program could not be started: {fault}.");
    match fault {
        StartFault::NoFolder(_) | StartFault::LargeEnvironment | StartFault::SessionEnded => {
            Fault::Hopeless(text)
        }
        StartFault::Io(_) => Fault::Gone(text),
    }
}

/// The end of a text, from a whole sign on.
fn last(text: &str, length: usize) -> &str {
    let from = text.len().saturating_sub(length);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}
