//! Control of a running agent, from any task.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use whimbrel_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageReply, InitializeReply, Interrupt, McpReconnect, McpServerStatus,
    McpSetServers, McpSetServersReply, McpStatus, McpToggle, PendingCall, Request, Response,
    ResumePendingCalls, RewindScope, RewindSession, RewindSessionReply, SetMaxThinkingTokens, SetModel,
    SetPermissionMode, StopTask, SubscribeToolOutput, TypedRequest,
};
use whimbrel_wire::message::User;
use whimbrel_wire::options::McpServerConfig;
use whimbrel_wire::permission::PermissionMode;

use crate::client::{EngineClient, InputGuard, new_uuid};
use crate::error::Error;

/// Controls of a running agent: send prompts, interrupt it, change its model. Cheap to clone and usable from any task,
/// whether or not the frames are being read.
///
/// The input ends when the last clone is dropped, or earlier by [`Controls::finish_input`].
#[derive(Clone)]
pub struct Controls {
    input_guard: Arc<InputGuard>,
}

impl Controls {
    pub(crate) fn new(input_guard: InputGuard) -> Self {
        Self { input_guard: Arc::new(input_guard) }
    }

    /// Sends a prompt. While a turn runs, the prompt is queued; with [`User::with_priority`] it goes into the running
    /// turn or interrupts it. After [`Controls::finish_input`] this fails with [`Error::InputFinished`].
    pub async fn send(&self, message: impl Into<User>) -> Result<(), Error> {
        if self.client().stop.is_cancelled() {
            return Err(Error::SessionEnded);
        }
        if self.client().finished.is_cancelled() {
            return Err(Error::InputFinished);
        }
        let mut message = message.into();
        // Results name the prompts that they answer.
        message.uuid.get_or_insert_with(new_uuid);
        self.client().send(message).await
    }

    /// Sends a control request to the engine; see [`wire::control`](crate::wire::control) for all of them.
    pub async fn call<A: TypedRequest>(&self, request: A) -> Result<A::Reply, Error> {
        self.client().call(request).await
    }

    /// Sends a control request of any kind and returns the response as it is on the wire, an error response too. For hosts
    /// that pass requests on.
    pub async fn call_any(&self, request: impl Into<Request>) -> Result<Response, Error> {
        self.client().call_any(request).await
    }

    /// Interrupts the running turn; it still ends with a result.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.call(Interrupt::default()).await.map(drop)
    }

    /// Changes the model from the next model call on; `None` means the default.
    pub async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        self.call(SetModel { model }).await.map(drop)
    }

    /// Changes the permission mode.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.call(SetPermissionMode { mode }).await.map(drop)
    }

    /// Changes the thinking budget; 0 disables thinking, `None` restores the default.
    pub async fn set_max_thinking_tokens(&self, limit: Option<u64>) -> Result<(), Error> {
        let request =
            SetMaxThinkingTokens { max_thinking_tokens: Some(limit), ..SetMaxThinkingTokens::default() };
        self.call(request).await.map(drop)
    }

    /// Stops a background task.
    pub async fn stop_task(&self, task: impl Into<String>) -> Result<(), Error> {
        self.call(StopTask { task_id: task.into() }).await.map(drop)
    }

    /// Begins or ends the live output of running commands: [`Frame::ToolOutput`](crate::Frame::ToolOutput) frames with
    /// the text that they print. The engine leaves out text rather than wait for a slow reader.
    pub async fn subscribe_tool_output(&self, enabled: bool) -> Result<(), Error> {
        self.call(SubscribeToolOutput { enabled }).await.map(drop)
    }

    /// Takes back a prompt that waits for its turn, named by the `uuid` that it was sent with. The reply has its text; it
    /// is not `cancelled` if its turn has started.
    pub async fn cancel_message(&self, uuid: impl Into<String>) -> Result<CancelAsyncMessageReply, Error> {
        self.call(CancelAsyncMessage { message_uuid: uuid.into() }).await
    }

    /// Goes back to before a prompt, named by its `uuid`; fails while a turn runs. The `undo_id` of the reply can be given
    /// in place of a prompt, to undo the rewind.
    pub async fn rewind(
        &self,
        prompt: impl Into<String>,
        restore: RewindScope,
    ) -> Result<RewindSessionReply, Error> {
        self.call(RewindSession { user_message_id: prompt.into(), restore, dry_run: None }).await
    }

    /// Reports what [`Controls::rewind`] would change, with the text of the prompt.
    pub async fn plan_rewind(
        &self,
        prompt: impl Into<String>,
        restore: RewindScope,
    ) -> Result<RewindSessionReply, Error> {
        self.call(RewindSession { user_message_id: prompt.into(), restore, dry_run: Some(true) }).await
    }

    /// Asks again for the tool calls of a resumed session that never started, because its engine ended before. If there
    /// are any, a turn starts, which runs what is allowed and continues with the results.
    pub async fn resume_pending_calls(&self) -> Result<Vec<PendingCall>, Error> {
        Ok(self.call(ResumePendingCalls {}).await?.calls)
    }

    /// Status of the MCP servers.
    pub async fn mcp_status(&self) -> Result<Vec<McpServerStatus>, Error> {
        Ok(self.call(McpStatus::default()).await?.mcp_servers)
    }

    /// Reconnects an MCP server and waits for it. A disabled one is enabled.
    pub async fn reconnect_mcp_server(&self, name: impl Into<String>) -> Result<(), Error> {
        self.call(McpReconnect { server_name: name.into() }).await.map(drop)
    }

    /// Enables or disables an MCP server.
    pub async fn toggle_mcp_server(&self, name: impl Into<String>, enabled: bool) -> Result<(), Error> {
        self.call(McpToggle { server_name: name.into(), enabled }).await.map(drop)
    }

    /// Replaces the MCP servers that were set before; reports which were added, removed or failed.
    pub async fn set_mcp_servers(
        &self,
        servers: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        self.call(McpSetServers { servers }).await
    }

    /// Commands, models, agents and account of the engine. The engine is asked at most once.
    pub async fn info(&self) -> Result<&InitializeReply, Error> {
        self.client().info().await
    }

    /// Ends the input. The agent finishes its work; frames go on until the run has ended.
    pub fn finish_input(&self) {
        self.client().finished.cancel();
    }

    /// Stops everything now. A running turn may still send its result.
    #[doc(alias = "stop")]
    pub fn close(&self) {
        self.client().stop.cancel();
    }

    pub(crate) fn client(&self) -> &Arc<EngineClient> {
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
