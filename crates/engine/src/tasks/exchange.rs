//! A command that is told something and answers: we write its input, and read its two outputs apart.

use std::borrow::Cow;
use std::process::Stdio;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Tasks;
use super::process::{Body, DRAIN, DRAIN_SILENCE, Ending, Order, Pipe, StartFault};
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
    /// Starts a command that reads `input`.
    pub(crate) fn start(tasks: &Tasks, order: &Order, input: Bytes) -> Result<Self, StartFault> {
        let roster = &tasks.table.roster;
        let (stdout, stdout_writer) = Pipe::open()?;
        let (stderr, stderr_writer) = Pipe::open()?;
        let script = Script { argument: &order.command, input: Stdio::piped() };
        let mut body = Body::start(order, script, roster, stdout_writer, stderr_writer)?;
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

    /// Ends the command and all its children, and waits until they are gone.
    pub(crate) async fn stop(mut self) -> Heard {
        self.body.end().await;
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
        let deadline = Instant::now() + DRAIN;
        while (self.stdout.open || self.stderr.open) && Instant::now() < deadline {
            let more = hear(&mut self.stdout, &mut self.stderr, &mut self.heard);
            if timeout(DRAIN_SILENCE, more).await.is_err() {
                break;
            }
        }
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
        Self { bytes: Vec::new(), limit, total: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.limit - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
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
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        Some(String::from_utf8_lossy(&self.bytes[..end]))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use tempfile::TempDir;
    use tokio::sync::mpsc;

    use super::super::tests::{gone, pid_from};
    use super::*;

    struct Place {
        tasks: Tasks,
        folder: TempDir,
    }

    fn place() -> Place {
        Place { tasks: Tasks::new(mpsc::unbounded_channel().0), folder: tempfile::tempdir().unwrap() }
    }

    impl Place {
        fn start(&self, command: &str, input: impl Into<Bytes>) -> Exchange {
            let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
            let order = Order { command: command.into(), cwd: self.folder.path().into(), environment };
            Exchange::start(&self.tasks, &order, input.into()).unwrap()
        }

        async fn run(&self, command: &str, input: impl Into<Bytes>) -> (Ending, Heard) {
            let mut exchange = self.start(command, input);
            let ended = async {
                loop {
                    if let Step::Ended(ending) = exchange.step().await {
                        break ending;
                    }
                }
            };
            let ending = timeout(Duration::from_secs(30), ended).await.unwrap();
            (ending, exchange.close())
        }
    }

    #[tokio::test]
    async fn a_command_is_told_something_and_both_outputs_are_heard_apart() {
        let (ending, heard) = place().run("read x; echo \"got $x\"; echo oops >&2; exit 3", "hello\n").await;
        assert_eq!(ending, Ending::Exited(3));
        assert_eq!((heard.stdout.raw().as_ref(), heard.stderr.text().as_str()), ("got hello\n", "oops\n"));
        assert_eq!(heard.both.shown().lines().count(), 2);
    }

    #[tokio::test]
    async fn a_command_that_does_not_listen_holds_nobody_up() {
        let place = place();
        let much = "x".repeat(4 * 1024 * 1024);
        for (name, command, said) in [
            ("it ends at once", "true", ""),
            ("it closes its input", "exec 0<&-; echo closed", "closed\n"),
            ("it reads a little", "head -c 3; echo", "xxx\n"),
            ("it never reads", "echo busy", "busy\n"),
            ("it reads all", "wc -c | tr -d ' '", "4194304\n"),
        ] {
            let (ending, heard) = place.run(command, much.clone()).await;
            assert_eq!(ending, Ending::Exited(0), "{name}");
            assert_eq!(heard.stdout.raw(), said, "{name}");
        }
    }

    #[tokio::test]
    async fn a_flood_is_read_and_not_kept() {
        let (ending, heard) = place().run("head -c 100000000 /dev/zero", "").await;
        assert_eq!(ending, Ending::Exited(0));
        assert!(heard.stdout.is_cut());
        assert_eq!(heard.stdout.size(), "100.0 MB");
        assert_eq!(heard.stdout.bytes.len(), KEPT_ANSWER);
        assert!(heard.both.shown().len() < SHOWN + 100);
    }

    #[tokio::test]
    async fn something_left_running_does_not_hold_the_answer() {
        let place = place();
        let (ending, heard) = place.run("sleep 300 & echo $! > left; echo done", "").await;
        assert_eq!((ending, heard.stdout.raw().as_ref()), (Ending::Exited(0), "done\n"));
        let left = pid_from(&place.folder.path().join("left")).await;
        place.tasks.shutdown().await;
        assert!(gone(left).await);
    }

    #[tokio::test]
    async fn stopped_or_dropped_it_ends_with_its_children() {
        let place = place();
        for (name, stop) in [("stopped", true), ("dropped", false)] {
            let command = format!("trap '' TERM; sh -c 'echo $$ > {name}; exec sleep 300'; true");
            let exchange = place.start(&command, "");
            let child = pid_from(&place.folder.path().join(name)).await;
            if stop {
                exchange.stop().await;
            } else {
                drop(exchange);
            }
            assert!(gone(child).await, "{name}");
        }
    }

    #[tokio::test]
    async fn the_end_of_the_session_ends_it() {
        let place = place();
        let mut exchange = place.start("echo $$ > pid; sleep 300", "");
        let pid = pid_from(&place.folder.path().join("pid")).await;
        let (step, ()) = tokio::join!(
            async {
                let step = exchange.step().await;
                drop(exchange);
                step
            },
            place.tasks.shutdown()
        );
        assert_eq!(step, Step::SessionEnds);
        assert!(gone(pid).await);
    }
}
