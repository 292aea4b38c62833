//! A conversation that stays open.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{InitializeReply, Interrupt, SetOutputFormat, SetPartialMessages};
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::options::{Options, OutputFormat};

use crate::agent::{Agent, ReplayRequest};
use crate::controls::Controls;
use crate::error::{Error, OpenError};
use crate::frames::Frames;
use crate::router;
use crate::turn_tracker::TurnTracker;
use crate::turn_tracker::abandoned::AbandonedTurn;
use crate::turns::turn::{Turn, TurnRequirements};

/// An open conversation with an agent.
///
/// [`Session::ask`] is one prompt and its answer. Below it are the [`Controls`] and the [`Frames`] of the session, for
/// programs that show everything or read and send in different tasks. Dropping the session stops the agent and
/// everything it started.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::new().script(Scripted::replies(json!(["Hello, Ann.", "Ann."]))?);
/// let mut session = Session::open(&agent).await?;
/// println!("{}", session.ask("I am Ann.").await?);
/// assert_eq!(session.ask("Who am I?").await?.text(), "Ann.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping a session stops it"]
pub struct Session {
    controls: Controls,
    frames: Frames,
    options: Arc<Options>,
    /// What the last turn needed; the engine keeps it until it is changed.
    requirements: TurnRequirements,
}

impl Session {
    /// Opens a conversation: resolves the options and loads the session to resume. Must be called inside a tokio
    /// runtime.
    pub async fn open(agent: &Agent) -> Result<Self, OpenError> {
        let (controls, frames) = router::connect(agent, ReplayRequest::Always)?.wait_until_open().await?;
        let options = Arc::clone(&agent.options);
        let partial_messages = options.include_partial_messages;
        let requirements = TurnRequirements { partial_messages, ..TurnRequirements::default() };
        Ok(Self { controls, frames, options, requirements })
    }

    /// Asks the agent: a prompt, and the [`Turn`] that answers it. While another turn runs, the prompt is queued.
    pub fn ask(&mut self, prompt: impl Into<User>) -> Turn<'_> {
        Turn::new(self, prompt.into())
    }

    /// Splits the session: one task can read while others send.
    ///
    /// ```
    /// use serde_json::json;
    /// use whimbrel::{Agent, Scripted, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::new().script(Scripted::replies(json!(["Hello."]))?);
    /// let (controls, mut frames) = Session::open(&agent).await?.split();
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

    /// Sends a prompt without waiting for its answer; see [`Controls::send`].
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

    /// Returns the next result, whatever it answers; skips the frames before it. [`Session::ask`] waits for the answer
    /// of one prompt.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        self.frames.result().await
    }

    /// Polls for the next frame, replayed prompts included.
    pub(crate) fn poll_any_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        self.frames.poll_any(context)
    }

    /// Returns whether the caller sees a frame.
    pub(crate) fn shows(&self, frame: &Frame) -> bool {
        self.frames.shows(frame)
    }

    /// Sends a prompt, after the changes that its turn needs.
    pub(crate) fn send_prompt(
        &mut self,
        prompt: Box<User>,
        requirements: TurnRequirements,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let controls = self.controls.clone();
        let enabled = requirements.partial_messages || self.options.include_partial_messages;
        let partial =
            (enabled != self.requirements.partial_messages).then_some(SetPartialMessages { enabled });
        let format = (requirements.output_schema != self.requirements.output_schema)
            .then(|| SetOutputFormat { format: self.output_format(requirements.output_schema.as_ref()) });
        self.requirements = TurnRequirements { partial_messages: enabled, ..requirements };
        async move {
            if let Some(request) = partial {
                // An engine that does not know it sends the text in larger pieces.
                let _ = controls.client().call_detached(request);
            }
            if let Some(request) = format {
                controls.call(request).await?;
            }
            controls.send(*prompt).await
        }
        .boxed()
    }

    /// The output format with this schema, or else that of the session.
    fn output_format(&self, schema: Option<&Value>) -> Option<OutputFormat> {
        let schema = schema.map(|schema| OutputFormat::JsonSchema { schema: schema.clone() });
        schema.or_else(|| self.options.output_format.clone())
    }

    /// Interrupts a turn and skips what is left of it.
    pub(crate) fn abandon_turn(&mut self, tracker: TurnTracker) {
        self.controls.client().prompt_spans.remove(tracker.prompt());
        let request =
            Interrupt { user_message_uuid: Some(tracker.prompt().to_owned()), ..Interrupt::default() };
        let reply = self.controls.client().call_detached(request);
        self.frames.abandon(AbandonedTurn::new(tracker, reply));
    }
}
