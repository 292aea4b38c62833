//! A conversation that stays open.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use serde_json::Value;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{InitializeReply, SetOutputFormat, SetPartialMessages, SubscribeToolOutput};
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::options::{Options, OutputFormat};

use crate::agent::{Agent, ReplayRequest};
use crate::controls::Controls;
use crate::error::{Error, OpenError};
use crate::frames::Frames;
use crate::router;
use crate::turn_tracker::abandoned::AbandonedTurn;
use crate::turn_tracker::{SessionActivity, TurnTracker};
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
    /// What the engine was told that a turn needs; it keeps that until it is changed. `None` if a turn was dropped before
    /// the engine had replied.
    requirements: Option<TurnRequirements>,
}

/// What became of a prompt on its way to the engine.
pub(crate) struct PromptDelivery {
    pub(crate) sent: Result<(), Error>,
    /// What the engine provides from now on, also if the prompt was not sent.
    pub(crate) requirements: TurnRequirements,
}

/// The frames of the session, as [`Session::next`] returns them.
impl Stream for Session {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.frames).poll_next(context)
    }
}

impl Session {
    /// Opens a conversation: resolves the options and loads the session to resume. Must be called inside a tokio
    /// runtime.
    pub async fn open(agent: &Agent) -> Result<Self, OpenError> {
        let (controls, frames) = router::connect(agent, ReplayRequest::Always)?.wait_until_open().await?;
        let options = Arc::clone(&agent.options);
        let partial_messages = options.include_partial_messages;
        let requirements = Some(TurnRequirements { partial_messages, ..TurnRequirements::default() });
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

    /// Sends a prompt, after the changes that its turn needs. The result goes to [`Session::confirm_delivery`].
    pub(crate) fn send_prompt(
        &mut self,
        prompt: Box<User>,
        required: TurnRequirements,
    ) -> BoxFuture<'static, PromptDelivery> {
        let controls = self.controls.clone();
        let partial_messages = required.partial_messages || self.options.include_partial_messages;
        let required = TurnRequirements { partial_messages, ..required };
        let provided = self.requirements.take();
        let is_new = |is_same: fn(&TurnRequirements, &TurnRequirements) -> bool| {
            !provided.as_ref().is_some_and(|provided| is_same(provided, &required))
        };
        let partial = is_new(|old, new| old.partial_messages == new.partial_messages)
            .then_some(SetPartialMessages { enabled: partial_messages });
        let live_output = is_new(|old, new| old.live_output == new.live_output)
            .then_some(SubscribeToolOutput { enabled: required.live_output });
        let format = is_new(|old, new| old.output_schema == new.output_schema)
            .then(|| SetOutputFormat { format: self.output_format(required.output_schema.as_ref()) });
        async move {
            // An engine that does not know these sends less while it works.
            if let Some(request) = partial {
                let _ = controls.client().call_detached(request);
            }
            if let Some(request) = live_output {
                let _ = controls.client().call_detached(request);
            }
            if let Some(request) = format
                && let Err(error) = controls.call(request).await
            {
                // The format is as it was.
                let output_schema = provided.and_then(|provided| provided.output_schema);
                let requirements = TurnRequirements { output_schema, ..required };
                return PromptDelivery { sent: Err(error), requirements };
            }
            PromptDelivery { sent: controls.send(*prompt).await, requirements: required }
        }
        .boxed()
    }

    /// Records what the engine was told, and returns whether the prompt was sent.
    pub(crate) fn confirm_delivery(&mut self, delivery: PromptDelivery) -> Result<(), Error> {
        self.requirements = Some(delivery.requirements);
        delivery.sent
    }

    /// Whether a turn runs, as far as the frames that were read show it.
    pub(crate) fn activity(&self) -> SessionActivity {
        self.frames.activity()
    }

    /// The output format with this schema, or else that of the session.
    fn output_format(&self, schema: Option<&Value>) -> Option<OutputFormat> {
        let schema = schema.map(|schema| OutputFormat::JsonSchema { schema: schema.clone() });
        schema.or_else(|| self.options.output_format.clone())
    }

    /// Interrupts a turn and skips what is left of it.
    pub(crate) fn abandon_turn(&mut self, tracker: TurnTracker) {
        self.controls.client().prompt_spans.remove(tracker.prompt());
        let reply = self.controls.client().call_detached(tracker.interrupt_request());
        self.frames.abandon(AbandonedTurn::new(tracker, reply));
    }
}
