//! Scenarios: a folder with a story and with what must come of it, the same for every form of the engine.
//!
//! A scenario is played twice, by the engine in this process and by a program that speaks the wire over stdin and
//! stdout. Both runs are [normalised](crate::normal) and must be equal, to each other and to what is written down.
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
//! # The folder
//!
//! | file | what it holds |
//! |---|---|
//! | `scenario.json` | the story: options, what the model says, what the host does |
//! | `workspace/` | files that are there before; may be missing |
//! | `expected.jsonl` | what the engine says, one normalised frame per line |
//! | `requests.jsonl` | the messages of each request to the model, one request per line; not checked if missing |
//! | `workspace-after/` | all files that are there afterwards; not checked if missing |
//!
//! With `WHIMBREL_BLESS=1` in the environment the expectations that exist are written anew, and `expected.jsonl` in any
//! case. Read what comes out: it is what the engine does, not what it should do.
//!
//! # The story
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
//! Replies of the model are told at [`script`](crate::script). `<workspace>` in the story stands for the folder in which
//! the agent works. The steps of the host:
//!
//! | step | what it does |
//! |---|---|
//! | `say` | says a text or content blocks to the agent |
//! | `ask` | asks the engine something (`subtype` and fields) and waits for the answer |
//! | `answer` | waits for a `question` of the engine that looks like this, and answers with `reply` |
//! | `waitFor` | waits for a frame that [looks like](crate::pattern::looks_like) this, after the last one waited for |
//! | `waitForModel` | waits until the model has been asked so many times |
//! | `release` | lets replies go that hold on this name |
//! | `line` | sends a line: JSON, or any text |
//! | `finishInput` | finishes the input; happens after the last step in any case |

mod steps;
mod run;
mod spec;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::host::{Host, HostBuilder};
use crate::normalize::{NormalizeOptions, sort_adjacent_results, normalize_frames, tool_result_id};
use crate::script::ModelRequest;
use crate::test_dirs::{self, TestDirs};

pub use run::{ScenarioRun, assert_same};
pub use spec::{HostStep, ScenarioSpec};

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    dir: PathBuf,
    spec_text: String,
    timeout: Option<Duration>,
}

impl Scenario {
    /// Reads a scenario from its folder.
    pub fn load(folder: impl Into<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder.into();
        let path = folder.join("scenario.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let scenario = Self { dir: folder, spec_text: text, timeout: None };
        scenario.parse_spec("/")?;
        Ok(scenario)
    }

    /// Reads all scenarios in the folders below one, in the order of their names.
    pub fn load_all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            folders.push(entry?.path());
        }
        folders.sort();
        folders.into_iter().filter(|folder| folder.join("scenario.json").exists()).map(Self::load).collect()
    }

    /// The name of its folder.
    pub fn name(&self) -> String {
        self.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Sets how long each wait of the host lasts at most.
    pub fn timeout(mut self, deadline: Duration) -> Self {
        self.timeout = Some(deadline);
        self
    }

    /// Plays it on an engine in this process.
    pub async fn run_in_process(&self) -> anyhow::Result<ScenarioRun> {
        self.run(|builder| builder).await.with_context(|| format!("{} in process", self.name()))
    }

    /// Plays it on a program that speaks the wire over stdin and stdout.
    pub async fn run_binary(&self, program: &Path) -> anyhow::Result<ScenarioRun> {
        self.run(|builder| builder.program(program))
            .await
            .with_context(|| format!("{} as a program", self.name()))
    }

    /// Compares a run with what is written down; with `WHIMBREL_BLESS=1` writes it down instead.
    pub fn check(&self, run: &ScenarioRun) -> anyhow::Result<()> {
        let exit = self.parse_spec("/")?.exit;
        ensure!(run.exit == exit, "{}: the exit code is {}, not {exit}", self.name(), run.exit);
        if std::env::var("WHIMBREL_BLESS").is_ok_and(|value| value == "1") {
            return self.write_expected(run);
        }
        let compare = |what: &str, difference: Option<String>| match difference {
            Some(difference) => Err(anyhow::anyhow!("{}: {what} {difference}", self.name())),
            None => Ok(()),
        };
        compare(
            "expected.jsonl",
            run::diff_values(&self.read_expected("expected.jsonl")?.unwrap_or_default(), &run.frames),
        )?;
        if let Some(requests) = self.read_expected("requests.jsonl")? {
            compare("requests.jsonl", run::diff_values(&requests, &run.requests))?;
        }
        if let Some(files) = self.read_expected_files()? {
            compare("workspace-after", run::diff_files(&files, &run.files))?;
        }
        Ok(())
    }

    async fn run(&self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> anyhow::Result<ScenarioRun> {
        let stage = TestDirs::new()?;
        stage.copy_from(&self.dir.join("workspace"))?;
        let story = self.parse_spec(&stage.workspace().to_string_lossy())?;
        let host = change(steps::build_host(&story, stage));
        let host = self.timeout.into_iter().fold(host, HostBuilder::timeout);
        let played = steps::run_steps(&story, host).await?;
        let run = self.normalize_run(&played)?;
        ensure!(played.stderr.is_empty(), "the engine wrote to stderr:\n{}", played.stderr);
        Ok(run)
    }

    fn normalize_run(&self, played: &steps::RawRun) -> anyhow::Result<ScenarioRun> {
        let known = NormalizeOptions { placeholders: run_placeholders(&played.host), scenario_text: self.spec_text.clone() };
        let frames: Vec<Value> = played.host.received().iter().map(|heard| heard.json.clone()).collect();
        let requests: Vec<Value> = played.host.model_requests().iter().map(request_messages).collect();
        Ok(ScenarioRun {
            frames: normalize_frames(&frames, &known),
            requests: normalize_frames(&requests, &known),
            files: played.host.dirs().files()?,
            exit: played.exit,
        })
    }

    /// The story, told of a workspace.
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
        let folder = self.dir.join("workspace-after");
        if folder.exists() { test_dirs::read_files(&folder).map(Some) } else { Ok(None) }
    }

    /// Writes a run down as what is expected: `expected.jsonl` in any case, the others if they exist.
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

/// The folders and the address of a run, and what stands for them.
fn run_placeholders(host: &Host) -> Vec<(String, String)> {
    let stage = host.dirs();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    // Sessions are kept in folders that are named after the workspace.
    let slug: String =
        text(stage.workspace()).chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let folders = [
        (text(stage.workspace()), "<workspace>"),
        (text(stage.home()), "<home>"),
        (text(stage.temp_dir()), "<tmp>"),
        (slug, "<workspace-slug>"),
    ];
    let address = host.api().map(|api| (api.url(), "<api>"));
    folders.into_iter().chain(address).map(|(from, to)| (from, to.to_owned())).collect()
}

/// The messages of a request, without what is not part of the story: reminders of the engine and cache marks.
fn request_messages(asked: &ModelRequest) -> Value {
    let told =
        |block: &Value| !block["text"].as_str().is_some_and(|text| text.starts_with("<system-reminder>"));
    let unmarked = |block: &Value| {
        let mut block = block.clone();
        if let Value::Object(fields) = &mut block {
            fields.remove("cache_control");
        }
        block
    };
    let message = |message: &Value| match message["content"].as_array() {
        Some(blocks) => {
            let mut blocks: Vec<Value> = blocks.iter().filter(|block| told(block)).map(unmarked).collect();
            sort_adjacent_results(&mut blocks, tool_result_id);
            json!({"role": message["role"], "content": blocks})
        }
        None => message.clone(),
    };
    Value::Array(asked.messages().iter().map(message).collect())
}
