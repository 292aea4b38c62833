//! Opens sessions of the engine: options, environment and callbacks, as the terminal would have them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::McpServer;
use nix::unistd::Uid;
use tokio::sync::{mpsc, oneshot};
use whimbrel::wire::control::ElicitationReply;
use whimbrel::wire::tool_names::ASK_USER_QUESTION;
use whimbrel::{Agent, Engine, Environment, PermissionResult, Session};

use crate::capabilities::ClientFeatures;
use crate::config_options::BypassMode;
use crate::elicitation;
use crate::engines::SharedEngines;
use crate::errors::{from_open_error, invalid_params};
use crate::mcp_servers::to_configs;
use crate::session::{OpenedSession, SessionEvent};

/// What the model is told if a session ends while it asks.
const SESSION_ENDED: &str = "The session has ended.";

/// Where a session works and what it can use, as the editor says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionPlace {
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) servers: Vec<McpServer>,
}

/// Whether a session is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// With this id.
    New(String),
    /// The stored session of this id.
    Resume(String),
}

impl Start {
    pub(crate) fn session(&self) -> &str {
        match self {
            Self::New(session) | Self::Resume(session) => session,
        }
    }
}

impl SessionPlace {
    /// Checks that the directories are absolute and exist.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for dir in std::iter::once(&self.cwd).chain(&self.directories) {
            if !dir.is_absolute() {
                return Err(invalid_params(format!("{} is not an absolute path", dir.display())));
            }
            if !dir.is_dir() {
                return Err(invalid_params(format!("the directory {} does not exist", dir.display())));
            }
        }
        Ok(())
    }
}

/// Opens sessions with the environment of this process. Sessions whose settings give the same variables share an engine.
pub(crate) struct SessionOpener {
    environment: Environment,
    engines: Mutex<SharedEngines>,
}

impl SessionOpener {
    pub(crate) fn new(environment: &Environment) -> Self {
        // Transcripts name the program that the user worked with.
        let entrypoint = [("CLAUDE_CODE_ENTRYPOINT", "acp")];
        let environment = environment.iter().chain(entrypoint).collect();
        Self { environment, engines: Mutex::default() }
    }

    /// An agent for the stored sessions.
    pub(crate) fn storage_agent(&self) -> Agent {
        Agent::new().environment(self.environment.clone())
    }

    /// Whether the mode that never asks may be offered: not to root, unless the machine is disposable.
    pub(crate) fn bypass_mode(&self) -> BypassMode {
        let is_disposable =
            self.environment.get("IS_SANDBOX").is_some_and(|value| matches!(value, "1" | "true"));
        match !Uid::effective().is_root() || is_disposable {
            true => BypassMode::Offered,
            false => BypassMode::Withheld,
        }
    }

    /// Opens a session whose callbacks post events.
    pub(crate) async fn open(
        &self,
        place: &SessionPlace,
        start: &Start,
        features: &ClientFeatures,
        events: mpsc::UnboundedSender<SessionEvent>,
    ) -> Result<OpenedSession, Error> {
        let agent = self.configure(place, start, features)?;
        let engine = self.engine_for(&agent)?;
        let agent = with_callbacks(agent.engine(Engine::clone(&engine)), events);
        let session = Session::open(&agent).await.map_err(|error| from_open_error(&error))?;
        Ok(OpenedSession { session, engine })
    }

    fn configure(
        &self,
        place: &SessionPlace,
        start: &Start,
        features: &ClientFeatures,
    ) -> Result<Agent, Error> {
        let servers = to_configs(&place.servers)?;
        let directories = place.directories.iter().map(|dir| utf8(dir)).collect::<Result<Vec<_>, _>>()?;
        let can_bypass = self.bypass_mode() == BypassMode::Offered;
        let mut agent = Agent::new().cwd(&place.cwd).environment(self.environment.clone()).with(|options| {
            options.setting_sources = None;
            options.include_partial_messages = true;
            options.mcp_servers = servers;
            options.additional_directories = directories;
            options.allow_dangerously_skip_permissions = can_bypass;
        });
        if !features.forms {
            agent = agent.deny_tool(ASK_USER_QUESTION);
        }
        Ok(match start {
            Start::New(session) => agent.session_id(session),
            Start::Resume(session) => agent.resume(session),
        })
    }

    /// The engine for the variables of this process and, below them, of the settings.
    fn engine_for(&self, agent: &Agent) -> Result<Arc<Engine>, Error> {
        let settings = agent.settings_environment().map_err(|error| from_open_error(&error))?;
        let environment: Environment = settings.iter().chain(self.environment.iter()).collect();
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(engines.get_or_create(environment))
    }
}

fn with_callbacks(agent: Agent, events: mpsc::UnboundedSender<SessionEvent>) -> Agent {
    let permission_events = events.clone();
    agent
        .can_use_tool(move |request| {
            let (events, (sender, receiver)) = (permission_events.clone(), oneshot::channel());
            async move {
                // A session that has ended drops the sender.
                let _ = events.send(SessionEvent::Permission(Box::new(request), sender));
                receiver.await.unwrap_or_else(|_| PermissionResult::deny(SESSION_ENDED))
            }
        })
        .on_elicitation(move |asked| {
            let (events, (sender, receiver)) = (events.clone(), oneshot::channel::<ElicitationReply>());
            async move {
                let _ = events.send(SessionEvent::Elicitation(Box::new(asked), sender));
                receiver.await.unwrap_or_else(|_| elicitation::cancelled())
            }
        })
}

fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| invalid_params(format!("{} is not UTF-8: rename the directory", path.display())))
}
