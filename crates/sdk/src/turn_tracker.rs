//! Follows one turn in the stream of frames: which frames belong to it, how it ended, and why. Pure.

pub(crate) mod abandoned;

use serde_json::Value;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{Interrupt, InterruptReply};
use whimbrel_wire::message::{FailureKind, Outcome, TerminalReason, TurnResult};
use whimbrel_wire::system::SystemEvent;

use crate::answer::Answer;
use crate::error::{ApiError, TurnError};

/// State of the turn that answers one prompt.
#[derive(Debug, Clone)]
pub(crate) struct TurnTracker {
    prompt: String,
    phase: TurnPhase,
    causes: FailureCauses,
}

/// What the frames of a turn say about its failure, besides its result.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureCauses {
    api_failure: Option<(FailureKind, Option<String>)>,
    hook_reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnPhase {
    /// The engine has not replayed the prompt yet.
    Waiting(SessionActivity),
    Running,
    Ended,
}

/// Whether a turn runs, as far as the frames show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SessionActivity {
    #[default]
    Idle,
    TurnRuns,
}

impl SessionActivity {
    /// Records a frame. A turn shows itself by a replayed prompt or by a message of the main line, and ends with its
    /// result. Notices do not tell: each turn begins with some, before its prompt is replayed.
    pub(crate) fn record(&mut self, frame: &Frame) {
        *self = match frame {
            Frame::Result(_) => Self::Idle,
            Frame::User(user) if user.parent_tool_use_id.is_none() => Self::TurnRuns,
            Frame::Assistant(assistant) if assistant.parent_tool_use_id.is_none() => Self::TurnRuns,
            Frame::StreamEvent(event) if event.parent_tool_use_id.is_none() => Self::TurnRuns,
            _ => *self,
        }
    }
}

/// Role of a frame for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameRole {
    /// It belongs to another turn, or to none.
    Other,
    /// It belongs to the turn.
    Own,
    /// It is the result of the turn.
    Result,
}

impl TurnTracker {
    /// Follows the turn that answers the prompt with this uuid. `activity` is that of the session before its prompt is
    /// sent.
    pub(crate) fn new(prompt: String, activity: SessionActivity) -> Self {
        Self { prompt, phase: TurnPhase::Waiting(activity), causes: FailureCauses::default() }
    }

    /// The uuid of the prompt.
    pub(crate) fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Records a frame and returns its role. The engine replays the prompt with the first event of the reply. Notices
    /// before it, such as warnings and retries, belong to the turn unless another one runs.
    pub(crate) fn record(&mut self, frame: &Frame) -> FrameRole {
        match frame {
            Frame::User(user) if user.is_replay == Some(true) => {
                if user.uuid.as_deref() == Some(self.prompt.as_str()) {
                    self.phase = TurnPhase::Running;
                } else if matches!(self.phase, TurnPhase::Waiting(_)) {
                    self.causes = FailureCauses::default();
                }
            }
            Frame::Result(result) if self.is_own_result(result) => {
                self.phase = TurnPhase::Ended;
                return FrameRole::Result;
            }
            Frame::Result(_) => self.causes = FailureCauses::default(),
            // The notice of a hook that blocks a prompt comes before the prompt is replayed.
            Frame::System(_) => self.causes.record(frame),
            _ if self.phase == TurnPhase::Running => self.causes.record(frame),
            _ => {}
        }
        match &mut self.phase {
            TurnPhase::Running => FrameRole::Own,
            TurnPhase::Waiting(SessionActivity::Idle) if matches!(frame, Frame::System(_)) => FrameRole::Own,
            TurnPhase::Waiting(activity) => {
                activity.record(frame);
                FrameRole::Other
            }
            TurnPhase::Ended => FrameRole::Other,
        }
    }

    /// Returns whether a result is that of this turn. An engine that names no prompts in its results answers them in
    /// order; a turn of its own has an origin.
    fn is_own_result(&self, result: &TurnResult) -> bool {
        let names_prompts = result.user_message_uuid.is_some() || result.user_message_uuids.is_some();
        result.answers(&self.prompt) || !names_prompts && result.origin.is_none()
    }

    /// A request that interrupts the turn, or takes the prompt back if it has not begun.
    pub(crate) fn interrupt_request(&self) -> Interrupt {
        Interrupt { user_message_uuid: Some(self.prompt.clone()), ..Interrupt::default() }
    }

    /// Returns whether the engine has taken the prompt back, so that no result comes.
    pub(crate) fn is_cancelled_by(&self, reply: &InterruptReply) -> bool {
        let cancelled = reply.cancelled.as_ref().and_then(Value::as_array);
        cancelled.into_iter().flatten().any(|id| id.as_str() == Some(self.prompt.as_str()))
    }

    /// Takes what is known about a failure.
    pub(crate) fn take_causes(&mut self) -> FailureCauses {
        std::mem::take(&mut self.causes)
    }
}

impl FailureCauses {
    /// Records a frame of the turn.
    pub(crate) fn record(&mut self, frame: &Frame) {
        match frame {
            Frame::Assistant(assistant) if assistant.parent_tool_use_id.is_none() => {
                self.api_failure =
                    assistant.error.as_ref().map(|kind| (kind.clone(), assistant.request_id.clone()));
            }
            Frame::System(system) => {
                if let SystemEvent::Informational(notice) = &system.event
                    && notice.prevent_continuation == Some(true)
                {
                    self.hook_reason = Some(notice.content.clone());
                }
            }
            _ => {}
        }
    }

    /// Judges the result of a turn.
    pub(crate) fn judge(self, result: Box<TurnResult>) -> Result<Answer, TurnError> {
        if !result.is_error
            && self.hook_reason.is_none()
            && result.terminal_reason != Some(TerminalReason::HookStopped)
        {
            return Ok(Answer::new(result));
        }
        Err(match result.subtype {
            Outcome::ErrorMaxTurns => TurnError::MaxTurns(result),
            Outcome::ErrorMaxBudgetUsd => TurnError::BudgetExceeded(result),
            Outcome::ErrorMaxStructuredOutputRetries => TurnError::OutputFormat { reason: None, result },
            Outcome::ErrorDuringExecution => match result.terminal_reason {
                // Older engines report an interruption without a reason.
                Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools) | None => {
                    TurnError::Interrupted(result)
                }
                Some(TerminalReason::SessionConflict) => TurnError::Conflict(result),
                _ => TurnError::Failed(result),
            },
            Outcome::Success => match (&result.terminal_reason, self.api_failure) {
                _ if !result.is_error => TurnError::Hook { reason: self.hook_reason, result },
                (Some(TerminalReason::ApiError) | None, failure) => {
                    let (kind, request_id) = failure.unwrap_or_default();
                    let message = result.result.clone().unwrap_or_default();
                    let status = result.api_error_status;
                    TurnError::Api(ApiError { kind, status, request_id, message, result })
                }
                _ => TurnError::Failed(result),
            },
            // An outcome that only a newer engine knows.
            _ => TurnError::Failed(result),
        })
    }
}

#[cfg(test)]
mod tests;
