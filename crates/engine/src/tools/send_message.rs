//! SendMessage: writes to another agent: a teammate, the lead, or an agent that was started earlier.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};
use crate::agents::team::letter::{Form, Letter};
use crate::agents::team::{LEAD, Receipt};
use crate::agents::{Agents, Launched, Sent};
use crate::clock;

/// The tool.
pub(super) struct SendMessage;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// message (default), broadcast, shutdown_request, shutdown_response
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A name, `team-lead`, or an agentId
    #[serde(alias = "to", alias = "target_agent_id")]
    recipient: Option<String>,
    #[serde(alias = "message", alias = "reason", default)]
    content: String,
    /// In 5-10 words
    summary: Option<String>,
    request_id: Option<String>,
    approve: Option<bool>,
}

impl Tool for SendMessage {
    type Input = Input;

    const NAME: &'static str = super::SEND_MESSAGE;

    const DESCRIPTION: &'static str = "Writes to another agent. It reads the message when it is next free; an agent that has ended goes on with it. You are told when it answers; do not wait.";

    fn touches(_: &Input) -> Touches {
        Touches::Nothing
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let Some(agents) = call.agents.clone() else {
            return Err(Trouble::Refused(
                "This agent cannot write to others. Put it into your report.".into(),
            ));
        };
        match input.kind.as_deref().unwrap_or("message") {
            "message" => message(&agents, input, &call).await,
            "broadcast" => {
                let letter = Letter::new(agents.name(), input.content, input.summary);
                let receipts = agents.teams().broadcast(&letter).map_err(Trouble::Refused)?;
                let names: Vec<&str> = receipts.iter().map(|receipt| receipt.to.as_str()).collect();
                let text = format!("Sent to {}.", names.join(", "));
                Ok(Done::text(text.clone(), json!({"success": true, "message": text, "recipients": names})))
            }
            "shutdown_request" => shutdown_request(&agents, input),
            "shutdown_response" => shutdown_response(&agents, input),
            "plan_approval_response" => {
                let form = Form::PlanAnswer {
                    request: input.request_id.clone().unwrap_or_default(),
                    approved: input.approve.unwrap_or(false),
                    feedback: input.content.clone(),
                };
                formal(&agents, &recipient(&input)?, &form, None)
            }
            other => Err(Trouble::Refused(format!(
                "There is no message of the type {other:?}. There are: message, broadcast, shutdown_request, shutdown_response, plan_approval_response."
            ))),
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("who works alone has nobody to write to", json!({"to": "x", "message": "y"}))
                .fails(&["report"]),
        ]
    }
}

fn recipient(input: &Input) -> Result<String, Trouble> {
    let named = input.recipient.clone().filter(|name| !name.is_empty());
    named.ok_or_else(|| Trouble::Refused("InputValidationError: `recipient` is missing.".into()))
}

async fn message(agents: &Agents, input: Input, call: &Call) -> Output {
    let to = recipient(&input)?;
    if agents.teams().has(&to) {
        let letter = Letter::new(agents.name(), input.content, input.summary.clone());
        let receipt = agents.teams().send(&to, letter).map_err(Trouble::Refused)?;
        return Ok(sent(&receipt, input.summary.as_deref()));
    }
    match agents.tell(&to, &input.content, call).await? {
        Sent::Away(Launched { agent_id, output_file }) => {
            let text = format!("Sent to {agent_id}. You will be told when it is done.");
            let meta =
                json!({"success": true, "message": text, "agentId": agent_id, "outputFile": output_file});
            Ok(Done::text(text, meta))
        }
        // Only the main agent goes on beside another one.
        Sent::Back(report) => {
            let meta = json!({"success": true, "message": report.text(), "agentId": report.agent_id});
            Ok(Done::text(report.text(), meta))
        }
    }
}

fn shutdown_request(agents: &Agents, input: Input) -> Output {
    let to = recipient(&input)?;
    let request = format!("shutdown-{}@{to}", clock::milliseconds());
    let form = Form::ShutdownRequest { request: request.clone(), reason: input.content };
    formal(agents, &to, &form, Some(&request))
}

/// A teammate answers whether it ends.
fn shutdown_response(agents: &Agents, input: Input) -> Output {
    let request = input.request_id.unwrap_or_default();
    if agents.name() == LEAD {
        return Err(Trouble::Refused("Only a teammate can answer a shutdown request.".into()));
    }
    if input.approve == Some(true) {
        agents.teams().agree_to_leave(agents.name());
        return formal(agents, LEAD, &Form::ShutdownApproved { request: request.clone() }, Some(&request));
    }
    let form = Form::ShutdownRejected { request: request.clone(), reason: input.content };
    formal(agents, LEAD, &form, Some(&request))
}

/// Sends something in a fixed form.
fn formal(agents: &Agents, to: &str, form: &Form, request: Option<&str>) -> Output {
    let receipt = agents.teams().send(to, Letter::of_form(agents.name(), form)).map_err(Trouble::Refused)?;
    let mut done = sent(&receipt, None);
    if let (Some(request), Value::Object(meta)) = (request, &mut done.meta) {
        meta.insert("request_id".into(), request.into());
        meta.insert("target".into(), to.into());
    }
    Ok(done)
}

fn sent(receipt: &Receipt, summary: Option<&str>) -> Done {
    let when = if receipt.reader_works { "is at work and reads it afterwards" } else { "reads it now" };
    let text = format!("Delivered: {} {when}.", receipt.to);
    let meta = json!({
        "success": true,
        "message": text,
        "routing": {"target": receipt.to, "summary": summary},
        "delivered": true,
        "recipientBusy": receipt.reader_works,
    });
    Done::text(text, meta)
}
