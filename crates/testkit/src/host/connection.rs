//! Connection to an engine that runs on a thread of this process or as a child process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, anyhow};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use whimbrel_engine::{Engine, SessionExit, SessionRequest, serve};
use whimbrel_transport::link;
use whimbrel_wire::{Frame, decode, encode};

/// One frame from the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedFrame {
    /// The decoded frame.
    pub frame: Frame,
    /// The same frame as JSON.
    pub json: Value,
}

/// How an engine exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineExit {
    /// The exit code. For an engine in this process, the code that a program would have returned.
    pub code: i32,
    /// The stderr of a process.
    pub stderr: String,
}

/// The host's end of the connection.
pub(crate) struct EngineConnection {
    input: Option<Input>,
    output: Output,
    engine: Option<EngineHandle>,
}

enum Input {
    Link(mpsc::Sender<link::IncomingFrame>),
    Pipe(ChildStdin),
}

enum Output {
    Link(mpsc::Receiver<Frame>),
    Pipe(Lines<BufReader<ChildStdout>>),
}

enum EngineHandle {
    Thread { exit: oneshot::Receiver<SessionExit>, stop: StopOnDrop },
    Process { child: Box<Child>, stderr: JoinHandle<String> },
}

/// Stops the engine thread when the host is dropped.
struct StopOnDrop(Box<dyn Fn() + Send + Sync>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl EngineConnection {
    /// Starts an engine on its own thread, so that it runs independently of the test's runtime.
    pub(crate) fn start_in_process(engine: Engine, request: SessionRequest) -> anyhow::Result<Self> {
        let (link, end) = link::pair();
        let (sender, exit) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("engine".into()).spawn(move || {
            // The receiver is gone if the test has ended.
            let _ = sender.send(runtime.block_on(serve(engine, link, request)));
        })?;
        let stop = StopOnDrop(Box::new(move || end.stop.cancel()));
        Ok(Self {
            input: Some(Input::Link(end.sender)),
            output: Output::Link(end.receiver),
            engine: Some(EngineHandle::Thread { exit, stop }),
        })
    }

    /// Starts an engine as a child process.
    #[expect(clippy::disallowed_methods, reason = "the engine under test is a program")]
    pub(crate) fn start_process(
        program: &Path,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: &Path,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(env).current_dir(cwd).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let missing = || anyhow!("a pipe to the engine is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let mut errors = child.stderr.take().ok_or_else(missing)?;
        let stderr = tokio::spawn(async move {
            let mut text = Vec::new();
            // Keeps the output read so far even after an error.
            let _ = errors.read_to_end(&mut text).await;
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Self {
            input: Some(Input::Pipe(stdin)),
            output: Output::Pipe(BufReader::new(stdout).lines()),
            engine: Some(EngineHandle::Process { child: Box::new(child), stderr }),
        })
    }

    /// Sends a line, given without its newline.
    pub(crate) async fn send_line(&mut self, line: &str) -> anyhow::Result<()> {
        let closed = "the engine has closed its input";
        match &mut self.input {
            None => Err(anyhow!("the input is already closed")),
            Some(Input::Link(sender)) => {
                sender.send(decode(line).map_err(Box::new)).await.map_err(|_| anyhow!(closed))
            }
            Some(Input::Pipe(stdin)) => {
                stdin.write_all(format!("{line}\n").as_bytes()).await.context(closed)?;
                stdin.flush().await.context(closed)
            }
        }
    }

    /// Receives the next frame; `None` once the engine closed its output.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<Option<ReceivedFrame>> {
        let line = match &mut self.output {
            Output::Link(frames) => match frames.recv().await {
                None => return Ok(None),
                Some(frame) => {
                    let mut line = Vec::new();
                    encode(&frame, &mut line);
                    String::from_utf8(line)?
                }
            },
            Output::Pipe(lines) => match lines.next_line().await? {
                None => return Ok(None),
                Some(line) => line,
            },
        };
        let frame = decode(&line).with_context(|| format!("the engine wrote an invalid frame: {line}"))?;
        let json = serde_json::from_str(&line)?;
        Ok(Some(ReceivedFrame { frame, json }))
    }

    /// Closes the input.
    pub(crate) fn finish_input(&mut self) {
        self.input = None;
    }

    /// Waits for the engine to exit. Call it after all frames were received.
    pub(crate) async fn wait_for_exit(&mut self) -> anyhow::Result<EngineExit> {
        self.finish_input();
        match self.engine.take() {
            None => Err(anyhow!("the engine has already exited")),
            Some(EngineHandle::Thread { exit, stop }) => {
                let exit = exit.await.context("the engine panicked")?;
                drop(stop);
                Ok(EngineExit { code: exit_code(&exit), stderr: String::new() })
            }
            Some(EngineHandle::Process { mut child, stderr }) => {
                let status = child.wait().await?;
                let stderr = stderr.await?;
                Ok(EngineExit { code: status.code().unwrap_or(-1), stderr })
            }
        }
    }
}

/// The exit code a program would return: 1 if the session never started or its last result is an error.
fn exit_code(exit: &SessionExit) -> i32 {
    let failed = exit.last_turn.as_ref().is_some_and(|turn| turn.is_error);
    i32::from(failed || exit.setup_error.is_some())
}
