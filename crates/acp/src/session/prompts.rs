//! Prompts of the editor that have no answer yet: each is answered exactly once, whatever becomes of its turn.

use std::collections::HashSet;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{ContentBlock, PromptResponse, StopReason};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use whimbrel::wire::control::Interrupt;
use whimbrel::wire::message::{FailureKind, Priority, TurnResult, User};

use super::{SessionEvent, SessionTask, respond};
use crate::errors::{from_sdk_error, internal_error, invalid_request};
use crate::ids::new_uuid;
use crate::prompt::to_content;
use crate::steering::SteeringResponse;
use crate::turn_end::{Cancellation, prompt_answer};

/// Prompts without an answer.
#[derive(Default)]
pub(super) struct OpenPrompts {
    open: Vec<OpenPrompt>,
    /// Those that the editor has cancelled.
    cancelled: HashSet<String>,
}

/// Why a session has ended.
pub(super) enum SessionEnd {
    /// The editor has closed it.
    Closed,
    Failed(whimbrel::Error),
    Unknown,
}

struct OpenPrompt {
    uuid: String,
    responder: Responder<PromptResponse>,
    /// Ends the task that waits for a cancellation of the request.
    _answered: DropGuard,
}

impl OpenPrompts {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Answers the prompts of a turn.
    pub(super) fn finish_turn(&mut self, result: &TurnResult, failure: Option<&FailureKind>) {
        for prompt in self.take(|uuid| result.answers(uuid)) {
            let cancellation = match self.cancelled.remove(&prompt.uuid) {
                true => Cancellation::Requested,
                false => Cancellation::NotRequested,
            };
            respond(prompt.responder, prompt_answer(result, failure, cancellation));
        }
    }

    /// Answers prompts whose turns never began.
    pub(super) fn cancel_dropped(&mut self, dropped: &[String]) {
        for prompt in self.take(|uuid| dropped.iter().any(|dropped| dropped == uuid)) {
            self.cancelled.remove(&prompt.uuid);
            respond(prompt.responder, Ok(PromptResponse::new(StopReason::Cancelled)));
        }
    }

    /// Answers all prompts, because the session has ended.
    pub(super) fn end_all(&mut self, end: &SessionEnd) {
        for prompt in self.take(|_| true) {
            let answer = match end {
                SessionEnd::Closed => Ok(PromptResponse::new(StopReason::Cancelled)),
                _ if self.cancelled.contains(&prompt.uuid) => Ok(PromptResponse::new(StopReason::Cancelled)),
                SessionEnd::Failed(error) => Err(from_sdk_error(error)),
                SessionEnd::Unknown => Err(internal_error("the session has ended: load it again")),
            };
            respond(prompt.responder, answer);
        }
    }

    fn mark_all_cancelled(&mut self) {
        self.cancelled.extend(self.open.iter().map(|prompt| prompt.uuid.clone()));
    }

    fn take(&mut self, is_meant: impl Fn(&str) -> bool) -> Vec<OpenPrompt> {
        self.open.extract_if(.., |prompt| is_meant(&prompt.uuid)).collect()
    }
}

impl SessionTask {
    pub(super) async fn send_prompt(
        &mut self,
        blocks: Vec<ContentBlock>,
        responder: Responder<PromptResponse>,
    ) {
        let content = match to_content(blocks) {
            Ok(content) => content,
            Err(error) => return respond(responder, Err(error)),
        };
        let uuid = new_uuid();
        let plan = self.translator.open_plan();
        self.outbox.send_all(plan);
        let message = User { uuid: Some(uuid.clone()), ..User::prompt(content) };
        if let Err(error) = self.controls.send(message).await {
            return respond(responder, Err(from_sdk_error(&error)));
        }
        if !self.translator.has_window() {
            self.fetch_window();
        }
        let (cancellation, answered) = (responder.cancellation(), CancellationToken::new());
        let (withdrawn, waiting) = (uuid.clone(), answered.clone());
        self.spawn(async move {
            match waiting.run_until_cancelled(cancellation.cancelled()).await {
                Some(()) => SessionEvent::CancelPrompt(withdrawn),
                None => SessionEvent::Nothing,
            }
        });
        self.prompts.open.push(OpenPrompt { uuid, responder, _answered: answered.drop_guard() });
    }

    /// Adds a prompt to the running turn.
    pub(super) async fn steer(&mut self, blocks: Vec<ContentBlock>, responder: Responder<SteeringResponse>) {
        if self.prompts.is_empty() {
            return respond(responder, Err(invalid_request("no turn runs: send session/prompt")));
        }
        let sent = match to_content(blocks) {
            Ok(content) => {
                let message = User::prompt(content).with_priority(Priority::Next);
                self.controls.send(message).await.map_err(|error| from_sdk_error(&error))
            }
            Err(error) => Err(error),
        };
        respond(responder, sent.map(|()| SteeringResponse::default()));
    }

    /// Cancels the running turn and the prompts behind it. Without a turn nothing happens.
    pub(super) fn cancel(&mut self) {
        self.prompts.mark_all_cancelled();
        self.interrupt(Interrupt { cancel_queued: Some(true), user_message_uuid: None });
    }

    /// Cancels one prompt.
    pub(super) fn cancel_prompt(&mut self, uuid: String) {
        self.prompts.cancelled.insert(uuid.clone());
        self.interrupt(Interrupt { cancel_queued: None, user_message_uuid: Some(uuid) });
    }

    fn interrupt(&self, request: Interrupt) {
        let controls = self.controls.clone();
        self.spawn(async move {
            let reply = controls.call(request).await.unwrap_or_default();
            let dropped = reply.cancelled.as_ref().and_then(Value::as_array);
            let dropped = dropped.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            SessionEvent::Interrupted(dropped.collect())
        });
    }
}
