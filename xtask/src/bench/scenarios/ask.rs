//! Permission requests: the host allows every call at once.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions, Permissions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::{Metrics, median};
use crate::bench::script::{ModelScript, ToolCall};

const CALLS: usize = 20;

pub(super) fn run(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    // Changes a file, because read-only commands cause no permission request. Appends, because truncating would flush
    // the file to disk.
    lab.server.set_script(ModelScript::repeat_call(CALLS, |number| {
        ToolCall::bash(&format!("echo {number} >> asked.txt"))
    }));
    let mut run = EngineProcess::start(
        lab,
        engine,
        LaunchOptions { permissions: Permissions::AskHost, ..LaunchOptions::default() },
    )?;
    run.initialize()?;
    run.send_prompt("go")?;
    let mut questions = Vec::with_capacity(CALLS);
    loop {
        let line = run.next_line()?;
        if line.contains(r#""subtype":"can_use_tool""#) {
            let question = line.json()?;
            let answer = json!({ "behavior": "allow", "updatedInput": question["request"]["input"] });
            let response =
                json!({ "subtype": "success", "request_id": question["request_id"], "response": answer });
            run.send_json(&json!({ "type": "control_response", "response": response }))?;
            questions.push((line.received_at, clock::now()));
        } else if line.is_result() {
            break;
        }
    }
    let used = run.finish()?;
    let steps = lab.server.steps();
    ensure!(
        questions.len() == CALLS && steps.len() == CALLS + 1,
        "{} questions, {} requests",
        questions.len(),
        steps.len()
    );
    let asked = |at: usize| to_ms(questions[at].0.saturating_duration_since(steps[at].reply_at));
    let done = |at: usize| to_ms(steps[at + 1].request_at.saturating_duration_since(questions[at].1));
    Ok(Some(vec![
        ("reply to question, ms", median(&(0..CALLS).map(asked).collect::<Vec<_>>())),
        ("answer to next request, ms", median(&(0..CALLS).map(done).collect::<Vec<_>>())),
        ("CPU of 20 calls, ms", used.cpu),
    ]))
}
