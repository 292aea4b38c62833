//! Options and environment to a [`Setup`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use whimbrel_wire::options::{Options, OutputFormat, SystemPrompt};

use crate::task_list::TaskList;
use crate::agent::AgentLimits;
use crate::agents::AgentDefinitions;
use crate::commands::Commands;
use crate::engine::Engine;
use crate::config_locations::ConfigLocations;
use crate::hooks::{ProgressPolicy, HookSet};
use crate::runtime_settings::RuntimeSettings;
use crate::activity::BackgroundPolicy;
use crate::mcp::{LocalServer, ServerConfigs, ToolCache};
use crate::deferred_tools::DeferredTools;
use crate::permission::PermissionState;
use crate::permission::state::NewPermissions;
use crate::session::{Persistence, ResumedSession, ProjectDir};
use crate::settings::{self, TypedSettings};
use crate::setup::discover::{Discovered, discover};
use crate::setup::extensions::Extensions;
use crate::setup::store_resume::StoreResolvedSession;
use crate::setup::resume::{self, SessionOrigin};
use crate::setup::location::{SessionLocation, resolve_location};
use crate::setup::start::{SetupError, Start};
use crate::setup::{unsupported, configure, background, permissions, limits, model, system_prompt, tools};
use crate::structured_output::{self, OutputSchema};
use crate::state_notifier::StateSubscription;
use crate::tool_set::{ToolEntry, AgentToolSet};
use crate::workspace::Workspace;

/// Everything a session needs to know, resolved.
pub struct Setup {
    /// The session's id.
    pub session: String,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    /// Where its transcript is kept; none keeps nothing.
    pub project_dir: Option<ProjectDir>,
    /// How it is kept.
    pub persistence: Persistence,
    /// What the session goes on from; taken by the first turn.
    pub resumed: Option<Box<ResumedSession>>,
    /// How the session came to be.
    pub origin: SessionOrigin,
    /// Whether nothing of the session may stay on disk.
    pub is_ephemeral: bool,
    /// The model that is used when the host asks for the default.
    pub default_model: String,
    /// Whether the host named the model.
    pub has_explicit_model: bool,
    /// The model for small jobs.
    pub small_model: String,
    /// The knobs as they stand at the start.
    pub runtime_settings: RuntimeSettings,
    /// The tools.
    pub tool_set: Arc<AgentToolSet>,
    /// Which of them the model has been shown.
    pub deferred_tools: DeferredTools,
    /// Its list of tasks.
    pub task_list: TaskList,
    /// The kinds of subagent.
    pub agent_definitions: AgentDefinitions,
    /// The kind that the session itself is, by name.
    pub main_agent: Option<String>,
    /// What the session may do.
    pub permission_state: PermissionState,
    /// The hooks that the settings bring.
    pub hooks: HookSet,
    /// Of which events the host hears that hooks run.
    pub hook_progress: ProgressPolicy,
    /// Whether the host answers permission questions.
    pub host_answers: bool,
    /// The tool of an MCP server that answers them instead.
    pub prompt_tool: Option<String>,
    /// The MCP servers to start; taken when the session begins.
    pub servers: ServerConfigs,
    /// Those of the host that are code in this process.
    pub local_servers: Arc<BTreeMap<String, LocalServer>>,
    /// What MCP servers bring.
    pub mcp_tool_cache: ToolCache,
    /// How long a question waits for its answer; none waits as long as it takes.
    pub permission_timeout: Option<Duration>,
    /// Where the person's and the project's files lie.
    pub config_locations: Arc<ConfigLocations>,
    /// The slash commands.
    pub commands: Commands,
    /// What people and plugins have added.
    pub extensions: Extensions,
    /// The system prompt that was asked for.
    pub system_prompt: Option<SystemPrompt>,
    /// What is added to it.
    pub append_system_prompt: Option<String>,
    /// Limits and switches.
    pub limits: AgentLimits,
    /// What becomes of background work at the end.
    pub background_policy: BackgroundPolicy,
    /// How long it is waited for; none waits as long as it takes.
    pub background_wait_limit: Option<Duration>,
    /// How many agents may work at once, if the host says so.
    pub max_concurrent_agents: Option<usize>,
    /// How many letters a team may write, if the host says so.
    pub max_team_messages: Option<usize>,
    /// Whether the host wants to see the state.
    pub state_subscription: StateSubscription,
    /// Whether the host hears the words of subagents as they are said.
    pub forward_subagent_text: bool,
    /// Whether user messages are echoed.
    pub replay_user_messages: bool,
    /// What the session is to be called.
    pub title: Option<String>,
    /// How the engine was started.
    pub entrypoint: String,
    /// A warning for the host, told with the first turn.
    pub warning: Option<String>,
    /// The shape of answers, if the host asks for one.
    pub output_schema: Option<OutputSchema>,
    /// The command that prints the key for the model's provider.
    pub key_helper: Option<String>,
}

impl Setup {
    /// Resolves what was asked for. What a store has is read by [`resume::resolve`] only.
    pub fn resolve(engine: &Engine, start: Start) -> Result<Self, SetupError> {
        Self::resolve_from(engine, start, None)
    }

    /// Resolves what was asked for, for a session whose beginning may be known.
    pub(super) fn resolve_from(
        engine: &Engine,
        mut start: Start,
        stored: Option<StoreResolvedSession>,
    ) -> Result<Self, SetupError> {
        unsupported::unsupported_option(&start.options).map_or(Ok(()), |text| Err(SetupError::Unsupported(text)))?;
        let settings = start.load_settings()?;
        let Start { options, mut env, local_servers, .. } = start;
        env.extend(options.env.clone());
        let (options, env) = (&options, &env);
        let SessionLocation { session, workspace, project_dir: place, persistence: keeping, resumed: past, origin, is_ephemeral: leaves_nothing, task_list: agenda, mut warnings } =
            resolve_location(options, env, stored)?;
        warnings.extend(settings.warnings().iter().cloned().chain(unsupported::ignored_settings(&settings)));
        let config = settings::config_dir(env);
        let known = settings.effective().typed.clone();
        let ground = Arc::new(configure::config_locations(options, &settings, config, workspace.root()));
        let Discovered { hooks, servers, commands, extensions, agent_definitions: kinds } =
            discover(options, env, &settings, &ground, &mut warnings)?;
        let before = resume::resumed_mode(past.as_ref());
        let NewPermissions { state: rights, warnings: about_rights, .. } =
            permissions::initial_permissions(options, env, settings, &workspace, before, &mut warnings)?;
        warnings.extend(about_rights);
        let default_model = model::default_model(engine, options, env, &known);
        let (host_answers, prompt_tool) = (permissions::can_host_answer(options), permissions::prompt_tool(options));
        let supply = ToolCache::new(rights.clone(), prompt_tool.clone());
        model::check_budget(engine, options, &known, &default_model)?;
        let small_model = model::small_model(engine, &default_model, env);
        let window = engine.catalog().lookup(&default_model).map(|model| model.context_window);
        let (toolbox, on_demand) =
            tools::finalize_tools(&select_tools(engine, options, env, &rights), options, env, window)?;
        let kinds = kinds.allowed_by(&rights);
        let toolbox = tools::describe_agent_tool(toolbox, &kinds);
        let mut setup = Self {
            runtime_settings: initial_runtime_settings(options, &known, &default_model),
            tool_set: Arc::new(toolbox.with_hook_responders(&hooks).with_mcp_tools(supply.clone())),
            deferred_tools: on_demand,
            task_list: agenda,
            main_agent: options.agent.clone().or_else(|| known.agent.clone()),
            agent_definitions: kinds,
            host_answers,
            prompt_tool,
            servers,
            local_servers: Arc::new(local_servers),
            permission_timeout: options.permission_timeout_ms.map(Duration::from_millis),
            permission_state: rights,
            hooks,
            hook_progress: if options.include_hook_events { ProgressPolicy::All } else { ProgressPolicy::StartupOnly },
            config_locations: ground,
            commands: commands.with_mcp_prompts(supply.clone()),
            mcp_tool_cache: supply,
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
            project_dir: place,
            persistence: keeping,
            resumed: past.map(Box::new),
            origin,
            title: options.title.clone(),
            is_ephemeral: leaves_nothing,
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

    /// Asks for answers in a shape: the tool by which they are given is added.
    pub fn require_output_schema(&mut self, schema: &Value) -> Result<(), String> {
        let attempts = match self.workspace.variable(structured_output::ATTEMPTS_VARIABLE) {
            None => structured_output::DEFAULT_ATTEMPTS,
            Some(text) => text.trim().parse::<u32>().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                format!("{} must be a whole number above 0, but is {text:?}.", structured_output::ATTEMPTS_VARIABLE)
            })?,
        };
        let shape = OutputSchema::new(schema, attempts)?;
        self.tool_set = Arc::new(self.tool_set.with_tool(shape.tool()));
        self.output_schema = Some(shape);
        Ok(())
    }

    /// The full name of a model that the host named, or the default.
    pub fn model(&self, engine: &Engine, name: Option<&str>) -> String {
        match name {
            None | Some("" | "default") => self.default_model.clone(),
            Some(name) => engine.catalog().resolve_alias(name),
        }
    }
}

/// What can be turned, as it stands at first.
fn initial_runtime_settings(options: &Options, known: &TypedSettings, model: &str) -> RuntimeSettings {
    RuntimeSettings {
        model: model.to_owned(),
        thinking: model::thinking(options, known),
        thinking_display: model::thinking_display(options),
        effort: model::effort(options, known),
        plan_mode_instructions: options.plan_mode_instructions.as_deref().map(Into::into),
    }
}

/// The tools that were asked for.
fn select_tools(engine: &Engine, options: &Options, env: &BTreeMap<String, String>, rights: &PermissionState) -> AgentToolSet {
    AgentToolSet::select(&available_tools(engine, env), options.tools.as_ref(), rights, permissions::user_presence(options))
}

/// The tools that there are: those for teams only where the host asks for teams.
fn available_tools(engine: &Engine, env: &BTreeMap<String, String>) -> Vec<Arc<ToolEntry>> {
    let teams = is_env_set(env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if teams { engine.team_tools() } else { engine.tools() }.to_vec()
}

/// Whether a variable says yes.
pub(super) fn is_env_set(env: &BTreeMap<String, String>, name: &str) -> bool {
    env.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
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
