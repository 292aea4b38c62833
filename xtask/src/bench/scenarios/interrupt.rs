//! The model sends three words and stops; the host interrupts shortly after.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions, PartialMessages};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::Metrics;
use crate::bench::model_script::ModelScript;

const INTERRUPT_DELAY: Duration = Duration::from_millis(300);

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    context.server.set_script(ModelScript::hang());
    let mut run = EngineProcess::start(
        context,
        engine,
        LaunchOptions { partial_messages: PartialMessages::On, ..LaunchOptions::default() },
    )?;
    run.initialize()?;
    run.send_prompt("go")?;
    run.next_line_with("three ")?;
    clock::sleep(INTERRUPT_DELAY);
    let interrupted_at = clock::now();
    run.send_json(
        &json!({ "type": "control_request", "request_id": "halt", "request": { "subtype": "interrupt" } }),
    )?;
    let (mut response, mut result) = (None, None);
    while response.is_none() || result.is_none() {
        let line = run.next_line()?;
        if line.contains("control_response") && line.contains("halt") {
            response = Some(line.received_at);
        } else if line.is_result() {
            result = Some(line.received_at);
        }
    }
    // The exit after an interrupt is not measured.
    drop(run);
    let closed = context.server.steps().first().context("the model got no request")?.reply_at;
    let since = |at: std::time::Instant| to_ms(at.saturating_duration_since(interrupted_at));
    Ok(Some(vec![
        ("interrupt to response, ms", response.map_or(f64::NAN, since)),
        ("to the closed connection, ms", since(closed)),
        ("to the result, ms", result.map_or(f64::NAN, since)),
    ]))
}
