//! Builder for the configuration of sessions: options, callbacks, and the location of the engine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
#[cfg(feature = "in-process")]
use std::path::Path;
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
use whimbrel_wire::control::{Elicitation, ElicitationReply};
use whimbrel_wire::options::{
    BackgroundAtEnd, Effort, McpServerConfig, Options, OutputFormat, PermissionPromptTool, PluginConfig,
    SdkServer, SettingSource, SystemPrompt, Thinking, ToolSet,
};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

use crate::callback::Callbacks;
use crate::environment::Environment;
use crate::error::Error;
#[cfg(feature = "in-process")]
use crate::error::OpenError;
use crate::hook::Hook;
use crate::open_check;
use crate::permission::PermissionRequest;
use crate::subagent::Subagent;
use crate::tools::ToolServer;
#[cfg(feature = "in-process")]
use crate::transport::in_process;
use crate::transport::{Connection, Transport, TransportKind, process};

/// Variable that lets agents start a team.
const TEAMS_VARIABLE: &str = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";

/// Variables with credentials of the Messages API other than its key.
const OTHER_CREDENTIALS: [&str; 2] = ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

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
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
/// let answer = whimbrel::query("Tidy up.", &agent).await?;
/// assert_eq!(answer.denials().len(), 1);
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
    /// Paths that are not UTF-8, which the options cannot hold, and their setters.
    odd_paths: Vec<(&'static str, PathBuf)>,
    /// Setters that configure the provider of an engine that the agent creates.
    provider_setters: BTreeSet<&'static str>,
    #[cfg(feature = "in-process")]
    store: Option<SharedStore>,
    #[cfg(feature = "in-process")]
    script: Option<ScriptedModel>,
    #[cfg(feature = "in-process")]
    defaults: SharedDefaults,
}

/// A scripted model, and its name at the engine.
#[cfg(feature = "in-process")]
#[derive(Clone)]
struct ScriptedModel {
    script: Arc<Scripted>,
    name: String,
}

#[cfg(feature = "in-process")]
impl ScriptedModel {
    /// Adds the script to an engine that others use, too. It is named by its address: it lives as long as the engine.
    fn register(&mut self, engine: &Engine) {
        self.name = format!("{:p}", Arc::as_ptr(&self.script));
        engine.providers().add_script(&self.name, Arc::clone(&self.script));
    }
}

/// Environment and engine that an agent and its clones share if none were given; created by their first session.
#[cfg(feature = "in-process")]
#[derive(Clone, Default)]
struct SharedDefaults {
    environment: Arc<OnceLock<Environment>>,
    engine: Arc<OnceLock<Engine>>,
}

/// Whether the engine is to replay the prompts, which shows where their turns begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayRequest {
    AsConfigured,
    Always,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            options: Arc::new(Options { setting_sources: Some(Vec::new()), ..Options::default() }),
            callbacks: Callbacks::default(),
            unread_limit: DEFAULT_UNREAD_LIMIT,
            transport: Transport::default(),
            environment: None,
            odd_paths: Vec::new(),
            provider_setters: BTreeSet::new(),
            #[cfg(feature = "in-process")]
            store: None,
            #[cfg(feature = "in-process")]
            script: None,
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
    /// The model, by name or alias; `openai:NAME` asks a Chat Completions endpoint. A scripted model
    /// ([`Agent::script`]) takes its place.
    model(name: impl Into<String>) => model = Some(name.into());
    /// Model to use while the first one is overloaded.
    fallback_model(name: impl Into<String>) => fallback_model = Some(name.into());
    /// Replaces the system prompt, and what [`Agent::append_system_prompt`] has added before. With an empty text the engine
    /// sends one short sentence in its place.
    system_prompt(text: impl Into<String>) => system_prompt = Some(SystemPrompt::Text(text.into()));
    /// Offers only these built-in tools.
    tools(names: impl IntoIterator<Item = impl Into<String>>) => tools = Some(ToolSet::List(
        names.into_iter().map(Into::into).collect(),
    ));
    /// Sets the rules for tool calls that are allowed without asking; [`Agent::allow_tool`] adds one.
    allowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => allowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// Sets the rules for tool calls that are always denied; [`Agent::deny_tool`] adds one.
    disallowed_tools(rules: impl IntoIterator<Item = impl Into<String>>) => disallowed_tools =
        rules.into_iter().map(Into::into).collect();
    /// Maximum number of model calls per turn, at least 1.
    max_turns(limit: u32) => max_turns = Some(limit);
    /// Maximum cost of the run in dollars, more than 0.
    max_budget_usd(limit: f64) => max_budget_usd = Some(limit);
    /// Thinking mode and budget of the model.
    thinking(thinking: Thinking) => thinking = Some(thinking);
    /// Effort level of the model.
    effort(effort: Effort) => effort = Some(effort);
    /// Permission mode: what the agent may do without asking.
    permission_mode(mode: PermissionMode) => permission_mode = Some(mode);
    /// Time after which an unanswered permission request is denied; unlimited by default.
    #[doc(alias = "timeout")]
    permission_timeout(limit: Duration) => permission_timeout_ms =
        Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    /// Skips unreadable settings files with a warning instead of failing to start.
    tolerate_bad_settings(tolerate: bool) => tolerate_bad_settings = tolerate;
    /// Handling of background tasks when nothing else is due and no input can come.
    background_at_end(end: BackgroundAtEnd) => background_at_end = Some(end);
    /// Resumes this session.
    resume(session: impl Into<String>) => resume = Some(session.into());
    /// Continues the resumed session under a new id, and leaves it as it is.
    fork(fork: bool) => fork_session = fork;
    /// Resumes the newest session of the working directory.
    continue_latest(wanted: bool) => continue_conversation = wanted;
    /// Resumes the session at this message, named by its `uuid`, without what came after it.
    resume_at(message: impl Into<String>) => resume_session_at = Some(message.into());
    /// Title of the session.
    title(title: impl Into<String>) => title = Some(title.into());
    /// The type of subagent that the session itself is; see [`Agent::subagent`].
    run_as(subagent: impl Into<String>) => agent = Some(subagent.into());
    /// Offers only these skills to the model.
    skills(names: impl IntoIterator<Item = impl Into<String>>) => skills =
        Some(names.into_iter().map(Into::into).collect());
    /// Keeps the contents of changed files, so that [`Controls::rewind`](crate::Controls::rewind) can restore them.
    file_checkpoints(wanted: bool) => enable_file_checkpointing = wanted;
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
    /// Forwards the texts of subagents, which are frames with a `parent_tool_use_id` and events of
    /// [`Event::Subagent`](crate::Event::Subagent). Their tool calls are forwarded in any case.
    forward_subagent_text(wanted: bool) => forward_subagent_text = Some(wanted);
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

    /// Working directory of the agent. It must exist and be UTF-8 when a session is opened.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        let dir: Result<String, OsString> = dir.into().into_os_string().into_string();
        self.odd_paths.retain(|(option, _)| *option != "cwd");
        self.odd_paths.extend(dir.as_ref().err().map(|dir| ("cwd", dir.into())));
        self.options_mut().cwd = dir.ok();
        self
    }

    /// Adds to the system prompt: to the engine's own, or to the text that was set before. A prompt from a file is replaced
    /// by the engine's own.
    #[must_use]
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        let join = |before: &str| format!("{before}\n\n{text}");
        let (append, exclude_dynamic_sections, snapshot) = match self.options.system_prompt.clone() {
            Some(SystemPrompt::Text(prompt)) => return self.system_prompt(join(&prompt)),
            Some(SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot }) => {
                (append, exclude_dynamic_sections, snapshot)
            }
            Some(SystemPrompt::File { .. }) | None => (None, None, None),
        };
        let append = Some(append.map_or_else(|| text.clone(), |before| join(&before)));
        self.options_mut().system_prompt =
            Some(SystemPrompt::Preset { append, exclude_dynamic_sections, snapshot });
        self
    }

    /// Adds a directory to work in, besides the working directory. It must be UTF-8 when a session is opened.
    #[must_use]
    pub fn add_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        match dir.into().into_os_string().into_string() {
            Ok(dir) => self.options_mut().additional_directories.push(dir),
            Err(dir) => self.odd_paths.push(("add_dir", dir.into())),
        }
        self
    }

    /// Adds a plugin: a directory with commands, skills, agent definitions, hooks and servers. It must be UTF-8 when a
    /// session is opened.
    #[must_use]
    pub fn plugin(mut self, dir: impl Into<PathBuf>) -> Self {
        match dir.into().into_os_string().into_string() {
            Ok(dir) => self.options_mut().plugins.push(PluginConfig::local(dir)),
            Err(dir) => self.odd_paths.push(("plugin", dir.into())),
        }
        self
    }

    /// Adds a type of subagent; replaces one of the same name.
    #[must_use]
    pub fn subagent(mut self, name: impl Into<String>, subagent: impl Into<Subagent>) -> Self {
        self.options_mut().agents.insert(name.into(), subagent.into().definition);
        self
    }

    /// Lets the agent start a team: agents that stay and exchange messages.
    #[must_use]
    pub fn teams(self, enabled: bool) -> Self {
        self.env(TEAMS_VARIABLE, if enabled { "1" } else { "0" })
    }

    /// Uses this key of the Messages API, whatever keys and tokens the environment has. Commands that the agent runs do not
    /// see it. An engine that was given by [`Agent::engine`] has keys of its own: opening a session fails then.
    #[must_use]
    pub fn api_key(self, key: impl Into<String>) -> Self {
        // A token would be preferred to the key. An empty variable counts as none.
        OTHER_CREDENTIALS.iter().fold(self, |agent, name| agent.env(*name, "")).provider_env(
            "api_key",
            "ANTHROPIC_API_KEY",
            key.into(),
        )
    }

    /// Uses the Messages API at this URL. An engine that was given by [`Agent::engine`] has a URL of its own: opening a
    /// session fails then.
    #[must_use]
    pub fn base_url(self, url: impl Into<String>) -> Self {
        self.provider_env("base_url", "ANTHROPIC_BASE_URL", url.into())
    }

    fn provider_env(mut self, setter: &'static str, variable: &str, value: String) -> Self {
        self.provider_setters.insert(setter);
        self.env(variable, value)
    }

    /// Adds a rule for tool calls that are allowed without asking, such as `Bash(git status:*)`.
    #[must_use]
    pub fn allow_tool(mut self, rule: impl Into<String>) -> Self {
        self.options_mut().allowed_tools.push(rule.into());
        self
    }

    /// Adds a rule for tool calls that are always denied.
    #[must_use]
    pub fn deny_tool(mut self, rule: impl Into<String>) -> Self {
        self.options_mut().disallowed_tools.push(rule.into());
        self
    }

    /// Sets an environment variable of the engine and of the commands it runs, on top of all others. A clone on which it is
    /// called no longer shares connections with the other clones, because keys and endpoints may differ; the same holds for
    /// [`Agent::with`], [`Agent::environment`], [`Agent::api_key`] and [`Agent::base_url`].
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
    /// Requests are answered concurrently. The closure's future is dropped when its request is withdrawn, because the
    /// turn was interrupted or a hook answered first, and when the run ends;
    /// [`PermissionRequest::withdrawal`] says why. A panic in it denies the call.
    #[must_use]
    pub fn can_use_tool<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionResult> + Send + 'static,
    {
        self.options_mut().permission_prompt_tool = Some(PermissionPromptTool::Stdio);
        self.callbacks.set_can_use_tool(callback);
        self
    }

    /// Sets a value that tools, hooks and the permission callback of this agent's sessions can read by its type; replaces
    /// one of the same type. Anything that says for whom a session works: a user id, a tenant, a connection pool.
    ///
    /// See [`ToolContext::extension`](crate::ToolContext::extension),
    /// [`HookContext::extension`](crate::HookContext::extension) and [`PermissionRequest::extension`].
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.callbacks.extensions.insert(value);
        self
    }

    /// Adds a hook. Hooks of one event run concurrently.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        self.callbacks.hooks.add(hook);
        self
    }

    /// Adds tools that are functions of this program; see [`tool()`](crate::tool()).
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

    /// Calls this closure with every warning: an ignored rule, a failed server, a model call that is repeated. Warnings are
    /// frames as well, and with the feature `tracing` events of that crate.
    #[must_use]
    pub fn on_warning(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.callbacks.on_warning = Some(Arc::new(callback));
        self
    }

    /// Records prompts, answers and tool calls in spans. By default spans have no contents, because they may be
    /// confidential.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn trace_contents(self, wanted: bool) -> Self {
        self.env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", wanted.to_string())
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
    pub fn engine(mut self, engine: Engine) -> Self {
        if let Some(script) = &mut self.script {
            script.register(&engine);
        }
        self.transport(Transport::engine(engine))
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

    /// The variables that the settings files set (`env`), as far as they are trusted: without
    /// [`Agent::setting_sources`] and settings of its own an agent has none. A session gives them to its commands. Its
    /// engine reads keys and endpoints from [`Agent::environment`] alone, so a host that lets settings name them adds
    /// these. Reads files.
    #[cfg(feature = "in-process")]
    pub fn settings_environment(&self) -> Result<Environment, OpenError> {
        let request =
            SessionRequest::new(Options::clone(&self.options), self.base_environment().variables().clone());
        Ok(request.inspect_settings()?.effective().env.clone().into_iter().collect())
    }

    /// Resumes the session with this id, or creates it if it does not exist. The id of a new session must be a UUID.
    ///
    /// ```
    /// use serde_json::json;
    /// use whimbrel::store::MemoryStore;
    /// use whimbrel::{Agent, Scripted};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::new()
    ///     .session_store(MemoryStore::default())
    ///     .script(Scripted::replies(json!(["Hello.", "Hello again."]))?);
    /// let user = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    /// for expected in ["Hello.", "Hello again."] {
    ///     let agent = agent.clone().resume_or_create(user).await?;
    ///     assert_eq!(whimbrel::query("Hi.", &agent).await?.text(), expected);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "in-process")]
    pub async fn resume_or_create(mut self, session: impl Into<String>) -> Result<Self, Error> {
        let session = session.into();
        let found = self.sessions()?.find(&session).await;
        let exists = found.map_err(|error| Error::Config(error.to_string()))?.is_some();
        let options = self.options_mut();
        (options.resume, options.session_id) =
            if exists { (Some(session), None) } else { (None, Some(session)) };
        Ok(self)
    }

    /// Returns the environment that was given, or else that of this process.
    #[cfg(feature = "in-process")]
    fn base_environment(&self) -> &Environment {
        let default = || self.defaults.environment.get_or_init(Environment::of_process);
        self.environment.as_ref().unwrap_or_else(default)
    }

    /// Uses a scripted model instead of a real one, for tests and demos, whatever [`Agent::model`] says. An engine that was
    /// given is kept.
    #[cfg(feature = "in-process")]
    #[doc(alias = "mock")]
    #[must_use]
    pub fn script(mut self, script: impl Into<Arc<Scripted>>) -> Self {
        let mut script = ScriptedModel { script: script.into(), name: "sdk".into() };
        match &self.transport.0 {
            TransportKind::InProcess(Some(engine)) => script.register(engine),
            _ => {
                let engine = Engine::new(Providers::offline());
                engine.providers().add_script(&script.name, Arc::clone(&script.script));
                self.transport = Transport::engine(engine);
            }
        }
        self.script = Some(script);
        self
    }

    /// Connects to the engine.
    pub(crate) fn connect(&self, replays: ReplayRequest) -> Result<Connection, Error> {
        open_check::check_runtime()?;
        open_check::check_options(&self.options, &self.odd_paths)?;
        let replay = |mut options: Options| {
            options.replay_user_messages |= replays == ReplayRequest::Always;
            options
        };
        match &self.transport.0 {
            #[cfg(feature = "in-process")]
            TransportKind::InProcess(engine) => {
                if let Some(dir) = &self.options.cwd {
                    open_check::check_dir(Path::new(dir))?;
                }
                if engine.is_some() && self.script.is_none() {
                    open_check::check_provider_setters(&self.provider_setters)?;
                }
                let environment = self.base_environment();
                let default = || self.defaults.engine.get_or_init(|| environment.extended(&self.options.env).engine());
                let engine = engine.as_ref().unwrap_or_else(default);
                open_check::check_tool_names(&self.options, engine)?;
                // The engine itself adds the variables of the options.
                let mut variables = environment.variables().clone();
                variables.entry("CLAUDE_CODE_ENTRYPOINT".into()).or_insert_with(|| "sdk-rs".into());
                variables.insert("WHIMBREL_HOST_DETAILS".into(), "1".into());
                let request = SessionRequest {
                    store: self.store.clone(),
                    in_process_servers: self
                        .callbacks
                        .tool_servers
                        .to_in_process_servers(&self.callbacks.extensions),
                    ..SessionRequest::new(replay(self.in_process_options()), variables)
                };
                Ok(in_process::connect(engine.clone(), request))
            }
            #[cfg(feature = "in-process")]
            TransportKind::Process(_) if self.store.is_some() => Err(Error::Config(
                "an engine process stores its sessions itself: remove session_store, or run the engine in this process"
                    .into(),
            )),
            TransportKind::Process(command) => {
                process::connect(command, &replay(Options::clone(&self.options)), self.environment.as_ref())
            }
        }
    }

    #[cfg(feature = "in-process")]
    fn in_process_options(&self) -> Options {
        let options = Options::clone(&self.options);
        match &self.script {
            Some(script) => Options { model: Some(format!("scripted:{}", script.name)), ..options },
            None => options,
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
