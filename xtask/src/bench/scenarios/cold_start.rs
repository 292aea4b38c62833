//! A cold start: spawn, one short reply, exit.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::clock::to_ms;
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::Metrics;
use crate::bench::model_script::ModelScript;

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    context.server.set_script(ModelScript::short_reply());
    let run = EngineProcess::run_one_prompt(context, engine, LaunchOptions::default())?;
    let steps = context.server.steps();
    let first = steps.first().context("the model got no request")?;
    Ok(Some(vec![
        ("CPU, ms", run.usage.cpu),
        ("largest process, MB", run.usage.largest),
        ("spawn to first request, ms", to_ms(first.request_at - run.started_at)),
        ("spawn to result, ms", to_ms(run.result_at - run.started_at)),
        ("whole process, ms", run.usage.wall),
        ("first request, bytes", first.bytes as f64),
        ("program file, MB", fs::metadata(&engine.program)?.len() as f64 / 1e6),
    ]))
}
