//! The model says three words and falls silent; a little later the host interrupts.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::bench::clock::{self, ms};
use crate::bench::engine::{Engine, Partial, Start};
use crate::bench::figures::Figures;
use crate::bench::lab::Lab;
use crate::bench::run::Run;
use crate::bench::script::Script;

const LATER: Duration = Duration::from_millis(300);

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    lab.server.play(Script::silence());
    let mut run = Run::start(lab, engine, Start { partial: Partial::Wanted, ..Start::default() })?;
    run.initialize()?;
    run.say("go")?;
    run.line_with("three ")?;
    clock::pause(LATER);
    let interrupted = clock::now();
    run.send(
        &json!({ "type": "control_request", "request_id": "halt", "request": { "subtype": "interrupt" } }),
    )?;
    let (mut answer, mut result) = (None, None);
    while answer.is_none() || result.is_none() {
        let line = run.line()?;
        if line.has("control_response") && line.has("halt") {
            answer = Some(line.at);
        } else if line.is_result() {
            result = Some(line.at);
        }
    }
    // How an engine leaves after an interrupt is not what is measured here.
    drop(run);
    let closed = lab.server.steps().first().context("the model was not asked")?.answered;
    let since = |at: std::time::Instant| ms(at.saturating_duration_since(interrupted));
    Ok(Some(vec![
        ("to the answer, ms", answer.map_or(f64::NAN, since)),
        ("to the closed connection, ms", since(closed)),
        ("to the result, ms", result.map_or(f64::NAN, since)),
    ]))
}
