//! Options and environment to a [`Setup`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use whimbrel_wire::options::{Options, OutputFormat, SystemPrompt};

use crate::agenda::Agenda;
use crate::agent::Limits;
use crate::agents::Kinds;
use crate::commands::Commands;
use crate::context::room::Switches;
use crate::engine::Engine;
use crate::files::{self, Kind};
use crate::ground::Ground;
use crate::hooks::{Announce, HookSet};
use crate::knobs::Knobs;
use crate::life::AtEnd;
use crate::mcp::{LocalServer, Servers, Supply};
use crate::on_demand::OnDemand;
use crate::permission::rights::Granted;
use crate::permission::{Rights, paths};
use crate::session::lock::Busy;
use crate::session::store::SharedStore;
use crate::session::{Keeping, Past, Place};
use crate::settings::{self, Known, Settings};
use crate::setup::extensions::{self, Extensions};
use crate::setup::in_store::StoredBeginning;
use crate::setup::resume::{self, Origin};
use crate::setup::{absent, configure, ending, grants, history, home, hooks, model, servers, tools};
use crate::shape::{self, Shape};
use crate::state::Wanted;
use crate::toolbox::{Offered, Toolbox};
use crate::workspace::Workspace;

/// How many bytes a system prompt may have.
const LONGEST_PROMPT: u64 = 1024 * 1024;

/// How many minutes an overload may be ridden out at most: a month.
const LONGEST_RIDE: u64 = 30 * 24 * 60;

/// How a session is started.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// What was asked for.
    pub options: Options,
    /// The environment: of the engine itself, and of the commands it runs.
    pub env: BTreeMap<String, String>,
    /// The settings, once they have been read.
    pub settings: Option<Settings>,
    /// MCP servers of the host that are code in this process, by name. The options name them too.
    pub local_servers: BTreeMap<String, LocalServer>,
    /// The store that keeps the session; none keeps it in files.
    pub store: Option<SharedStore>,
}

impl Start {
    /// A start with these options, in this environment.
    pub fn new(options: Options, env: BTreeMap<String, String>) -> Self {
        Self { options, env, ..Self::default() }
    }

    /// Reads the settings and puts their variables into the environment. For whoever needs them before the session
    /// does; a session reads them itself otherwise. Touches the disk.
    pub fn read_settings(&mut self) -> Result<&Settings, SetupError> {
        let settings = self.take_settings()?;
        Ok(self.settings.insert(settings))
    }

    fn take_settings(&mut self) -> Result<Settings, SetupError> {
        if let Some(settings) = self.settings.take() {
            return Ok(settings);
        }
        let mut env = self.env.clone();
        env.extend(self.options.env.clone());
        let settings = configure::read(&self.options, &env, &working_directory(&self.options)?)?;
        self.env.extend(settings.effective().env.clone());
        Ok(settings)
    }
}

/// Everything a session needs to know, resolved.
pub struct Setup {
    /// The session's id.
    pub session: String,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    /// Where its transcript is kept; none keeps nothing.
    pub place: Option<Place>,
    /// How it is kept.
    pub keeping: Keeping,
    /// What the session goes on from; taken by the first turn.
    pub past: Option<Past>,
    /// How the session came to be.
    pub origin: Origin,
    /// Whether nothing of the session may stay on disk.
    pub leaves_nothing: bool,
    /// The model that is used when the host asks for the default.
    pub default_model: String,
    /// Whether the host named the model.
    pub model_was_named: bool,
    /// The model for small jobs.
    pub small_model: String,
    /// The knobs as they stand at the start.
    pub knobs: Knobs,
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// Which of them the model has been shown.
    pub on_demand: OnDemand,
    /// Its list of tasks.
    pub agenda: Agenda,
    /// The kinds of subagent.
    pub kinds: Kinds,
    /// The kind that the session itself is, by name.
    pub kind: Option<String>,
    /// What the session may do.
    pub rights: Rights,
    /// The hooks that the settings bring.
    pub hooks: HookSet,
    /// Of which events the host hears that hooks run.
    pub announce: Announce,
    /// Whether the host answers permission questions.
    pub host_answers: bool,
    /// The tool of an MCP server that answers them instead.
    pub prompt_tool: Option<String>,
    /// The MCP servers to start; taken when the session begins.
    pub servers: Servers,
    /// Those of the host that are code in this process.
    pub local_servers: Arc<BTreeMap<String, LocalServer>>,
    /// What MCP servers bring.
    pub supply: Supply,
    /// How long a question waits for its answer; none waits as long as it takes.
    pub patience: Option<Duration>,
    /// Where the person's and the project's files lie.
    pub ground: Arc<Ground>,
    /// The slash commands.
    pub commands: Commands,
    /// What people and plugins have added.
    pub extensions: Extensions,
    /// The system prompt that was asked for.
    pub system_prompt: Option<SystemPrompt>,
    /// What is added to it.
    pub append_system_prompt: Option<String>,
    /// Limits and switches.
    pub limits: Limits,
    /// What becomes of background work at the end.
    pub at_end: AtEnd,
    /// How long it is waited for; none waits as long as it takes.
    pub ceiling: Option<Duration>,
    /// How many agents may work at once, if the host says so.
    pub agents_at_once: Option<usize>,
    /// How many letters a team may write, if the host says so.
    pub team_letters: Option<usize>,
    /// Whether the host wants to see the state.
    pub state_wanted: Wanted,
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
    pub shape: Option<Shape>,
    /// The command that prints the key for the model's provider.
    pub key_helper: Option<String>,
}

/// Why a session cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Something that this version does not have.
    #[error("{0}")]
    Absent(String),
    /// An option makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The session is another engine's.
    #[error(
        "The session {session} is {busy}. Wait until it has ended, or use --fork-session to go on with a copy."
    )]
    Busy {
        /// The session.
        session: String,
        /// Who has it.
        busy: Busy,
    },
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
        stored: Option<StoredBeginning>,
    ) -> Result<Self, SetupError> {
        absent::in_options(&start.options).map_or(Ok(()), |text| Err(SetupError::Absent(text)))?;
        let settings = start.take_settings()?;
        let Start { options, mut env, local_servers, .. } = start;
        env.extend(options.env.clone());
        let (options, env) = (&options, &env);
        let root = working_directory(options)?;
        let mut keeping = resume::keeping(options, env)?;
        let (kept, lost) = home::place(env, &root).map_or_else(|why| (None, Some(why)), |it| (it, None));
        let lost = lost.filter(|_| options.persist_session != Some(false) && stored.is_none());
        let leaves_nothing = options.persist_session == Some(false) || stored.is_some();
        let resume::Beginning { session, place, past, origin, warning } = match stored {
            Some(stored) => stored.take(&mut keeping),
            None => resume::begin(options, kept.as_ref(), &keeping)?,
        };
        let spill = spill(place.as_ref(), env, &session);
        let config = settings::config_folder(env);
        let kept_in = config.as_deref().filter(|_| place.is_some());
        let checkpoints = history::checkpoints(options, kept_in, &spill, &session);
        let not_copied = history::inherit(options, origin, checkpoints.as_ref(), config.as_deref());
        let agenda = tools::agenda(kept_in, env, &session);
        let workspace = Arc::new(Workspace::new(root, spill, env.clone()).with_checkpoints(checkpoints));
        let mut warnings: Vec<String> = lost.into_iter().chain(warning).chain(not_copied).collect();
        warnings.extend(settings.warnings().iter().cloned().chain(absent::unheeded(&settings)));
        let known = settings.effective().known.clone();
        let ground = Arc::new(configure::ground(options, &settings, config, workspace.root()));
        let Brought { hooks, servers, commands, extensions, kinds } =
            brought(options, env, &settings, &ground, &mut warnings)?;
        let before = resume::mode(past.as_ref());
        let Granted { rights, warnings: about_rights, .. } =
            grants::rights(options, env, settings, &workspace, before, &mut warnings)?;
        warnings.extend(about_rights);
        let default_model = model::default_model(engine, options, env, &known);
        let (host_answers, prompt_tool) = (grants::host_answers(options), grants::prompt_tool(options));
        let supply = Supply::new(rights.clone(), prompt_tool.clone());
        model::budget(engine, options, &known, &default_model)?;
        let small_model = model::small_model(engine, &default_model, env);
        let window = engine.catalog().lookup(&default_model).map(|model| model.context_window);
        let (toolbox, on_demand) =
            tools::settle(&toolbox(engine, options, env, &rights), options, env, window)?;
        let mut setup = Self {
            knobs: knobs(options, &known, &default_model),
            toolbox: Arc::new(toolbox.with_servers(supply.clone())),
            on_demand,
            agenda,
            kind: options.agent.clone().or_else(|| known.agent.clone()),
            kinds: kinds.permitted(&rights),
            host_answers,
            prompt_tool,
            servers,
            local_servers: Arc::new(local_servers),
            patience: options.permission_timeout_ms.map(Duration::from_millis),
            rights,
            hooks,
            announce: if options.include_hook_events { Announce::All } else { Announce::Beginning },
            ground,
            commands: commands.with_servers(supply.clone()),
            supply,
            extensions,
            system_prompt: system_prompt(options)?,
            append_system_prompt: appended(options),
            limits: limits(engine, options, env, &known)?,
            at_end: ending::at_end(options, env)?,
            ceiling: ending::ceiling(env)?,
            agents_at_once: ending::agents_at_once(env)?,
            team_letters: ending::team_letters(env)?,
            state_wanted: state_wanted(env),
            forward_subagent_text: options.forward_subagent_text == Some(true),
            replay_user_messages: options.replay_user_messages,
            entrypoint: env.get("CLAUDE_CODE_ENTRYPOINT").cloned().unwrap_or_else(|| "cli".into()),
            warning: (!warnings.is_empty()).then(|| warnings.join("\n")),
            session,
            workspace,
            place,
            keeping,
            past,
            origin,
            title: options.title.clone(),
            leaves_nothing,
            default_model,
            model_was_named: options.model.is_some(),
            small_model,
            shape: None,
            key_helper: known.api_key_helper.clone(),
        };
        setup.offer_skills();
        if let Some(OutputFormat::JsonSchema { schema }) = &options.output_format {
            setup.ask_for_shape(schema).map_err(SetupError::Invalid)?;
        }
        Ok(setup)
    }

    /// Asks for answers in a shape: the tool by which they are given is added.
    pub fn ask_for_shape(&mut self, schema: &Value) -> Result<(), String> {
        let attempts = match self.workspace.variable(shape::LIMIT_VARIABLE) {
            None => shape::ATTEMPTS,
            Some(text) => text.trim().parse::<u32>().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                format!("{} must be a whole number above 0, but is {text:?}.", shape::LIMIT_VARIABLE)
            })?,
        };
        let shape = Shape::new(schema, attempts)?;
        self.toolbox = Arc::new(self.toolbox.with(shape.tool()));
        self.shape = Some(shape);
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

/// What files, plugins and the host bring to a session.
struct Brought {
    hooks: HookSet,
    servers: Servers,
    commands: Commands,
    extensions: Extensions,
    kinds: Kinds,
}

/// Finds it. What is wrong with any of it is added to the warnings.
fn brought(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &Settings,
    ground: &Ground,
    warnings: &mut Vec<String>,
) -> Result<Brought, SetupError> {
    let (mut hooks, about_hooks) = hooks::of_settings(settings.effective())?;
    warnings.extend(about_hooks);
    let found = extensions::find(options, settings, ground, &ground.root);
    warnings.extend(found.warnings);
    hooks.append(found.hooks);
    let plugins = &found.extensions.plugins;
    let servers = servers::servers(options, env, settings, ground, plugins);
    warnings.extend(servers.problems.iter().cloned());
    let (mut kinds, about_kinds) = Kinds::find(ground, &plugins.agent_folders());
    warnings.extend(about_kinds);
    warnings.extend(kinds.add_host(options.agents.clone()));
    Ok(Brought { hooks, servers, commands: found.commands, extensions: found.extensions, kinds })
}

/// What can be turned, as it stands at first.
fn knobs(options: &Options, known: &Known, model: &str) -> Knobs {
    Knobs {
        model: model.to_owned(),
        thinking: model::thinking(options, known),
        effort: model::effort(options, known),
        plan_mode_instructions: options.plan_mode_instructions.as_deref().map(Into::into),
    }
}

/// The tools that were asked for.
fn toolbox(engine: &Engine, options: &Options, env: &BTreeMap<String, String>, rights: &Rights) -> Toolbox {
    let person = grants::person(grants::host_answers(options), rights.mode());
    Toolbox::pick(&offered(engine, env), options.tools.as_ref(), rights, person)
}

pub(super) fn working_directory(options: &Options) -> Result<PathBuf, SetupError> {
    let folder = match &options.cwd {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_dir()
            .map_err(|error| SetupError::Invalid(format!("The working directory is gone: {error}.")))?,
    };
    let folder = paths::real(&folder);
    if !matches!(files::kind(&folder), Ok(Kind::Folder)) {
        return Err(SetupError::Invalid(format!(
            "The working directory {} does not exist.",
            folder.display()
        )));
    }
    Ok(folder)
}

/// Where long tool output goes: beside the transcript, or to the temporary folder when none is kept.
fn spill(place: Option<&Place>, env: &BTreeMap<String, String>, session: &str) -> PathBuf {
    match place {
        Some(place) => place.tool_results(session),
        None => home::temporary(env).join(format!("whimbrel-{session}")),
    }
}

fn system_prompt(options: &Options) -> Result<Option<SystemPrompt>, SetupError> {
    match &options.system_prompt {
        Some(SystemPrompt::File { path }) => match files::read(Path::new(path), LONGEST_PROMPT) {
            Ok((bytes, _)) => Ok(Some(SystemPrompt::Text(String::from_utf8_lossy(&bytes).into_owned()))),
            Err(error) => {
                Err(SetupError::Invalid(format!("The system prompt file {path} cannot be read: {error}.")))
            }
        },
        other => Ok(other.clone()),
    }
}

fn appended(options: &Options) -> Option<String> {
    match &options.system_prompt {
        Some(SystemPrompt::Preset { append, .. }) => append.clone(),
        _ => None,
    }
}

fn limits(
    engine: &Engine,
    options: &Options,
    env: &BTreeMap<String, String>,
    known: &Known,
) -> Result<Limits, SetupError> {
    let switches = Switches::from_env(env).map_err(SetupError::Invalid)?;
    let number = |name: &str| -> Result<Option<u64>, SetupError> {
        env.get(name)
            .map(|text| text.trim().parse())
            .transpose()
            .map_err(|_| SetupError::Invalid(format!("{name} must be a whole number.")))
    };
    if options.task_budget == Some(0) {
        let text = "--task-budget must be more than 0 tokens: with none, nothing can be done.";
        return Err(SetupError::Invalid(text.into()));
    }
    Ok(Limits {
        max_turns: options.max_turns,
        max_budget: options.max_budget_usd,
        task_budget: options.task_budget,
        max_output_tokens: options.max_output_tokens.or(number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?),
        max_retries: number("CLAUDE_CODE_MAX_RETRIES")?.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        ride_out: number("WHIMBREL_RIDE_OUT_MINUTES")?
            .map(|minutes| Duration::from_secs(minutes.min(LONGEST_RIDE) * 60)),
        partial_messages: options.include_partial_messages,
        betas: options.betas.clone(),
        fallback_models: model::fallback_models(engine, options, known),
        compaction: Switches { off: switches.off || known.auto_compact_enabled == Some(false), ..switches },
    })
}

/// The tools that there are: those for teams only where the host asks for teams.
fn offered(engine: &Engine, env: &BTreeMap<String, String>) -> Vec<Arc<Offered>> {
    let teams = if is_set(env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS") { engine.team_tools() } else { &[] };
    engine.tools().iter().chain(teams).cloned().collect()
}

/// Whether a variable says yes.
pub(super) fn is_set(env: &BTreeMap<String, String>, name: &str) -> bool {
    env.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

fn state_wanted(env: &BTreeMap<String, String>) -> Wanted {
    if is_set(env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
        Wanted::ByCaller
    } else if is_set(env, "CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        Wanted::BySdk
    } else {
        Wanted::Never
    }
}
