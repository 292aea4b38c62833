//! Builds a [`Setup`] from options, environment and settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use whimbrel_config::locations::{ConfigLocations, SharedDirs};
use whimbrel_config::settings::{TypedSettings, config_dir};
use whimbrel_models::anthropic::extra_body::{EXTRA_BODY_VARIABLE, ExtraBody};
use whimbrel_os::links::resolve_links;
use whimbrel_tools::hooks::{HookSet, ProgressPolicy};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::permission::state::NewPermissions;
use whimbrel_tools::task_list::TaskList;
use whimbrel_tools::telemetry::PromptSpans;
use whimbrel_tools::workspace::{ENV_FILE_VARIABLE, Workspace};
use whimbrel_wire::options::{Options, OutputFormat};

use super::setup_types::{
    AgentSetup, HookSetup, HostSetup, McpSetup, ModelSetup, PermissionSetup, PromptSetup, Setup, ToolSetup,
};
use crate::agents::AgentDefinitions;
use crate::engine::Engine;
use crate::runtime_settings::RuntimeSettings;
use crate::setup::discover::{Discovered, discover};
use crate::setup::env::is_env_set;
use crate::setup::location::{ResolvedLocation, resolve_location};
use crate::setup::session_request::{SessionRequest, SetupError};
use crate::setup::session_selection;
use crate::setup::store_resume::StoreResolvedSession;
use crate::setup::{
    background, limits, model, permissions, sandbox, settings, system_prompt, tools, unsupported,
    unsupported_variables,
};
use crate::state_notifier::StateSubscription;
use crate::structured_output::{self, OutputSchema};

/// What the parts of a setup are resolved from.
struct Sources<'a> {
    engine: &'a Engine,
    options: &'a Options,
    env: &'a BTreeMap<String, String>,
    settings: TypedSettings,
}

impl Setup {
    /// Resolves a setup. Sessions in a store are loaded by [`session_selection::resolve`] only.
    pub fn resolve(engine: &Engine, request: SessionRequest) -> Result<Self, SetupError> {
        Self::resolve_from(engine, request, None)
    }

    /// Resolves a setup, for a session that may have been selected from a store.
    pub(super) fn resolve_from(
        engine: &Engine,
        mut request: SessionRequest,
        stored: Option<StoreResolvedSession>,
    ) -> Result<Self, SetupError> {
        unsupported::unsupported_option(&request.options)
            .map_or(Ok(()), |text| Err(SetupError::Unsupported(text)))?;
        let settings = request.load_settings()?;
        let SessionRequest { options, mut env, in_process_servers, prompt_spans, .. } = request;
        env.extend(options.env.clone());
        let sources =
            Sources { engine, options: &options, env: &env, settings: settings.effective().typed.clone() };
        unsupported_variables::check_variables(&env).map_err(SetupError::Unsupported)?;
        let pass_env = &sources.settings.pass_env;
        let ResolvedLocation { session, task_list, mut warnings } =
            resolve_location(&options, &env, pass_env, stored, engine.sandbox_probe())?;
        sandbox::check_sandbox(settings.sandbox(), session.workspace.sandbox())?;
        warnings.extend(settings.warnings().iter().cloned().chain(unsupported::ignored_settings(&settings)));
        warnings.extend(unsupported_variables::ignored_variables(&env));
        warnings.extend(env_file_warning(&session.workspace));
        let root = session.workspace.root();
        let config_locations = Arc::new(ConfigLocations {
            instruction_dirs: instruction_dirs(&options, &env, &session.workspace),
            named_skill_dirs: settings::named_skill_dirs(&env),
            ..settings::config_locations(&options, &settings, config_dir(&env), root)
        });
        let Discovered { hooks, servers, commands, extensions, agent_definitions } =
            discover(&options, &env, &settings, &config_locations, &mut warnings)?;
        let mode = session_selection::resumed_mode(session.resumed.as_deref());
        let workspace = &session.workspace;
        let NewPermissions { state, warnings: permission_warnings } =
            permissions::initial_permissions(&options, &env, settings, workspace, mode, &mut warnings)?;
        warnings.extend(permission_warnings);
        let sandbox = Arc::clone(state.settings().sandbox());
        let report = sandbox::describe_sandbox(&sandbox, &state, workspace.sandbox());
        warnings.extend(report.into_iter().flat_map(|report| report.warnings));
        let permissions = sources.permissions(state);
        let tool_cache = ToolCache::new(permissions.state.clone(), permissions.prompt_tool.clone());
        let models = sources.models()?;
        let agents = sources.agents(agent_definitions.allowed_by(&permissions.state))?;
        let mut setup = Self {
            tools: sources.tools(&permissions.state, &models, &agents, &hooks, &tool_cache, task_list)?,
            commands: commands.with_mcp_prompts(tool_cache.clone()),
            mcp: McpSetup { servers, in_process_servers: Arc::new(in_process_servers), tool_cache },
            prompt: PromptSetup {
                system_prompt: system_prompt::read_system_prompt(&options)?,
                appended: system_prompt::appended_prompt(&options),
            },
            host: sources.host(prompt_spans, &warnings)?,
            hooks: HookSetup {
                set: hooks,
                progress: resolve_hook_progress(&options),
                setup_hooks: options.setup_hooks,
            },
            session,
            models,
            permissions,
            agents,
            config_locations,
            extensions,
        };
        setup.update_skill_tool();
        if let Some(OutputFormat::JsonSchema { schema }) = &options.output_format {
            setup.require_output_schema(schema).map_err(SetupError::Invalid)?;
        }
        Ok(setup)
    }

    /// Requires structured output: adds the tool by which the model returns it.
    pub fn require_output_schema(&mut self, schema: &Value) -> Result<(), String> {
        let attempts = match self.session.workspace.variable(structured_output::ATTEMPTS_VARIABLE) {
            None => structured_output::DEFAULT_ATTEMPTS,
            Some(text) => text.trim().parse::<u32>().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                format!(
                    "{} must be a whole number above 0, but is {text:?}.",
                    structured_output::ATTEMPTS_VARIABLE
                )
            })?,
        };
        let schema = OutputSchema::new(schema, attempts)?;
        self.tools.tool_set = Arc::new(self.tools.tool_set.with_tool(schema.tool()));
        self.tools.output_schema = Some(schema);
        Ok(())
    }

    /// Lets answers be free text again.
    pub fn remove_output_schema(&mut self) {
        if self.tools.output_schema.take().is_some() {
            self.tools.tool_set =
                Arc::new(self.tools.tool_set.without_tools(&[structured_output::TOOL_NAME]));
        }
    }

    /// Resolves a model name of the host; `None` is the default model.
    pub fn model(&self, engine: &Engine, name: Option<&str>) -> String {
        match name {
            None | Some("" | "default") => self.models.default_model.clone(),
            Some(name) => engine.catalog().resolve_alias(name),
        }
    }
}

impl Sources<'_> {
    fn permissions(&self, state: PermissionState) -> PermissionSetup {
        PermissionSetup {
            state,
            host_answers: permissions::can_host_answer(self.options),
            prompt_tool: permissions::prompt_tool(self.options),
            request_timeout: self.options.permission_timeout_ms.map(Duration::from_millis),
        }
    }

    fn models(&self) -> Result<ModelSetup, SetupError> {
        let Self { engine, options, env, settings } = self;
        ExtraBody::parse(env.get(EXTRA_BODY_VARIABLE).map(String::as_str)).map_err(SetupError::Invalid)?;
        let default_model = model::default_model(engine, options, env, settings);
        limits::check_budget(engine, options, settings, &default_model)?;
        Ok(ModelSetup {
            is_explicit: options.model.is_some(),
            small_model: model::small_model(engine, &default_model, env),
            runtime_settings: initial_runtime_settings(options, env, settings, &default_model)?,
            key_helper: settings.api_key_helper.clone(),
            default_model,
        })
    }

    fn agents(&self, definitions: AgentDefinitions) -> Result<AgentSetup, SetupError> {
        let Self { engine, options, env, settings } = self;
        Ok(AgentSetup {
            definitions,
            main_agent: options.agent.clone().or_else(|| settings.agent.clone()),
            limits: limits::resolve_limits(engine, options, env, settings)?,
            max_concurrent: limits::max_concurrent_agents(env)?,
            max_team_messages: limits::max_team_messages(env)?,
            forward_subagent_text: options.forward_subagent_text == Some(true),
            appended_prompt: system_prompt::subagent_prompt(options),
        })
    }

    fn tools(
        &self,
        permissions: &PermissionState,
        models: &ModelSetup,
        agents: &AgentSetup,
        hooks: &HookSet,
        mcp_tools: &ToolCache,
        task_list: TaskList,
    ) -> Result<ToolSetup, SetupError> {
        let Self { engine, options, env, .. } = self;
        let window = engine.catalog().lookup(&models.default_model).map(|model| model.context_window);
        let tool_set = tools::select_tools(engine, options, env, permissions);
        let (tool_set, deferred_tools) = tools::finalize_tools(&tool_set, options, env, window)?;
        let tool_set = tools::describe_agent_tool(tool_set, &agents.definitions);
        let tool_set = tools::describe_sandbox(tool_set, permissions);
        let tool_set = tool_set.with_hook_responders(hooks).with_mcp_tools(Arc::new(mcp_tools.clone()));
        Ok(ToolSetup { tool_set: Arc::new(tool_set), deferred_tools, task_list, output_schema: None })
    }

    fn host(&self, prompt_spans: PromptSpans, warnings: &[String]) -> Result<HostSetup, SetupError> {
        Ok(HostSetup {
            background_policy: background::background_policy(self.options, self.env)?,
            background_wait_limit: background::wait_limit(self.env)?,
            notification_turns: background::notification_turns(self.env),
            state_subscription: resolve_state_subscription(self.env),
            sends_details: is_env_set(self.env, HOST_DETAILS_VARIABLE),
            replay_user_messages: self.options.replay_user_messages,
            prompt_spans,
            warning: (!warnings.is_empty()).then(|| warnings.join("\n")),
        })
    }
}

fn initial_runtime_settings(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &TypedSettings,
    model: &str,
) -> Result<RuntimeSettings, SetupError> {
    Ok(RuntimeSettings {
        model: model.to_owned(),
        thinking: model::thinking(options, env, settings)?,
        thinking_display: model::thinking_display(options),
        effort: model::effort(options, env, settings)?,
        partial_messages: options.include_partial_messages,
        plan_mode_instructions: options.plan_mode_instructions.as_deref().map(Into::into),
    })
}

/// Additional directories whose instruction files are loaded: those of the host, if the user has enabled it.
fn instruction_dirs(options: &Options, env: &BTreeMap<String, String>, workspace: &Workspace) -> SharedDirs {
    if !is_env_set(env, "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD") {
        return SharedDirs::default();
    }
    let resolve = |dir: &String| resolve_links(&workspace.resolve(dir));
    options.additional_directories.iter().map(resolve).collect()
}

/// Warning about a file of the user that commands cannot read.
fn env_file_warning(workspace: &Workspace) -> Option<String> {
    let file = workspace.user_env_file()?;
    let error = std::fs::File::open(&file).err()?;
    let file = file.display();
    Some(format!(
        "{ENV_FILE_VARIABLE}: {file} cannot be read ({error}), so Bash commands run without it. Correct the path."
    ))
}

fn resolve_hook_progress(options: &Options) -> ProgressPolicy {
    if options.include_hook_events { ProgressPolicy::All } else { ProgressPolicy::StartupOnly }
}

/// Switch of a host that reads fields that the official protocol does not have.
const HOST_DETAILS_VARIABLE: &str = "WHIMBREL_HOST_DETAILS";

fn resolve_state_subscription(env: &BTreeMap<String, String>) -> StateSubscription {
    if is_env_set(env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
        StateSubscription::Caller
    } else if is_env_set(env, "CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        StateSubscription::Sdk
    } else {
        StateSubscription::Off
    }
}
