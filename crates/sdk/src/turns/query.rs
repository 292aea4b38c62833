//! Runs an agent on one prompt, or on a stream of them.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use serde_json::Value;
use whimbrel_wire::Frame;
use whimbrel_wire::control::SubscribeToolOutput;
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::options::OutputFormat;

use crate::agent::{Agent, ReplayRequest};
use crate::answer::Answer;
use crate::client::new_uuid;
use crate::controls::Controls;
use crate::error::{Error, TurnError};
use crate::frames::Frames;
use crate::prompt::{Messages, Prompt};
use crate::router::{self, RoutedSession};
use crate::turn_tracker::FailureCauses;
use crate::turns::events::{EventStream, TextStream};

/// A run of an agent: a future of its final [`Answer`], and a stream of frames that ends when the run has ended, which
/// may be after several results. Nothing starts before it is polled. Dropping it stops the run.
#[must_use = "nothing runs until the query is awaited or polled"]
pub struct Query {
    agent: Agent,
    output: ToolOutputWish,
    state: QueryState,
    causes: FailureCauses,
    /// The last result and what is known about its failure.
    last_result: Option<(Box<TurnResult>, FailureCauses)>,
}

/// Whether what commands print is forwarded while they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolOutputWish {
    AtEnd,
    Live,
}

enum QueryState {
    /// The mutex only makes the query `Sync`; a stream of prompts need not be.
    NotStarted(Mutex<Prompt>),
    Running {
        controls: Controls,
        frames: Frames,
    },
    /// The engine could not be reached, or the run has ended.
    Ended,
}

/// Runs an agent on a prompt, and waits for everything that it has started.
///
/// ```
/// # use serde_json::json;
/// # use whimbrel::{Agent, Scripted, query};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let agent = Agent::new().script(Scripted::replies(json!(["Four."]))?);
/// let answer = query("What is two and two?", &agent).await?;
/// assert_eq!(answer.text(), "Four.");
/// # Ok(())
/// # }
/// ```
///
/// The end of the prompts does not cut work short: the run ends when nothing runs and nothing is queued. To be polled
/// inside a tokio runtime.
pub fn query(prompt: impl Into<Prompt>, agent: &Agent) -> Query {
    Query {
        agent: agent.clone(),
        output: ToolOutputWish::AtEnd,
        state: QueryState::NotStarted(Mutex::new(prompt.into())),
        causes: FailureCauses::default(),
        last_result: None,
    }
}

/// Forwards messages until there are no more, or the run has ended.
async fn forward_prompts(mut messages: BoxStream<'static, User>, controls: Controls) {
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            () = controls.client().stop.cancelled() => return,
        };
        let Some(message) = message else { return controls.finish_input() };
        if controls.send(message).await.is_err() {
            return;
        }
    }
}

impl Query {
    /// Waits until the run has ended, and returns its last answer. The same as awaiting the query, but keeps it, so that
    /// its frames can be read before.
    pub async fn finish(&mut self) -> Result<Answer, TurnError> {
        std::future::poll_fn(|context| self.poll_answer(context)).await
    }

    /// Returns the next frame; `None` when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        StreamExt::next(self).await
    }

    /// The answers as text while they are written; see [`TextStream`].
    pub fn text_stream(mut self) -> TextStream<'static> {
        self.request_partial_messages();
        TextStream::new(self.into())
    }

    /// The run as typed events; see [`Event`](crate::Event).
    pub fn events(mut self) -> EventStream<'static> {
        self.request_partial_messages();
        self.output = ToolOutputWish::Live;
        EventStream::new(self.into())
    }

    fn request_partial_messages(&mut self) {
        if matches!(self.state, QueryState::NotStarted(_)) {
            self.agent = self.agent.clone().partial_messages(true);
        }
    }

    /// Requires an answer of this JSON Schema, unless the run has started.
    #[must_use = "nothing runs until the query is awaited or polled"]
    pub fn output_schema(mut self, schema: Value) -> Self {
        if matches!(self.state, QueryState::NotStarted(_)) {
            self.agent = self.agent.clone().output_format(OutputFormat::JsonSchema { schema });
        }
        self
    }

    /// Controls of the run, which starts it; a clone can be given to another task.
    pub fn controls(&mut self) -> Result<&Controls, Error> {
        self.start()?;
        match &self.state {
            QueryState::Running { controls, .. } => Ok(controls),
            QueryState::NotStarted(_) | QueryState::Ended => Err(Error::SessionEnded),
        }
    }

    /// Interrupts the running turn; it still ends with a result.
    pub async fn interrupt(&mut self) -> Result<(), Error> {
        self.controls()?.interrupt().await
    }

    /// Starts the run, if it has not started yet, without waiting for a frame.
    pub fn start(&mut self) -> Result<(), Error> {
        let prompt = match std::mem::replace(&mut self.state, QueryState::Ended) {
            QueryState::NotStarted(prompt) => prompt,
            state @ (QueryState::Running { .. } | QueryState::Ended) => {
                self.state = state;
                return Ok(());
            }
        };
        let RoutedSession { controls, frames, .. } =
            router::connect(&self.agent, ReplayRequest::AsConfigured)?;
        if self.output == ToolOutputWish::Live {
            // An engine that does not know it sends the output at the end.
            let _ = controls.client().call_detached(SubscribeToolOutput { enabled: true });
        }
        match prompt.into_inner().unwrap_or_else(PoisonError::into_inner).messages {
            Messages::One(mut message) => {
                message.uuid.get_or_insert_with(new_uuid);
                controls.client().send_now(*message)?;
                controls.finish_input();
            }
            Messages::Many(messages) => drop(tokio::spawn(forward_prompts(messages, controls.clone()))),
        }
        self.state = QueryState::Running { controls, frames };
        Ok(())
    }

    pub(crate) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        if let Err(error) = self.start() {
            return Poll::Ready(Some(Err(error)));
        }
        let QueryState::Running { frames, .. } = &mut self.state else { return Poll::Ready(None) };
        let item = ready!(frames.poll_next_unpin(context));
        match &item {
            Some(Ok(Frame::Result(_))) => {}
            Some(Ok(frame)) => self.causes.record(frame),
            Some(Err(_)) => {}
            None => self.state = QueryState::Ended,
        }
        Poll::Ready(item)
    }

    /// Polls for the last answer; skips the frames before it.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Answer, TurnError>> {
        loop {
            match ready!(self.poll_frame(context)) {
                Some(Ok(Frame::Result(result))) => {
                    self.last_result = Some((result, std::mem::take(&mut self.causes)));
                }
                // A line that could not be read need not be the result.
                Some(Ok(_) | Err(Error::Wire(_))) => {}
                Some(Err(error)) => return Poll::Ready(Err(error.into())),
                None => {
                    let Some((result, causes)) = self.last_result.take() else {
                        return Poll::Ready(Err(Error::SessionEnded.into()));
                    };
                    return Poll::Ready(causes.judge(result));
                }
            }
        }
    }

    /// Judges a result that was yielded.
    pub(crate) fn judge(&mut self, result: Box<TurnResult>) -> Result<Answer, TurnError> {
        std::mem::take(&mut self.causes).judge(result)
    }
}

impl Stream for Query {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.poll_frame(context));
        if let Some(Ok(Frame::Result(result))) = &item {
            let causes = std::mem::take(&mut self.causes);
            self.last_result = Some((result.clone(), causes));
        }
        Poll::Ready(item)
    }
}

impl IntoFuture for Query {
    type Output = Result<Answer, TurnError>;
    type IntoFuture = QueryFuture;

    fn into_future(self) -> QueryFuture {
        QueryFuture { query: self }
    }
}

/// Future of the final answer of a [`Query`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct QueryFuture {
    query: Query,
}

impl Future for QueryFuture {
    type Output = Result<Answer, TurnError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.query.poll_answer(context)
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("agent", &self.agent).finish_non_exhaustive()
    }
}
