//! Configuration of a test host, and the start of its engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use whimbrel_engine::{Engine, SessionRequest};
use whimbrel_models::http::HttpClient;
use whimbrel_models::providers::{EnvLookup, Providers};
use whimbrel_wire::control::{CanUseTool, Initialize, Request};
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionResult;

use super::connection::EngineConnection;
use super::model_backend::{self, BackendKind, ModelBackend};
use super::request_handler::{self, HostResponse, RequestHandler};
use super::{Host, HostParts};
use crate::script::Script;
use crate::test_dirs::TestDirs;

/// Default timeout of each wait: long, because other programs may keep the machine busy.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

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
    pub fn dirs(mut self, dirs: TestDirs) -> Self {
        self.dirs = Some(dirs);
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
    pub fn on_request(mut self, respond: impl FnMut(&Request) -> HostResponse + Send + 'static) -> Self {
        self.request_handler = Box::new(respond);
        self
    }

    /// Sets the timeout of each wait; the default is 20 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts the engine. Sends `initialize` if the options need it.
    pub async fn start(self) -> anyhow::Result<Host> {
        let Self { script, backend_kind, program, mut options, env, dirs, files, request_handler, timeout } =
            self;
        let dirs = dirs.map_or_else(TestDirs::new, Ok)?;
        for (path, content) in files {
            dirs.write_file(&path, content)?;
        }
        let workspace = || dirs.workspace().to_string_lossy().into_owned();
        let cwd = PathBuf::from(options.cwd.get_or_insert_with(workspace).as_str());
        let backend =
            ModelBackend::start(script, backend_kind, program.as_deref(), &dirs, &mut options).await?;
        let mut variables = dirs.env();
        variables.extend(backend.env());
        variables.extend(options.to_env());
        variables.extend(env);
        let connection = match program {
            Some(program) => EngineConnection::start_process(&program, &options.to_args(), &variables, &cwd)?,
            None => connect_in_process(&backend, options.clone(), variables)?,
        };
        let mut host = Host::new(HostParts { connection, dirs, backend, request_handler, timeout });
        let initialize = options.to_initialize();
        if initialize != Initialize::default() {
            host.send_request(initialize).await.context("initialize")?;
        }
        Ok(host)
    }
}

fn connect_in_process(
    backend: &ModelBackend,
    options: Options,
    env: BTreeMap<String, String>,
) -> anyhow::Result<EngineConnection> {
    let variables = env.clone();
    let get: EnvLookup = Arc::new(move |name| variables.get(name).cloned());
    let client = HttpClient::from_env(|name| get(name));
    let providers = Providers::from_env(get, client);
    if let ModelBackend::Scripted(model) = backend {
        providers.add_script(model_backend::SCRIPT_NAME, Arc::clone(model));
    }
    EngineConnection::start_in_process(Engine::new(providers), SessionRequest::new(options, env))
}
