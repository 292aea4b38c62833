//! Kill test: kills the program at random moments, resumes its session each time and checks that nothing was lost.
//!
//! After every kill it checks that
//! - the session resumes, and providers would accept the messages of its requests;
//! - every message that the host received is in the transcript;
//! - no command ran twice, and the model learns of every command that ran, also those of a subagent; it never reads
//!   that such a command changed nothing;
//! - no process started by the program is left.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use crate::host::Host;
use crate::script::{Reply, Script};
use crate::session_dirs::SessionDirs;

/// Kills per session; then a new session begins, because long transcripts only cost time.
const KILLS_PER_SESSION: u64 = 40;

/// Replies with commands before the session is done.
const COMMAND_REPLIES: usize = 6;

/// Number of the command that a subagent runs.
const SUBAGENT_COMMAND: usize = 200;

/// Maximum number of frames received before a kill.
const MAX_FRAMES_BEFORE_KILL: u64 = 28;

/// Maximum delay of a kill after the last frame, in microseconds.
const MAX_KILL_DELAY_MICROS: u64 = 3_000;

/// Time limit for the remaining processes to exit.
const PROCESS_EXIT_TIMEOUT: Duration = Duration::from_secs(120);

/// A kill test of one program.
#[derive(Debug, Clone)]
pub struct KillTest {
    program: PathBuf,
    kills: u64,
    seed: u64,
}

/// Counts of a passed kill test; a failed one returns an error instead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KillReport {
    /// Number of kills.
    pub kills: u64,
    /// Number of received messages, all found in the transcripts.
    pub messages: usize,
    /// Number of commands, each run once.
    pub commands: usize,
    /// Number of kills while a command ran; the model reads that the outcome is unknown.
    pub unknown_outcomes: usize,
}

impl KillTest {
    /// Builds a kill test with 25 kills and a fixed seed.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), kills: 25, seed: 0x2545_f491 }
    }

    /// Sets the number of kills.
    #[must_use]
    pub fn kills(mut self, kills: u64) -> Self {
        self.kills = kills;
        self
    }

    /// Sets the seed of the kill moments.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs the test. `report_progress` gets the number of kills so far after each kill.
    pub async fn run(&self, report_progress: impl Fn(u64)) -> Result<KillReport> {
        let mut report = KillReport::default();
        let mut random = RandomSource(self.seed | 1);
        while report.kills < self.kills {
            let kills_before = report.kills;
            let mut session = KilledSession::new(&self.program)?;
            for kill in 0..KILLS_PER_SESSION.min(self.kills - kills_before) {
                session
                    .kill_once(kill, &mut random)
                    .await
                    .with_context(|| format!("kill {} (seed {:#x})", kills_before + kill + 1, self.seed))?;
                report.kills += 1;
                report_progress(report.kills);
            }
            session.run_to_end().await.context("the final run without a kill")?;
            report.messages += session.received_uuids.len();
            report.commands += session.executed_commands()?.len();
            report.unknown_outcomes += session.unknown_outcomes;
        }
        Ok(report)
    }
}

/// Linear congruential generator, so that a seed reproduces a run.
struct RandomSource(u64);

impl RandomSource {
    fn next_below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One session with its directories.
struct KilledSession {
    program: PathBuf,
    dirs: SessionDirs,
    session: String,
    /// UUIDs of the messages that the host received.
    received_uuids: HashSet<String>,
    /// Calls whose outcome was reported to the model as unknown.
    unknown_outcomes: usize,
}

impl KilledSession {
    fn new(program: &Path) -> Result<Self> {
        let dirs = SessionDirs::new()?;
        let session = "12345678-2222-4333-8444-555555555555".to_owned();
        Ok(Self {
            program: program.to_owned(),
            dirs,
            session,
            received_uuids: HashSet::new(),
            unknown_outcomes: 0,
        })
    }

    /// Starts the program, resuming the session if it exists, and sends a prompt.
    async fn start_host(&self, name: &str) -> Result<Host> {
        let exists = self.transcript_path().is_some();
        let options = Options {
            permission_mode: Some(PermissionMode::BypassPermissions),
            replay_user_messages: true,
            resume: exists.then(|| self.session.clone()),
            session_id: (!exists).then(|| self.session.clone()),
            ..Options::default()
        };
        let mut host = self.dirs.host(kill_script(name), options).program(&self.program).start().await?;
        host.send_prompt(format!("Go {name}.")).await?;
        Ok(host)
    }

    /// Runs the program for a random time, kills it and checks what is left.
    async fn kill_once(&mut self, kill: u64, random: &mut RandomSource) -> Result<()> {
        let before = self.executed_commands()?;
        let mut host = self.start_host(&format!("k{kill}")).await?;
        for _ in 0..random.next_below(MAX_FRAMES_BEFORE_KILL) {
            let frame = host.next_matching(&json!({})).await?;
            if frame["type"] == "result" {
                ensure!(frame["is_error"] == false, "the turn failed: {frame}");
                break;
            }
        }
        // A random delay, so that kills also happen between two frames.
        tokio::time::sleep(Duration::from_micros(random.next_below(MAX_KILL_DELAY_MICROS))).await;
        self.inspect_run(&host, &before)?;
        // Dropping the host kills the program.
        drop(host);
        self.wait_until_no_process_left().await?;
        self.check_transcripts()
    }

    /// Runs the program to its end without a kill.
    async fn run_to_end(&mut self) -> Result<()> {
        let before = self.executed_commands()?;
        let mut host = self.start_host("end").await?;
        let result = host.next_result().await?;
        ensure!(result.result.as_deref() == Some("All done."), "{result:?}");
        ensure!(host.finish().await?.code == 0, "the program failed");
        self.inspect_run(&host, &before)?;
        drop(host);
        self.wait_until_no_process_left().await?;
        self.check_transcripts()
    }

    /// Records the received messages and checks the requests to the model. `before`: the commands run so far.
    fn inspect_run(&mut self, host: &Host, before: &[String]) -> Result<()> {
        for received in host.received() {
            let is_message = matches!(received.json["type"].as_str(), Some("user" | "assistant"));
            self.received_uuids
                .extend(received.json["uuid"].as_str().filter(|_| is_message).map(str::to_owned));
        }
        for (number, request) in host.model_requests().iter().enumerate() {
            check_message_order(&request.body)?;
            let text = request.body["messages"].to_string();
            if number == 0 {
                self.unknown_outcomes = text.matches("Outcome unknown").count().max(self.unknown_outcomes);
                for command in before {
                    ensure!(text.contains(command), "the model does not know that {command} ran");
                    let result = find_tool_result(&request.body, command).unwrap_or_default();
                    ensure!(
                        !result.contains("Nothing was changed"),
                        "{command} ran, but the model reads: {result}"
                    );
                }
            }
        }
        Ok(())
    }

    /// The commands that have run, in order; fails if one ran twice.
    fn executed_commands(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.dirs.work_dir().join("log.txt")).unwrap_or_default();
        let commands: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = commands.iter().find(|command| !seen.insert(command.as_str())) {
            bail!("{twice} ran twice");
        }
        Ok(commands)
    }

    fn check_transcripts(&self) -> Result<()> {
        let mut recorded = HashSet::new();
        if let Some(path) = self.transcript_path() {
            let agents = fs::read_dir(path.with_extension("").join("subagents"));
            let agents = agents.into_iter().flatten().flatten().map(|entry| entry.path());
            recorded = agents.chain([path]).flat_map(|path| read_uuids(&path)).collect();
        }
        let lost: Vec<&String> = self.received_uuids.difference(&recorded).collect();
        ensure!(lost.is_empty(), "received messages are missing in the transcript: {lost:?}");
        self.executed_commands()?;
        Ok(())
    }

    /// Processes started by the program have the work directory as their cwd; none may remain.
    async fn wait_until_no_process_left(&self) -> Result<()> {
        let (work, deadline) = (self.dirs.work_dir(), Instant::now() + PROCESS_EXIT_TIMEOUT);
        loop {
            let left = processes_in(&work)?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "processes are left: {left:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn transcript_path(&self) -> Option<PathBuf> {
        let project_dir = fs::read_dir(self.dirs.config_dir().join("projects")).ok()?.next()?.ok()?.path();
        Some(project_dir.join(format!("{}.jsonl", self.session))).filter(|path| path.exists())
    }
}

/// Sequential and parallel commands, one command of a subagent, and text in between. Some commands leave a process
/// running. Each command appends its name to the log.
fn kill_script(name: &str) -> Script {
    let bash = |number: usize| {
        let rest = match number % 3 {
            0 => "sleep 600 & ",
            1 => "sleep 0.002; ",
            _ => "",
        };
        json!({"command": format!("{rest}echo {name}-{number}. >> log.txt")})
    };
    let step = |number: usize| {
        Reply::text(format!("Step {number}."))
            .and_tool("Bash", bash(number))
            .and_tool("Bash", bash(number + 100))
    };
    // A subagent uses the same model, so its replies follow the call that starts it.
    let subagent_input =
        json!({"description": "One command", "prompt": format!("Do {name}-{SUBAGENT_COMMAND}.")});
    let subagent_replies = [
        Reply::text("An agent.").and_tool("Agent", subagent_input),
        Reply::text("I begin.").and_tool("Bash", bash(SUBAGENT_COMMAND)),
        Reply::text("It is done."),
    ];
    let steps = (0..2).map(step).chain(subagent_replies).chain((2..COMMAND_REPLIES).map(step));
    Script::from(steps.chain([Reply::text("All done.")]).collect::<Vec<Reply>>())
}

/// Checks that a provider would accept the messages: roles alternate, and each call has its result in the next message.
fn check_message_order(body: &Value) -> Result<()> {
    let messages = body["messages"].as_array().context("the request has no messages")?;
    let mut open_calls: Vec<&str> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        ensure!(message["role"] == role, "message {number} has the wrong role: {body}");
        let blocks = message["content"].as_array().context("a message has no content")?;
        let fields = |block_type: &str, field: &str| -> Vec<&str> {
            let blocks = blocks.iter().filter(|block| block["type"] == block_type);
            blocks.filter_map(|block| block[field].as_str()).collect()
        };
        ensure!(
            fields("tool_result", "tool_use_id") == open_calls,
            "tool results do not match the calls: {body}"
        );
        open_calls = fields("tool_use", "id");
    }
    ensure!(open_calls.is_empty(), "a call has no result: {body}");
    Ok(())
}

/// Returns the result of the call that runs a command, as sent to the model.
fn find_tool_result(body: &Value, command: &str) -> Option<String> {
    let blocks = || {
        body["messages"].as_array().into_iter().flatten().filter_map(|m| m["content"].as_array()).flatten()
    };
    let call = blocks().find(|block| block["input"].to_string().contains(command))?;
    let result = blocks().find(|block| block["tool_use_id"] == call["id"])?;
    Some(result["content"].to_string())
}

fn read_uuids(transcript: &Path) -> HashSet<String> {
    let text = fs::read_to_string(transcript).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| Some(line["uuid"].as_str()?.to_owned())).collect()
}

/// Returns the command lines of the processes whose cwd is `dir`.
fn processes_in(dir: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for process in
        fs::read_dir("/proc").context("processes are read from /proc, which does not exist")?.flatten()
    {
        // Fails for processes that have exited or belong to another user.
        if fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == dir) {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    Ok(found)
}
