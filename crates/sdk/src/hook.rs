//! Hooks of the host: async closures that receive events and may influence them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use whimbrel_wire::control::{HookMatcher, OnFailure};
use whimbrel_wire::hook::{HookBase, HookDecision, HookEvent, HookInput, HookOutput, SyncOutput};

use crate::extensions::Extensions;

type HookFn = Arc<dyn Fn(HookInput, HookContext) -> BoxFuture<'static, HookOutput> + Send + Sync>;

/// What a hook can learn besides its input. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HookContext {
    base: Arc<HookBase>,
    extensions: Extensions,
}

impl HookContext {
    pub(crate) fn new(base: HookBase, extensions: Extensions) -> Self {
        Self { base: Arc::new(base), extensions }
    }

    /// What all events tell: session, working directory, mode, subagent.
    pub fn base(&self) -> &HookBase {
        &self.base
    }

    /// Id of the session.
    pub fn session_id(&self) -> &str {
        &self.base.session_id
    }

    /// Working directory of the agent.
    pub fn cwd(&self) -> &Path {
        Path::new(&self.base.cwd)
    }

    /// The value of this type that [`Agent::extension`](crate::Agent::extension) has set.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }
}

/// A hook: its event, its matcher, and a closure.
///
/// ```
/// use serde_json::json;
/// use whimbrel::wire::hook::{HookEvent, HookEventInput};
/// use whimbrel::{Agent, Hook, Scripted};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir();
/// # let call = json!([{"type": "tool_use", "name": "Bash", "input": {"command": "curl https://example.com"}}]);
/// # let script = Scripted::replies(json!([call, "Then not."]))?;
/// let offline = Hook::on(HookEvent::PreToolUse, |input| async move {
///     match input.event {
///         HookEventInput::PreToolUse(call) if call.tool_input["command"].to_string().contains("curl") => {
///             Hook::block("We work offline here.")
///         }
///         _ => Hook::no_opinion(),
///     }
/// });
/// let agent = Agent::new().cwd(dir).hook(offline.matching("Bash"));
/// # let agent = agent.persist_session(false).script(script);
/// let answer = whimbrel::query("Fetch example.com.", &agent).await?;
/// assert_eq!(answer.denials().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Hook {
    event: HookEvent,
    config: HookMatcher,
    callback: HookFn,
}

impl Hook {
    /// Creates a hook for an event.
    pub fn on<F, A>(event: HookEvent, callback: F) -> Self
    where
        F: Fn(HookInput) -> A + Send + Sync + 'static,
        A: Future<Output = HookOutput> + Send + 'static,
    {
        Self::with_context(event, move |input, _| callback(input))
    }

    /// Creates a hook whose closure also gets the [`HookContext`], with the values of
    /// [`Agent::extension`](crate::Agent::extension).
    pub fn with_context<F, A>(event: HookEvent, callback: F) -> Self
    where
        F: Fn(HookInput, HookContext) -> A + Send + Sync + 'static,
        A: Future<Output = HookOutput> + Send + 'static,
    {
        let callback = Arc::new(move |input, context| -> BoxFuture<'static, HookOutput> {
            Box::pin(callback(input, context))
        });
        Self { event, config: HookMatcher::default(), callback }
    }

    /// Restricts the hook to matching events: names such as `Edit|Write`, or a regular expression. Which field is
    /// compared depends on the event: the tool, the agent type, ...
    #[must_use]
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.config.matcher = Some(matcher.into());
        self
    }

    /// Sets its timeout; one minute by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.config.timeout = Some(limit.as_secs_f64());
        self
    }

    /// Blocks the event if the hook fails or times out (`onFailure: "block"`). By default the event continues.
    #[must_use]
    pub fn block_on_failure(mut self) -> Self {
        self.config.on_failure = Some(OnFailure::Block);
        self
    }

    /// Output without any effect.
    pub fn no_opinion() -> HookOutput {
        HookOutput::default()
    }

    /// Output that blocks the event or, at the end of a turn, makes the agent continue.
    pub fn block(reason: impl Into<String>) -> HookOutput {
        let (decision, reason) = (Some(HookDecision::Block), Some(reason.into()));
        HookOutput::Sync(SyncOutput { decision, reason, ..SyncOutput::default() })
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("event", &self.event)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Hooks of an agent. The engine identifies each by its index.
#[derive(Clone, Default)]
pub(crate) struct HookList(Vec<Hook>);

impl HookList {
    pub(crate) fn add(&mut self, hook: Hook) {
        self.0.push(hook);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Converts the hooks to the matchers of the `initialize` request.
    pub(crate) fn to_matchers(&self) -> BTreeMap<String, Vec<HookMatcher>> {
        let mut list: BTreeMap<String, Vec<HookMatcher>> = BTreeMap::new();
        for (index, hook) in self.0.iter().enumerate() {
            let matcher = HookMatcher { hook_callback_ids: vec![callback_id(index)], ..hook.config.clone() };
            list.entry(hook.event.to_string()).or_default().push(matcher);
        }
        list
    }

    /// Finds the callback with this id.
    pub(crate) fn find_callback(&self, id: &str) -> Option<&HookFn> {
        self.0.iter().enumerate().find(|(index, _)| callback_id(*index) == id).map(|(_, hook)| &hook.callback)
    }
}

fn callback_id(index: usize) -> String {
    format!("hook_{index}")
}
