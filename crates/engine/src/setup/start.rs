//! How a session is started, and why it may not be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whimbrel_wire::options::Options;

use super::configure;
use crate::files::{self, FileKind};
use crate::mcp::LocalServer;
use crate::permission::paths;
use crate::session::lock::BusyError;
use crate::session::store::SharedStore;
use crate::settings::Settings;

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
        let settings = self.load_settings()?;
        Ok(self.settings.insert(settings))
    }

    /// The settings, read if they have not been yet.
    pub(super) fn load_settings(&mut self) -> Result<Settings, SetupError> {
        if let Some(settings) = self.settings.take() {
            return Ok(settings);
        }
        let mut env = self.env.clone();
        env.extend(self.options.env.clone());
        let settings = configure::load_settings(&self.options, &env, &working_directory(&self.options)?)?;
        self.env.extend(settings.effective().env.clone());
        Ok(settings)
    }
}

/// Why a session cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// Something that this version does not have.
    #[error("{0}")]
    Unsupported(String),
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
        busy: BusyError,
    },
}

/// Where a session works; it must be there.
pub(super) fn working_directory(options: &Options) -> Result<PathBuf, SetupError> {
    let folder = match &options.cwd {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_dir()
            .map_err(|error| SetupError::Invalid(format!("The working directory is gone: {error}.")))?,
    };
    let folder = paths::resolve_links(&folder);
    if !matches!(files::file_kind(&folder), Ok(FileKind::Directory)) {
        return Err(SetupError::Invalid(format!(
            "The working directory {} does not exist.",
            folder.display()
        )));
    }
    Ok(folder)
}
