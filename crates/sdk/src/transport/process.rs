//! An engine process, driven over its standard streams.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_engine::link;
use whimbrel_wire::codec::MAX_LINE_IN;
use whimbrel_wire::options::Options;
use whimbrel_wire::{Frame, decode, encode};

use crate::environment::Environment;
use crate::error::Error;
use crate::transport::turns::{At, Turns};
use crate::transport::{Connection, Incoming};

/// How long an engine may take to end by itself once its input is closed or it was told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// How long its output is waited for after it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long an engine may take to begin with a prompt after it has said that nothing runs. One that takes longer has
/// dealt with the prompt in the turn before.
const BEGINNING: Duration = Duration::from_secs(5);

/// How much of the engine's standard error is kept for an error text.
const STDERR_KEPT: usize = 4096;

const DEPTH: usize = 128;

/// What the engine writes, and the engine itself: whoever reads to the end has also seen it off.
pub(crate) struct Output {
    child: Child,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    stop: CancellationToken,
    turns: watch::Sender<Turns>,
    stderr: Tail,
    /// Whether the last turn failed.
    turn_failed: bool,
    phase: Phase,
}

/// How far an engine is on its way out.
enum Phase {
    Running,
    /// It has ended; what it has written is still read, but nothing more is waited for: others may hold its output open.
    Ended,
    /// It was told to stop and may go on writing until then.
    Stopping(Instant),
    /// All is read, and it has been seen off.
    Gone,
}

/// Starts a program and speaks with it.
#[expect(clippy::disallowed_methods, reason = "starting an engine process is what this file is for")]
pub(crate) fn connect(
    program: &Path,
    options: &Options,
    environment: Option<&Environment>,
) -> Result<Connection, Error> {
    let mut command = Command::new(program);
    if let Some(environment) = environment {
        command.env_clear().envs(environment.variables());
    }
    command
        .args(options.to_args())
        .envs(options.to_env())
        .env("CLAUDE_CODE_ENTRYPOINT", "sdk-rs")
        .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(folder) = &options.cwd {
        command.current_dir(folder);
    }
    let spawned = command.spawn();
    let mut child =
        spawned.map_err(|source| Error::Spawn { program: program.display().to_string(), source })?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::Over);
    };
    let (sender, lines_out) = mpsc::channel(DEPTH);
    let (stop, finished) = (CancellationToken::new(), CancellationToken::new());
    let turns = watch::Sender::new(Turns::default());
    let closing = closing_time(finished.clone(), turns.subscribe());
    tokio::spawn(write(stdin, lines_out, stop.clone(), turns.clone(), closing));
    let output = Output {
        child,
        stdout: BufReader::new(stdout),
        line: Vec::new(),
        stop: stop.clone(),
        turns,
        stderr: Tail::of(stderr),
        turn_failed: false,
        phase: Phase::Running,
    };
    let incoming = Incoming::Process(Box::new(output));
    Ok(Connection { sender, incoming, finished, stop, wants_initialize: true })
}

/// Resolves when the engine's input may be closed: no prompt will come, and nothing runs that may ask or be interrupted.
async fn closing_time(finished: CancellationToken, mut turns: watch::Receiver<Turns>) {
    finished.cancelled().await;
    loop {
        let at = turns.borrow_and_update().at();
        let goes_on = match at {
            At::Rest => false,
            At::Work => turns.changed().await.is_ok(),
            At::Doubt => timeout(BEGINNING, turns.changed()).await.is_ok_and(|changed| changed.is_ok()),
        };
        if !goes_on {
            return;
        }
    }
}

/// Writes lines until there are no more, then closes the engine's input.
async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<link::Line>,
    stop: CancellationToken,
    turns: watch::Sender<Turns>,
    closing: impl Future<Output = ()>,
) {
    let mut closing = std::pin::pin!(closing);
    let mut buffer = Vec::new();
    loop {
        // What was said before the input finished still goes out: lines come first.
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            line = lines.recv() => line,
            () = &mut closing => None,
        };
        let Some(Ok(frame)) = line else { return };
        if matches!(&frame, Frame::User(user) if user.should_query != Some(false)) {
            turns.send_modify(Turns::prompted);
        }
        buffer.clear();
        encode(&frame, &mut buffer);
        if stdin.write_all(&buffer).await.is_err() {
            return;
        }
    }
}

impl Output {
    /// The next frame. After the last one the engine has ended; if it failed without saying so, that is the last item.
    pub(super) async fn next(&mut self) -> Option<Result<Frame, Error>> {
        if matches!(self.phase, Phase::Gone) {
            return None;
        }
        while self.read_line().await {
            if let Some(frame) = self.frame() {
                return Some(frame);
            }
        }
        let error = self.see_off().await;
        self.phase = Phase::Gone;
        error.map(Err)
    }

    /// Reads one line; false at the end. An engine that is to stop is told so, and has some time to say its last.
    async fn read_line(&mut self) -> bool {
        self.line.clear();
        loop {
            if self.stop.is_cancelled() && !matches!(self.phase, Phase::Stopping(_)) {
                ask_to_end(&self.child);
                self.phase = Phase::Stopping(Instant::now() + GRACE);
            }
            let mut lines = (&mut self.stdout).take(MAX_LINE_IN as u64);
            // What has come of a line stays in the buffer if this is left before its end.
            let reading = lines.read_until(b'\n', &mut self.line);
            let read = match self.phase {
                Phase::Running => tokio::select! {
                    biased;
                    () = self.stop.cancelled() => continue,
                    read = reading => read,
                    _ = self.child.wait() => {
                        self.phase = Phase::Ended;
                        continue;
                    }
                },
                Phase::Ended => tokio::select! {
                    biased;
                    read = reading => read,
                    () = sleep(LAST_WORDS) => return false,
                },
                Phase::Stopping(until) => tokio::select! {
                    biased;
                    () = sleep_until(until) => return false,
                    read = reading => read,
                },
                Phase::Gone => return false,
            };
            return read.is_ok() && !self.line.is_empty();
        }
    }

    /// The frame on the line. Anything that does not look like one is noise that some other code wrote.
    fn frame(&mut self) -> Option<Result<Frame, Error>> {
        let text = std::str::from_utf8(&self.line).ok().filter(|text| text.starts_with('{'))?;
        let frame = decode(text.trim_end()).map_err(Error::from);
        if let Ok(frame) = &frame {
            self.turns.send_if_modified(|turns| {
                let before = turns.clone();
                turns.heard(frame);
                *turns != before
            });
            if let Frame::Result(result) = frame {
                self.turn_failed = result.is_error;
            }
        }
        Some(frame)
    }

    /// Sees to it that the engine has really ended, and says how if it failed.
    async fn see_off(&mut self) -> Option<Error> {
        let status = match timeout(GRACE, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                // The process is on its way out in any case; what matters is that it goes.
                let _ = self.child.start_kill();
                self.child.wait().await
            }
        };
        let status = status.ok().filter(|status| !status.success())?;
        // An engine also leaves with a failure when its last turn failed; the result has told that already.
        if self.turn_failed || self.stop.is_cancelled() {
            return None;
        }
        Some(Error::Engine { status, stderr: self.stderr.text().await })
    }
}

/// Tells the engine to stop: closing its input would only finish it.
fn ask_to_end(child: &Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        // It may have ended by itself meanwhile.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
    }
}

/// The end of what the engine writes to its standard error.
struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reading: AbortOnDropHandle<()>,
}

impl Tail {
    fn of(stderr: ChildStderr) -> Self {
        let kept = Arc::default();
        let reading = tokio::spawn(keep(stderr, Arc::clone(&kept)));
        Self { kept, reading: AbortOnDropHandle::new(reading) }
    }

    /// What there is of it when the engine has ended. Another process may hold the stream open: that is not waited for long.
    async fn text(&mut self) -> String {
        let _ = timeout(LAST_WORDS, &mut self.reading).await;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }
}

async fn keep(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..read]);
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }
}
