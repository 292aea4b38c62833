//! SendMessage: sends a message to a teammate, the team lead, or an agent that was started earlier. Eager in a session
//! that may have a team, otherwise deferred.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_tools::api::{
    Effects, Example, Tool, ToolContext, ToolError, ToolLoading, ToolOutput, ToolResult,
};

use super::agent::NOTIFIED_WHEN_DONE;
use crate::agents::team::message::TeamMessage;
use crate::agents::team::requests::{RequestAnswer, SentRequest};
use crate::agents::team::{LEAD, SentMessage};
use crate::agents::{AgentSpawner, SpawnOutcome, SpawnedAgent};

pub(super) struct SendMessageTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct SendMessageInput {
    /// message (default), broadcast, shutdown_request, shutdown_response, plan_approval_request, plan_approval_response
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Name, `team-lead` or agentId
    #[serde(alias = "to", alias = "target_agent_id")]
    recipient: Option<String>,
    #[serde(alias = "message", alias = "reason", default)]
    content: String,
    /// In 5-10 words
    summary: Option<String>,
    request_id: Option<String>,
    approve: Option<bool>,
}

impl Tool for SendMessageTool {
    type Input = SendMessageInput;

    const NAME: &'static str = whimbrel_wire::tool_names::SEND_MESSAGE;

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Sends a message to another agent. It reads the message when it is next free; a \
        finished agent continues with it. You are notified of its answer; do not wait.";

    fn effects(_: &SendMessageInput) -> Effects {
        Effects::OtherAgents
    }

    async fn run(&self, input: SendMessageInput, call: ToolContext) -> ToolResult {
        let Some(agents) = AgentSpawner::from_context(&call).cloned() else {
            return Err(ToolError::Rejected(
                "This agent cannot message others. Put it in your report.".into(),
            ));
        };
        match input.kind.as_deref().unwrap_or("message") {
            "message" => send_message(&agents, require_content(input)?, &call).await,
            "broadcast" => {
                let input = require_content(input)?;
                let message = TeamMessage::new(agents.sender_name(), input.content, input.summary);
                let sent = agents.team().broadcast(&message).map_err(ToolError::Rejected)?;
                let names: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
                if names.is_empty() {
                    return Err(ToolError::Rejected("The team has no other members.".into()));
                }
                let text = format!("Sent to {}.", names.join(", "));
                Ok(ToolOutput::text(
                    text.clone(),
                    json!({"success": true, "message": text, "recipients": names}),
                ))
            }
            "shutdown_request" => {
                require_lead(&agents)?;
                let to = require_recipient(&input)?;
                request_result(agents.team().request_shutdown(&to, input.content))
            }
            "shutdown_response" => {
                require_teammate(&agents)?;
                let (request, answer) = into_answer(input);
                request_result(agents.team().answer_shutdown(
                    agents.sender_name(),
                    request.as_deref(),
                    answer,
                ))
            }
            "plan_approval_request" => {
                require_teammate(&agents)?;
                request_result(
                    agents.team().submit_plan(agents.sender_name(), require_content(input)?.content),
                )
            }
            "plan_approval_response" => {
                require_lead(&agents)?;
                let to = require_recipient(&input)?;
                let (request, answer) = into_answer(input);
                request_result(agents.team().answer_plan(&to, request.as_deref(), answer))
            }
            other => Err(ToolError::Rejected(format!(
                "Unknown message type {other:?}. Known types: message, broadcast, shutdown_request, shutdown_response, \
                 plan_approval_request, plan_approval_response."
            ))),
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an agent without others is rejected", json!({"to": "x", "message": "y"}))
                .expect_error(&["report"]),
        ]
    }
}

/// The same tool, not deferred, for a session that may have a team.
pub(super) struct TeamSendMessageTool;

impl Tool for TeamSendMessageTool {
    type Input = SendMessageInput;

    const NAME: &'static str = SendMessageTool::NAME;

    const DESCRIPTION: &'static str = SendMessageTool::DESCRIPTION;

    fn effects(input: &SendMessageInput) -> Effects {
        SendMessageTool::effects(input)
    }

    async fn run(&self, input: SendMessageInput, call: ToolContext) -> ToolResult {
        Tool::run(&SendMessageTool, input, call).await
    }

    fn examples() -> Vec<Example> {
        SendMessageTool::examples()
    }
}

fn require_recipient(input: &SendMessageInput) -> Result<String, ToolError> {
    let recipient = input.recipient.clone().filter(|name| !name.is_empty());
    recipient.ok_or_else(|| ToolError::Rejected("InputValidationError: `recipient` is missing.".into()))
}

/// Requires a non-empty content.
fn require_content(input: SendMessageInput) -> Result<SendMessageInput, ToolError> {
    match input.content.trim().is_empty() {
        false => Ok(input),
        true => Err(ToolError::Rejected("InputValidationError: `content` is missing.".into())),
    }
}

async fn send_message(agents: &AgentSpawner, input: SendMessageInput, call: &ToolContext) -> ToolResult {
    let to = require_recipient(&input)?;
    if agents.is_teammate() || agents.team().has_member(&to) {
        let message = TeamMessage::new(agents.sender_name(), input.content, input.summary.clone());
        let sent = agents.team().send_in_order(&to, message).await.map_err(ToolError::Rejected)?;
        return Ok(sent_result(&sent, input.summary.as_deref()));
    }
    match agents.send_message(&to, &input.content, call).await? {
        SpawnOutcome::Background(SpawnedAgent { agent_id, output_file }) => {
            let text = format!("Sent to {agent_id}. {NOTIFIED_WHEN_DONE}.");
            let meta =
                json!({"success": true, "message": text, "agentId": agent_id, "outputFile": output_file});
            Ok(ToolOutput::text(text, meta))
        }
        // Only the main agent leaves an agent in the background; others wait for its report.
        SpawnOutcome::Finished(report) => {
            let meta = json!({"success": true, "message": report.text(), "agentId": report.agent_id});
            Ok(ToolOutput::text(report.text(), meta))
        }
    }
}

fn require_lead(agents: &AgentSpawner) -> Result<(), ToolError> {
    match agents.is_teammate() {
        false => Ok(()),
        true => Err(ToolError::Rejected(format!("Only {LEAD} can do that. Send it a message instead."))),
    }
}

fn require_teammate(agents: &AgentSpawner) -> Result<(), ToolError> {
    match agents.is_teammate() {
        true => Ok(()),
        false => Err(ToolError::Rejected("Only a teammate can do that, not the lead.".into())),
    }
}

/// The answer to a request, and the id of that request if given.
fn into_answer(input: SendMessageInput) -> (Option<String>, RequestAnswer) {
    let answer = match input.approve {
        Some(true) => RequestAnswer::Approve(input.content),
        Some(false) | None => RequestAnswer::Reject(input.content),
    };
    (input.request_id, answer)
}

/// Result of a team request or response.
fn request_result(sent: Result<SentRequest, String>) -> ToolResult {
    let SentRequest { request_id, message: sent } = sent.map_err(ToolError::Rejected)?;
    let mut output = sent_result(&sent, None);
    if let Value::Object(meta) = &mut output.meta {
        meta.insert("request_id".into(), request_id.into());
        meta.insert("target".into(), sent.to.into());
    }
    Ok(output)
}

fn sent_result(sent: &SentMessage, summary: Option<&str>) -> ToolOutput {
    let when = if sent.recipient_is_running { "is working and reads it afterwards" } else { "reads it now" };
    let text = format!("Delivered: {} {when}.", sent.to);
    let meta = json!({
        "success": true,
        "message": text,
        "routing": {"target": sent.to, "summary": summary},
        "delivered": true,
        "recipientBusy": sent.recipient_is_running,
    });
    ToolOutput::text(text, meta)
}
