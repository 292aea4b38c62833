//! A command that is told something and answers: we write its input, and read its two outputs apart.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;

use super::Tasks;
use super::pipe::{Drain, Pipe};
use super::process::{Body, Ending, Order, StartFault};
use super::readable::{readable, size};
use super::script::Script;

/// How much is kept of the answer, and of complaints. What goes beyond is read and dropped.
const KEPT_ANSWER: usize = 1024 * 1024;
const KEPT_BESIDES: usize = 64 * 1024;
/// How much of an output a notice to the host shows.
const SHOWN: usize = 30_000;

/// A running command that we talk with. Dropped, it ends with all its children.
pub(crate) struct Exchange {
    input: Option<Input>,
    stdout: Pipe,
    stderr: Pipe,
    body: Body,
    heard: Heard,
    closed: CancellationToken,
}

/// What the command is still to be told.
struct Input {
    pipe: ChildStdin,
    rest: Bytes,
}

/// What the command has printed so far.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Its output.
    pub(crate) stdout: Kept,
    /// Its complaints.
    pub(crate) stderr: Kept,
    /// Both, as they came.
    pub(crate) both: Kept,
}

/// The beginning of an output.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// Where the first line ends, once it does. Looked for in what is new only: an output may come in many pieces.
    line_end: Option<usize>,
    limit: usize,
    total: u64,
}

/// What happened next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The command printed something.
    Said,
    /// It has ended, and everything it printed has been read.
    Ended(Ending),
    /// The session ends: the command must not go on.
    SessionEnds,
}

impl Exchange {
    /// Starts a command that reads `input`. It must not be longer than the system takes for an argument.
    pub(crate) fn start(tasks: &Tasks, order: &Order, input: Bytes) -> Result<Self, StartFault> {
        let roster = &tasks.table.roster;
        let (stdout, stdout_writer) = Pipe::open()?;
        let (stderr, stderr_writer) = Pipe::open()?;
        let script = Script::with_input(&order.command)?;
        let mut body = Body::start(order, &script, roster, stdout_writer, stderr_writer)?;
        let input = body.input().map(|pipe| Input { pipe, rest: input });
        Ok(Self { input, stdout, stderr, body, heard: Heard::new(), closed: roster.closed.clone() })
    }

    /// What it has printed so far.
    pub(crate) fn heard(&self) -> &Heard {
        &self.heard
    }

    /// Waits for the next thing that happens. May be dropped and called again.
    pub(crate) async fn step(&mut self) -> Step {
        let ending = loop {
            let Self { input, stdout, stderr, body, heard, closed } = self;
            tokio::select! {
                biased;
                () = closed.cancelled() => return Step::SessionEnds,
                ending = body.ended() => break ending,
                said = hear(stdout, stderr, heard) => if said { return Step::Said },
                () = tell(input), if input.is_some() => {}
            }
        };
        self.input = None;
        self.drain().await;
        Step::Ended(ending)
    }

    /// Ends the command and all its children, and hears what they say until they are gone.
    pub(crate) async fn stop(mut self) -> Heard {
        self.input = None;
        {
            let mut end = std::pin::pin!(self.body.end());
            loop {
                tokio::select! {
                    biased;
                    () = &mut end => break,
                    _ = hear(&mut self.stdout, &mut self.stderr, &mut self.heard) => {}
                }
            }
        }
        self.drain().await;
        self.close()
    }

    /// All that it printed. What it left running may go on printing: nobody listens.
    pub(crate) fn close(self) -> Heard {
        for pipe in [self.stdout, self.stderr].into_iter().filter(|pipe| pipe.open) {
            let closed = self.closed.clone();
            tokio::spawn(async move { closed.run_until_cancelled(pipe.discard()).await });
        }
        self.heard
    }

    /// Reads what is left.
    async fn drain(&mut self) {
        let drain = Drain::begin();
        while (self.stdout.open || self.stderr.open)
            && drain.goes_on(hear(&mut self.stdout, &mut self.stderr, &mut self.heard)).await
        {}
    }
}

/// Writes the next piece of the input. A command that does not want it does not get it.
async fn tell(input: &mut Option<Input>) {
    let Some(Input { pipe, rest }) = input else { return };
    match pipe.write(rest).await {
        Ok(count) if count > 0 && count < rest.len() => {
            let _ = rest.split_to(count);
        }
        // All is said, or nobody listens: the end of the input is its end.
        Ok(_) | Err(_) => *input = None,
    }
}

/// Takes what comes next from either output, and says whether there was anything. Never ends once both are closed.
async fn hear(stdout: &mut Pipe, stderr: &mut Pipe, heard: &mut Heard) -> bool {
    tokio::select! {
        biased;
        said = stdout.fill(), if stdout.open => {
            if said {
                heard.stdout.take(&stdout.buffer);
                heard.both.take(&stdout.buffer);
            }
            said
        }
        said = stderr.fill(), if stderr.open => {
            if said {
                heard.stderr.take(&stderr.buffer);
                heard.both.take(&stderr.buffer);
            }
            said
        }
        () = std::future::pending(), if !stdout.open && !stderr.open => false,
    }
}

impl Heard {
    fn new() -> Self {
        Self {
            stdout: Kept::up_to(KEPT_ANSWER),
            stderr: Kept::up_to(KEPT_BESIDES),
            both: Kept::up_to(KEPT_BESIDES),
        }
    }
}

impl Kept {
    fn up_to(limit: usize) -> Self {
        Self { bytes: Vec::new(), line_end: None, limit, total: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let new = &bytes[..bytes.len().min(self.limit - self.bytes.len())];
        if self.line_end.is_none() {
            self.line_end = new.iter().position(|byte| *byte == b'\n').map(|at| self.bytes.len() + at);
        }
        self.bytes.extend_from_slice(new);
    }

    /// Whether it was too long to be kept whole.
    pub(crate) fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// How much there was, in words.
    pub(crate) fn size(&self) -> String {
        size(self.total)
    }

    /// As it came; broken UTF-8 is replaced.
    pub(crate) fn raw(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// For people and models: without escape sequences. If something is missing, the end says so.
    pub(crate) fn text(&self) -> String {
        let mut text = readable(&self.bytes);
        if self.is_cut() {
            text += &self.cut_note();
        }
        text
    }

    /// The same for a notice to the host: not more than fits one well.
    pub(crate) fn shown(&self) -> String {
        let mut text = readable(&self.bytes[..self.bytes.len().min(SHOWN)]);
        if self.total > SHOWN as u64 {
            text += &self.cut_note();
        }
        text
    }

    fn cut_note(&self) -> String {
        format!("\n[... cut: {} in all]", size(self.total))
    }

    /// The first line, once it is complete.
    pub(crate) fn first_line(&self) -> Option<Cow<'_, str>> {
        self.line_end.map(|end| String::from_utf8_lossy(&self.bytes[..end]))
    }
}

#[cfg(test)]
impl Heard {
    /// As if a command had printed this.
    pub(crate) fn of(stdout: &str, stderr: &str) -> Self {
        let mut heard = Self::new();
        heard.stdout.take(stdout.as_bytes());
        heard.stderr.take(stderr.as_bytes());
        heard
    }
}
