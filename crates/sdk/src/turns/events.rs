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
use crate::turn_tracker::{FailureCauses, FrameRole};
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
    /// A running command has printed something.
    ToolOutput(LiveOutput),
    /// A tool tells how far it is; see [`ToolContext::progress`](crate::ToolContext::progress).
    ToolProgress(ProgressReport),
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
    /// Something is wrong, but the work goes on: an ignored rule, a failed server, a call that is repeated, a line that
    /// cannot be read.
    Warning(String),
    /// An event from before the turn that is asked for: of a turn that the end of a background task has started, or of a
    /// prompt that was sent without waiting for its answer.
    BeforeTurn(Box<Event>),
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

/// What a running command has printed since its last piece.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LiveOutput {
    /// Id of the call.
    pub id: String,
    /// The background task, once the command runs in the background.
    pub task_id: Option<String>,
    /// The text.
    pub text: String,
    /// Bytes that were left out before it, because the command printed faster than the caller read.
    pub omitted_bytes: u64,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgressReport {
    /// Id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The amount done.
    pub done: f64,
    /// The amount at which the call is complete, if the tool knows it.
    pub total: Option<f64>,
    /// A text.
    pub message: Option<String>,
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
    /// Polls for the next frame and its role. All frames of a run are its own.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(FrameRole, Frame), Error>>> {
        match self {
            Self::Turn(turn) => turn.poll_frame(context),
            Self::Query(query) => {
                query.poll_frame(context).map(|item| item.map(|frame| Ok((FrameRole::Own, frame?))))
            }
        }
    }

    /// Why there is no result, if that is the case although no error was yielded.
    fn end_error(&self) -> Option<TurnError> {
        match self {
            Self::Turn(turn) => turn.is_cancelled().then_some(TurnError::PromptCancelled),
            Self::Query(_) => None,
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
            let error = match ready!(stream.frames.poll_frame(context)) {
                // A line that could not be read need not be the result.
                Some(Ok((FrameRole::Other, _)) | Err(Error::Wire(_))) => continue,
                Some(Ok((_, Frame::Result(result)))) => match stream.frames.judge(result) {
                    Ok(_) => continue,
                    Err(error) => Some(error),
                },
                Some(Ok((_, frame))) => match stream.extractor.extract(&frame) {
                    Some(piece) => return Poll::Ready(Some(Ok(piece))),
                    None => continue,
                },
                Some(Err(error)) => Some(error.into()),
                None => stream.frames.end_error(),
            };
            stream.ended = true;
            if let Some(error) = error {
                return Poll::Ready(Some(Err(error)));
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

    fn queue_events_before_turn(&mut self, frame: Frame) {
        let mut events = VecDeque::new();
        match frame {
            Frame::Result(result) => events.push_back(match FailureCauses::default().judge(result) {
                Ok(answer) => Event::Done(answer),
                Err(error) => Event::Warning(format!("A turn has no answer: {error}.")),
            }),
            frame => self.extractor.extract(frame, &mut events),
        }
        self.queued.extend(events.into_iter().map(|event| Event::BeforeTurn(Box::new(event))));
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
            let error = match ready!(stream.frames.poll_frame(context)) {
                Some(Ok((FrameRole::Other, frame))) => {
                    stream.queue_events_before_turn(frame);
                    continue;
                }
                Some(Ok((_, Frame::Result(result)))) => match stream.frames.judge(result) {
                    Ok(answer) => {
                        stream.queued.push_back(Event::Done(answer));
                        continue;
                    }
                    Err(error) => Some(error),
                },
                Some(Ok((_, frame))) => {
                    stream.extractor.extract(frame, &mut stream.queued);
                    continue;
                }
                Some(Err(error @ Error::Wire(_))) => {
                    stream.queued.push_back(Event::Warning(error.to_string()));
                    continue;
                }
                Some(Err(error)) => Some(error.into()),
                None => stream.frames.end_error(),
            };
            stream.ended = true;
            if let Some(error) = error {
                return Poll::Ready(Some(Err(error)));
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
