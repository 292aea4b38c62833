//! One engine process that is talked to over its standard streams.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::clock;
use super::engine::{Engine, Start};
use super::lab::Lab;
use super::meter::{self, Used};

/// How long an engine may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// An engine at work. Dropping it ends it.
pub(super) struct Run {
    /// When it was started.
    pub(super) began: Instant,
    /// The meter, whose child the engine is.
    meter: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
    used: PathBuf,
    complaints: PathBuf,
}

/// What an engine wrote.
pub(super) struct Line {
    /// When it was read.
    pub(super) at: Instant,
    /// The line.
    pub(super) text: Vec<u8>,
}

impl Line {
    /// Whether a text occurs in it.
    pub(super) fn has(&self, text: &str) -> bool {
        memmem::find(&self.text, text.as_bytes()).is_some()
    }

    /// Whether it is the end of a turn.
    pub(super) fn is_result(&self) -> bool {
        self.has(r#""type":"result""#) && self.json().is_ok_and(|json| json["type"] == "result")
    }

    /// The line as a value.
    pub(super) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.text)?)
    }
}

impl Run {
    /// Starts an engine.
    pub(super) fn start(lab: &Lab, engine: &Engine, start: Start<'_>) -> Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let used = lab.root().join(format!("used-{number}"));
        let complaints = lab.root().join(format!("stderr-{number}"));
        let mut command = command(lab);
        command.arg("bench-meter").arg(&used).arg(&engine.program).args(start.flags()).env_clear();
        command.envs(engine.environment(lab)).process_group(0);
        command.current_dir(start.folder.map_or_else(|| lab.workspace(), PathBuf::from));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&complaints)?);
        let began = clock::now();
        let mut meter = command.spawn().context("the meter cannot be started")?;
        let stdin = meter.stdin.take();
        let stdout = meter.stdout.take().context("there is no stdout")?;
        Ok(Self { began, meter, stdin, lines: read(stdout), used, complaints })
    }

    /// A whole run with one prompt: when the result came, and what was used.
    pub(super) fn whole(lab: &Lab, engine: &Engine, start: Start<'_>) -> Result<Whole> {
        let mut run = Self::start(lab, engine, start)?;
        let began = run.began;
        run.say("go")?;
        let result = run.result()?.at;
        Ok(Whole { began, result, used: run.finish()? })
    }

    /// Says something.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
        self.send(
            &json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "" }),
        )
    }

    /// Sends a line.
    pub(super) fn send(&mut self, line: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the input is closed")?;
        stdin.write_all(format!("{line}\n").as_bytes()).context("the engine does not listen")
    }

    /// Opens the session as a host does that wants to steer it.
    pub(super) fn initialize(&mut self) -> Result<()> {
        let request = json!({ "subtype": "initialize", "hooks": null });
        self.send(&json!({ "type": "control_request", "request_id": "opening", "request": request }))
    }

    /// The next line.
    pub(super) fn line(&mut self) -> Result<Line> {
        self.lines.recv_timeout(PATIENCE).map_err(|_| self.trouble("says nothing more"))
    }

    /// The next line in which a text occurs.
    pub(super) fn line_with(&mut self, text: &str) -> Result<Line> {
        loop {
            let line = self.line()?;
            if line.has(text) {
                return Ok(line);
            }
        }
    }

    /// The next end of a turn, which must be a success.
    pub(super) fn result(&mut self) -> Result<Line> {
        loop {
            let line = self.line()?;
            if line.is_result() {
                if line.json()?["is_error"] == true {
                    bail!("the turn failed: {}", String::from_utf8_lossy(&line.text));
                }
                return Ok(line);
            }
        }
    }

    /// The meter's process; its child is the engine.
    pub(super) fn meter(&self) -> u32 {
        self.meter.id()
    }

    /// Ends the input, waits for the engine's end, and tells what was used.
    pub(super) fn finish(mut self) -> Result<Used> {
        self.stdin = None;
        let deadline = clock::now() + PATIENCE;
        while self.lines.recv_timeout(deadline.saturating_duration_since(clock::now())).is_ok() {}
        if clock::now() >= deadline {
            return Err(self.trouble("does not end"));
        }
        self.meter.wait()?;
        let used = meter::read(&self.used)?;
        if used.code != Some(0) {
            return Err(self.trouble(&format!("ended with {:?}", used.code)));
        }
        Ok(used)
    }

    fn trouble(&self, what: &str) -> anyhow::Error {
        let said = fs::read_to_string(&self.complaints).unwrap_or_default();
        anyhow::anyhow!("the engine {what}; it complains: {:?}", said.chars().take(400).collect::<String>())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !matches!(self.meter.try_wait(), Ok(Some(_))) {
            // The meter leads a group in which the engine is; whoever has gone already needs no signal.
            let _ = killpg(Pid::from_raw(self.meter.id().cast_signed()), Signal::SIGKILL);
            let _ = self.meter.wait();
        }
    }
}

/// A run with one prompt.
pub(super) struct Whole {
    /// When the engine was started.
    pub(super) began: Instant,
    /// When the result came.
    pub(super) result: Instant,
    /// What was used.
    pub(super) used: Used,
}

/// Runs a program to its end, with our environment, and tells what it used.
pub(super) fn alone(lab: &Lab, program: &str, arguments: &[&str]) -> Result<Used> {
    to_its_end(lab, program.as_ref(), arguments, command(lab))
}

/// Runs a program to its end, with the environment and workspace of an engine, and tells what it used.
pub(super) fn alone_in(lab: &Lab, engine: &Engine, arguments: &[&str]) -> Result<Used> {
    let mut command = command(lab);
    command.env_clear().envs(engine.environment(lab)).current_dir(lab.workspace());
    to_its_end(lab, &engine.program, arguments, command)
}

/// The same as a person would do it: an engine that an SDK starts knows no commands.
pub(super) fn by_hand(lab: &Lab, engine: &Engine, arguments: &[&str]) -> Result<Used> {
    let mut command = command(lab);
    command.env_clear().envs(engine.environment(lab)).env_remove("CLAUDE_CODE_ENTRYPOINT");
    command.current_dir(lab.workspace());
    to_its_end(lab, &engine.program, arguments, command)
}

fn to_its_end(lab: &Lab, program: &Path, arguments: &[&str], mut command: Command) -> Result<Used> {
    let used = lab.root().join(format!("used-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    command.arg("bench-meter").arg(&used).arg(program).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !command.status()?.success() {
        bail!("{} cannot be run", program.display());
    }
    meter::read(&used)
}

fn read(stdout: ChildStdout) -> Receiver<Line> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut source = BufReader::with_capacity(256 * 1024, stdout);
        let mut text = Vec::new();
        while let Ok(1..) = source.read_until(b'\n', &mut text) {
            if sender.send(Line { at: clock::now(), text: std::mem::take(&mut text) }).is_err() {
                return;
            }
        }
    });
    lines
}

#[expect(clippy::disallowed_methods, reason = "starting engines is what a benchmark is for")]
fn command(lab: &Lab) -> Command {
    Command::new(&lab.myself)
}
