//! Builder for the configuration of sessions: options, callbacks, and the location of the engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "in-process")]
use std::sync::OnceLock;
use std::time::Duration;

#[cfg(feature = "in-process")]
use whimbrel_engine::setup::config_dir;
#[cfg(feature = "in-process")]
use whimbrel_engine::{Engine, SessionRequest};
#[cfg(feature = "in-process")]
use whimbrel_models::{providers::Providers, scripted::Scripted};
#[cfg(feature = "in-process")]
use whimbrel_session_store::sessions::Sessions;
#[cfg(feature = "in-process")]
use whimbrel_session_store::store::SharedStore;
use whimbrel_wire::control::{CanUseTool, Elicitation, ElicitationReply};
use whimbrel_wire::options::{
    BackgroundAtEnd, Effort, McpServerConfig, Options, OutputFormat, PermissionPromptTool, SdkServer,
    SettingSource, SystemPrompt, Thinking, ToolSet,
};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

use crate::callback::Callbacks;
use crate::environment::Environment;
use crate::error::Error;
use crate::hook::Hook;
use crate::tools::ToolServer;
#[cfg(feature = "in-process")]
use crate::transport::in_process;
use crate::transport::{Connection, Transport, process};

/// Default limit of unread frames, in bytes.
const DEFAULT_UNREAD_LIMIT: usize = 16 * 1024 * 1024;

/// Configuration of any number of sessions: their options, their callbacks, and the location of their engine. Each
/// [`query`](crate::query) and each [`Session`](crate::Session) made with it is a conversation of its own, which inside
/// the engine is one agent.
///
/// Options without a method of their own are set through [`Agent::with`].
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, PermissionResult, Scripted};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), whimbrel::Error> {
/// # let dir = std::env::temp_dir();
/// # let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "rm -rf build"}}]);
/// # let script = Scripted::replies(json!([call, "I left it alone."]))?;
/// let agent = Agent::new()
///     .cwd(dir)
///     .max_turns(20)
///     .allowed_tools(["Read"])
///     .can_use_tool(|request| async move {
///         match request.tool_name.as_str() {
///             "Bash" => PermissionResult::deny("No commands, please."),
///             _ => PermissionResult::allow(),
///         }
///     });
/// # let agent = agent.persist_session(false).script(script);
/// let result = whimbrel::query("Tidy up.", &agent).result().await?;
/// assert_eq!(result.permission_denials.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    /// Shared by clones, of which a program may have thousands.
    pub(crate) options: Arc<Options>,
    pub(crate) callbacks: Callbacks,
    pub(crate) unread_limit: usize,
    transport: Transport,
    environment: Option<Environment>,
    #[cfg(feature = "in-process")]
    store: Option<SharedStore>,
    #[cfg(feature = "in-process")]
    defaults: SharedDefaults,
}

/// Environment and engine that an agent and its clones share if none were given; created by their first session.
#[cfg(feature = "in-process")]
#[derive(Clone, Default)]
struct SharedDefaults {
    environment: Arc<OnceLock<Environment>>,
    engine: Arc<OnceLock<Engine>>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            options: Arc::new(Options { setting_sources: Some(Vec::new()), ..Options::default() }),
            callbacks: Callbacks::default(),
            unread_limit: DEFAULT_UNREAD_LIMIT,
            transport: Transport::default(),
            environment: None,
            #[cfg(feature = "in-process")]
            store: None,
            #[cfg(feature = "in-process")]
            defaults: SharedDefaults::default(),
        }
    }
}

/// Setters for plain options: one line each.
macro_rules! setters {
    ($($(#[$doc:meta])+ $name:ident($value:ident: $kind:ty) => $field:ident = $set:expr;)*) => {
        impl Agent {
            $($(#[$doc])+
            #[must_use]
            pub fn $name(mut self, $value: $kind) -> Self {
                self.options_mut().$field = $set;
                self
            })*
        }
    };
}

setters! {
    /// The model, by name or alias; `openai:NAME` asks a Chat Completions endpoint.
    model(name: impl Into<String>) => model = Some(name.into());
    /// Model to use while the first one is overloaded.
    fallback_model(name: impl Into<String>) => fallback_model = Some(name.into());
    /// Working directory of the agent.
    cwd(dir: impl Into<PathBuf>) => cwd = Some(dir.into().to_string_lossy().into_owned());
    /// Replaces the system prompt. With an empty text the engine sends one short sentence in its place.
    system_prompt(text: impl Into<String>) => system_prompt = Some(SystemPrompt::Text(text.into()));
    /// Adds to the engine's own system prompt.
    append_system_prompt(text: impl Into<String>) => system_prompt = Some(SystemPrompt::Preset {
        append: Some(text.into()), exclude_dynamic_sections: None, snapshot: None,
    });
    /// Offers only these built-in tools.
    tools(names: impl IntoIterator<Item = impl Into<String>>) => tools = Some(ToolSet::List(
        names.into_iter().map(Into::into).collect(),
    ));
    /// Rules for tool calls that are allowed without asking.
    allowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => allowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// Rules for tool calls that are always denied.
    disallowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => disallowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// Maximum number of model calls per turn.
    max_turns(limit: u32) => max_turns = Some(limit);
    /// Maximum cost of the run in dollars.
    max_budget_usd(limit: f64) => max_budget_usd = Some(limit);
    /// Thinking mode and budget of the model.
    thinking(thinking: Thinking) => thinking = Some(thinking);
    /// Effort level of the model.
    effort(effort: Effort) => effort = Some(effort);
    /// Permission mode: what the agent may do without asking.
    permission_mode(mode: PermissionMode) => permission_mode = Some(mode);
    /// Time after which an unanswered permission request is denied; unlimited by default.
    permission_timeout(limit: Duration) => permission_timeout_ms =
        Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    /// Skips unreadable settings files with a warning instead of failing to start.
    tolerate_bad_settings(tolerate: bool) => tolerate_bad_settings = tolerate;
    /// Handling of background tasks when nothing else is due and no input can come.
    background_at_end(end: BackgroundAtEnd) => background_at_end = Some(end);
    /// Resumes this session.
    resume(session: impl Into<String>) => resume = Some(session.into());
    /// Id of the new session.
    session_id(id: impl Into<String>) => session_id = Some(id.into());
    /// Switches writing the session to disk on or off.
    persist_session(persist: bool) => persist_session = Some(persist);
    /// Settings files to read; none by default. Including the project's also trusts the project: its hooks run and its
    /// allow rules count.
    setting_sources(sources: impl IntoIterator<Item = SettingSource>) => setting_sources =
        Some(sources.into_iter().collect());
    /// Forwards the model's text while it streams.
    partial_messages(wanted: bool) => include_partial_messages = wanted;
    /// Format that the final answer must have.
    output_format(format: OutputFormat) => output_format = Some(format);
}

impl Agent {
    /// Creates an agent with every option at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes any option: `agent.with(|options| options.title = Some("tidy up".into()))`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(self.options_mut());
        self.with_new_engine()
    }

    /// Current options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn options_mut(&mut self) -> &mut Options {
        Arc::make_mut(&mut self.options)
    }

    /// Sets an environment variable of the engine and of the commands it runs, on top of all others.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options_mut().env.insert(name.into(), value.into());
        self.with_new_engine()
    }

    /// Uses this environment, with its keys and endpoints, instead of that of this process.
    /// An engine that was given by [`Agent::engine`] keeps its keys; its commands see this environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self.with_new_engine()
    }

    /// Limits the bytes of unread frames before the engine is slowed down; see [`Frames`](crate::Frames). By default 16
    /// MiB.
    #[must_use]
    pub fn unread_limit(mut self, bytes: usize) -> Self {
        self.unread_limit = bytes;
        self
    }

    /// Calls this closure for every tool call that needs permission. Without one such calls are denied.
    ///
    /// Requests are answered concurrently. The closure's future is dropped when its request is cancelled, because the
    /// turn was interrupted or a hook answered first, and when the run ends. A panic in it denies the call.
    #[must_use]
    pub fn can_use_tool<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(CanUseTool) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionResult> + Send + 'static,
    {
        self.options_mut().permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        self.callbacks.set_can_use_tool(callback);
        self
    }

    /// Adds a hook. Hooks of one event run concurrently.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        self.callbacks.hooks.add(hook);
        self
    }

    /// Adds tools that are functions of this program; see [`tool`](crate::tool).
    #[must_use]
    pub fn tool_server(mut self, server: ToolServer) -> Self {
        let name = server.name().to_owned();
        let entry = SdkServer { name: name.clone(), ..SdkServer::default() };
        self.options_mut().mcp_servers.insert(name, McpServerConfig::Sdk(entry));
        self.callbacks.tool_servers.add(server);
        self
    }

    /// Adds an MCP server that is a program or has a URL. The model sees its tools as `mcp__NAME__TOOL`.
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, server: McpServerConfig) -> Self {
        self.options_mut().mcp_servers.insert(name.into(), server);
        self
    }

    /// Calls this closure when an MCP server asks the user something. Without one such requests are cancelled.
    #[must_use]
    pub fn on_elicitation<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(Elicitation) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.callbacks.set_elicitation(callback);
        self
    }

    /// Sets where the engine runs.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Shares an engine with other sessions of this process, so that connections, catalog and prompts exist once.
    #[cfg(feature = "in-process")]
    #[must_use]
    pub fn engine(self, engine: Engine) -> Self {
        self.transport(Transport::InProcess(Some(engine)))
    }

    /// Writes sessions to this store instead of to disk, and resumes them from there. See [`store`](crate::store). Not
    /// possible with an engine process, which stores its sessions itself.
    #[cfg(feature = "in-process")]
    #[must_use]
    pub fn session_store(mut self, store: impl Into<SharedStore>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// Stored sessions: those of the agent's working directory in its store, or else all on disk.
    #[cfg(feature = "in-process")]
    pub fn sessions(&self) -> Result<Sessions, Error> {
        if let Some(store) = &self.store {
            let dir = match &self.options.cwd {
                Some(dir) => PathBuf::from(dir),
                None => std::env::current_dir().map_err(|error| {
                    Error::Config(format!("the working directory cannot be determined: {error}"))
                })?,
            };
            return Ok(Sessions::in_store(store.clone(), &dir));
        }
        let config = config_dir(self.base_environment().extended(&self.options.env).variables());
        let unknown = "the directory of the sessions is unknown: set HOME or CLAUDE_CONFIG_DIR";
        Ok(Sessions::on_disk(config.ok_or_else(|| Error::Config(unknown.into()))?, None))
    }

    /// Returns the environment that was given, or else that of this process.
    #[cfg(feature = "in-process")]
    fn base_environment(&self) -> &Environment {
        let default = || self.defaults.environment.get_or_init(Environment::of_process);
        self.environment.as_ref().unwrap_or_else(default)
    }

    /// Uses a scripted model instead of a real one, for tests and demos. An engine that was given before is kept.
    #[cfg(feature = "in-process")]
    #[must_use]
    pub fn script(self, script: impl Into<Arc<Scripted>>) -> Self {
        let script = script.into();
        let (engine, name) = match &self.transport {
            // Scripts that share an engine are named by their address: each lives as long as the engine does.
            Transport::InProcess(Some(engine)) => (engine.clone(), format!("{:p}", Arc::as_ptr(&script))),
            _ => (Engine::new(Providers::offline()), "sdk".into()),
        };
        engine.providers().add_script(&name, script);
        self.model(format!("scripted:{name}")).engine(engine)
    }

    /// Connects to the engine.
    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        match &self.transport {
            #[cfg(feature = "in-process")]
            Transport::InProcess(engine) => {
                let environment = self.base_environment();
                let default = || self.defaults.engine.get_or_init(|| environment.extended(&self.options.env).engine());
                let engine = engine.as_ref().unwrap_or_else(default);
                // The engine itself adds the variables of the options.
                let mut variables = environment.variables().clone();
                variables.entry("CLAUDE_CODE_ENTRYPOINT".into()).or_insert_with(|| "sdk-rs".into());
                let request = SessionRequest {
                    store: self.store.clone(),
                    in_process_servers: self.callbacks.tool_servers.to_in_process_servers(),
                    ..SessionRequest::new(Options::clone(&self.options), variables)
                };
                Ok(in_process::connect(engine.clone(), request))
            }
            #[cfg(feature = "in-process")]
            Transport::Process(_) if self.store.is_some() => Err(Error::Config(
                "an engine process stores its sessions itself: remove session_store, or run the engine in this process"
                    .into(),
            )),
            Transport::Process(program) => {
                process::connect(program, &self.options, self.environment.as_ref())
            }
        }
    }

    /// Detaches this agent from the shared engine, because its keys may have changed. Clones keep that engine.
    #[cfg(feature = "in-process")]
    fn with_new_engine(mut self) -> Self {
        self.defaults.engine = Arc::default();
        self
    }

    /// Does nothing: an engine process is started for every session anyway.
    #[cfg(not(feature = "in-process"))]
    fn with_new_engine(self) -> Self {
        self
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.options.model)
            .field("cwd", &self.options.cwd)
            .field("transport", &self.transport)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}
