//! Runs an agent on one prompt, or on a stream of them.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use whimbrel_wire::Frame;
use whimbrel_wire::message::{TurnResult, User};

use crate::agent::Agent;
use crate::controls::Controls;
use crate::error::Error;
use crate::frames::Frames;
use crate::prompt::{Messages, Prompt};
use crate::router;

/// A running query: a stream of frames that ends when the run has ended, which may be after several results.
/// Dropping it stops the run.
#[derive(Debug)]
#[must_use = "dropping a query stops it"]
pub struct Query {
    state: QueryState,
}

#[derive(Debug)]
enum QueryState {
    Running {
        controls: Controls,
        frames: Frames,
    },
    /// The engine could not be reached; reported as the first item.
    Failed(Option<Error>),
}

/// Runs an agent on a prompt. Must be called inside a tokio runtime.
///
/// The end of the prompts does not cut work short: the stream ends when nothing runs and nothing is queued.
pub fn query(prompt: impl Into<Prompt>, agent: &Agent) -> Query {
    let state = start_query(prompt.into(), agent).unwrap_or_else(|error| QueryState::Failed(Some(error)));
    Query { state }
}

fn start_query(prompt: Prompt, agent: &Agent) -> Result<QueryState, Error> {
    let (controls, frames) = router::open(agent)?;
    match prompt.messages {
        Messages::One(message) => {
            controls.client().send_now(*message)?;
            controls.finish_input();
        }
        Messages::Many(messages) => drop(tokio::spawn(forward_prompts(messages, controls.clone()))),
    }
    Ok(QueryState::Running { controls, frames })
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
    /// Returns the next frame; `None` when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        StreamExt::next(self).await
    }

    /// Returns the next result; skips the frames before it.
    pub async fn result(&mut self) -> Result<TurnResult, Error> {
        match &mut self.state {
            QueryState::Running { frames, .. } => frames.result().await,
            QueryState::Failed(error) => Err(error.take().unwrap_or(Error::SessionEnded)),
        }
    }

    /// Controls of the run; a clone can be given to another task. Fails if the engine could not be reached; the stream
    /// says why.
    pub fn controls(&self) -> Result<&Controls, Error> {
        match &self.state {
            QueryState::Running { controls, .. } => Ok(controls),
            QueryState::Failed(_) => Err(Error::SessionEnded),
        }
    }

    /// Interrupts the running turn; it still ends with a result.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.controls()?.interrupt().await
    }
}

impl Stream for Query {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.state {
            QueryState::Running { frames, .. } => frames.poll_next_unpin(context),
            QueryState::Failed(error) => Poll::Ready(error.take().map(Err)),
        }
    }
}
