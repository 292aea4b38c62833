//! The request to start a session, and its errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whimbrel_config::settings::Settings;
use whimbrel_mcp::InProcessServer;
use whimbrel_os::files::{self, FileKind};
use whimbrel_os::links as paths;
use whimbrel_session_store::lock::BusyError;
use whimbrel_session_store::store::SharedStore;
use whimbrel_tools::telemetry::PromptSpans;
use whimbrel_wire::options::Options;

use super::settings;

/// A request to start a session.
#[derive(Debug, Clone, Default)]
pub struct SessionRequest {
    pub options: Options,
    /// Environment of the engine and of the commands that it runs.
    pub env: BTreeMap<String, String>,
    /// The settings, if they were already loaded.
    pub settings: Option<Settings>,
    /// In-process MCP servers of the host by name; the options name them too.
    pub in_process_servers: BTreeMap<String, InProcessServer>,
    /// The session store; `None` stores sessions in files.
    pub store: Option<SharedStore>,
    /// Spans in which the host sends its prompts.
    pub prompt_spans: PromptSpans,
}

impl SessionRequest {
    pub fn new(options: Options, env: BTreeMap<String, String>) -> Self {
        Self { options, env, ..Self::default() }
    }

    /// Loads the settings and adds their variables to the environment, for callers that need them before the session
    /// starts. Reads files.
    pub fn read_settings(&mut self) -> Result<&Settings, SetupError> {
        let settings = self.load_settings()?;
        Ok(self.settings.insert(settings))
    }

    /// Loads the settings to show or change them: invalid files are left out with a warning, and settings that this
    /// version does not support are no error. Reads files.
    pub fn inspect_settings(&self) -> Result<Settings, SetupError> {
        let mut env = self.env.clone();
        env.extend(self.options.env.clone());
        let mut options = Options { tolerate_bad_settings: true, ..self.options.clone() };
        settings::restrict_sources(&mut options, &env);
        settings::load_settings(&options, &env, &working_directory(&options)?)
    }

    /// Takes the loaded settings, or loads them.
    pub(super) fn load_settings(&mut self) -> Result<Settings, SetupError> {
        if let Some(settings) = self.settings.take() {
            return Ok(settings);
        }
        let mut env = self.env.clone();
        env.extend(self.options.env.clone());
        settings::restrict_sources(&mut self.options, &env);
        let settings = settings::load_settings(&self.options, &env, &working_directory(&self.options)?)?;
        self.env.extend(settings.effective().env.clone());
        Ok(settings)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// An option or setting that this version does not support.
    #[error("{0}")]
    Unsupported(String),
    /// An invalid variable or setting.
    #[error("{0}")]
    Invalid(String),
    /// The settings require a sandbox, and this machine has none.
    #[error(
        "Commands cannot be confined here, and the settings require a sandbox: {0}. Run `whimbrel sandbox status`, or set \
         sandbox.failIfUnavailable to false to run commands unconfined."
    )]
    SandboxUnavailable(String),
    /// An option with an invalid value. `option` is its field in [`Options`]; the flag has the same name.
    #[error("{} {reason}", flag_of(option))]
    InvalidOption { option: &'static str, reason: String },
    /// An option that makes sense only together with another one.
    #[error("{} requires {}: {reason}", flag_of(option), flag_of(required))]
    MissingOption { option: &'static str, required: &'static str, reason: &'static str },
    #[error("No conversation found with session ID: {session}")]
    NoSuchSession { session: String },
    #[error("The session {session} already exists{}. Choose another --session-id{}", .place.description(), .place.alternative())]
    SessionExists { session: String, place: SessionPlace },
    #[error("The working directory {} does not exist.", .0.display())]
    NoSuchDirectory(PathBuf),
    /// Another engine holds the session.
    #[error(
        "The session {session} is {busy}. Wait until it ends, or use --fork-session to continue with a copy."
    )]
    Busy { session: String, busy: BusyError },
}

/// Place of an existing session whose id was given to a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPlace {
    /// The directory of the new session: it could be resumed.
    Here,
    /// Another directory, or another spelling of the id.
    Elsewhere,
}

impl SessionPlace {
    fn description(self) -> &'static str {
        match self {
            Self::Here => "",
            Self::Elsewhere => ", in another directory or with different capitalization",
        }
    }

    fn alternative(self) -> &'static str {
        match self {
            Self::Here => ", or continue it with --resume.",
            Self::Elsewhere => ".",
        }
    }
}

/// The flag that sets an option.
fn flag_of(option: &str) -> String {
    format!("--{}", option.replace('_', "-"))
}

/// The working directory, resolved; it must exist.
pub(crate) fn working_directory(options: &Options) -> Result<PathBuf, SetupError> {
    let dir = match &options.cwd {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir().map_err(|error| {
            SetupError::Invalid(format!("The working directory is not accessible: {error}."))
        })?,
    };
    let dir = paths::resolve_links(&dir);
    if !matches!(files::file_kind(&dir), Ok(FileKind::Directory)) {
        return Err(SetupError::NoSuchDirectory(dir));
    }
    Ok(dir)
}
