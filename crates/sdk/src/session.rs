//! A conversation that stays open.

use whimbrel_wire::Frame;
use whimbrel_wire::control::InitializeReply;
use whimbrel_wire::message::{TurnResult, User};

use crate::agent::Agent;
use crate::controls::Controls;
use crate::error::Error;
use crate::frames::Frames;
use crate::router;

/// An open conversation with an agent: its [`Controls`] and its [`Frames`].
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
#[derive(Debug)]
#[must_use = "dropping a session stops it"]
pub struct Session {
    controls: Controls,
    frames: Frames,
}

impl Session {
    /// Opens a conversation. Must be called inside a tokio runtime.
    ///
    /// An engine process that rejects the options reports it with the first frame.
    pub fn open(agent: &Agent) -> Result<Self, Error> {
        let (controls, frames) = router::open(agent)?;
        Ok(Self { controls, frames })
    }

    /// Splits the session: one task can read while others send.
    ///
    /// ```
    /// use serde_json::json;
    /// use whimbrel::{Agent, Scripted, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), whimbrel::Error> {
    /// let agent = Agent::new().script(Scripted::replies(json!(["Hello."]))?);
    /// let (controls, mut frames) = Session::open(&agent)?.split();
    /// let reader = tokio::spawn(async move { frames.result().await });
    /// controls.send("Hi.").await?;
    /// let result = reader.await.expect("the reader has finished")?;
    /// assert_eq!(result.result.as_deref(), Some("Hello."));
    /// # Ok(())
    /// # }
    /// ```
    pub fn split(self) -> (Controls, Frames) {
        (self.controls, self.frames)
    }

    /// Sends a prompt; see [`Controls::send`].
    pub async fn send(&self, message: impl Into<User>) -> Result<(), Error> {
        self.controls.send(message).await
    }

    /// Interrupts the running turn; see [`Controls::interrupt`].
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.controls.interrupt().await
    }

    /// Commands, models, agents and account of the engine; see [`Controls::info`].
    pub async fn info(&self) -> Result<&InitializeReply, Error> {
        self.controls.info().await
    }

    /// Ends the input; see [`Controls::finish_input`].
    pub fn finish_input(&self) {
        self.controls.finish_input();
    }

    /// All controls; a clone can be given to another task.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The stream of frames.
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Returns the next frame; `None` when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        self.frames.next().await
    }

    /// Returns the next result; skips the frames before it.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        self.frames.result().await
    }
}
