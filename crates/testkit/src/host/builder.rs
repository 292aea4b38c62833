//! Configuration of a test host, and the start of its engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use whimbrel_engine::{Engine, Start};
use whimbrel_models::http::HttpClient;
use whimbrel_models::providers::{EnvLookup, Providers};
use whimbrel_wire::control::{CanUseTool, Initialize, Request};
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionResult;

use super::backend::ModelBackend;
use super::connection::EngineConnection;
use super::request_handler::{self, HostResponse, RequestHandler};
use super::{Host, HostParts};
use crate::http_mock::MockApi;
use crate::script::Script;
use crate::test_dirs::TestDirs;

/// Default model; its price is known and does not change.
pub(crate) const DEFAULT_MODEL: &str = "claude-opus-4-5-20251101";

/// Name under which the script is registered with the scripted provider.
const SCRIPT_NAME: &str = "test";

/// Default timeout of each wait.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// A host before it starts.
pub struct HostBuilder {
    script: Script,
    backend_kind: BackendKind,
    program: Option<PathBuf>,
    options: Options,
    env: BTreeMap<String, String>,
    dirs: Option<TestDirs>,
    files: Vec<(String, Vec<u8>)>,
    request_handler: RequestHandler,
    timeout: Duration,
}

/// How the engine reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackendKind {
    Http,
    Scripted,
}

impl HostBuilder {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            backend_kind: BackendKind::Http,
            program: None,
            options: Options::default(),
            env: BTreeMap::new(),
            dirs: None,
            files: Vec::new(),
            request_handler: request_handler::reject_all(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Plays the script on the engine's own scripted model instead of HTTP on loopback.
    pub fn without_network(mut self) -> Self {
        self.backend_kind = BackendKind::Scripted;
        self
    }

    /// Runs this program as the engine instead of an engine in this process.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Sets the session options. Missing working directory and model are filled in.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Changes the session options.
    pub fn configure(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sets an environment variable of the engine.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Writes a file into the workspace.
    pub fn file(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Uses these directories instead of new ones.
    pub fn dirs(mut self, stage: TestDirs) -> Self {
        self.dirs = Some(stage);
        self
    }

    /// Responds to permission requests and sets `permission_prompt_tool` to the host. Call it after `options`.
    pub fn can_use_tool(
        mut self,
        decide: impl FnMut(&CanUseTool) -> PermissionResult + Send + 'static,
    ) -> Self {
        self.request_handler = request_handler::permissions_only(decide);
        self.options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        self
    }

    /// Responds to every control request: hooks, SDK MCP servers, and permission requests if the options direct them to
    /// the host.
    pub fn on_request(mut self, answer: impl FnMut(&Request) -> HostResponse + Send + 'static) -> Self {
        self.request_handler = Box::new(answer);
        self
    }

    /// Sets the timeout of each wait; the default is 20 seconds.
    pub fn timeout(mut self, deadline: Duration) -> Self {
        self.timeout = deadline;
        self
    }

    /// Starts the engine. Sends `initialize` if the options need it.
    pub async fn start(self) -> anyhow::Result<Host> {
        let Self {
            script,
            backend_kind: way,
            program,
            mut options,
            env,
            dirs: stage,
            files,
            request_handler: answers,
            timeout: deadline,
        } = self;
        let stage = stage.map_or_else(TestDirs::new, Ok)?;
        for (path, content) in files {
            stage.write_file(&path, content)?;
        }
        let folder = || stage.workspace().to_string_lossy().into_owned();
        let folder = PathBuf::from(options.cwd.get_or_insert_with(folder).as_str());
        let voice = start_backend(script, way, program.as_deref(), &stage, &mut options).await?;
        let mut all = stage.env();
        all.extend(voice.env());
        all.extend(options.to_env());
        all.extend(env);
        let connection = match program {
            Some(program) => EngineConnection::start_process(&program, &options.to_args(), &all, &folder)?,
            None => connect_in_process(&voice, options.clone(), all)?,
        };
        let mut host = Host::new(HostParts {
            connection,
            dirs: stage,
            backend: voice,
            request_handler: answers,
            timeout: deadline,
        });
        let initialize = options.to_initialize();
        if initialize != Initialize::default() {
            host.send_request(initialize).await.context("initialize")?;
        }
        Ok(host)
    }
}

/// Starts the model backend and points the options at it.
async fn start_backend(
    script: Script,
    way: BackendKind,
    program: Option<&Path>,
    stage: &TestDirs,
    options: &mut Options,
) -> anyhow::Result<ModelBackend> {
    match (way, program) {
        (BackendKind::Http, _) => {
            options.model.get_or_insert_with(|| DEFAULT_MODEL.to_owned());
            Ok(ModelBackend::Http(MockApi::start(script).await?))
        }
        (BackendKind::Scripted, None) => {
            options.model = Some(format!("scripted:{SCRIPT_NAME}"));
            Ok(ModelBackend::Scripted(script.to_scripted()?))
        }
        (BackendKind::Scripted, Some(_)) => {
            let file = stage.temp_dir().join("script.json");
            crate::test_dirs::write_file(&file, script.to_scripted_json()?.to_string().as_bytes())?;
            options.model = Some(format!("scripted:{}", file.display()));
            Ok(ModelBackend::ScriptedInEngine)
        }
    }
}

fn connect_in_process(
    voice: &ModelBackend,
    options: Options,
    env: BTreeMap<String, String>,
) -> anyhow::Result<EngineConnection> {
    let variables = env.clone();
    let get: EnvLookup = Arc::new(move |name| variables.get(name).cloned());
    let door = HttpClient::from_env(|name| get(name));
    let providers = Providers::from_env(get, door);
    if let ModelBackend::Scripted(model) = voice {
        providers.add_script(SCRIPT_NAME, Arc::clone(model));
    }
    EngineConnection::start_in_process(Engine::new(providers), Start::new(options, env))
}
