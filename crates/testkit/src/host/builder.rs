//! How a test host is set up before it starts an engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use whimbrel_engine::{Engine, Start};
use whimbrel_models::http::Door;
use whimbrel_models::providers::{Env, Providers};
use whimbrel_wire::control::{CanUseTool, Initialize, Request};
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionResult;

use super::answers::{self, Answer, Answers};
use super::connection::Connection;
use super::voice::Voice;
use super::{Host, Parts};
use crate::http_mock::MockApi;
use crate::script::Script;
use crate::stage::Stage;

/// The model that is asked unless the options name one. Its price is known and does not change.
pub(crate) const MODEL: &str = "claude-opus-4-5-20251101";

/// The script's name at the engine's own scripted model.
const SCRIPT: &str = "test";

/// How long each wait of a test lasts at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host before it starts.
pub struct HostBuilder {
    script: Script,
    way: Way,
    program: Option<PathBuf>,
    options: Options,
    env: BTreeMap<String, String>,
    stage: Option<Stage>,
    files: Vec<(String, Vec<u8>)>,
    answers: Answers,
    deadline: Duration,
}

/// How the engine reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Http,
    Scripted,
}

impl HostBuilder {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            way: Way::Http,
            program: None,
            options: Options::default(),
            env: BTreeMap::new(),
            stage: None,
            files: Vec::new(),
            answers: answers::none(),
            deadline: PATIENCE,
        }
    }

    /// Plays the script on the engine's own scripted model; otherwise it is played over HTTP on loopback.
    pub fn without_network(mut self) -> Self {
        self.way = Way::Scripted;
        self
    }

    /// Runs this program as the engine; otherwise it runs in this process.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// What is asked of the session. Folder and model are filled in where they are left open.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Changes what is asked of the session.
    pub fn change(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sets a variable of the engine's environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Puts a file into the workspace.
    pub fn file(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Works in these folders; otherwise in new ones.
    pub fn stage(mut self, stage: Stage) -> Self {
        self.stage = Some(stage);
        self
    }

    /// Answers permission questions. The options are made to say that the host is asked; set other options before.
    pub fn can_use_tool(
        mut self,
        decide: impl FnMut(&CanUseTool) -> PermissionResult + Send + 'static,
    ) -> Self {
        self.answers = answers::permissions(decide);
        self.options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        self
    }

    /// Answers every question of the engine: hooks, hosted MCP servers, and permissions if the options say that the host
    /// is asked for them.
    pub fn answer(mut self, answer: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        self.answers = Box::new(answer);
        self
    }

    /// How long each wait lasts at most, 20 seconds unless said otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Starts the engine. What travels in `initialize` is sent at once.
    pub async fn start(self) -> anyhow::Result<Host> {
        let Self { script, way, program, mut options, env, stage, files, answers, deadline } = self;
        let stage = stage.map_or_else(Stage::new, Ok)?;
        for (path, content) in files {
            stage.write(&path, content)?;
        }
        let folder = || stage.workspace().to_string_lossy().into_owned();
        let folder = PathBuf::from(options.cwd.get_or_insert_with(folder).as_str());
        let voice = prepare(script, way, program.as_deref(), &stage, &mut options).await?;
        let mut all = stage.env();
        all.extend(voice.env());
        all.extend(options.to_env());
        all.extend(env);
        let connection = match program {
            Some(program) => Connection::process(&program, &options.to_args(), &all, &folder)?,
            None => in_process(&voice, options.clone(), all)?,
        };
        let mut host = Host::new(Parts { connection, stage, voice, answers, deadline });
        let initialize = options.to_initialize();
        if initialize != Initialize::default() {
            host.ask(initialize).await.context("initialize")?;
        }
        Ok(host)
    }
}

/// Gives the script a voice, and the options a model that speaks with it.
async fn prepare(
    script: Script,
    way: Way,
    program: Option<&Path>,
    stage: &Stage,
    options: &mut Options,
) -> anyhow::Result<Voice> {
    match (way, program) {
        (Way::Http, _) => {
            options.model.get_or_insert_with(|| MODEL.to_owned());
            Ok(Voice::Http(MockApi::start(script).await?))
        }
        (Way::Scripted, None) => {
            options.model = Some(format!("scripted:{SCRIPT}"));
            Ok(Voice::Scripted(script.to_scripted()?))
        }
        (Way::Scripted, Some(_)) => {
            let file = stage.temporary().join("script.json");
            crate::stage::write(&file, script.to_scripted_json()?.to_string().as_bytes())?;
            options.model = Some(format!("scripted:{}", file.display()));
            Ok(Voice::Elsewhere)
        }
    }
}

fn in_process(voice: &Voice, options: Options, env: BTreeMap<String, String>) -> anyhow::Result<Connection> {
    let variables = env.clone();
    let get: Env = Arc::new(move |name| variables.get(name).cloned());
    let door = Door::from_env(|name| get(name));
    let providers = Providers::from_env(get, door);
    if let Voice::Scripted(model) = voice {
        providers.add_script(SCRIPT, Arc::clone(model));
    }
    Connection::in_process(Engine::new(providers), Start::new(options, env))
}
