//! What people show of a turn: its text as a stream, or typed events.

mod extract;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use serde_json::Value;
use whimbrel_wire::Frame;
use whimbrel_wire::message::TurnResult;

use crate::answer::Answer;
use crate::error::{Error, TurnError};
use crate::turn_tracker::FrameRole;
use crate::turns::query::Query;
use crate::turns::turn::Turn;
use extract::{EventExtractor, TextExtractor};

/// An event of a turn, on the main line or in a subagent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A piece of the model's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The model calls a tool.
    ToolStarted(ToolStart),
    /// A tool call has its result.
    ToolEnded(ToolEnd),
    /// An event of a subagent.
    Subagent {
        /// The call that started the subagent.
        tool_use_id: String,
        /// The event.
        event: Box<Event>,
    },
    /// A background task began.
    TaskStarted {
        /// Its id.
        task_id: String,
        /// What it does, in a few words.
        description: String,
    },
    /// A background task ended.
    TaskEnded {
        /// Its id.
        task_id: String,
        /// What it reports.
        summary: String,
    },
    /// Something is wrong, but the work goes on: an ignored rule, a failed server, a call that is repeated.
    Warning(String),
    /// A turn ended with an answer. The last event of a [`Turn`].
    Done(Answer),
}

/// A call that begins.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolStart {
    /// Id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Value,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolEnd {
    /// Id of the call.
    pub id: String,
    /// The tool; empty if its start was not seen.
    pub name: String,
    /// Whether it failed or was denied.
    pub is_error: bool,
    /// The text of its result.
    pub text: String,
}

/// The model's text while it is written, in pieces. An empty line separates texts that belong to different blocks, for
/// example before and after a tool call. A turn that fails ends the stream with its error.
#[must_use = "streams do nothing unless polled"]
pub struct TextStream<'a> {
    frames: AnswerFrames<'a>,
    extractor: TextExtractor,
    ended: bool,
}

/// The events of a turn. A turn that fails ends the stream with its error.
#[must_use = "streams do nothing unless polled"]
pub struct EventStream<'a> {
    frames: AnswerFrames<'a>,
    extractor: EventExtractor,
    /// Events of the last frame that were not yielded yet.
    queued: VecDeque<Event>,
    ended: bool,
}

/// The frames of one turn, or of all turns of a run.
pub(crate) enum AnswerFrames<'a> {
    Turn(Box<Turn<'a>>),
    Query(Box<Query>),
}

impl<'a> From<Turn<'a>> for AnswerFrames<'a> {
    fn from(turn: Turn<'a>) -> Self {
        Self::Turn(Box::new(turn))
    }
}

impl From<Query> for AnswerFrames<'static> {
    fn from(query: Query) -> Self {
        Self::Query(Box::new(query))
    }
}

impl AnswerFrames<'_> {
    /// Polls for the next frame that belongs to the answer.
    fn poll_own(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, Error>>> {
        match self {
            Self::Turn(turn) => loop {
                match ready!(turn.poll_frame(context)) {
                    Some(Ok((FrameRole::Other, _))) => {}
                    Some(Ok((_, frame))) => return Poll::Ready(Some(Ok(frame))),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => return Poll::Ready(None),
                }
            },
            Self::Query(query) => query.poll_frame(context),
        }
    }

    fn judge(&mut self, result: Box<TurnResult>) -> Result<Answer, TurnError> {
        match self {
            Self::Turn(turn) => turn.judge(result),
            Self::Query(query) => query.judge(result),
        }
    }
}

impl<'a> TextStream<'a> {
    pub(crate) fn new(frames: AnswerFrames<'a>) -> Self {
        Self { frames, extractor: TextExtractor::default(), ended: false }
    }

    /// Returns the next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<String, TurnError>> {
        futures::StreamExt::next(self).await
    }
}

impl Stream for TextStream<'_> {
    type Item = Result<String, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        while !stream.ended {
            match ready!(stream.frames.poll_own(context)) {
                Some(Ok(Frame::Result(result))) => {
                    if let Err(error) = stream.frames.judge(result) {
                        stream.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Some(Ok(frame)) => {
                    if let Some(piece) = stream.extractor.extract(&frame) {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Some(Err(error)) => {
                    stream.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => stream.ended = true,
            }
        }
        Poll::Ready(None)
    }
}

impl<'a> EventStream<'a> {
    pub(crate) fn new(frames: AnswerFrames<'a>) -> Self {
        Self { frames, extractor: EventExtractor::default(), queued: VecDeque::new(), ended: false }
    }

    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Event, TurnError>> {
        futures::StreamExt::next(self).await
    }
}

impl Stream for EventStream<'_> {
    type Item = Result<Event, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        loop {
            if let Some(event) = stream.queued.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if stream.ended {
                return Poll::Ready(None);
            }
            match ready!(stream.frames.poll_own(context)) {
                Some(Ok(Frame::Result(result))) => match stream.frames.judge(result) {
                    Ok(answer) => stream.queued.push_back(Event::Done(answer)),
                    Err(error) => {
                        stream.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                Some(Ok(frame)) => stream.extractor.extract(frame, &mut stream.queued),
                Some(Err(error)) => {
                    stream.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => stream.ended = true,
            }
        }
    }
}

impl fmt::Debug for TextStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for EventStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
