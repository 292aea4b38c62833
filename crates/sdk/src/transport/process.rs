//! An engine process, driven over its standard streams.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_transport::line_reader::{Line, LineReader};
use whimbrel_transport::link;
use whimbrel_wire::codec::{MAX_LINE_IN, WireError};
use whimbrel_wire::options::Options;
use whimbrel_wire::{Frame, decode, encode};

use crate::environment::Environment;
use crate::error::Error;
use crate::open_check::check_dir;
use crate::transport::activity::{Activity, ActivityTracker};
use crate::transport::{Connection, EngineCommand, FrameSource, Opening, PromptSpans};

/// Time an engine has to exit after its input was closed or it was stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Time to read remaining output after the engine has exited.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Time an engine has to start a turn for a prompt after it has reported idle. If it takes longer, the turn before has
/// consumed the prompt.
const TURN_START_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of the engine's standard error that are kept for an error text.
const MAX_STDERR_BYTES: usize = 4096;

const CHANNEL_CAPACITY: usize = 128;

/// Output of the engine process, and the process itself: reading to the end also reaps it.
pub(crate) struct EngineOutput {
    child: Child,
    lines: LineReader<ChildStdout>,
    stop: CancellationToken,
    activity: watch::Sender<ActivityTracker>,
    stderr: StderrTail,
    /// True if the last turn failed.
    turn_failed: bool,
    phase: ProcessPhase,
}

/// One line of the engine's output.
enum EngineLine {
    Frame(Frame),
    Malformed(WireError),
    /// Written by other code.
    Ignored,
    /// There are no more lines, or they are not waited for.
    End,
}

impl EngineLine {
    /// Parses a line. Anything that does not start with `{` is ignored. The last frame may lack its line end.
    fn parse(line: &Line<'_>) -> Self {
        let bytes = match line {
            Line::Complete(bytes) | Line::Partial(bytes) => bytes,
            Line::TooLong => return Self::Malformed(WireError::TooLong),
            Line::End => return Self::End,
        };
        match std::str::from_utf8(bytes) {
            Ok(text) if text.starts_with('{') => match decode(text.trim_end()) {
                Ok(frame) => Self::Frame(frame),
                Err(error) => Self::Malformed(error),
            },
            _ => Self::Ignored,
        }
    }
}

/// Phase of the process on its way to the end.
enum ProcessPhase {
    Running,
    /// It has exited; remaining output is read with a short timeout, because its children may hold the pipe open.
    Exited,
    /// It received SIGTERM and may write until this deadline.
    Stopping(Instant),
    /// All output is read and the process is reaped.
    Reaped,
}

/// Starts an engine process and connects to it.
#[expect(clippy::disallowed_methods, reason = "starting an engine process is what this file is for")]
pub(crate) fn connect(
    engine: &EngineCommand,
    options: &Options,
    environment: Option<&Environment>,
) -> Result<Connection, Error> {
    let mut command = Command::new(&engine.program);
    if let Some(environment) = environment {
        command.env_clear().envs(environment.variables());
    }
    for (name, value) in &engine.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args(&engine.args)
        .args(options.to_args())
        .envs(options.to_env())
        .env("CLAUDE_CODE_ENTRYPOINT", "sdk-rs")
        .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
        .env("WHIMBREL_HOST_DETAILS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(dir) = engine.dir.as_deref().or(options.cwd.as_ref().map(Path::new)) {
        check_dir(dir)?;
        command.current_dir(dir);
    }
    let spawned = command.spawn();
    let program = || engine.program.to_string_lossy().into_owned();
    let mut child = spawned.map_err(|source| Error::Spawn { program: program(), source })?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::SessionEnded);
    };
    let (sender, frames) = mpsc::channel(CHANNEL_CAPACITY);
    let (stop, finished) = (CancellationToken::new(), CancellationToken::new());
    let activity = watch::Sender::new(ActivityTracker::default());
    let idle = wait_until_idle(finished.clone(), activity.subscribe());
    tokio::spawn(write_frames(stdin, frames, stop.clone(), activity.clone(), idle));
    let output = EngineOutput {
        child,
        lines: LineReader::new(stdout, MAX_LINE_IN),
        stop: stop.clone(),
        activity,
        stderr: StderrTail::from_stderr(stderr),
        turn_failed: false,
        phase: ProcessPhase::Running,
    };
    let incoming = FrameSource::Process(Box::new(output));
    Ok(Connection {
        sender,
        incoming,
        finished,
        stop,
        opening: Opening::Initialize,
        prompt_spans: PromptSpans::default(),
    })
}

/// Resolves when the engine's input may be closed: no prompt will come, and no turn runs that may ask or be
/// interrupted.
async fn wait_until_idle(finished: CancellationToken, mut tracker: watch::Receiver<ActivityTracker>) {
    finished.cancelled().await;
    loop {
        let activity = tracker.borrow_and_update().activity();
        let has_changed = match activity {
            Activity::Idle => false,
            Activity::Busy => tracker.changed().await.is_ok(),
            Activity::Unknown => {
                timeout(TURN_START_TIMEOUT, tracker.changed()).await.is_ok_and(|changed| changed.is_ok())
            }
        };
        if !has_changed {
            return;
        }
    }
}

/// Writes frames until there are no more, then closes the engine's input.
async fn write_frames(
    mut stdin: ChildStdin,
    mut frames: mpsc::Receiver<link::IncomingFrame>,
    stop: CancellationToken,
    activity: watch::Sender<ActivityTracker>,
    idle: impl Future<Output = ()>,
) {
    let mut idle = std::pin::pin!(idle);
    let mut buffer = Vec::new();
    loop {
        // Frames come first, so that those sent before the end of the input are still written.
        let frame = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            frame = frames.recv() => frame,
            () = &mut idle => None,
        };
        let Some(Ok(frame)) = frame else { return };
        if matches!(&frame, Frame::User(user) if user.should_query != Some(false)) {
            activity.send_modify(ActivityTracker::record_prompt);
        }
        buffer.clear();
        encode(&frame, &mut buffer);
        if stdin.write_all(&buffer).await.is_err() {
            return;
        }
    }
}

impl EngineOutput {
    /// Returns the next frame. After the last one the process is reaped; a failure that no result has reported is the
    /// last item.
    pub(super) async fn next(&mut self) -> Option<Result<Frame, Error>> {
        if matches!(self.phase, ProcessPhase::Reaped) {
            return None;
        }
        loop {
            match self.read_line().await {
                EngineLine::Frame(frame) => {
                    self.record(&frame);
                    return Some(Ok(frame));
                }
                EngineLine::Malformed(error) => return Some(Err(error.into())),
                EngineLine::Ignored => {}
                EngineLine::End => break,
            }
        }
        let error = self.reap().await;
        self.phase = ProcessPhase::Reaped;
        error.map(Err)
    }

    /// Reads one line. A stop sends SIGTERM to the engine, which may write until the grace period is
    /// over.
    async fn read_line(&mut self) -> EngineLine {
        loop {
            if self.stop.is_cancelled() && !matches!(self.phase, ProcessPhase::Stopping(_)) {
                send_sigterm(&self.child);
                self.phase = ProcessPhase::Stopping(Instant::now() + SHUTDOWN_GRACE);
            }
            let reading = self.lines.next_line_async();
            let line = match self.phase {
                ProcessPhase::Running => tokio::select! {
                    biased;
                    () = self.stop.cancelled() => continue,
                    line = reading => line,
                    _ = self.child.wait() => {
                        self.phase = ProcessPhase::Exited;
                        continue;
                    }
                },
                ProcessPhase::Exited => tokio::select! {
                    biased;
                    line = reading => line,
                    () = sleep(OUTPUT_GRACE) => return EngineLine::End,
                },
                ProcessPhase::Stopping(until) => tokio::select! {
                    biased;
                    () = sleep_until(until) => return EngineLine::End,
                    line = reading => line,
                },
                ProcessPhase::Reaped => return EngineLine::End,
            };
            return line.as_ref().map_or(EngineLine::End, EngineLine::parse);
        }
    }

    /// Updates the activity of the engine and the outcome of its last turn.
    fn record(&mut self, frame: &Frame) {
        self.activity.send_if_modified(|tracker| {
            let before = tracker.clone();
            tracker.record_frame(frame);
            *tracker != before
        });
        if let Frame::Result(result) = frame {
            self.turn_failed = result.is_error;
        }
    }

    /// Waits for the process to exit, kills it after the grace period, and returns an error if it failed.
    async fn reap(&mut self) -> Option<Error> {
        let status = match timeout(SHUTDOWN_GRACE, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                // The process is about to end anyway, so the result of the kill does not matter.
                let _ = self.child.start_kill();
                self.child.wait().await
            }
        };
        let status = status.ok().filter(|status| !status.success())?;
        // A failed last turn also gives a failure status; its result has been reported already.
        if self.turn_failed || self.stop.is_cancelled() {
            return None;
        }
        Some(Error::Engine { status, stderr: self.stderr.text().await })
    }
}

/// Sends SIGTERM. Closing the input would only let the engine finish its work.
fn send_sigterm(child: &Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        // It may have exited meanwhile.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
    }
}

/// The end of the engine's standard error.
struct StderrTail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    reader: AbortOnDropHandle<()>,
}

impl StderrTail {
    fn from_stderr(stderr: ChildStderr) -> Self {
        let bytes = Arc::default();
        let reading = tokio::spawn(read_tail(stderr, Arc::clone(&bytes)));
        Self { bytes, reader: AbortOnDropHandle::new(reading) }
    }

    /// Returns the text after the engine has exited. The wait is short, because another process may hold the stream
    /// open.
    async fn text(&mut self) -> String {
        let _ = timeout(OUTPUT_GRACE, &mut self.reader).await;
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(bytes.make_contiguous()).into_owned()
    }
}

async fn read_tail(mut stderr: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..read]);
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
}
