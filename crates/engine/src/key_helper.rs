//! `apiKeyHelper`: a command of the person that prints the key for the model's provider. What it printed is kept for a
//! while, and fetched anew when it is old or was refused.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use whimbrel_models::key::{KEY_HELPER, KeySource};
use whimbrel_models::{Fault, FaultKind};

use crate::clock;
use crate::setup::Setup;
use crate::tasks::{Ending, Exchange, Heard, Order, Step, Tasks};
use crate::workspace::Workspace;

/// How long a key is kept unless the variable says otherwise.
const USUAL_LIFE: Duration = Duration::from_secs(5 * 60);

/// The variable that says so, in milliseconds.
const LIFE_VARIABLE: &str = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS";

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of its complaints is told.
const SHOWN: usize = 300;

/// The command, and the key that it printed last.
pub(crate) struct KeyHelper {
    command: String,
    workspace: Arc<Workspace>,
    tasks: Tasks,
    life: Duration,
    /// Whoever holds it fetches; the others wait, and find the key.
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    key: String,
    since: Instant,
}

impl KeyHelper {
    /// The helper of a session, if its settings name one.
    pub(crate) fn of(setup: &Setup, tasks: &Tasks) -> Option<Arc<dyn KeySource>> {
        let command = setup.key_helper.clone()?;
        let workspace = Arc::clone(&setup.workspace);
        let life = workspace.variable(LIFE_VARIABLE).and_then(|text| text.trim().parse().ok());
        let life = life.map_or(USUAL_LIFE, Duration::from_millis);
        Some(Arc::new(Self { command, workspace, tasks: tasks.clone(), life, kept: Mutex::default() }))
    }

    /// Runs the command. Nothing of what it prints is told, for it may be a key.
    async fn fetch(&self) -> Result<String, Fault> {
        let order = Order {
            command: self.command.clone(),
            cwd: self.workspace.root().to_path_buf(),
            environment: self.workspace.environment(),
        };
        let exchange = Exchange::start(&self.tasks, &order, Bytes::new());
        let mut exchange = exchange.map_err(|fault| failed(&format!("cannot be started: {fault}")))?;
        let ended = tokio::time::timeout(PATIENCE, async {
            loop {
                match exchange.step().await {
                    Step::Said => {}
                    Step::Ended(ending) => return Some(ending),
                    Step::SessionEnds => return None,
                }
            }
        });
        match ended.await {
            Ok(Some(ending)) => read(ending, &exchange.close()),
            Ok(None) => Err(failed("was ended with the session")),
            Err(_) => {
                exchange.stop().await;
                Err(failed(&format!("printed no key within {} s", PATIENCE.as_secs())))
            }
        }
    }
}

impl KeySource for KeyHelper {
    fn key(&self, refused: Option<String>) -> BoxFuture<'_, Result<String, Fault>> {
        Box::pin(async move {
            let mut kept = self.kept.lock().await;
            if let Some(Kept { key, since }) = &*kept
                && refused.as_ref() != Some(key)
                && clock::monotonic() - *since < self.life
            {
                return Ok(key.clone());
            }
            *kept = None;
            let key = self.fetch().await?;
            *kept = Some(Kept { key: key.clone(), since: clock::monotonic() });
            Ok(key)
        })
    }
}

/// What a command that has ended has to say.
fn read(ending: Ending, heard: &Heard) -> Result<String, Fault> {
    let key = heard.stdout.raw().trim().to_owned();
    let mut what = match ending {
        Ending::Exited(0) if !key.is_empty() && !heard.stdout.is_cut() => return Ok(key),
        Ending::Exited(0) => "printed no key".to_owned(),
        Ending::Exited(code) => format!("ended with code {code}"),
        Ending::Killed(signal) => format!("was ended by signal {signal}"),
        Ending::TimedOut | Ending::Unknown => "ended without a word".to_owned(),
    };
    let complaint = heard.stderr.text();
    if let Some(line) = complaint.lines().map(str::trim).find(|line| !line.is_empty()) {
        let line: String = line.chars().take(SHOWN).collect();
        let _ = write!(what, " and says: {line}");
    }
    Err(failed(&what))
}

fn failed(what: &str) -> Fault {
    let message = format!(
        "There is no key to ask a model with: the command of {KEY_HELPER} {what}. Run it by hand and see, or set \
         ANTHROPIC_API_KEY."
    );
    Fault::new(FaultKind::NoCredentials, message)
}
