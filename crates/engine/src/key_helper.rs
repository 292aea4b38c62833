//! `apiKeyHelper`: a command of the user that prints the provider's API key. The key is cached and fetched again when
//! it expires or is rejected.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use whimbrel_models::key_source::{API_KEY_HELPER, KeySource};
use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_os::clock;
use whimbrel_process::{CommandEvent, CommandOutput, CommandSpec, PipedCommand, ProcessExit};
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_tools::workspace::Workspace;

use crate::setup::Setup;

/// Default lifetime of a cached key.
const DEFAULT_KEY_TTL: Duration = Duration::from_secs(5 * 60);

/// Environment variable with the lifetime in milliseconds.
const TTL_VARIABLE: &str = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS";

/// Time limit of the command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Characters of stderr shown in an error.
const MAX_STDERR_CHARS: usize = 300;

/// The command and the cached key.
pub(crate) struct KeyHelper {
    command: String,
    workspace: Arc<Workspace>,
    tasks: TaskRegistry,
    ttl: Duration,
    /// The lock is held while fetching, so that concurrent callers wait and then use the same key.
    cached: Mutex<Option<CachedKey>>,
}

struct CachedKey {
    key: String,
    fetched_at: Instant,
}

impl KeyHelper {
    /// The helper of a session, if the settings name one.
    pub(crate) fn from_setup(setup: &Setup, tasks: &TaskRegistry) -> Option<Arc<dyn KeySource>> {
        let command = setup.models.key_helper.clone()?;
        let workspace = Arc::clone(&setup.session.workspace);
        let ttl = workspace.variable(TTL_VARIABLE).and_then(|text| text.trim().parse().ok());
        let ttl = ttl.map_or(DEFAULT_KEY_TTL, Duration::from_millis);
        Some(Arc::new(Self { command, workspace, tasks: tasks.clone(), ttl, cached: Mutex::default() }))
    }

    /// Runs the command. Its stdout is never put into an error: it may be a key.
    async fn fetch(&self) -> Result<String, ModelError> {
        let spec = CommandSpec {
            command: self.command.clone(),
            cwd: self.workspace.root().to_path_buf(),
            environment: self.workspace.environment(),
        };
        let command = PipedCommand::spawn(self.tasks.process_groups(), &spec, Bytes::new());
        let mut command = command.map_err(|error| key_error(&format!("cannot be started: {error}")))?;
        let ended = tokio::time::timeout(COMMAND_TIMEOUT, async {
            loop {
                match command.next_event().await {
                    CommandEvent::Output => {}
                    CommandEvent::Exited(exit) => return Some(exit),
                    CommandEvent::SessionClosing => return None,
                }
            }
        });
        match ended.await {
            Ok(Some(exit)) => parse_output(exit, &command.into_output()),
            Ok(None) => Err(key_error("was stopped because the session ended")),
            Err(_) => {
                command.stop().await;
                Err(key_error(&format!("printed no key within {} s", COMMAND_TIMEOUT.as_secs())))
            }
        }
    }
}

impl KeySource for KeyHelper {
    fn fetch_key(&self, rejected: Option<String>) -> BoxFuture<'_, Result<String, ModelError>> {
        Box::pin(async move {
            let mut cached = self.cached.lock().await;
            if let Some(CachedKey { key, fetched_at }) = &*cached
                && rejected.as_ref() != Some(key)
                && clock::monotonic() - *fetched_at < self.ttl
            {
                return Ok(key.clone());
            }
            *cached = None;
            let key = self.fetch().await?;
            *cached = Some(CachedKey { key: key.clone(), fetched_at: clock::monotonic() });
            Ok(key)
        })
    }
}

/// Reads the key from the output of the finished command.
fn parse_output(exit: ProcessExit, output: &CommandOutput) -> Result<String, ModelError> {
    let key = output.stdout.raw().trim().to_owned();
    let mut text = match exit {
        ProcessExit::Exited(0) if !key.is_empty() && !output.stdout.is_truncated() => return Ok(key),
        ProcessExit::Exited(0) => "printed no key".to_owned(),
        ProcessExit::Exited(code) => format!("exited with code {code}"),
        ProcessExit::Killed(signal) => format!("was killed by signal {signal}"),
        ProcessExit::TimedOut | ProcessExit::Unknown => "ended with an unknown status".to_owned(),
    };
    let stderr = output.stderr.text();
    if let Some(line) = stderr.lines().map(str::trim).find(|line| !line.is_empty()) {
        let line: String = line.chars().take(MAX_STDERR_CHARS).collect();
        let _ = write!(text, ": {line}");
    }
    Err(key_error(&text))
}

fn key_error(text: &str) -> ModelError {
    let message = format!(
        "There is no API key: the {API_KEY_HELPER} command {text}. Run it by hand to check, or set ANTHROPIC_API_KEY."
    );
    ModelError::new(ModelErrorKind::NoCredentials, message)
}
