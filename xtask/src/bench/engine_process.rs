//! One running engine, controlled over its standard streams.

use std::ffi::OsString;
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
use super::context::BenchContext;
use super::engine::{Engine, LaunchOptions};
use super::resource_usage::{self, ResourceUsage};

/// Maximum time without output from an engine.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(120);

static NEXT_FILE_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A running engine. Killed on drop.
pub(super) struct EngineProcess {
    pub(super) started_at: Instant,
    /// The meter, parent of the engine.
    meter: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<OutputLine>,
    usage_file: PathBuf,
    stderr_file: PathBuf,
}

/// A command that runs an engine.
pub(super) struct AgentCommand {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    /// Working directory; the common workspace by default.
    pub(super) dir: Option<PathBuf>,
}

/// An output line of an engine.
pub(super) struct OutputLine {
    /// Time at which it was read.
    pub(super) received_at: Instant,
    pub(super) text: Vec<u8>,
}

impl OutputLine {
    /// Returns true if the line contains a text.
    pub(super) fn contains(&self, text: &str) -> bool {
        memmem::find(&self.text, text.as_bytes()).is_some()
    }

    /// Returns true if the line is a result frame.
    pub(super) fn is_result(&self) -> bool {
        self.contains(r#""type":"result""#) && self.json().is_ok_and(|json| json["type"] == "result")
    }

    /// Parses the line.
    pub(super) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.text)?)
    }
}

impl EngineProcess {
    pub(super) fn start(context: &BenchContext, engine: &Engine, start: LaunchOptions<'_>) -> Result<Self> {
        let command = AgentCommand {
            program: engine.program.clone(),
            arguments: start.flags().into_iter().map(OsString::from).collect(),
            variables: Vec::new(),
            dir: start.working_dir.map(PathBuf::from),
        };
        Self::start_command(context, engine, &command)
    }

    /// Starts a command with the environment of an engine; its own variables come on top.
    pub(super) fn start_command(
        context: &BenchContext,
        engine: &Engine,
        wanted: &AgentCommand,
    ) -> Result<Self> {
        let number = NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
        let usage = context.root_dir().join(format!("used-{number}"));
        let stderr_file = context.root_dir().join(format!("stderr-{number}"));
        let mut command = meter_command(context);
        command.arg("bench-meter").arg(&usage).arg(&wanted.program).args(&wanted.arguments).env_clear();
        command.envs(engine.environment(context)).process_group(0);
        command.envs(wanted.variables.iter().cloned());
        command.current_dir(wanted.dir.clone().unwrap_or_else(|| context.workspace_dir()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&stderr_file)?);
        let started_at = clock::now();
        let mut meter = command.spawn().context("cannot start the meter")?;
        let stdin = meter.stdin.take();
        let stdout = meter.stdout.take().context("the meter has no stdout")?;
        Ok(Self { started_at, meter, stdin, lines: read_lines(stdout), usage_file: usage, stderr_file })
    }

    /// Runs an engine with one prompt to its end; returns the time of the result and the resource usage.
    pub(super) fn run_one_prompt(
        context: &BenchContext,
        engine: &Engine,
        start: LaunchOptions<'_>,
    ) -> Result<FinishedRun> {
        let mut run = Self::start(context, engine, start)?;
        let started_at = run.started_at;
        run.send_prompt("go")?;
        let result = run.next_result()?.received_at;
        Ok(FinishedRun { started_at, result_at: result, usage: run.finish()? })
    }

    /// Sends a prompt.
    pub(super) fn send_prompt(&mut self, text: &str) -> Result<()> {
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
        self.send_json(
            &json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "" }),
        )
    }

    /// Sends a JSON line.
    pub(super) fn send_json(&mut self, line: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the input is closed")?;
        stdin.write_all(format!("{line}\n").as_bytes()).context("the engine does not read its input")
    }

    /// Sends the `initialize` request, as a controlling host does.
    pub(super) fn initialize(&mut self) -> Result<()> {
        let request = json!({ "subtype": "initialize", "hooks": null });
        self.send_json(&json!({ "type": "control_request", "request_id": "initialize", "request": request }))
    }

    /// Waits for the next line.
    pub(super) fn next_line(&mut self) -> Result<OutputLine> {
        self.lines.recv_timeout(OUTPUT_TIMEOUT).map_err(|_| self.engine_error("prints nothing more"))
    }

    /// Waits for the next line that contains a text.
    pub(super) fn next_line_with(&mut self, text: &str) -> Result<OutputLine> {
        loop {
            let line = self.next_line()?;
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    /// Waits for the next result frame; fails if it is an error.
    pub(super) fn next_result(&mut self) -> Result<OutputLine> {
        loop {
            let line = self.next_line()?;
            if line.is_result() {
                if line.json()?["is_error"] == true {
                    bail!("the turn failed: {}", String::from_utf8_lossy(&line.text));
                }
                return Ok(line);
            }
        }
    }

    /// Process id of the meter; its child is the engine.
    pub(super) fn meter_pid(&self) -> u32 {
        self.meter.id()
    }

    /// Closes the input, waits for the exit and returns the resource usage.
    pub(super) fn finish(mut self) -> Result<ResourceUsage> {
        self.stdin = None;
        let deadline = clock::now() + OUTPUT_TIMEOUT;
        while self.lines.recv_timeout(deadline.saturating_duration_since(clock::now())).is_ok() {}
        if clock::now() >= deadline {
            return Err(self.engine_error("does not exit"));
        }
        self.meter.wait()?;
        let usage = resource_usage::read_usage(&self.usage_file)?;
        if usage.code != Some(0) {
            return Err(self.engine_error(&format!("exited with {:?}", usage.code)));
        }
        Ok(usage)
    }

    fn engine_error(&self, problem: &str) -> anyhow::Error {
        let stderr = fs::read_to_string(&self.stderr_file).unwrap_or_default();
        anyhow::anyhow!(
            "the engine {problem}; its stderr: {:?}",
            stderr.chars().take(400).collect::<String>()
        )
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        if !matches!(self.meter.try_wait(), Ok(Some(_))) {
            // The meter leads the process group of the engine. Fails harmlessly if they have exited.
            let _ = killpg(Pid::from_raw(self.meter.id().cast_signed()), Signal::SIGKILL);
            let _ = self.meter.wait();
        }
    }
}

/// A finished run with one prompt.
pub(super) struct FinishedRun {
    /// Start of the engine.
    pub(super) started_at: Instant,
    /// Arrival of the result.
    pub(super) result_at: Instant,
    pub(super) usage: ResourceUsage,
}

/// Runs a program to its end with the inherited environment and returns its resource usage.
pub(super) fn measure_program(
    context: &BenchContext,
    program: &str,
    arguments: &[&str],
) -> Result<ResourceUsage> {
    run_under_meter(context, program.as_ref(), arguments, meter_command(context))
}

/// Runs a program to its end with the environment and workspace of an engine and returns its resource usage.
pub(super) fn measure_engine(
    context: &BenchContext,
    engine: &Engine,
    arguments: &[&str],
) -> Result<ResourceUsage> {
    let mut command = meter_command(context);
    command.env_clear().envs(engine.environment(context)).current_dir(context.workspace_dir());
    run_under_meter(context, &engine.program, arguments, command)
}

/// As [`measure_engine`], but as started by a user: an engine started by an SDK has no subcommands.
pub(super) fn measure_as_user(
    context: &BenchContext,
    engine: &Engine,
    arguments: &[&str],
) -> Result<ResourceUsage> {
    let mut command = meter_command(context);
    command.env_clear().envs(engine.environment(context)).env_remove("CLAUDE_CODE_ENTRYPOINT");
    command.current_dir(context.workspace_dir());
    run_under_meter(context, &engine.program, arguments, command)
}

fn run_under_meter(
    context: &BenchContext,
    program: &Path,
    arguments: &[&str],
    mut command: Command,
) -> Result<ResourceUsage> {
    let usage = context.root_dir().join(format!("used-{}", NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed)));
    command.arg("bench-meter").arg(&usage).arg(program).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !command.status()?.success() {
        bail!("cannot run {}", program.display());
    }
    resource_usage::read_usage(&usage)
}

fn read_lines(stdout: ChildStdout) -> Receiver<OutputLine> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::with_capacity(256 * 1024, stdout);
        let mut text = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut text) {
            if sender.send(OutputLine { received_at: clock::now(), text: std::mem::take(&mut text) }).is_err()
            {
                return;
            }
        }
    });
    lines
}

#[expect(clippy::disallowed_methods, reason = "a benchmark starts engines")]
fn meter_command(context: &BenchContext) -> Command {
    Command::new(&context.bench_program)
}
