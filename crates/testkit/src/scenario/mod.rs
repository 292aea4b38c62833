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

mod play;
mod run;
mod story;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::host::{Host, HostBuilder};
use crate::normal::{Known, in_order, normal, result_id};
use crate::script::Asked;
use crate::stage::{self, Stage};

pub use run::{Run, assert_same};
pub use story::{Step, Story};

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    folder: PathBuf,
    text: String,
    deadline: Option<Duration>,
}

impl Scenario {
    /// Reads a scenario from its folder.
    pub fn load(folder: impl Into<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder.into();
        let path = folder.join("scenario.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let scenario = Self { folder, text, deadline: None };
        scenario.story("/")?;
        Ok(scenario)
    }

    /// Reads all scenarios in the folders below one, in the order of their names.
    pub fn all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            folders.push(entry?.path());
        }
        folders.sort();
        folders.into_iter().filter(|folder| folder.join("scenario.json").exists()).map(Self::load).collect()
    }

    /// The name of its folder.
    pub fn name(&self) -> String {
        self.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Sets how long each wait of the host lasts at most.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Plays it on an engine in this process.
    pub async fn run_in_process(&self) -> anyhow::Result<Run> {
        self.run(|builder| builder).await.with_context(|| format!("{} in process", self.name()))
    }

    /// Plays it on a program that speaks the wire over stdin and stdout.
    pub async fn run_binary(&self, program: &Path) -> anyhow::Result<Run> {
        self.run(|builder| builder.program(program))
            .await
            .with_context(|| format!("{} as a program", self.name()))
    }

    /// Compares a run with what is written down; with `WHIMBREL_BLESS=1` writes it down instead.
    pub fn check(&self, run: &Run) -> anyhow::Result<()> {
        let exit = self.story("/")?.exit;
        ensure!(run.exit == exit, "{}: the exit code is {}, not {exit}", self.name(), run.exit);
        if std::env::var("WHIMBREL_BLESS").is_ok_and(|value| value == "1") {
            return self.bless(run);
        }
        let compare = |what: &str, difference: Option<String>| match difference {
            Some(difference) => Err(anyhow::anyhow!("{}: {what} {difference}", self.name())),
            None => Ok(()),
        };
        compare(
            "expected.jsonl",
            run::lines(&self.expected("expected.jsonl")?.unwrap_or_default(), &run.frames),
        )?;
        if let Some(requests) = self.expected("requests.jsonl")? {
            compare("requests.jsonl", run::lines(&requests, &run.requests))?;
        }
        if let Some(files) = self.files_after()? {
            compare("workspace-after", run::files(&files, &run.files))?;
        }
        Ok(())
    }

    async fn run(&self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> anyhow::Result<Run> {
        let stage = Stage::new()?;
        stage.fill(&self.folder.join("workspace"))?;
        let story = self.story(&stage.workspace().to_string_lossy())?;
        let host = change(play::cast(&story, stage));
        let host = self.deadline.into_iter().fold(host, HostBuilder::deadline);
        let played = play::play(&story, host).await?;
        let run = self.outcome(&played)?;
        ensure!(played.stderr.is_empty(), "the engine wrote to stderr:\n{}", played.stderr);
        Ok(run)
    }

    fn outcome(&self, played: &play::Played) -> anyhow::Result<Run> {
        let known = Known { places: places(&played.host), story: self.text.clone() };
        let frames: Vec<Value> = played.host.heard().iter().map(|heard| heard.json.clone()).collect();
        let requests: Vec<Value> = played.host.asked().iter().map(messages).collect();
        Ok(Run {
            frames: normal(&frames, &known),
            requests: normal(&requests, &known),
            files: played.host.stage().files()?,
            exit: played.exit,
        })
    }

    /// The story, told of a workspace.
    fn story(&self, workspace: &str) -> anyhow::Result<Story> {
        let text = self.text.replace("<workspace>", workspace);
        serde_json::from_str(&text).with_context(|| format!("{}/scenario.json", self.folder.display()))
    }

    fn expected(&self, file: &str) -> anyhow::Result<Option<Vec<Value>>> {
        let path = self.folder.join(file);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().map(serde_json::from_str::<Value>).collect::<Result<_, _>>();
        lines.map(Some).with_context(|| path.display().to_string())
    }

    fn files_after(&self) -> anyhow::Result<Option<BTreeMap<String, Vec<u8>>>> {
        let folder = self.folder.join("workspace-after");
        if folder.exists() { stage::files(&folder).map(Some) } else { Ok(None) }
    }

    /// Writes a run down as what is expected: `expected.jsonl` in any case, the others if they exist.
    pub fn bless(&self, run: &Run) -> anyhow::Result<()> {
        stage::write(&self.folder.join("expected.jsonl"), jsonl(&run.frames).as_bytes())?;
        let requests = self.folder.join("requests.jsonl");
        if requests.exists() {
            stage::write(&requests, jsonl(&run.requests).as_bytes())?;
        }
        let after = self.folder.join("workspace-after");
        if after.exists() {
            fs::remove_dir_all(&after)?;
            for (path, content) in &run.files {
                stage::write(&after.join(path), content)?;
            }
        }
        Ok(())
    }
}

fn jsonl(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// The folders and the address of a run, and what stands for them.
fn places(host: &Host) -> Vec<(String, String)> {
    let stage = host.stage();
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    // Sessions are kept in folders that are named after the workspace.
    let slug: String =
        text(stage.workspace()).chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let folders = [
        (text(stage.workspace()), "<workspace>"),
        (text(stage.home()), "<home>"),
        (text(stage.temporary()), "<tmp>"),
        (slug, "<workspace-slug>"),
    ];
    let address = host.api().map(|api| (api.url(), "<api>"));
    folders.into_iter().chain(address).map(|(from, to)| (from, to.to_owned())).collect()
}

/// The messages of a request, without what is not part of the story: reminders of the engine and cache marks.
fn messages(asked: &Asked) -> Value {
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
            in_order(&mut blocks, result_id);
            json!({"role": message["role"], "content": blocks})
        }
        None => message.clone(),
    };
    Value::Array(asked.messages().iter().map(message).collect())
}
