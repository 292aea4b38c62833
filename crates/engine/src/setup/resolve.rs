//! Builds a [`Setup`] from options, environment and settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::settings::{self, TypedSettings};
use whimbrel_session_store::{Persistence, ProjectDir, ResumedSession};
use whimbrel_wire::options::{Options, OutputFormat, SystemPrompt};

use crate::activity::BackgroundPolicy;
use crate::agent::AgentLimits;
use crate::agents::AgentDefinitions;
use crate::commands::Commands;
use crate::engine::Engine;
use crate::hooks::{HookSet, ProgressPolicy};
use crate::mcp::{LocalServer, ServerConfigs};
use crate::mcp_tools::ToolCache;
use crate::permission::PermissionState;
use crate::permission::state::NewPermissions;
use crate::runtime_settings::RuntimeSettings;
use crate::setup::discover::{Discovered, discover};
use crate::setup::extensions::Extensions;
use crate::setup::location::{SessionLocation, resolve_location};
use crate::setup::resume::{self, SessionOrigin};
use crate::setup::start::{SetupError, Start};
use crate::setup::store_resume::StoreResolvedSession;
use crate::setup::{background, configure, limits, model, permissions, system_prompt, tools, unsupported};
use crate::state_notifier::StateSubscription;
use crate::structured_output::{self, OutputSchema};
use crate::task_list::TaskList;
use crate::tool_api::DeferredTools;
use crate::tool_api::{AgentToolSet, ToolEntry};
use crate::workspace::Workspace;

/// Everything a session needs, resolved.
pub struct Setup {
    pub session: String,
    /// Working directory, environment and tool output directory.
    pub workspace: Arc<Workspace>,
    /// Directory of the transcript; none if the session is not stored on disk.
    pub project_dir: Option<ProjectDir>,
    pub persistence: Persistence,
    /// State of a resumed session; taken by the first turn.
    pub resumed: Option<Box<ResumedSession>>,
    pub origin: SessionOrigin,
    /// Nothing of the session may remain on disk.
    pub is_ephemeral: bool,
    /// The model used when the host asks for the default.
    pub default_model: String,
    /// The host named a model.
    pub has_explicit_model: bool,
    pub small_model: String,
    /// Initial runtime settings.
    pub runtime_settings: RuntimeSettings,
    pub tool_set: Arc<AgentToolSet>,
    /// Deferred tools and which of them are loaded.
    pub deferred_tools: DeferredTools,
    pub task_list: TaskList,
    pub agent_definitions: AgentDefinitions,
    /// Name of the agent definition that the main session uses.
    pub main_agent: Option<String>,
    pub permission_state: PermissionState,
    /// Hooks of settings and plugins.
    pub hooks: HookSet,
    /// Hook events whose progress is sent to the host.
    pub hook_progress: ProgressPolicy,
    /// The host answers permission requests.
    pub host_answers: bool,
    /// The MCP tool that answers permission requests instead.
    pub prompt_tool: Option<String>,
    /// MCP servers to start; taken when the session begins.
    pub servers: ServerConfigs,
    /// In-process MCP servers of the host.
    pub local_servers: Arc<BTreeMap<String, LocalServer>>,
    /// Tools and prompts of MCP servers.
    pub mcp_tool_cache: ToolCache,
    /// Timeout of permission requests; none for no timeout.
    pub permission_timeout: Option<Duration>,
    pub config_locations: Arc<ConfigLocations>,
    /// Slash commands.
    pub commands: Commands,
    /// Plugins, skills and output styles.
    pub extensions: Extensions,
    /// The system prompt option.
    pub system_prompt: Option<SystemPrompt>,
    /// Text appended to the system prompt.
    pub append_system_prompt: Option<String>,
    pub limits: AgentLimits,
    /// Policy for background tasks at the end.
    pub background_policy: BackgroundPolicy,
    /// Time limit for waiting for them; none for no limit.
    pub background_wait_limit: Option<Duration>,
    /// Limit on concurrent agents, if set.
    pub max_concurrent_agents: Option<usize>,
    /// Limit on messages of a team, if set.
    pub max_team_messages: Option<usize>,
    /// Whether the host subscribes to session state changes.
    pub state_subscription: StateSubscription,
    /// Text of subagents is forwarded to the host as it is streamed.
    pub forward_subagent_text: bool,
    /// User messages are echoed to the host.
    pub replay_user_messages: bool,
    /// Title to set.
    pub title: Option<String>,
    /// How the engine was started.
    pub entrypoint: String,
    /// Warnings for the host, sent with the first turn.
    pub warning: Option<String>,
    /// JSON schema of structured output, if the host asks for it.
    pub output_schema: Option<OutputSchema>,
    /// Command that prints the API key.
    pub key_helper: Option<String>,
}

impl Setup {
    /// Resolves a setup. Sessions in a store are loaded by [`resume::resolve`] only.
    pub fn resolve(engine: &Engine, start: Start) -> Result<Self, SetupError> {
        Self::resolve_from(engine, start, None)
    }

    /// Resolves a setup, for a session that may have been selected from a store.
    pub(super) fn resolve_from(
        engine: &Engine,
        mut start: Start,
        stored: Option<StoreResolvedSession>,
    ) -> Result<Self, SetupError> {
        unsupported::unsupported_option(&start.options)
            .map_or(Ok(()), |text| Err(SetupError::Unsupported(text)))?;
        let settings = start.load_settings()?;
        let Start { options, mut env, local_servers, .. } = start;
        env.extend(options.env.clone());
        let (options, env) = (&options, &env);
        let SessionLocation {
            session,
            workspace,
            project_dir,
            persistence,
            resumed,
            origin,
            is_ephemeral,
            task_list,
            mut warnings,
        } = resolve_location(options, env, stored)?;
        warnings.extend(settings.warnings().iter().cloned().chain(unsupported::ignored_settings(&settings)));
        let known = settings.effective().typed.clone();
        let locations = Arc::new(configure::config_locations(
            options,
            &settings,
            settings::config_dir(env),
            workspace.root(),
        ));
        let Discovered { hooks, servers, commands, extensions, agent_definitions } =
            discover(options, env, &settings, &locations, &mut warnings)?;
        let NewPermissions { state: permission_state, warnings: permission_warnings, .. } =
            permissions::initial_permissions(
                options,
                env,
                settings,
                &workspace,
                resume::resumed_mode(resumed.as_ref()),
                &mut warnings,
            )?;
        warnings.extend(permission_warnings);
        let default_model = model::default_model(engine, options, env, &known);
        let (host_answers, prompt_tool) =
            (permissions::can_host_answer(options), permissions::prompt_tool(options));
        let tool_cache = ToolCache::new(permission_state.clone(), prompt_tool.clone());
        model::check_budget(engine, options, &known, &default_model)?;
        let small_model = model::small_model(engine, &default_model, env);
        let window = engine.catalog().lookup(&default_model).map(|model| model.context_window);
        let tool_set = select_tools(engine, options, env, &permission_state);
        let (tool_set, deferred_tools) = tools::finalize_tools(&tool_set, options, env, window)?;
        let agent_definitions = agent_definitions.allowed_by(&permission_state);
        let tool_set = tools::describe_agent_tool(tool_set, &agent_definitions);
        let mut setup = Self {
            runtime_settings: initial_runtime_settings(options, &known, &default_model),
            tool_set: Arc::new(
                tool_set.with_hook_responders(&hooks).with_mcp_tools(Arc::new(tool_cache.clone())),
            ),
            deferred_tools,
            task_list,
            main_agent: options.agent.clone().or_else(|| known.agent.clone()),
            agent_definitions,
            host_answers,
            prompt_tool,
            servers,
            local_servers: Arc::new(local_servers),
            permission_timeout: options.permission_timeout_ms.map(Duration::from_millis),
            permission_state,
            hooks,
            hook_progress: resolve_hook_progress(options),
            config_locations: locations,
            commands: commands.with_mcp_prompts(tool_cache.clone()),
            mcp_tool_cache: tool_cache,
            extensions,
            system_prompt: system_prompt::read_system_prompt(options)?,
            append_system_prompt: system_prompt::appended_prompt(options),
            limits: limits::resolve_limits(engine, options, env, &known)?,
            background_policy: background::background_policy(options, env)?,
            background_wait_limit: background::wait_limit(env)?,
            max_concurrent_agents: background::max_concurrent_agents(env)?,
            max_team_messages: background::max_team_messages(env)?,
            state_subscription: resolve_state_subscription(env),
            forward_subagent_text: options.forward_subagent_text == Some(true),
            replay_user_messages: options.replay_user_messages,
            entrypoint: env.get("CLAUDE_CODE_ENTRYPOINT").cloned().unwrap_or_else(|| "cli".into()),
            warning: (!warnings.is_empty()).then(|| warnings.join("\n")),
            session,
            workspace,
            project_dir,
            persistence,
            resumed: resumed.map(Box::new),
            origin,
            title: options.title.clone(),
            is_ephemeral,
            default_model,
            has_explicit_model: options.model.is_some(),
            small_model,
            output_schema: None,
            key_helper: known.api_key_helper.clone(),
        };
        setup.update_skill_tool();
        if let Some(OutputFormat::JsonSchema { schema }) = &options.output_format {
            setup.require_output_schema(schema).map_err(SetupError::Invalid)?;
        }
        Ok(setup)
    }

    /// Requires structured output: adds the tool by which the model returns it.
    pub fn require_output_schema(&mut self, schema: &Value) -> Result<(), String> {
        let attempts = match self.workspace.variable(structured_output::ATTEMPTS_VARIABLE) {
            None => structured_output::DEFAULT_ATTEMPTS,
            Some(text) => text.trim().parse::<u32>().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                format!(
                    "{} must be a whole number above 0, but is {text:?}.",
                    structured_output::ATTEMPTS_VARIABLE
                )
            })?,
        };
        let shape = OutputSchema::new(schema, attempts)?;
        self.tool_set = Arc::new(self.tool_set.with_tool(shape.tool()));
        self.output_schema = Some(shape);
        Ok(())
    }

    /// Resolves a model name of the host; none is the default model.
    pub fn model(&self, engine: &Engine, name: Option<&str>) -> String {
        match name {
            None | Some("" | "default") => self.default_model.clone(),
            Some(name) => engine.catalog().resolve_alias(name),
        }
    }
}

/// Initial runtime settings.
fn initial_runtime_settings(options: &Options, known: &TypedSettings, model: &str) -> RuntimeSettings {
    RuntimeSettings {
        model: model.to_owned(),
        thinking: model::thinking(options, known),
        thinking_display: model::thinking_display(options),
        effort: model::effort(options, known),
        plan_mode_instructions: options.plan_mode_instructions.as_deref().map(Into::into),
    }
}

/// The tools that the host asked for.
fn select_tools(
    engine: &Engine,
    options: &Options,
    env: &BTreeMap<String, String>,
    permission_state: &PermissionState,
) -> AgentToolSet {
    AgentToolSet::select(
        &available_tools(engine, env),
        options.tools.as_ref(),
        permission_state,
        permissions::user_presence(options),
    )
}

/// All available tools; the team tools only if enabled.
fn available_tools(engine: &Engine, env: &BTreeMap<String, String>) -> Vec<Arc<ToolEntry>> {
    let teams = is_env_set(env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if teams { engine.team_tools() } else { engine.tools() }.to_vec()
}

/// Interprets an environment variable as a boolean.
pub(super) fn is_env_set(env: &BTreeMap<String, String>, name: &str) -> bool {
    env.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

fn resolve_hook_progress(options: &Options) -> ProgressPolicy {
    if options.include_hook_events { ProgressPolicy::All } else { ProgressPolicy::StartupOnly }
}

fn resolve_state_subscription(env: &BTreeMap<String, String>) -> StateSubscription {
    if is_env_set(env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
        StateSubscription::Caller
    } else if is_env_set(env, "CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        StateSubscription::Sdk
    } else {
        StateSubscription::Off
    }
}
