//! An engine process, driven over its standard streams.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::codec::MAX_LINE_IN;
use whimbrel_wire::options::Options;
use whimbrel_wire::system::{SessionState, SystemEvent};
use whimbrel_wire::{Frame, WireError, decode, encode};

use crate::error::Error;
use crate::transport::{Connection, Incoming};

/// How long an engine may take to end by itself once its input is closed or it was told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// How much of the engine's standard error is kept for an error text.
const STDERR_KEPT: usize = 4096;

const DEPTH: usize = 128;

/// Whether the host answers questions of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// It does.
    Answers,
    /// It does not.
    IsSilent,
}

/// What the reading task needs.
struct Reading {
    lines: mpsc::Sender<Result<Frame, Error>>,
    stop: CancellationToken,
    idle: watch::Sender<bool>,
    tail: Arc<Mutex<VecDeque<u8>>>,
}

/// Starts a program and speaks with it. If the host answers questions, the engine's input stays open until the run is over.
#[expect(clippy::disallowed_methods, reason = "starting an engine process is what this file is for")]
pub(super) fn connect(program: &Path, options: &Options, host: Host) -> Result<Connection, Error> {
    let mut command = Command::new(program);
    command
        .args(["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"])
        .args(options.to_args())
        .envs(&options.env)
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
    let (lines_in, receiver) = mpsc::channel(DEPTH);
    let (stop, finished) = (CancellationToken::new(), CancellationToken::new());
    let idle = watch::Sender::new(true);
    let tail = Arc::new(Mutex::new(VecDeque::new()));
    let closing = closing_time(host, finished.clone(), idle.subscribe());
    tokio::spawn(write(stdin, lines_out, stop.clone(), idle.clone(), closing));
    tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
    let reading = Reading { lines: lines_in, stop: stop.clone(), idle, tail };
    tokio::spawn(run(child, stdout, reading));
    Ok(Connection { sender, incoming: Incoming::Lines(receiver), finished, stop, wants_initialize: true })
}

/// Resolves when the engine's input may be closed.
async fn closing_time(host: Host, finished: CancellationToken, mut idle: watch::Receiver<bool>) {
    finished.cancelled().await;
    if host == Host::Answers {
        // The sender lives as long as the tasks that read and write.
        let _ = idle.wait_for(|idle| *idle).await;
    }
}

/// Writes lines until there are no more, then closes the engine's input.
async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Result<Frame, WireError>>,
    stop: CancellationToken,
    idle: watch::Sender<bool>,
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
        if matches!(frame, Frame::User(_)) {
            idle.send_replace(false);
        }
        buffer.clear();
        encode(&frame, &mut buffer);
        if stdin.write_all(&buffer).await.is_err() {
            return;
        }
    }
}

/// Reads lines until the engine ends, then sees to it that it really has.
async fn run(mut child: Child, stdout: ChildStdout, reading: Reading) {
    let Reading { lines, stop, idle, tail } = reading;
    let (mut tells_state, mut turn_failed) = (false, false);
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = tokio::select! {
            read = read_line(&mut reader, &mut line) => read,
            () = stop.cancelled() => break,
        };
        if !matches!(read, Ok(1..)) {
            break;
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        // Anything that does not look like a frame is noise that some other code wrote.
        if !text.starts_with('{') {
            continue;
        }
        let frame = decode(text.trim_end()).map_err(Error::from);
        if let Ok(frame) = &frame {
            if is_over(frame, &mut tells_state) {
                idle.send_replace(true);
            }
            if let Frame::Result(result) = frame {
                turn_failed = result.is_error;
            }
        }
        if lines.send(frame).await.is_err() {
            break;
        }
    }
    if stop.is_cancelled() {
        ask_to_end(&child);
    }
    let status = match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            // The process is on its way out in any case; what matters is that it goes.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    // An engine also leaves with a failure when its last turn failed; the result has told that already.
    if let Ok(status) = status
        && !status.success()
        && !turn_failed
        && !stop.is_cancelled()
    {
        let kept: Vec<u8> = tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let stderr = String::from_utf8_lossy(&kept).into_owned();
        let _ = lines.send(Err(Error::Engine { status, stderr })).await;
    }
}

/// Tells the engine to stop: closing its input would only finish it.
fn ask_to_end(child: &Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        // It may have ended by itself meanwhile.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
    }
}

/// Whether a frame says that nothing runs any more. An engine that tells its state is believed; of any other, a result
/// is all there is.
fn is_over(frame: &Frame, tells_state: &mut bool) -> bool {
    match frame {
        Frame::System(system) if let SystemEvent::SessionStateChanged(changed) = &system.event => {
            *tells_state = true;
            changed.state == SessionState::Idle
        }
        Frame::Result(_) => !*tells_state,
        _ => false,
    }
}

async fn read_line(reader: &mut BufReader<ChildStdout>, line: &mut Vec<u8>) -> std::io::Result<usize> {
    reader.take(MAX_LINE_IN as u64).read_until(b'\n', line).await
}

/// Keeps the end of what the engine writes to its standard error.
async fn keep_tail(mut stderr: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&piece[..read]);
        let excess = tail.len().saturating_sub(STDERR_KEPT);
        tail.drain(..excess);
    }
}
