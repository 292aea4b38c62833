//! Opens the session of the engine: options, environment, model and callbacks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Zoned;
use serde_json::{Value, json};
use whimbrel::model::{ApiDialect, Model, Provider};
use whimbrel::wire::options::Thinking;
use whimbrel::wire::tool_names::{ASK_USER_QUESTION, ENTER_PLAN_MODE, EXIT_PLAN_MODE, SKILL};
use whimbrel::{Agent, Engine, Environment, PermissionMode, Session, Sessions, Subagent};

use crate::agent_file::AgentFile;
use crate::callbacks::{CallbackSender, add_callbacks};
use crate::context_log;
use crate::external_tools::ExternalTool;
use crate::hooks::Subscriptions;
use crate::ids::new_uuid;
use crate::model_choice::{Capability, ModelChoice};
use crate::model_layer::{ArgumentSender, KimiModel};
use crate::setup::Setup;
use crate::share_dir::StoredState;
use crate::tools;

/// Prefix of the model's name in the engine.
const PROVIDER: &str = "kimi";

/// Output limit and thinking budget for the Messages API.
const MESSAGES_OUTPUT_TOKENS: u64 = 50_000;
const MESSAGES_THINKING_TOKENS: u64 = 32_000;

/// Tools of the engine that this wire has.
const ENGINE_TOOLS: [&str; 15] = [
    "Agent",
    ASK_USER_QUESTION,
    "TodoWrite",
    "Bash",
    "TaskOutput",
    "TaskStop",
    "Read",
    "Glob",
    "Grep",
    "Write",
    "Edit",
    "WebFetch",
    ENTER_PLAN_MODE,
    EXIT_PLAN_MODE,
    SKILL,
];
/// Offered where the provider searches itself.
const SEARCH_TOOL: &str = "WebSearch";

/// Calls that require permission although the engine's rules would allow them, such as commands that only read.
const ASK_RULES: [&str; 2] = ["Bash", "TaskStop"];

/// What a client can do, as it says in `initialize`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientFeatures {
    /// It answers questions of the model.
    pub(crate) questions: bool,
    /// It shows plans.
    pub(crate) plan_mode: bool,
}

/// What the client has asked for in `initialize`.
pub(crate) struct ClientSetup<'a> {
    pub(crate) features: ClientFeatures,
    pub(crate) subscriptions: &'a Subscriptions,
    pub(crate) tools: &'a [ExternalTool],
    /// For the header that names the program.
    pub(crate) name: &'a str,
}

/// Opens the session that the state names, or a new one. The state gets the id of the engine's session.
pub(crate) async fn open(
    setup: &Setup,
    model: &ModelChoice,
    client: &ClientSetup<'_>,
    state: &mut StoredState,
    callbacks: &CallbackSender,
    arguments: ArgumentSender,
) -> Result<Session, String> {
    let environment = environment(setup, model);
    let engine = engine(&environment, model, setup, client.name, arguments);
    let agent = configure(setup, model, client, state.plan_mode)?.environment(environment).engine(engine);
    let sessions = agent.sessions().map_err(|error| error.to_string())?;
    let agent = select_session(agent, &sessions, setup, state).await?;
    let agent = add_callbacks(agent, client.subscriptions, client.tools, callbacks);
    Session::open(&agent).await.map_err(|error| error.to_string())
}

/// Resumes the engine's session that has the conversation. Without one, it is made of the conversation in the session's
/// files, which is how a host forks a session, or is new.
async fn select_session(
    agent: Agent,
    sessions: &Sessions,
    setup: &Setup,
    state: &mut StoredState,
) -> Result<Agent, String> {
    let is_known = async |id: &str| {
        let found = sessions.find(id).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(found.filter(|found| found.session_id == id))
    };
    if let Some(id) = &state.engine_session
        && is_known(id).await?.is_some()
    {
        return Ok(agent.resume(id.clone()));
    }
    // A session that was cleared has an id and no transcript yet.
    let cleared = state.engine_session.clone();
    let is_uuid = uuid::Uuid::try_parse(&setup.session_id).is_ok() && setup.session_id.len() == 36;
    let same_id = match (&cleared, is_uuid) {
        (None, true) => is_known(&setup.session_id).await?,
        _ => None,
    };
    let conversation = setup.session_dir.context();
    let id = match (cleared, &same_id, is_uuid) {
        (Some(id), _, _) => id,
        (None, None, true) => setup.session_id.clone(),
        _ => new_uuid(),
    };
    let resumed = if conversation.exists() {
        let messages = context_log::read(&conversation)
            .map_err(|error| format!("{} cannot be read: {error}.", conversation.display()))?;
        if !messages.is_empty() {
            let imported = sessions.import(&setup.work_dir, &id, messages).await;
            imported.map_err(|error| {
                format!("The conversation of {} cannot be stored: {error}", conversation.display())
            })?;
            Some(id.clone())
        } else {
            None
        }
    } else {
        // A session of the terminal or of an editor goes on here.
        let is_here = |cwd: &str| fs::canonicalize(cwd).ok() == fs::canonicalize(&setup.work_dir).ok();
        same_id.filter(|found| found.cwd.as_deref().is_some_and(is_here)).map(|found| found.session_id)
    };
    let agent = match &resumed {
        Some(session) => agent.resume(session.clone()),
        None => agent.session_id(id.clone()),
    };
    state.engine_session = Some(resumed.unwrap_or(id));
    Ok(agent)
}

/// The variables of the engine. Programs that it starts do not get the key.
fn environment(setup: &Setup, model: &ModelChoice) -> Environment {
    let variables = setup.environment.iter().filter(|(name, _)| *name != "KIMI_API_KEY");
    let own = [
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-kimi".to_owned()),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", model.window.max(1).to_string()),
        ("CLAUDE_CODE_MAX_RETRIES", setup.max_retries.to_string()),
        // The to-do list of this wire is the model's own.
        ("CLAUDE_CODE_ENABLE_TASKS", "0".to_owned()),
        ("MCP_TOOL_TIMEOUT", setup.mcp_timeout_ms.to_string()),
        // Nothing is sent between turns.
        ("WHIMBREL_NOTIFICATION_TURNS", "0".to_owned()),
    ];
    let skills = std::env::join_paths(&setup.skills_dirs).ok().and_then(|dirs| dirs.into_string().ok());
    let skills = skills.filter(|dirs| !dirs.is_empty()).map(|dirs| ("WHIMBREL_SKILL_DIRS".to_owned(), dirs));
    let texts = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let configured = model.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let ratio = setup.compaction_ratio.map(|ratio| (ratio * 100.0).clamp(1.0, 100.0));
    let ratio = ratio.map(|percent| ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE".to_owned(), percent.to_string()));
    let own = own.map(|(name, value)| (name.to_owned(), value));
    texts.chain(configured).chain(skills).chain(ratio).chain(own).collect()
}

fn engine(
    environment: &Environment,
    model: &ModelChoice,
    setup: &Setup,
    client: &str,
    arguments: ArgumentSender,
) -> Engine {
    let provider = match model.dialect {
        ApiDialect::Chat => Provider::chat(PROVIDER, &model.base_url),
        ApiDialect::Messages => Provider::messages(PROVIDER, &model.base_url),
    };
    let agent = format!("whimbrel/{} ({client})", env!("CARGO_PKG_VERSION"));
    let provider = provider.header("user-agent", agent);
    let provider =
        model.headers.iter().fold(provider, |provider, (name, value)| provider.header(name, value));
    let provider = match &model.api_key {
        Some(key) => provider.key(key),
        None => provider,
    };
    let fields = request_fields(model, setup);
    let provider =
        fields.into_iter().fold(provider, |provider, (name, value)| provider.body_field(name, value));
    let layer =
        move |model: Arc<dyn Model>| -> Arc<dyn Model> { Arc::new(KimiModel::new(model, arguments.clone())) };
    environment.engine_builder().provider(provider).layer(layer).build()
}

/// Fields of requests to providers of the type `kimi`.
fn request_fields(model: &ModelChoice, setup: &Setup) -> BTreeMap<&'static str, Value> {
    let mut fields = BTreeMap::new();
    if !model.is_kimi {
        return fields;
    }
    fields.insert("prompt_cache_key", json!(setup.session_id));
    if model.capabilities.contains(&Capability::Thinking) {
        let kind = if setup.thinking { "enabled" } else { "disabled" };
        let mut thinking = json!({"type": kind});
        if let Some(keep) = &model.request_fields.thinking_keep {
            thinking["keep"] = keep.as_str().into();
        }
        fields.insert("thinking", thinking);
    }
    let numbers = [("temperature", model.request_fields.temperature), ("top_p", model.request_fields.top_p)];
    fields.extend(numbers.into_iter().filter_map(|(name, value)| Some((name, json!(value?)))));
    fields
}

fn configure(
    setup: &Setup,
    model: &ModelChoice,
    client: &ClientSetup<'_>,
    plan_mode: bool,
) -> Result<Agent, String> {
    let directories = setup.add_dirs.iter().map(|dir| utf8(dir)).collect::<Result<Vec<_>, _>>()?;
    let servers = setup.mcp_servers.keys().map(|name| format!("mcp__{name}"));
    let ask: Vec<String> = ASK_RULES.iter().map(|rule| (*rule).to_owned()).chain(servers).collect();
    let thinking = match model.dialect {
        ApiDialect::Messages if setup.thinking => {
            Thinking::Enabled { budget_tokens: Some(MESSAGES_THINKING_TOKENS), display: None }
        }
        _ => Thinking::Disabled,
    };
    let max_output_tokens = match model.dialect {
        ApiDialect::Messages => Some(MESSAGES_OUTPUT_TOKENS),
        ApiDialect::Chat => model.request_fields.max_completion_tokens,
    };
    let mode = if plan_mode { PermissionMode::Plan } else { PermissionMode::Default };
    let agent = Agent::new()
        .cwd(&setup.work_dir)
        .model(format!("{PROVIDER}:{}", model.model))
        .max_turns(setup.max_steps)
        .thinking(thinking)
        .permission_mode(mode)
        .tools(offered_tools(setup.agent_file.as_ref(), model, client.features))
        .with(|options| {
            options.setting_sources = None;
            options.include_partial_messages = true;
            options.replay_user_messages = true;
            options.forward_subagent_text = Some(true);
            options.max_output_tokens = max_output_tokens;
            options.additional_directories = directories;
            options.mcp_servers.clone_from(&setup.mcp_servers);
            options.strict_mcp_config = true;
            options.settings = Some(json!({"permissions": {"ask": ask}}).to_string());
        });
    match &setup.agent_file {
        Some(file) => apply_agent_file(agent, file, setup),
        None => Ok(agent),
    }
}

/// Names of the engine's tools that the model is offered.
fn offered_tools(
    file: Option<&AgentFile>,
    model: &ModelChoice,
    features: ClientFeatures,
) -> Vec<&'static str> {
    let wanted = |name: &str| {
        let listed = |list: &[String]| list.iter().any(|kimi| tools::engine_name(kimi) == name);
        file.is_none_or(|file| file.tools.as_deref().is_none_or(listed) && !listed(&file.exclude_tools))
    };
    let can_use = |name: &&str| match *name {
        ASK_USER_QUESTION => features.questions,
        ENTER_PLAN_MODE | EXIT_PLAN_MODE => features.plan_mode && features.questions,
        SEARCH_TOOL => model.dialect == ApiDialect::Messages,
        _ => true,
    };
    ENGINE_TOOLS.into_iter().chain([SEARCH_TOOL]).filter(can_use).filter(|name| wanted(name)).collect()
}

fn apply_agent_file(mut agent: Agent, file: &AgentFile, setup: &Setup) -> Result<Agent, String> {
    let variables = prompt_variables(setup);
    let render = |file: &AgentFile| file.render_prompt(&variables).map_err(|error| error.to_string());
    if let Some(prompt) = render(file)? {
        agent = agent.system_prompt(prompt);
    } else if let Some(role) = file.system_prompt_args.get("ROLE_ADDITIONAL") {
        agent = agent.append_system_prompt(role);
    }
    for (name, subagent) in file.subagents.iter().flatten() {
        let role = || subagent.agent.system_prompt_args.get("ROLE_ADDITIONAL").cloned();
        let prompt = render(&subagent.agent)?.or_else(role).unwrap_or_default();
        let names = |list: &[String]| -> Vec<String> {
            list.iter().map(|kimi| tools::engine_name(kimi).to_owned()).collect()
        };
        let mut definition = Subagent::new(&subagent.description, prompt);
        if let Some(list) = &subagent.agent.tools {
            definition = definition.tools(names(list));
        }
        if !subagent.agent.exclude_tools.is_empty() {
            definition = definition.disallowed_tools(names(&subagent.agent.exclude_tools));
        }
        agent = agent.subagent(name, definition);
    }
    Ok(agent)
}

/// Values for the prompts of agent files.
fn prompt_variables(setup: &Setup) -> BTreeMap<String, String> {
    let dir = &setup.work_dir;
    let instructions = fs::read_to_string(dir.join("AGENTS.md")).unwrap_or_default();
    let values = [
        ("KIMI_NOW", Zoned::now().timestamp().to_string()),
        ("KIMI_WORK_DIR", dir.display().to_string()),
        ("KIMI_WORK_DIR_LS", list_dir(dir)),
        ("KIMI_AGENTS_MD", instructions),
        // The engine tells the model itself which skills there are.
        ("KIMI_SKILLS", String::new()),
        ("KIMI_ADDITIONAL_DIRS_INFO", list_paths(&setup.add_dirs)),
        ("KIMI_OS", std::env::consts::OS.to_owned()),
        ("KIMI_SHELL", "bash".to_owned()),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn list_dir(dir: &Path) -> String {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            format!("{}{}", entry.file_name().to_string_lossy(), if is_dir { "/" } else { "" })
        })
        .collect();
    names.sort();
    names.join("\n")
}

fn list_paths(paths: &[std::path::PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n")
}

fn utf8(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("{} is not UTF-8. Rename the directory.", path.display()))
}
