//! What a tool function can learn and do besides its input.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::extensions::Extensions;

/// Reports progress: the amount done, the total if it is known, and a text.
pub(super) type ProgressFn = Arc<dyn Fn(f64, Option<f64>, Option<String>) + Send + Sync>;

/// Context of one tool call: for whom it runs, whether it is still wanted, and how far it is. Cheap to clone.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, ToolContext, ToolServer, tool};
///
/// struct UserId(u32);
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // One server for all users: the agent says for whom it works.
/// let whoami = tool("whoami", "Names the user", |context: ToolContext| async move {
///     context.extension::<UserId>().map_or("nobody".to_owned(), |user| format!("user {}", user.0))
/// });
/// let server = ToolServer::new("users").tool(whoami);
/// # let call = json!([{"type": "tool_use", "name": "mcp__users__whoami", "input": {}}]);
/// # let script = std::sync::Arc::new(Scripted::replies(json!([call, "You are user 7."]))?);
/// let agent = Agent::new().tool_server(server).allowed_tools(["mcp__users"]).extension(UserId(7));
/// # let agent = agent.cwd(std::env::temp_dir()).persist_session(false).script(script.clone());
/// let answer = whimbrel::query("Who am I?", &agent).await?;
/// assert_eq!(answer.text(), "You are user 7.");
/// # assert!(script.requests().last().unwrap().to_string().contains("user 7"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolContext(Arc<ContextParts>);

#[derive(Default)]
pub(super) struct ContextParts {
    pub(super) session_id: String,
    pub(super) tool_use_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) cwd: PathBuf,
    pub(super) cancellation: CancellationToken,
    pub(super) progress: Option<ProgressFn>,
    pub(super) extensions: Extensions,
}

impl ToolContext {
    pub(super) fn new(parts: ContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Id of the session. Empty if an engine process of another vendor makes the call, which does not tell it.
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// Id of the tool call; `None` if the host makes it, outside the conversation.
    pub fn tool_use_id(&self) -> Option<&str> {
        self.0.tool_use_id.as_deref()
    }

    /// Id of the subagent that makes the call; `None` for the main agent.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.agent_id.as_deref()
    }

    /// Working directory of the calling agent.
    pub fn cwd(&self) -> &Path {
        &self.0.cwd
    }

    /// Fires when the call is no longer wanted: the turn was interrupted, the call timed out, or the session has ended.
    /// The function's own future is dropped then anyway; the token is for work that it has started elsewhere.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Tells the host how far the call is, in a [`ToolProgress`](crate::wire::message::ToolProgress) frame: the amount
    /// done and a text. The engine sends at most ten frames per second and call.
    pub fn progress(&self, done: f64, message: impl Into<String>) {
        self.report(done, None, message.into());
    }

    /// Like [`ToolContext::progress`], with the amount at which the call is complete.
    pub fn progress_of(&self, done: f64, total: f64, message: impl Into<String>) {
        self.report(done, Some(total), message.into());
    }

    /// The value of this type that [`Agent::extension`](crate::Agent::extension) has set.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.extensions.get()
    }

    fn report(&self, done: f64, total: Option<f64>, message: String) {
        if let Some(progress) = &self.0.progress {
            progress(done, total, Some(message).filter(|text| !text.is_empty()));
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session_id", &self.0.session_id)
            .field("tool_use_id", &self.0.tool_use_id)
            .field("agent_id", &self.0.agent_id)
            .field("cwd", &self.0.cwd)
            .finish_non_exhaustive()
    }
}
