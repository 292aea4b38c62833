//! One turn: a prompt, the frames that answer it, and its answer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use whimbrel_wire::Frame;
use whimbrel_wire::message::{TurnResult, User};

use crate::answer::Answer;
use crate::client::new_uuid;
use crate::controls::Controls;
use crate::error::{Error, TurnError};
use crate::turn_tracker::{FrameRole, TurnTracker};
use crate::turns::events::{EventStream, TextStream};
use crate::turns::session::{PromptDelivery, Session};

/// A prompt and the turn that answers it, made by [`Session::ask`].
///
/// It is a future of its own [`Answer`], and a stream of frames that ends with its own result:
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::new().script(Scripted::replies(json!(["Hello, Ann.", "Ann."]))?);
/// let mut session = Session::open(&agent).await?;
/// session.ask("I am Ann.").await?;
/// assert_eq!(session.ask("Who am I?").await?.text(), "Ann.");
/// # Ok(())
/// # }
/// ```
///
/// Nothing is sent before it is polled. Dropping it interrupts the turn; what is left of the turn never reaches the next
/// one.
///
/// The stream also yields frames from before the turn: those that were not read since the last one, and those of a turn
/// that the end of a background task has started. [`Turn::events`] marks them as [`Event::BeforeTurn`](crate::Event),
/// [`Turn::text_stream`] leaves them out. [`Session::next`] reads them at once, while no turn is asked for.
#[must_use = "nothing is asked until the turn is awaited or polled"]
pub struct Turn<'a> {
    session: SessionRef<'a>,
    stage: TurnStage,
    tracker: TurnTracker,
    requirements: TurnRequirements,
}

/// The session of a turn.
enum SessionRef<'a> {
    Borrowed(&'a mut Session),
    Locked(OwnedMutexGuard<Session>),
}

impl SessionRef<'_> {
    fn get_mut(&mut self) -> &mut Session {
        match self {
            Self::Borrowed(session) => session,
            Self::Locked(session) => session,
        }
    }

    fn get(&self) -> &Session {
        match self {
            Self::Borrowed(session) => session,
            Self::Locked(session) => session,
        }
    }
}

enum TurnStage {
    /// The prompt is not sent yet.
    Unsent(Box<User>),
    Sending(BoxFuture<'static, PromptDelivery>),
    /// Frames are read until the result.
    Sent,
    /// The prompt was taken back: there is no result.
    Cancelled,
    /// The result was read, or the session has ended. The result is kept if it was yielded as a frame.
    Ended(Option<Box<TurnResult>>),
}

/// What a turn needs of the session, set before its prompt is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TurnRequirements {
    /// Text is forwarded while it streams.
    pub(crate) partial_messages: bool,
    /// What commands print is forwarded while they run.
    pub(crate) live_output: bool,
    /// JSON Schema of the answer, if it is not that of the session.
    pub(crate) output_schema: Option<Value>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(session: &'a mut Session, prompt: User) -> Self {
        Self::with_session(SessionRef::Borrowed(session), prompt)
    }

    fn with_session(session: SessionRef<'a>, mut prompt: User) -> Self {
        let uuid = prompt.uuid.get_or_insert_with(new_uuid).clone();
        let tracker = TurnTracker::new(uuid, session.get().activity());
        Self {
            session,
            stage: TurnStage::Unsent(Box::new(prompt)),
            tracker,
            requirements: TurnRequirements::default(),
        }
    }

    /// Controls of the session, for example to change the model while the turn runs.
    pub fn controls(&self) -> &Controls {
        self.session.get().controls()
    }

    /// Interrupts the turn; it still ends with a result, and its future with [`TurnError::Interrupted`]. If it waits for
    /// another one, that goes on, and its prompt is taken back: its future ends with [`TurnError::PromptCancelled`].
    #[doc(alias = "cancel")]
    pub async fn interrupt(&mut self) -> Result<(), Error> {
        let is_cancelled = match self.stage {
            TurnStage::Unsent(_) | TurnStage::Sending(_) => true,
            TurnStage::Sent => {
                let reply = self.controls().call(self.tracker.interrupt_request()).await?;
                self.tracker.is_cancelled_by(&reply)
            }
            TurnStage::Cancelled | TurnStage::Ended(_) => false,
        };
        if is_cancelled {
            self.stage = TurnStage::Cancelled;
        }
        Ok(())
    }

    /// The answer as text while it is written; see [`TextStream`].
    #[doc(alias = "delta")]
    pub fn text_stream(mut self) -> TextStream<'a> {
        self.requirements.partial_messages = true;
        TextStream::new(self.into())
    }

    /// The turn as typed events; see [`Event`](crate::Event).
    pub fn events(mut self) -> EventStream<'a> {
        self.requirements.partial_messages = true;
        self.requirements.live_output = true;
        EventStream::new(self.into())
    }

    /// Requires an answer of this JSON Schema.
    #[must_use = "nothing is asked until the turn is awaited or polled"]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.requirements.output_schema = Some(schema);
        self
    }

    /// Waits for the answer. The same as awaiting the turn, but keeps it, so that its frames can be read before.
    pub async fn finish(&mut self) -> Result<Answer, TurnError> {
        std::future::poll_fn(|context| self.poll_answer(context)).await
    }

    /// Returns the next frame; `None` after the result of the turn.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        std::future::poll_fn(|context| self.poll_visible_frame(context)).await
    }

    /// Polls for the next frame and its role; sends the prompt first.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(FrameRole, Frame), Error>>> {
        if let Err(error) = ready!(self.poll_sent(context)) {
            return Poll::Ready(Some(Err(error)));
        }
        if matches!(self.stage, TurnStage::Cancelled | TurnStage::Ended(_)) {
            return Poll::Ready(None);
        }
        let item = match ready!(self.session.get_mut().poll_any_frame(context)) {
            Some(Ok(frame)) => Ok((self.tracker.record(&frame), frame)),
            Some(Err(error)) => Err(error),
            None => Err(Error::SessionEnded),
        };
        if matches!(item, Ok((FrameRole::Result, _)) | Err(Error::SessionEnded)) {
            self.stage = TurnStage::Ended(None);
        }
        Poll::Ready(Some(item))
    }

    /// Sends the prompt, with what it needs before it.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match std::mem::replace(&mut self.stage, TurnStage::Ended(None)) {
                TurnStage::Unsent(prompt) => {
                    let requirements = std::mem::take(&mut self.requirements);
                    self.stage = TurnStage::Sending(self.session.get_mut().send_prompt(prompt, requirements));
                }
                TurnStage::Sending(mut sending) => match sending.as_mut().poll(context) {
                    Poll::Pending => {
                        self.stage = TurnStage::Sending(sending);
                        return Poll::Pending;
                    }
                    Poll::Ready(delivery) => {
                        self.session.get_mut().confirm_delivery(delivery)?;
                        self.stage = TurnStage::Sent;
                    }
                },
                stage @ (TurnStage::Sent | TurnStage::Cancelled | TurnStage::Ended(_)) => {
                    self.stage = stage;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Polls for the next frame that the caller sees.
    fn poll_visible_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        loop {
            return Poll::Ready(match ready!(self.poll_frame(context)) {
                Some(Ok((role, frame))) => {
                    if !self.session.get().shows(&frame) {
                        continue;
                    }
                    if let (FrameRole::Result, Frame::Result(result)) = (role, &frame) {
                        self.stage = TurnStage::Ended(Some(result.clone()));
                    }
                    Some(Ok(frame))
                }
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
    }

    /// Polls for the answer; skips the frames before it.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer, TurnError>> {
        loop {
            match &mut self.stage {
                TurnStage::Ended(result) => {
                    let result = result.take().ok_or(TurnError::Session(Error::SessionEnded));
                    return Poll::Ready(result.and_then(|result| self.judge(result)));
                }
                TurnStage::Cancelled => return Poll::Ready(Err(TurnError::PromptCancelled)),
                TurnStage::Unsent(_) | TurnStage::Sending(_) | TurnStage::Sent => {}
            }
            match ready!(self.poll_frame(context)) {
                Some(Ok((FrameRole::Result, Frame::Result(result)))) => {
                    return Poll::Ready(self.judge(result));
                }
                // A line that could not be read need not be the result.
                Some(Ok(_) | Err(Error::Wire(_))) => {}
                Some(Err(error)) => return Poll::Ready(Err(error.into())),
                None => {}
            }
        }
    }

    /// Returns whether its prompt was taken back.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self.stage, TurnStage::Cancelled)
    }

    /// Judges the result of the turn.
    pub(crate) fn judge(&mut self, result: Box<TurnResult>) -> Result<Answer, TurnError> {
        self.tracker.take_causes().judge(result)
    }
}

impl Turn<'static> {
    /// A turn that holds the lock of its session.
    pub(crate) fn with_lock(session: OwnedMutexGuard<Session>, prompt: User) -> Self {
        Self::with_session(SessionRef::Locked(session), prompt)
    }
}

impl Stream for Turn<'_> {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_visible_frame(context)
    }
}

impl<'a> IntoFuture for Turn<'a> {
    type Output = Result<Answer, TurnError>;
    type IntoFuture = TurnFuture<'a>;

    fn into_future(self) -> TurnFuture<'a> {
        TurnFuture { turn: self }
    }
}

/// Future of the answer of a [`Turn`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TurnFuture<'a> {
    turn: Turn<'a>,
}

impl Future for TurnFuture<'_> {
    type Output = Result<Answer, TurnError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.turn.poll_answer(context)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if matches!(self.stage, TurnStage::Sent) {
            let tracker = self.tracker.clone();
            self.session.get_mut().abandon_turn(tracker);
        }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("prompt", &self.tracker.prompt()).finish_non_exhaustive()
    }
}
