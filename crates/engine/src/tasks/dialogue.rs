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

use super::pipe::{Drain, Pipe};
use super::process::{Body, Ending, Order, StartFault};
use super::readable::readable;
use super::roster::Roster;
use super::script::Script;

/// How much is kept of the complaints.
const COMPLAINTS: usize = 8 * 1024;
/// How long a program may take to end by itself once it has no input any more.
const FAREWELL: Duration = Duration::from_millis(300);

/// A program, and where and in which surroundings it runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
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
pub(crate) struct Dialogue {
    input: Option<ChildStdin>,
    output: Pipe,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    listener: AbortOnDropHandle<()>,
    body: Body,
    ended: Option<(Ending, Drain)>,
    // The last, so that what the program has left is ended after the program.
    roster: Arc<Roster>,
}

/// Holds on to a program from outside, to end it whoever has it.
#[derive(Clone)]
pub(crate) struct Leash(Arc<Roster>);

impl Dialogue {
    /// Starts a program.
    pub(crate) fn start(program: &Program) -> Result<Self, StartFault> {
        let roster = Arc::new(Roster::new());
        let order = Order {
            command: program.words(),
            cwd: program.cwd.clone(),
            environment: program.environment.clone(),
        };
        let (output, output_writer) = Pipe::open()?;
        let (complaints, complaints_writer) = Pipe::open()?;
        let script = Script::with_input(&order.command)?;
        let mut body = Body::start(&order, &script, &roster, output_writer, complaints_writer)?;
        let kept = Arc::default();
        let listener = AbortOnDropHandle::new(tokio::spawn(listen(complaints, Arc::clone(&kept))));
        Ok(Self { input: body.input(), output, complaints: kept, listener, body, ended: None, roster })
    }

    /// A hold on it from outside.
    pub(crate) fn leash(&self) -> Leash {
        Leash(Arc::clone(&self.roster))
    }

    /// Its input, once. Dropping it tells the program that we are done.
    pub(crate) fn input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// The next bytes of its output; none once it has ended or closed it. May be dropped and called again.
    pub(crate) async fn hear(&mut self) -> Option<&[u8]> {
        let mut said = false;
        while !said && self.output.open {
            said = match &self.ended {
                None => tokio::select! {
                    biased;
                    said = self.output.fill() => said,
                    ending = self.body.ended() => {
                        self.ended = Some((ending, Drain::begin()));
                        false
                    }
                },
                // Something that it has started may hold the output open for ever.
                Some((_, drain)) if !drain.goes_on(self.output.fill()).await => return None,
                Some(_) => !self.output.buffer.is_empty(),
            };
        }
        said.then_some(self.output.buffer.as_slice())
    }

    /// How it ended; waits a moment for it. None if it still runs.
    pub(crate) async fn ending(&mut self) -> Option<Ending> {
        match &self.ended {
            Some((ending, _)) => Some(*ending),
            None => {
                let ending = timeout(FAREWELL, self.body.ended()).await.ok()?;
                self.ended = Some((ending, Drain::begin()));
                Some(ending)
            }
        }
    }

    /// The end of what it has complained about, for people to read. Of one that has ended, all is heard first.
    pub(crate) async fn complaints(&mut self) -> String {
        if self.ended.is_some() && !self.listener.is_finished() {
            let _ = timeout(FAREWELL, &mut self.listener).await;
        }
        let mut kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        readable(kept.make_contiguous()).trim().to_owned()
    }

    /// Tells the program that we are done, and gives it a moment to end by itself.
    pub(crate) async fn farewell(&mut self) {
        self.input = None;
        if self.ended.is_none() {
            let _ = timeout(FAREWELL, self.body.ended()).await;
        }
    }
}

impl Leash {
    /// Ends the program and everything that it has started, and waits until they are gone.
    pub(crate) async fn end(&self) {
        self.0.close().await;
    }
}

impl Program {
    /// What the shell is told: to become the program, with each word as it is.
    fn words(&self) -> String {
        let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        let words: Vec<String> = [&self.command].into_iter().chain(&self.args).map(quoted).collect();
        format!("exec {}", words.join(" "))
    }
}

/// Keeps the last of what comes.
async fn listen(mut pipe: Pipe, kept: Arc<Mutex<VecDeque<u8>>>) {
    while pipe.open {
        if pipe.fill().await {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = &pipe.buffer[pipe.buffer.len().saturating_sub(COMPLAINTS)..];
            let surplus = (kept.len() + bytes.len()).saturating_sub(COMPLAINTS);
            kept.drain(..surplus);
            kept.extend(bytes);
        }
    }
}
