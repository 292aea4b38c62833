//! A cold start: spawn, one short reply, exit.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::clock::to_ms;
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::Metrics;
use crate::bench::script::ModelScript;

pub(super) fn run(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    lab.server.set_script(ModelScript::short_reply());
    let whole = EngineProcess::run_one_prompt(lab, engine, LaunchOptions::default())?;
    let steps = lab.server.steps();
    let first = steps.first().context("the model was not asked")?;
    Ok(Some(vec![
        ("CPU, ms", whole.usage.cpu),
        ("largest process, MB", whole.usage.largest),
        ("spawn to first request, ms", to_ms(first.request_at - whole.started_at)),
        ("spawn to result, ms", to_ms(whole.result_at - whole.started_at)),
        ("whole process, ms", whole.usage.wall),
        ("first request, bytes", first.bytes as f64),
        ("program file, MB", fs::metadata(&engine.program)?.len() as f64 / 1e6),
    ]))
}
