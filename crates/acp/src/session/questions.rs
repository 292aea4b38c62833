//! Requests to the editor: permission for calls, questions of the model, questions of MCP servers. They are withdrawn
//! when the engine no longer needs the answer.

use std::path::PathBuf;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationFormMode, ElicitationSessionScope, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ToolCall, ToolCallContent, ToolCallUpdate,
};
use serde_json::Value;
use tokio::sync::oneshot;
use whimbrel::wire::control::{Elicitation, ElicitationReply};
use whimbrel::wire::permission::PermissionUpdate;
use whimbrel::wire::tool_names::ASK_USER_QUESTION;
use whimbrel::{PermissionRequest, PermissionResult};

use super::{SessionEvent, SessionTask};
use crate::elicitation;
use crate::permission_options::{self, Choice, choices, find_choice};
use crate::question_form;
use crate::translate::call::write_diff;

const CANCELLED: &str = "The user cancelled the turn.";

/// Permission requests without an answer.
#[derive(Default)]
pub(super) struct OpenQuestions(Vec<OpenQuestion>);

struct OpenQuestion {
    call: String,
    suggestions: Vec<PermissionUpdate>,
    /// Allows the call, because the answer to another request covers it.
    settle: oneshot::Sender<()>,
}

impl SessionTask {
    /// Asks for permission, or asks the questions of the model.
    pub(super) fn ask_permission(
        &mut self,
        request: &PermissionRequest,
        reply: oneshot::Sender<PermissionResult>,
    ) {
        if reply.is_closed() {
            return;
        }
        let input = Value::Object(request.input.clone());
        let (id, tool) = (request.tool_use_id.clone(), request.tool_name.clone());
        if self.translator.calls.find(&id).is_none() {
            let announced = self.translator.calls.complete_input(&id, &tool, &input, None);
            self.outbox.send_all(announced);
        }
        if tool == ASK_USER_QUESTION {
            return self.ask_questions(request, reply);
        }
        let call = self.translator.calls.describe(&id, &tool, &input, None);
        let choices = choices(request);
        let (settle, settled) = oneshot::channel();
        let suggestions = request.permission_suggestions.clone().unwrap_or_default();
        self.questions.0.push(OpenQuestion { call: id.clone(), suggestions, settle });
        let outbox = self.outbox.clone();
        self.spawn(async move {
            let call = with_written_diff(call, &tool, &input).await;
            let options = choices.iter().map(Choice::to_option).collect();
            let asked =
                RequestPermissionRequest::new(outbox.session().clone(), ToolCallUpdate::from(call), options);
            let updates = answer_permission(outbox.request(asked), &choices, settled, reply).await;
            SessionEvent::PermissionAnswered(id, updates)
        });
    }

    /// Settles the open requests that an answer covers, too.
    pub(super) fn finish_permission(&mut self, call: &str, updates: &[PermissionUpdate]) {
        let questions = &mut self.questions.0;
        questions.retain(|question| question.call != call);
        let is_covered = |question: &mut OpenQuestion| {
            question.suggestions.iter().any(|suggestion| updates.contains(suggestion))
        };
        for question in questions.extract_if(.., is_covered) {
            // A request that has just been answered is settled anyway.
            let _ = question.settle.send(());
        }
        for update in updates {
            if let PermissionUpdate::SetMode { mode, .. } = update {
                self.take_over_mode(*mode);
            }
        }
    }

    fn ask_questions(&self, request: &PermissionRequest, reply: oneshot::Sender<PermissionResult>) {
        let (outbox, input) = (self.outbox.clone(), request.input.clone());
        let (message, schema) = question_form::to_form(&input);
        let scope =
            ElicitationSessionScope::new(outbox.session().clone()).tool_call_id(request.tool_use_id.as_str());
        let asked = CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message);
        self.spawn(async move {
            answer_unless_withdrawn(reply, outbox.request(asked), |answer| match answer {
                Ok(response) => question_form::to_result(input, &response),
                Err(error) => PermissionResult::deny(format!("The editor could not ask: {}", error.message)),
            })
            .await;
            SessionEvent::Nothing
        });
    }

    /// Passes the question of an MCP server on.
    pub(super) fn ask_for_server(&self, asked: &Elicitation, reply: oneshot::Sender<ElicitationReply>) {
        let outbox = self.outbox.clone();
        let Some(request) = elicitation::to_request(asked, &outbox.session().0, &self.features) else {
            // A server that no longer waits needs no answer.
            let _ = reply.send(elicitation::cancelled());
            return;
        };
        self.spawn(async move {
            answer_unless_withdrawn(reply, outbox.request(request), |answer| match answer {
                Ok(response) => elicitation::to_reply(&response),
                Err(_) => elicitation::cancelled(),
            })
            .await;
            SessionEvent::Nothing
        });
    }
}

/// Waits for the answer of the editor and passes its meaning on. If the engine stops waiting, the request is withdrawn.
async fn answer_unless_withdrawn<A, T>(
    mut reply: oneshot::Sender<T>,
    asked: impl Future<Output = Result<A, Error>>,
    to_reply: impl FnOnce(Result<A, Error>) -> T,
) {
    let answer = tokio::select! {
        biased;
        () = reply.closed() => return,
        answer = asked => answer,
    };
    // An engine that has just stopped waiting needs no answer.
    let _ = reply.send(to_reply(answer));
}

/// Waits for the decision on a call, and returns the changes of the rules that come with it.
async fn answer_permission(
    asked: impl Future<Output = Result<RequestPermissionResponse, Error>>,
    choices: &[Choice],
    settled: oneshot::Receiver<()>,
    mut reply: oneshot::Sender<PermissionResult>,
) -> Vec<PermissionUpdate> {
    let answer = tokio::select! {
        biased;
        () = reply.closed() => return Vec::new(),
        Ok(()) = settled => {
            let _ = reply.send(permission_options::allow(Vec::new()));
            return Vec::new();
        }
        answer = asked => answer,
    };
    let (decision, updates) = match answer.map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => match find_choice(choices, &selected.option_id.0)
        {
            Some(choice) => (choice.to_result(), choice.updates().to_vec()),
            None => (
                PermissionResult::deny("The editor answered with an option that was not offered."),
                Vec::new(),
            ),
        },
        Ok(_) => (PermissionResult::deny(CANCELLED).and_interrupt(), Vec::new()),
        Err(error) => {
            let message = format!("The editor could not ask for permission: {}", error.message);
            (PermissionResult::deny(message), Vec::new())
        }
    };
    // An engine that has just stopped waiting needs no answer.
    let _ = reply.send(decision);
    updates
}

/// Adds the diff of a Write, for which the present text of the file is needed.
async fn with_written_diff(call: ToolCall, tool: &str, input: &Value) -> ToolCall {
    let Some(path) = input["file_path"].as_str().filter(|_| tool == "Write") else { return call };
    let existing = match tokio::fs::read_to_string(PathBuf::from(path)).await {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // A file that is no text has no diff.
        Err(_) => return call,
    };
    let content: Vec<ToolCallContent> = write_diff(input, existing).into_iter().collect();
    call.content(content)
}
