//! One prompt, or a stream of them, and everything that comes of it.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use tokio::task::JoinHandle;
use whimbrel_wire::Frame;

use crate::agent::Agent;
use crate::error::Error;
use crate::prompt::Prompt;
use crate::session::Session;

/// A running query: a stream of frames that ends when the run has ended, which may be after several results.
/// Dropping it stops the run.
pub struct Query {
    state: State,
}

enum State {
    Running {
        session: Session,
        feeder: JoinHandle<()>,
    },
    /// The engine could not be reached; told with the first frame.
    Failed(Option<Error>),
}

/// Runs an agent on a prompt. Must be called inside a tokio runtime.
///
/// A finished prompt never cuts work short: the stream ends when nothing runs and nothing is queued.
pub fn query(prompt: impl Into<Prompt>, agent: &Agent) -> Query {
    let session = match Session::open(agent) {
        Ok(session) => session,
        Err(error) => return Query { state: State::Failed(Some(error)) },
    };
    let client = session.client().clone();
    let mut messages = prompt.into().messages;
    let feeder = tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            if client.send(message).await.is_err() {
                return;
            }
        }
        client.finish_input();
    });
    Query { state: State::Running { session, feeder } }
}

impl Query {
    /// The session behind it: interrupt it, change its model, ask it things.
    pub fn session(&self) -> Result<&Session, Error> {
        match &self.state {
            State::Running { session, .. } => Ok(session),
            State::Failed(_) => Err(Error::Over),
        }
    }

    /// Interrupts the turn that runs; it still ends with a result.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.session()?.interrupt().await
    }
}

impl Stream for Query {
    type Item = Result<Frame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.state {
            State::Running { session, .. } => session.frames().poll_next_unpin(context),
            State::Failed(error) => Poll::Ready(error.take().map(Err)),
        }
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        if let State::Running { feeder, .. } = &self.state {
            feeder.abort();
        }
    }
}
