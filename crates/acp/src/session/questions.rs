//! Requests to the editor: permission for calls, questions of the model, questions of MCP servers. They are withdrawn
//! when the engine no longer needs the answer.

use std::path::PathBuf;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationFormMode, ElicitationSessionScope, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ToolCall, ToolCallUpdate,
};
use serde_json::Value;
use tokio::sync::oneshot;
use whimbrel::wire::control::{CanUseTool, Elicitation, ElicitationReply};
use whimbrel::wire::permission::PermissionUpdate;
use whimbrel::wire::tool_names::ASK_USER_QUESTION;
use whimbrel::{PermissionRequest, PermissionResult};

use super::{SessionEvent, SessionTask};
use crate::elicitation;
use crate::existing_file::{self, ExistingFile};
use crate::permission_options::{self, Choice, always_updates, choices, find_choice, is_covered};
use crate::question_form;
use crate::translate::call::change_diff;
use crate::translate::text::text_content;

const CANCELLED: &str = "The user cancelled the turn.";

/// Permission requests without an answer.
#[derive(Default)]
pub(super) struct OpenQuestions(Vec<OpenQuestion>);

struct OpenQuestion {
    call: String,
    /// The updates that together would allow the call.
    needed: Vec<PermissionUpdate>,
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
        let needed = always_updates(request).to_vec();
        self.questions.0.push(OpenQuestion { call: id.clone(), needed, settle });
        let (outbox, asked) = (self.outbox.clone(), CanUseTool::clone(request));
        self.spawn(async move {
            let call = with_reason(with_diff_of_change(call, &tool, &input).await, &asked);
            let options = choices.iter().map(Choice::to_option).collect();
            let question =
                RequestPermissionRequest::new(outbox.session().clone(), ToolCallUpdate::from(call), options);
            let updates = answer_permission(outbox.request(question), &choices, settled, reply).await;
            SessionEvent::PermissionAnswered(id, updates)
        });
    }

    /// Settles the open requests that an answer covers, too.
    pub(super) fn finish_permission(&mut self, call: &str, updates: &[PermissionUpdate]) {
        let questions = &mut self.questions.0;
        questions.retain(|question| question.call != call);
        for question in questions.extract_if(.., |question| is_covered(&question.needed, updates)) {
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

/// Adds the diff of a Write or of a cell, for which the present text of the file is needed.
async fn with_diff_of_change(call: ToolCall, tool: &str, input: &Value) -> ToolCall {
    let path = match tool {
        "Write" => input["file_path"].as_str(),
        "NotebookEdit" => input["notebook_path"].as_str(),
        _ => None,
    };
    let Some(path) = path.map(PathBuf::from) else { return call };
    let existing = match tokio::task::spawn_blocking(move || existing_file::read(&path)).await {
        Ok(ExistingFile::Text(text)) => Some(text),
        Ok(ExistingFile::Missing) => None,
        Ok(ExistingFile::NotShown) | Err(_) => return call,
    };
    match change_diff(tool, input, existing) {
        Some(diff) => call.content(vec![diff]),
        None => call,
    }
}

/// Adds why the call needs permission. What a rule, a hook or a safety check says is shown; other reasons are evident from
/// the call.
fn with_reason(mut call: ToolCall, request: &CanUseTool) -> ToolCall {
    let Some(reason) = request.decision_reason.as_deref().filter(|reason| !reason.is_empty()) else {
        return call;
    };
    if matches!(request.decision_reason_type.as_deref(), Some("rule" | "hook" | "safetyCheck")) {
        call.content.push(text_content(reason));
    }
    let mut meta = call.meta.take().unwrap_or_default();
    if let Some(Value::Object(claude_code)) = meta.get_mut("claudeCode") {
        claude_code.insert("decisionReason".into(), reason.into());
    }
    call.meta(meta)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_that_the_call_does_not_show_is_shown() {
        let rows =
            [("rule", true), ("safetyCheck", true), ("hook", true), ("other", false), ("workingDir", false)];
        for (reason_type, is_shown) in rows {
            let request = CanUseTool {
                decision_reason: Some("why".into()),
                decision_reason_type: Some(reason_type.into()),
                ..CanUseTool::default()
            };
            let meta = json!({"claudeCode": {"toolName": "Bash"}}).as_object().cloned();
            let call = with_reason(ToolCall::new("c", "make").meta(meta), &request);
            assert_eq!(call.content == [text_content("why")], is_shown, "{reason_type}");
            assert_eq!(json!(call)["_meta"]["claudeCode"]["decisionReason"], "why");
        }
    }
}
