//! Options and environment to a [`Setup`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use whimbrel_wire::options::{Options, OutputFormat, SystemPrompt};

use crate::agenda::Agenda;
use crate::agent::Limits;
use crate::agents::Kinds;
use crate::commands::Commands;
use crate::engine::Engine;
use crate::ground::Ground;
use crate::hooks::{Announce, HookSet};
use crate::knobs::Knobs;
use crate::life::AtEnd;
use crate::mcp::{LocalServer, Servers, Supply};
use crate::on_demand::OnDemand;
use crate::permission::Rights;
use crate::permission::rights::Granted;
use crate::session::{Keeping, Past, Place};
use crate::settings::{self, Known};
use crate::setup::brought::{Brought, brought};
use crate::setup::extensions::Extensions;
use crate::setup::in_store::StoredBeginning;
use crate::setup::resume::{self, Origin};
use crate::setup::site::{Site, site};
use crate::setup::start::{SetupError, Start};
use crate::setup::{absent, configure, ending, grants, limits, model, prompt, tools};
use crate::shape::{self, Shape};
use crate::state::Wanted;
use crate::toolbox::{Offered, Toolbox};
use crate::workspace::Workspace;

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
    pub past: Option<Box<Past>>,
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
        let Site { session, workspace, place, keeping, past, origin, leaves_nothing, agenda, mut warnings } =
            site(options, env, stored)?;
        warnings.extend(settings.warnings().iter().cloned().chain(absent::unheeded(&settings)));
        let config = settings::config_folder(env);
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
        let kinds = kinds.permitted(&rights);
        let toolbox = tools::naming(toolbox, &kinds);
        let mut setup = Self {
            knobs: knobs(options, &known, &default_model),
            toolbox: Arc::new(toolbox.answered_by(&hooks).with_servers(supply.clone())),
            on_demand,
            agenda,
            kind: options.agent.clone().or_else(|| known.agent.clone()),
            kinds,
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
            system_prompt: prompt::system_prompt(options)?,
            append_system_prompt: prompt::appended(options),
            limits: limits::limits(engine, options, env, &known)?,
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
            past: past.map(Box::new),
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

/// What can be turned, as it stands at first.
fn knobs(options: &Options, known: &Known, model: &str) -> Knobs {
    Knobs {
        model: model.to_owned(),
        thinking: model::thinking(options, known),
        thinking_display: model::thinking_display(options),
        effort: model::effort(options, known),
        plan_mode_instructions: options.plan_mode_instructions.as_deref().map(Into::into),
    }
}

/// The tools that were asked for.
fn toolbox(engine: &Engine, options: &Options, env: &BTreeMap<String, String>, rights: &Rights) -> Toolbox {
    Toolbox::pick(&offered(engine, env), options.tools.as_ref(), rights, grants::person(options))
}

/// The tools that there are: those for teams only where the host asks for teams.
fn offered(engine: &Engine, env: &BTreeMap<String, String>) -> Vec<Arc<Offered>> {
    let teams = is_set(env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS");
    if teams { engine.team_tools() } else { engine.tools() }.to_vec()
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
