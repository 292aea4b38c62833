//! Permission requests: the host allows every call at once.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions, Permissions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::{Metrics, median};
use crate::bench::model_script::{ModelScript, ToolCall};

const CALLS: usize = 20;

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    // Changes a file, because read-only commands cause no permission request. Appends, because truncating would flush
    // the file to disk.
    context.server.set_script(ModelScript::repeat_call(CALLS, |number| {
        ToolCall::bash(&format!("echo {number} >> asked.txt"))
    }));
    let mut run = EngineProcess::start(
        context,
        engine,
        LaunchOptions { permissions: Permissions::AskHost, ..LaunchOptions::default() },
    )?;
    run.initialize()?;
    run.send_prompt("go")?;
    let mut permission_requests = Vec::with_capacity(CALLS);
    loop {
        let line = run.next_line()?;
        if line.contains(r#""subtype":"can_use_tool""#) {
            let request = line.json()?;
            let decision = json!({ "behavior": "allow", "updatedInput": request["request"]["input"] });
            let response =
                json!({ "subtype": "success", "request_id": request["request_id"], "response": decision });
            run.send_json(&json!({ "type": "control_response", "response": response }))?;
            permission_requests.push((line.received_at, clock::now()));
        } else if line.is_result() {
            break;
        }
    }
    let usage = run.finish()?;
    let steps = context.server.steps();
    ensure!(
        permission_requests.len() == CALLS && steps.len() == CALLS + 1,
        "{} permission requests, {} model requests",
        permission_requests.len(),
        steps.len()
    );
    let ask_time = |at: usize| to_ms(permission_requests[at].0.saturating_duration_since(steps[at].reply_at));
    let continue_time =
        |at: usize| to_ms(steps[at + 1].request_at.saturating_duration_since(permission_requests[at].1));
    Ok(Some(vec![
        ("reply to permission request, ms", median(&(0..CALLS).map(ask_time).collect::<Vec<_>>())),
        ("answer to next request, ms", median(&(0..CALLS).map(continue_time).collect::<Vec<_>>())),
        ("CPU of 20 calls, ms", usage.cpu),
    ]))
}
