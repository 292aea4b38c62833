//! Plays a script on the engine's own scripted model, without any network.
//!
//! That model supports fewer faults than the [HTTP mock](crate::http_mock). Faults of a connection (stalls, an HTML
//! page, a closed connection, a fault that always happens), held replies and closures return an error.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use whimbrel_models::scripted::Scripted;

use crate::script::{Fault, FaultCount, Reply, ReplyBlock, Script};

impl Script {
    /// Renders the script as JSON for `--model scripted:PATH`.
    pub fn to_scripted_json(&self) -> anyhow::Result<Value> {
        let Some(replies) = self.replies() else { bail!("A script from a closure works only over HTTP.") };
        let mut turns = Vec::new();
        for (index, reply) in replies.iter().enumerate() {
            let number = index + 1;
            turns
                .extend(reply_turns(reply, number).with_context(|| format!("Reply {number} of the script"))?);
        }
        Ok(Value::Array(turns))
    }

    /// Builds the scripted model that plays this script.
    pub fn to_scripted(&self) -> anyhow::Result<Arc<Scripted>> {
        Ok(Arc::new(Scripted::replies(self.to_scripted_json()?)?))
    }
}

/// Expands a reply into one turn per request: first its faults, then the reply itself.
fn reply_turns(reply: &Reply, number: usize) -> anyhow::Result<Vec<Value>> {
    if reply.hold.is_some() {
        bail!("A held reply works only over HTTP.");
    }
    let whole = turn_json(reply, number);
    let mut turns = Vec::new();
    for (fault, times) in reply.faults() {
        let FaultCount::First(times) = times else {
            bail!("A fault that always happens works only over HTTP.")
        };
        let mut turn = whole.clone();
        turn["fault"] = fault_json(fault)?;
        turns.extend(std::iter::repeat_n(turn, times.get() as usize));
    }
    if !reply.never_succeeds() {
        turns.push(whole);
    }
    Ok(turns)
}

fn turn_json(reply: &Reply, number: usize) -> Value {
    let resolved = crate::api_format::ResolvedReply::new(number, reply, "");
    let mut calls = 0;
    let content: Vec<Value> = reply.say.iter().map(|block| block_json(block, number, &mut calls)).collect();
    json!({
        "content": content,
        "stop_reason": resolved.stop_reason,
        "usage": resolved.usage,
        "delay_ms": u64::try_from(reply.after.as_millis()).unwrap_or(u64::MAX),
    })
}

fn block_json(block: &ReplyBlock, number: usize, calls: &mut usize) -> Value {
    match block {
        ReplyBlock::Text { text } => json!({"type": "text", "text": text}),
        ReplyBlock::Thinking { thinking, signature } => {
            json!({"type": "thinking", "thinking": thinking, "signature": signature})
        }
        ReplyBlock::Tool { tool, input, id, raw_input } => {
            *calls += 1;
            let id = id.clone().unwrap_or_else(|| format!("toolu_{number}_{calls}"));
            // The scripted model sends a string input verbatim, so it need not be valid JSON.
            let input = raw_input.as_ref().map_or_else(|| input.clone(), |text| Value::from(text.as_str()));
            json!({"type": "tool_use", "id": id, "name": tool, "input": input})
        }
        ReplyBlock::Block { block } => block.clone(),
    }
}

fn fault_json(fault: &Fault) -> anyhow::Result<Value> {
    Ok(match fault {
        Fault::Status { status, error, message, headers } => {
            let seconds = headers.get("retry-after").and_then(|text| text.parse().ok());
            let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            json!({
                "kind": model_error_kind(error.as_deref().unwrap_or_else(|| Fault::default_error_type(*status))),
                "status": status,
                "message": message.as_deref().unwrap_or("scripted failure"),
                "retry_after_ms": wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            })
        }
        Fault::Cut { after } => {
            json!({"kind": "cut", "message": "The stream ended before the reply was complete.", "after": after})
        }
        Fault::ErrorEvent { after, error, message } => {
            json!({"kind": model_error_kind(error), "message": message, "after": after})
        }
        Fault::HangUp => json!({"kind": "connection", "message": "The connection was closed."}),
        Fault::EmptyBody => json!({"kind": "not_a_stream", "message": "The server's response is empty."}),
        Fault::Stall { .. }
        | Fault::Pings { .. }
        | Fault::Drip { .. }
        | Fault::ExtraEvent { .. }
        | Fault::Html
        | Fault::RawBody { .. } => {
            bail!("{fault:?} works only over HTTP.")
        }
    })
}

/// Maps an error type of the API to the error kind of the models crate.
fn model_error_kind(error: &str) -> &'static str {
    match error {
        "invalid_request_error" => "invalid_request",
        "authentication_error" => "authentication",
        "billing_error" => "billing",
        "permission_error" => "forbidden",
        "not_found_error" => "model_not_found",
        "request_too_large" => "too_large",
        "rate_limit_error" => "rate_limit",
        "overloaded_error" => "overloaded",
        _ => "server",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_a_turn_before_the_reply() {
        let script = Script::from([
            Reply::text("a").status(529).times(2),
            Reply::empty().status(429).retry_after("1.5"),
            Reply::tool("Bash", json!({})).raw_tool_input("{bad"),
        ]);
        let turns = script.to_scripted_json().unwrap();
        let statuses: Vec<_> =
            turns.as_array().unwrap().iter().map(|turn| turn["fault"]["status"].clone()).collect();
        assert_eq!(statuses, [json!(529), json!(529), Value::Null, json!(429), Value::Null]);
        assert_eq!(turns[3]["fault"]["retry_after_ms"], 1500);
        assert_eq!(turns[4]["content"][0]["input"], "{bad");
        assert!(script.to_scripted().is_ok());
    }

    #[test]
    fn network_only_features_are_rejected() {
        for reply in [
            Reply::text("a").stall_after(1),
            Reply::text("a").html(),
            Reply::text("a").hold_until("b"),
            Reply::text("a").status(529).always(),
        ] {
            let error = Script::from([reply]).to_scripted_json().unwrap_err();
            assert!(format!("{error:#}").contains("over HTTP"), "{error:#}");
        }
        assert!(Script::from_fn(|_| Reply::empty()).to_scripted_json().is_err());
    }
}
