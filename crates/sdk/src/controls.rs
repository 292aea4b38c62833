//! What can be said to a running agent, from anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use whimbrel_wire::control::{
    TypedRequest, InitializeReply, Interrupt, McpReconnect, McpServerStatus, McpSetServers, McpSetServersReply,
    McpStatus, McpToggle, SetMaxThinkingTokens, SetModel, SetPermissionMode, StopTask,
};
use whimbrel_wire::message::User;
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::permission::PermissionMode;

use crate::error::Error;
use crate::client::{InputGuard, EngineClient};

/// The controls of a running agent: talk to it, interrupt it, change its model. Cheap to clone, and to be used from any
/// task, whoever reads the frames, and whether or not anybody does.
///
/// The input is finished when the last clone is dropped, or before by [`Controls::finish_input`].
#[derive(Clone)]
pub struct Controls {
    input_guard: Arc<InputGuard>,
}

impl Controls {
    pub(crate) fn new(handle: InputGuard) -> Self {
        Self { input_guard: Arc::new(handle) }
    }

    /// Says something. While a turn runs it waits for its turn. After [`Controls::finish_input`] nothing more can be
    /// said: [`Error::InputFinished`].
    pub async fn send(&self, message: impl Into<User>) -> Result<(), Error> {
        if self.client().stop.is_cancelled() {
            return Err(Error::Over);
        }
        if self.client().finished.is_cancelled() {
            return Err(Error::InputFinished);
        }
        self.client().send(message.into()).await
    }

    /// Asks the engine something; see [`wire::control`](crate::wire::control) for all there is.
    pub async fn call<A: TypedRequest>(&self, ask: A) -> Result<A::Reply, Error> {
        self.client().call(ask).await
    }

    /// Interrupts the turn that runs; it still ends with a result.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.call(Interrupt::default()).await.map(drop)
    }

    /// Changes the model from the next model call on; none means the default.
    pub async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        self.call(SetModel { model }).await.map(drop)
    }

    /// Changes what the agent may do without asking.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.call(SetPermissionMode { mode }).await.map(drop)
    }

    /// Changes how much the model may think; 0 means not at all, none the default.
    pub async fn set_max_thinking_tokens(&self, limit: Option<u64>) -> Result<(), Error> {
        let ask =
            SetMaxThinkingTokens { max_thinking_tokens: Some(limit), ..SetMaxThinkingTokens::default() };
        self.call(ask).await.map(drop)
    }

    /// Stops a background task.
    pub async fn stop_task(&self, task: impl Into<String>) -> Result<(), Error> {
        self.call(StopTask { task_id: task.into() }).await.map(drop)
    }

    /// How the MCP servers are.
    pub async fn mcp_status(&self) -> Result<Vec<McpServerStatus>, Error> {
        Ok(self.call(McpStatus::default()).await?.mcp_servers)
    }

    /// Connects to an MCP server anew and waits for it. One that was switched off is switched on.
    pub async fn reconnect_mcp_server(&self, name: impl Into<String>) -> Result<(), Error> {
        self.call(McpReconnect { server_name: name.into() }).await.map(drop)
    }

    /// Switches an MCP server on or off.
    pub async fn toggle_mcp_server(&self, name: impl Into<String>, enabled: bool) -> Result<(), Error> {
        self.call(McpToggle { server_name: name.into(), enabled }).await.map(drop)
    }

    /// Uses these MCP servers instead of those that were set before; says what became of them.
    pub async fn set_mcp_servers(
        &self,
        servers: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        self.call(McpSetServers { servers }).await
    }

    /// What the engine offers: commands, models, agents, account. The engine is asked once at most.
    pub async fn info(&self) -> Result<&InitializeReply, Error> {
        self.client().info().await
    }

    /// No further message will come. The agent finishes what it is doing; frames go on until the run has ended.
    pub fn finish_input(&self) {
        self.client().finished.cancel();
    }

    /// Stops everything now. A turn that runs may still say how it ended.
    pub fn close(&self) {
        self.client().stop.cancel();
    }

    pub(crate) fn client(&self) -> &EngineClient {
        &self.input_guard.client
    }
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controls")
            .field("input_finished", &self.client().finished.is_cancelled())
            .field("stopped", &self.client().stop.is_cancelled())
            .finish_non_exhaustive()
    }
}
