//! A conversation that stays open.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{
    Ask, Initialize, InitializeReply, Interrupt, SetMaxThinkingTokens, SetModel, SetPermissionMode, StopTask,
};
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::permission::PermissionMode;

use crate::agent::Agent;
use crate::client::Client;
use crate::error::Error;

/// An open conversation with an agent.
///
/// Dropping it stops the agent and everything it started.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), whimbrel::Error> {
/// let agent = Agent::new().script(Scripted::replies(json!(["Hello, Ann.", "Ann."]))?);
/// let mut session = Session::open(&agent)?;
/// session.send("I am Ann.").await?;
/// assert_eq!(session.result().await?.result.as_deref(), Some("Hello, Ann."));
/// session.send("Who am I?").await?;
/// assert_eq!(session.result().await?.result.as_deref(), Some("Ann."));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    client: Client,
    frames: Frames,
}

/// What the agent says, as a stream of frames. It ends when the run has ended.
pub struct Frames {
    receiver: mpsc::Receiver<Result<Frame, Error>>,
}

impl Session {
    /// Opens a conversation. Must be called inside a tokio runtime.
    pub fn open(agent: &Agent) -> Result<Self, Error> {
        let (client, receiver) = Client::connect(agent)?;
        Ok(Self { client, frames: Frames { receiver } })
    }

    /// Says something. While a turn runs it waits for its turn.
    pub async fn send(&self, message: impl Into<User>) -> Result<(), Error> {
        self.client.send(message.into()).await
    }

    /// The agent's frames.
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// The next frame; none when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        self.frames.receiver.recv().await
    }

    /// The next result; whatever comes before it is passed over.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        loop {
            match self.next().await {
                Some(Ok(Frame::Result(result))) => return Ok(*result),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(Error::Over),
            }
        }
    }

    /// Asks the engine something; see [`whimbrel_wire::control`] for all there is.
    pub async fn call<A: Ask>(&self, ask: A) -> Result<A::Reply, Error> {
        self.client.call(ask).await
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
        let ask = SetMaxThinkingTokens { max_thinking_tokens: limit, ..SetMaxThinkingTokens::default() };
        self.call(ask).await.map(drop)
    }

    /// Stops a background task.
    pub async fn stop_task(&self, task: impl Into<String>) -> Result<(), Error> {
        self.call(StopTask { task_id: task.into() }).await.map(drop)
    }

    /// What the engine offers: commands, models, agents, account.
    pub async fn info(&self) -> Result<InitializeReply, Error> {
        self.call(Initialize::default()).await
    }

    /// No further message will come. The agent finishes what it is doing; frames go on until the run has ended.
    pub fn finish_input(&self) {
        self.client.finish_input();
    }

    /// Stops everything now.
    pub fn close(self) {
        drop(self);
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.stop();
    }
}

impl Stream for Frames {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}
