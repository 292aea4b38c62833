//! The request to start a session, and its errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whimbrel_config::settings::Settings;
use whimbrel_mcp::InProcessServer;
use whimbrel_os::files::{self, FileKind};
use whimbrel_os::links as paths;
use whimbrel_session_store::lock::BusyError;
use whimbrel_session_store::store::SharedStore;
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
        let options = Options { tolerate_bad_settings: true, ..self.options.clone() };
        settings::read_settings(&options, &env, &working_directory(&options)?)
    }

    /// Takes the loaded settings, or loads them.
    pub(super) fn load_settings(&mut self) -> Result<Settings, SetupError> {
        if let Some(settings) = self.settings.take() {
            return Ok(settings);
        }
        let mut env = self.env.clone();
        env.extend(self.options.env.clone());
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
    /// An invalid option, variable or setting.
    #[error("{0}")]
    Invalid(String),
    /// Another engine holds the session.
    #[error(
        "The session {session} is {busy}. Wait until it ends, or use --fork-session to continue with a copy."
    )]
    Busy { session: String, busy: BusyError },
}

/// The working directory, resolved; it must exist.
pub(super) fn working_directory(options: &Options) -> Result<PathBuf, SetupError> {
    let dir = match &options.cwd {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir().map_err(|error| {
            SetupError::Invalid(format!("The working directory is not accessible: {error}."))
        })?,
    };
    let dir = paths::resolve_links(&dir);
    if !matches!(files::file_kind(&dir), Ok(FileKind::Directory)) {
        return Err(SetupError::Invalid(format!("The working directory {} does not exist.", dir.display())));
    }
    Ok(dir)
}
