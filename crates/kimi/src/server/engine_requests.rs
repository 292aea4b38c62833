//! Requests of the engine, which the client answers: approvals, questions, plans, and tools of the host.

use std::path::Path;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use whimbrel::wire::content::{Block, Source};
use whimbrel::wire::tool_names::{ASK_USER_QUESTION, EXIT_PLAN_MODE};
use whimbrel::{PermissionRequest, PermissionResult, ToolOutput};

use super::Server;
use crate::callbacks::{Callback, ToolCall};
use crate::client_requests::ClientRequest;
use crate::command_line::Approval;
use crate::ids::new_uuid;
use crate::json_rpc::Outgoing;
use crate::tool_names::HOST_SERVER;
use crate::tools::{self, OutputPart, ToolReturnValue};
use crate::translate::Event;

/// What the model is told if the user rejects a call.
const REJECTED: &str = "The user rejected this call. Do something else, or ask the user what to do.";
const PLAN_REJECTED: &str = "The user rejected the plan. Stay in plan mode and refine it.";

/// What the model is told if it changes a file before its plan is approved.
const PLAN_MODE_IS_ON: &str = "Plan mode is on: files can be changed once the user has approved the plan.";

/// Answers to a plan.
const APPROVE: &str = "Approve";
const REJECT: &str = "Reject";
const REJECT_AND_EXIT: &str = "Reject and Exit";

/// Largest file whose old text is shown beside a new one.
const MAX_SHOWN_FILE_BYTES: u64 = 1 << 20;

type PermissionSender = oneshot::Sender<PermissionResult>;

impl Server {
    pub(super) async fn handle_callback(&mut self, callback: Callback) {
        match callback {
            Callback::Permission(request, answer) => self.ask_permission(&request, answer).await,
            Callback::Hook(input, answer) => self.run_hooks(&input, answer).await,
            Callback::Tool(call, answer) => self.call_host_tool(call, answer).await,
        }
    }

    async fn ask_permission(&mut self, request: &PermissionRequest, answer: PermissionSender) {
        match request.tool_name.as_str() {
            ASK_USER_QUESTION => self.ask_questions(request, answer).await,
            EXIT_PLAN_MODE => self.ask_about_plan(request, answer).await,
            _ => self.ask_approval(request, answer).await,
        }
    }

    /// Commands, changes of files and tools of servers need an approval, nothing else does.
    async fn ask_approval(&mut self, request: &PermissionRequest, answer: PermissionSender) {
        let input = Value::Object(request.input.clone());
        let work_dir = self.setup.work_dir.clone();
        let approval =
            tools::approval(&request.tool_name, &input, &work_dir, |path| read_text(&work_dir.join(path)));
        let changes_files = matches!(request.tool_name.as_str(), "Edit" | "Write" | "NotebookEdit");
        if changes_files && self.state.plan_mode {
            return drop(answer.send(PermissionResult::deny(PLAN_MODE_IS_ON)));
        }
        if !needs_approval(request) || self.is_yolo || self.state.approved_actions.contains(&approval.action)
        {
            return drop(answer.send(PermissionResult::allow()));
        }
        let id = new_uuid();
        let is_subagent = request.agent_id.is_some();
        let payload = json!({
            "id": id,
            "tool_call_id": request.tool_use_id,
            "sender": approval.sender,
            "action": approval.action,
            "description": approval.description,
            "display": approval.display,
            "source_kind": is_subagent.then_some("subagent"),
            "source_id": request.agent_id,
            "agent_id": request.agent_id,
            "subagent_type": null,
            "source_description": null,
        });
        let open = ClientRequest::Approval { action: approval.action, is_subagent, answer };
        self.requests.insert(id.clone(), open);
        self.send(Outgoing::Request { id, kind: "ApprovalRequest", payload }).await;
    }

    async fn ask_questions(&mut self, request: &PermissionRequest, answer: PermissionSender) {
        let input = request.input.clone();
        if !self.client.features.questions || self.setup.approval == Approval::Afk {
            return drop(answer.send(answered(input, json!({}))));
        }
        let (_, shown) = tools::to_kimi(&request.tool_name, &Value::Object(input.clone()));
        let questions: Vec<Value> =
            shown["questions"].as_array().into_iter().flatten().map(complete_question).collect();
        let id = new_uuid();
        let payload = json!({"id": id, "tool_call_id": request.tool_use_id, "questions": questions});
        self.requests.insert(id.clone(), ClientRequest::Question { input, answer });
        self.send(Outgoing::Request { id, kind: "QuestionRequest", payload }).await;
    }

    async fn ask_about_plan(&mut self, request: &PermissionRequest, answer: PermissionSender) {
        let plan = request.input.get("plan").and_then(Value::as_str).unwrap_or_default();
        if self.is_yolo {
            return drop(answer.send(PermissionResult::allow()));
        }
        self.emit(Event::new("PlanDisplay", json!({"content": plan, "file_path": ""}))).await;
        let option = |label: &str, description: &str| json!({"label": label, "description": description});
        let question = json!({
            "question": "Approve this plan?",
            "header": "Plan",
            "options": [
                option(APPROVE, "Leave plan mode and carry it out"),
                option(REJECT, "Stay in plan mode and refine the plan"),
                option(REJECT_AND_EXIT, "Leave plan mode without carrying it out"),
            ],
            "multi_select": false,
            "body": plan,
            "other_label": "",
            "other_description": "",
        });
        let id = new_uuid();
        let payload = json!({"id": id, "tool_call_id": request.tool_use_id, "questions": [question]});
        let open = ClientRequest::Plan { is_subagent: request.agent_id.is_some(), answer };
        self.requests.insert(id.clone(), open);
        self.send(Outgoing::Request { id, kind: "QuestionRequest", payload }).await;
    }

    async fn call_host_tool(&mut self, call: ToolCall, answer: oneshot::Sender<ToolOutput>) {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let payload = json!({"id": call.id, "name": call.name, "arguments": arguments});
        let id = call.id.clone();
        self.requests.insert(id.clone(), ClientRequest::Tool { call, answer });
        self.send(Outgoing::Request { id, kind: "ToolCallRequest", payload }).await;
    }

    /// An answer of the client. One to an unknown request is ignored.
    pub(super) async fn handle_response(&mut self, id: &str, result: Result<Value, String>) {
        match self.requests.take(id) {
            None => {}
            Some(ClientRequest::Approval { action, is_subagent, answer }) => {
                self.settle_approval(id, &action, is_subagent, answer, result).await;
            }
            Some(ClientRequest::Question { input, answer }) => {
                let answers = result.ok().map(|mut result| result["answers"].take());
                let answers = answers.filter(Value::is_object).unwrap_or_else(|| json!({}));
                drop(answer.send(answered(input, answers)));
            }
            Some(ClientRequest::Plan { is_subagent, answer }) => {
                self.settle_plan(is_subagent, answer, result).await;
            }
            Some(ClientRequest::Tool { call, answer }) => {
                let value = host_value(result);
                if !call.is_subagent {
                    let value = serde_json::to_value(&value).unwrap_or_default();
                    self.translator.record_host_value(&call.id, value);
                }
                drop(answer.send(to_output(value)));
            }
            Some(ClientRequest::Hook { batch }) => self.handle_hook_answer(batch, result).await,
        }
    }

    async fn settle_approval(
        &mut self,
        id: &str,
        action: &str,
        is_subagent: bool,
        answer: PermissionSender,
        result: Result<Value, String>,
    ) {
        let result = result.unwrap_or_default();
        let feedback = result["feedback"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let words = ["approve", "approve_for_session"];
        let response = words.into_iter().find(|word| result["response"] == *word).unwrap_or("reject");
        self.emit_approval_response(id, response, feedback.as_deref()).await;
        match response {
            "approve" => drop(answer.send(PermissionResult::allow())),
            "approve_for_session" => {
                drop(answer.send(PermissionResult::allow()));
                self.state.approved_actions.insert(action.to_owned());
                for (id, request) in self.requests.take_approvals(action) {
                    if let ClientRequest::Approval { answer, .. } = request {
                        self.emit_approval_response(&id, response, None).await;
                        drop(answer.send(PermissionResult::allow()));
                    }
                }
            }
            _ => {
                let denied = match &feedback {
                    Some(feedback) => {
                        PermissionResult::deny(format!("The user rejected this call: {feedback}"))
                    }
                    None => PermissionResult::deny(REJECTED),
                };
                // In a subagent a rejection never ends the turn.
                let ends_turn = feedback.is_none() && !is_subagent;
                if ends_turn {
                    self.reject_turn().await;
                }
                drop(answer.send(if ends_turn { denied.and_interrupt() } else { denied }));
            }
        }
    }

    async fn settle_plan(
        &mut self,
        is_subagent: bool,
        answer: PermissionSender,
        result: Result<Value, String>,
    ) {
        let answers = result.unwrap_or_default();
        let chosen = answers["answers"].as_object().and_then(|answers| answers.values().next()?.as_str());
        let result = match chosen {
            Some(APPROVE) => PermissionResult::allow(),
            Some(REJECT_AND_EXIT) => {
                // Without the change the engine stays in plan mode, and says so to the model.
                let _ = self.change_plan_mode(false).await;
                let denied = PermissionResult::deny("The user rejected the plan and left plan mode.");
                if is_subagent {
                    denied
                } else {
                    self.reject_turn().await;
                    denied.and_interrupt()
                }
            }
            Some(REJECT) | None => PermissionResult::deny(PLAN_REJECTED),
            Some(text) => PermissionResult::deny(format!("{PLAN_REJECTED} The user says: {text}")),
        };
        drop(answer.send(result));
    }

    /// The rejection ends the turn. Input that waits must not start another one.
    async fn reject_turn(&mut self) {
        self.take_back_steers().await;
        if let Some(turn) = &mut self.turn {
            turn.is_rejected = true;
        }
    }

    async fn emit_approval_response(&mut self, id: &str, response: &str, feedback: Option<&str>) {
        let payload =
            json!({"request_id": id, "response": response, "feedback": feedback.unwrap_or_default()});
        self.emit(Event::new("ApprovalResponse", payload)).await;
    }

    /// Requests that ended with their turn count as rejected.
    pub(super) async fn close_withdrawn_requests(&mut self) {
        for (id, request) in self.requests.take_withdrawn() {
            if matches!(request, ClientRequest::Approval { .. }) {
                self.emit_approval_response(&id, "reject", None).await;
            }
        }
    }
}

/// Whether the client is asked: about commands, changes of files and tools of servers, and about everything for which a
/// rule of the user, a hook or a safety check wants it.
fn needs_approval(request: &PermissionRequest) -> bool {
    match tools::split_mcp_name(&request.tool_name) {
        Some((server, _)) => server != HOST_SERVER,
        None => {
            matches!(request.tool_name.as_str(), "Bash" | "Edit" | "Write" | "NotebookEdit" | "TaskStop")
                || request.matched_ask_rule.is_some()
                || matches!(request.decision_reason_type.as_deref(), Some("rule" | "hook" | "safetyCheck"))
        }
    }
}

/// A question with all fields that clients of this wire expect.
fn complete_question(question: &Value) -> Value {
    let text = |field: &str| question[field].as_str().unwrap_or_default();
    json!({
        "question": text("question"),
        "header": text("header"),
        "options": question["options"],
        "multi_select": question["multi_select"] == true,
        "body": text("body"),
        "other_label": "",
        "other_description": "",
    })
}

/// Allows the questions of the model with these answers.
fn answered(mut input: Map<String, Value>, answers: Value) -> PermissionResult {
    input.insert("answers".into(), answers);
    PermissionResult::allow().with_input(input)
}

/// What a tool of the host returned. An error as the answer means that the tool failed.
fn host_value(result: Result<Value, String>) -> ToolReturnValue {
    let failed = |message: String| ToolReturnValue {
        is_error: true,
        output: tools::ToolOutput::default(),
        message,
        display: Vec::new(),
    };
    match result.map(|mut result| serde_json::from_value::<ToolReturnValue>(result["return_value"].take())) {
        Ok(Ok(mut value)) => {
            if value.is_error && value.message.trim().is_empty() {
                value.message = "The tool failed.".into();
            }
            value
        }
        Ok(Err(error)) => failed(format!("The host returned something that is not a tool result: {error}.")),
        Err(text) => failed(text),
    }
}

/// The result as the model reads it: the explanation, then the tool's own words.
fn to_output(value: ToolReturnValue) -> ToolOutput {
    let message = Some(value.message).filter(|message| !message.trim().is_empty());
    let prefix = if value.is_error { "ERROR: " } else { "" };
    let explanation = message.map(|message| Block::text(format!("<system>{prefix}{message}</system>")));
    let words = match value.output {
        tools::ToolOutput::Text(text) if text.is_empty() => Vec::new(),
        tools::ToolOutput::Text(text) => vec![Block::text(text)],
        tools::ToolOutput::Parts(parts) => parts.iter().map(part_to_block).collect(),
    };
    ToolOutput { content: explanation.into_iter().chain(words).collect(), failed: value.is_error }
}

fn part_to_block(part: &OutputPart) -> Block {
    match part {
        OutputPart::Text { text } => Block::text(text),
        OutputPart::ImageUrl { image_url } => {
            match image_url.url.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
                Some((media_type, data)) => {
                    let source = Source::Base64 { media_type: media_type.to_owned(), data: data.to_owned() };
                    Block::Image { source }
                }
                None => Block::text(format!("Image: {}", image_url.url)),
            }
        }
        OutputPart::Other(fields) => Block::text(Value::Object(fields.clone()).to_string()),
    }
}

/// The text of a file that a call would replace, if it is small enough to show.
fn read_text(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SHOWN_FILE_BYTES {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
