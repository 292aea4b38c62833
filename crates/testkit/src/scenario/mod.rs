//! Scenarios: directories with a scripted session and its expected outcome, the same for every form of the engine.
//!
//! A scenario runs twice: on the engine in this process, and on a program that reads and writes frames on stdin and
//! stdout. Both runs are [normalized](crate::normalize) and must equal each other and the expected files.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use whimbrel_testkit::Scenario;
//!
//! let scenario = Scenario::load(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/plain-text")).unwrap();
//! let run = scenario.run_in_process().await.unwrap();
//! scenario.check(&run).unwrap();
//! # })
//! ```
//!
//! # Files
//!
//! | file | content |
//! |---|---|
//! | `scenario.json` | options, replies of the model, steps of the host |
//! | `workspace/` | initial files of the workspace; optional |
//! | `expected.jsonl` | frames of the engine, normalized, one per line |
//! | `requests.jsonl` | messages of each request to the model, one request per line; not checked if missing |
//! | `workspace-after/` | all files of the workspace afterwards; not checked if missing |
//!
//! `WHIMBREL_BLESS=1` rewrites `expected.jsonl` and those of the other expected files that exist. Review the result:
//! it is what the engine does, not what it should do.
//!
//! # scenario.json
//!
//! ```json
//! {
//!   "about": "The host allows a call that the engine asks about.",
//!   "options": {"tools": ["Write"], "permissionPromptTool": "stdio"},
//!   "env": {"CLAUDE_CODE_MAX_RETRIES": "0"},
//!   "model": [{"say": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "x"}}]}, "Done."],
//!   "host": [
//!     {"say": "Write a file."},
//!     {"answer": {"question": {"subtype": "can_use_tool"}, "reply": {"behavior": "allow"}}},
//!     {"waitFor": {"type": "result"}},
//!     {"ask": {"subtype": "set_model", "model": "sonnet"}},
//!     {"line": "this is not JSON"},
//!     "finishInput"
//!   ],
//!   "exit": 0
//! }
//! ```
//!
//! [`script`](crate::script) documents the replies of the model. `<workspace>` stands for the agent's working
//! directory. The steps of the host:
//!
//! | step | action |
//! |---|---|
//! | `say` | sends a prompt: a text or content blocks |
//! | `ask` | sends a control request (`subtype` and fields) and waits for the response |
//! | `answer` | waits for a control request that matches `question` and responds with `reply` |
//! | `waitFor` | waits for a frame that [matches](crate::pattern::matches_pattern), after the last one waited for |
//! | `waitForModel` | waits until this many model replies were requested |
//! | `release` | releases replies that hold on this name |
//! | `line` | sends a line: JSON, or any text |
//! | `finishInput` | closes the input; the end of the steps closes it too |

mod outcome;
mod spec;
mod steps;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::host::{Host, HostBuilder};
use crate::normalize::{NormalizeOptions, normalize_frames, sort_adjacent_results, tool_result_id};
use crate::script::ModelRequest;
use crate::test_dirs::{self, TestDirs};

pub use outcome::{ScenarioRun, assert_same};
pub use spec::{HostStep, ScenarioSpec};

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    dir: PathBuf,
    spec_text: String,
    timeout: Option<Duration>,
}

impl Scenario {
    /// Loads a scenario from its directory.
    pub fn load(dir: impl Into<PathBuf>) -> anyhow::Result<Self> {
        let dir = dir.into();
        let path = dir.join("scenario.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let scenario = Self { dir, spec_text: text, timeout: None };
        scenario.parse_spec("/")?;
        Ok(scenario)
    }

    /// Loads all scenarios in the subdirectories of `dir`, sorted by name.
    pub fn load_all(dir: &Path) -> anyhow::Result<Vec<Self>> {
        let mut dirs = Vec::new();
        for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
            dirs.push(entry?.path());
        }
        dirs.sort();
        dirs.into_iter().filter(|dir| dir.join("scenario.json").exists()).map(Self::load).collect()
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        self.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Sets the timeout of each wait of the host.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs it on an engine in this process.
    pub async fn run_in_process(&self) -> anyhow::Result<ScenarioRun> {
        self.run(|builder| builder).await.with_context(|| format!("{} in process", self.name()))
    }

    /// Runs it on a program that reads and writes frames on stdin and stdout.
    pub async fn run_binary(&self, program: &Path) -> anyhow::Result<ScenarioRun> {
        self.run(|builder| builder.program(program))
            .await
            .with_context(|| format!("{} as a program", self.name()))
    }

    /// Compares a run with the expected files; with `WHIMBREL_BLESS=1` writes these files instead.
    pub fn check(&self, run: &ScenarioRun) -> anyhow::Result<()> {
        let exit = self.parse_spec("/")?.exit;
        ensure!(run.exit == exit, "{}: the exit code is {}, not {exit}", self.name(), run.exit);
        if std::env::var("WHIMBREL_BLESS").is_ok_and(|value| value == "1") {
            return self.write_expected(run);
        }
        let compare = |file: &str, difference: Option<String>| match difference {
            Some(difference) => Err(anyhow::anyhow!("{}: {file} {difference}", self.name())),
            None => Ok(()),
        };
        compare(
            "expected.jsonl",
            outcome::diff_values(&self.read_expected("expected.jsonl")?.unwrap_or_default(), &run.frames),
        )?;
        if let Some(requests) = self.read_expected("requests.jsonl")? {
            compare("requests.jsonl", outcome::diff_values(&requests, &run.requests))?;
        }
        if let Some(files) = self.read_expected_files()? {
            compare("workspace-after", outcome::diff_files(&files, &run.files))?;
        }
        Ok(())
    }

    async fn run(&self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> anyhow::Result<ScenarioRun> {
        let dirs = TestDirs::new()?;
        dirs.copy_from(&self.dir.join("workspace"))?;
        let spec = self.parse_spec(&dirs.workspace().to_string_lossy())?;
        let host = change(steps::build_host(&spec, dirs));
        let host = self.timeout.into_iter().fold(host, HostBuilder::timeout);
        let raw_run = steps::run_steps(&spec, host).await?;
        let run = self.normalize_run(&raw_run)?;
        ensure!(raw_run.stderr.is_empty(), "the engine wrote to stderr:\n{}", raw_run.stderr);
        Ok(run)
    }

    fn normalize_run(&self, raw_run: &steps::RawRun) -> anyhow::Result<ScenarioRun> {
        let options = NormalizeOptions {
            placeholders: run_placeholders(&raw_run.host),
            scenario_text: self.spec_text.clone(),
        };
        let frames: Vec<Value> =
            raw_run.host.received().iter().map(|received| received.json.clone()).collect();
        let requests: Vec<Value> = raw_run.host.model_requests().iter().map(request_messages).collect();
        Ok(ScenarioRun {
            frames: normalize_frames(&frames, &options),
            requests: normalize_frames(&requests, &options),
            files: raw_run.host.dirs().files()?,
            exit: raw_run.exit,
        })
    }

    /// Parses `scenario.json` with `<workspace>` replaced.
    fn parse_spec(&self, workspace: &str) -> anyhow::Result<ScenarioSpec> {
        let text = self.spec_text.replace("<workspace>", workspace);
        serde_json::from_str(&text).with_context(|| format!("{}/scenario.json", self.dir.display()))
    }

    fn read_expected(&self, file: &str) -> anyhow::Result<Option<Vec<Value>>> {
        let path = self.dir.join(file);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().map(serde_json::from_str::<Value>).collect::<Result<_, _>>();
        lines.map(Some).with_context(|| path.display().to_string())
    }

    fn read_expected_files(&self) -> anyhow::Result<Option<BTreeMap<String, Vec<u8>>>> {
        let dir = self.dir.join("workspace-after");
        if dir.exists() { test_dirs::read_files(&dir).map(Some) } else { Ok(None) }
    }

    /// Writes a run as the expected outcome: `expected.jsonl` always, the other files if they exist.
    pub fn write_expected(&self, run: &ScenarioRun) -> anyhow::Result<()> {
        test_dirs::write_file(&self.dir.join("expected.jsonl"), to_jsonl(&run.frames).as_bytes())?;
        let requests = self.dir.join("requests.jsonl");
        if requests.exists() {
            test_dirs::write_file(&requests, to_jsonl(&run.requests).as_bytes())?;
        }
        let after = self.dir.join("workspace-after");
        if after.exists() {
            fs::remove_dir_all(&after)?;
            for (path, content) in &run.files {
                test_dirs::write_file(&after.join(path), content)?;
            }
        }
        Ok(())
    }
}

fn to_jsonl(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Paths and address of a run with their placeholders.
fn run_placeholders(host: &Host) -> Vec<(String, String)> {
    let dirs = host.dirs();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    // The engine names the directory of a project's sessions after the workspace path.
    let slug: String =
        text(dirs.workspace()).chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let paths = [
        (text(dirs.workspace()), "<workspace>"),
        (text(dirs.home()), "<home>"),
        (text(dirs.temp_dir()), "<tmp>"),
        (slug, "<workspace-slug>"),
    ];
    let address = host.api().map(|api| (api.url(), "<api>"));
    paths.into_iter().chain(address).map(|(from, to)| (from, to.to_owned())).collect()
}

/// The messages of a request, without the engine's reminders and cache marks.
fn request_messages(request: &ModelRequest) -> Value {
    let is_not_reminder =
        |block: &Value| !block["text"].as_str().is_some_and(|text| text.starts_with("<system-reminder>"));
    let without_cache_control = |block: &Value| {
        let mut block = block.clone();
        if let Value::Object(fields) = &mut block {
            fields.remove("cache_control");
        }
        block
    };
    let message = |message: &Value| match message["content"].as_array() {
        Some(blocks) => {
            let mut blocks: Vec<Value> =
                blocks.iter().filter(|block| is_not_reminder(block)).map(without_cache_control).collect();
            sort_adjacent_results(&mut blocks, tool_result_id);
            json!({"role": message["role"], "content": blocks})
        }
        None => message.clone(),
    };
    Value::Array(request.messages().iter().map(message).collect())
}
