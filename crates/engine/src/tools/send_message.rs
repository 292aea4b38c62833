//! SendMessage: writes to another agent: a teammate, the lead, or an agent that was started earlier. In a session that may
//! have a team it is there at once, elsewhere on demand.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Done, Example, Output, Tool, Touches, Trouble, WILL_BE_TOLD};
use crate::agents::team::letter::Letter;
use crate::agents::team::requests::{Answer, Asked};
use crate::agents::team::{LEAD, Receipt};
use crate::agents::{Agents, Launched, Sent};
use crate::on_demand::Offer;

/// The tool.
pub(super) struct SendMessage;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    /// message (default), broadcast, shutdown_request, shutdown_response, plan_approval_request, plan_approval_response
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

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Writes to another agent. It reads the message when it is next free; an agent that has ended goes on with it. You are told when it answers; do not wait.";

    fn touches(_: &Input) -> Touches {
        Touches::Others
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let Some(agents) = call.agents.clone() else {
            return Err(Trouble::Refused(
                "This agent cannot write to others. Put it into your report.".into(),
            ));
        };
        match input.kind.as_deref().unwrap_or("message") {
            "message" => message(&agents, said(input)?, &call).await,
            "broadcast" => {
                let input = said(input)?;
                let letter = Letter::new(agents.name(), input.content, input.summary);
                let receipts = agents.teams().broadcast(&letter).map_err(Trouble::Refused)?;
                let names: Vec<&str> = receipts.iter().map(|receipt| receipt.to.as_str()).collect();
                if names.is_empty() {
                    return Err(Trouble::Refused("There is nobody else in the team.".into()));
                }
                let text = format!("Sent to {}.", names.join(", "));
                Ok(Done::text(text.clone(), json!({"success": true, "message": text, "recipients": names})))
            }
            "shutdown_request" => {
                leads(&agents)?;
                let to = recipient(&input)?;
                formal(agents.teams().ask_to_leave(&to, input.content))
            }
            "shutdown_response" => {
                follows(&agents)?;
                let (request, answer) = answered(input);
                formal(agents.teams().answer_to_leave(agents.name(), request.as_deref(), answer))
            }
            "plan_approval_request" => {
                follows(&agents)?;
                formal(agents.teams().hand_in_plan(agents.name(), said(input)?.content))
            }
            "plan_approval_response" => {
                leads(&agents)?;
                let to = recipient(&input)?;
                let (request, answer) = answered(input);
                formal(agents.teams().answer_plan(&to, request.as_deref(), answer))
            }
            other => Err(Trouble::Refused(format!(
                "There is no message of the type {other:?}. There are: message, broadcast, shutdown_request, shutdown_response, plan_approval_request, plan_approval_response."
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

/// The tool in a session that may have a team.
pub(super) struct SendMessageInTeam;

impl Tool for SendMessageInTeam {
    type Input = Input;

    const NAME: &'static str = SendMessage::NAME;

    const DESCRIPTION: &'static str = SendMessage::DESCRIPTION;

    fn touches(input: &Input) -> Touches {
        SendMessage::touches(input)
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        Tool::run(&SendMessage, input, call).await
    }

    fn examples() -> Vec<Example> {
        SendMessage::examples()
    }
}

fn recipient(input: &Input) -> Result<String, Trouble> {
    let named = input.recipient.clone().filter(|name| !name.is_empty());
    named.ok_or_else(|| Trouble::Refused("InputValidationError: `recipient` is missing.".into()))
}

/// What has words in it.
fn said(input: Input) -> Result<Input, Trouble> {
    match input.content.trim().is_empty() {
        false => Ok(input),
        true => Err(Trouble::Refused("InputValidationError: `content` is missing.".into())),
    }
}

/// How the answer begins that names who was written to.
pub(crate) const SENT_TO: &str = "Sent to ";

async fn message(agents: &Agents, input: Input, call: &Call) -> Output {
    let to = recipient(&input)?;
    if agents.is_mate() || agents.teams().has(&to) {
        let letter = Letter::new(agents.name(), input.content, input.summary.clone());
        let receipt = agents.teams().write(&to, letter).await.map_err(Trouble::Refused)?;
        return Ok(sent(&receipt, input.summary.as_deref()));
    }
    match agents.tell(&to, &input.content, call).await? {
        Sent::Away(Launched { agent_id, output_file }) => {
            let text = format!("{SENT_TO}{agent_id}. {WILL_BE_TOLD}.");
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

/// Only the lead may ask or answer this.
fn leads(agents: &Agents) -> Result<(), Trouble> {
    match agents.is_mate() {
        false => Ok(()),
        true => Err(Trouble::Refused(format!("Only {LEAD} can do that. Write it a message instead."))),
    }
}

/// Only a teammate may ask or answer this.
fn follows(agents: &Agents) -> Result<(), Trouble> {
    match agents.is_mate() {
        true => Ok(()),
        false => Err(Trouble::Refused("Only a teammate can do that, not the lead.".into())),
    }
}

/// The answer to a request, and which request that is, if it says so.
fn answered(input: Input) -> (Option<String>, Answer) {
    let answer = match input.approve {
        Some(true) => Answer::Yes(input.content),
        Some(false) | None => Answer::No(input.content),
    };
    (input.request_id, answer)
}

/// What became of a request or an answer in a fixed form.
fn formal(asked: Result<Asked, String>) -> Output {
    let Asked { request, receipt } = asked.map_err(Trouble::Refused)?;
    let mut done = sent(&receipt, None);
    if let Value::Object(meta) = &mut done.meta {
        meta.insert("request_id".into(), request.into());
        meta.insert("target".into(), receipt.to.into());
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
