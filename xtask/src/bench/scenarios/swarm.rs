//! Many sessions in one process through the Rust SDK: runs the driver `examples/swarm_sessions.rs` with one session and
//! with a thousand.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::context::BenchContext;
use crate::bench::engine::Engine;
use crate::bench::engine_process::measure_engine;
use crate::bench::metrics::{BaselineMetrics, Metrics};
use crate::bench::model_script::{ModelScript, ToolCall};
use crate::bench::resource_usage::ResourceUsage;

const SESSIONS: usize = 1000;
const TURNS: usize = 5;

/// Not a scenario for engine processes.
#[expect(clippy::unnecessary_wraps, reason = "other scenarios can fail")]
pub(super) fn run(_: &BenchContext, _: &Engine) -> Result<Option<Metrics>> {
    Ok(None)
}

/// Measures sessions with prompts only, and sessions that read files.
pub(super) fn in_process_baseline(context: &BenchContext) -> Result<BaselineMetrics> {
    let file = context.small_file();
    let reading = || {
        ModelScript::repeat_call(TURNS, |number| {
            ToolCall::new("Read", json!({ "file_path": file, "offset": number + 1, "limit": 5 }))
        })
    };
    Ok(vec![
        ("five messages".into(), measure(context, ModelScript::short_reply, "frames", TURNS, TURNS)?),
        ("five messages with ask".into(), measure(context, ModelScript::short_reply, "ask", TURNS, TURNS)?),
        ("one message, five Reads".into(), measure(context, reading, "frames", 1, TURNS + 1)?),
    ])
}

fn measure(
    context: &BenchContext,
    script: impl Fn() -> ModelScript,
    reading: &str,
    messages: usize,
    calls: usize,
) -> Result<Metrics> {
    let run = |sessions: usize| {
        let arguments = [&sessions.to_string(), &messages.to_string(), reading];
        run_swarm(context, script(), &arguments, sessions * calls)
    };
    let (one, all) = (run(1)?, run(SESSIONS)?);
    Ok(vec![
        ("CPU, ms", all.cpu),
        ("CPU per model call, us", (all.cpu - one.cpu) * 1000.0 / ((SESSIONS - 1) * calls) as f64),
        ("largest process, MB", all.largest),
        ("per session, KB", (all.largest - one.largest) * 1024.0 / (SESSIONS - 1) as f64),
        ("whole process, ms", all.wall),
    ])
}

/// Runs the driver; `requests` is the number of model calls that it must make.
fn run_swarm(
    context: &BenchContext,
    script: ModelScript,
    arguments: &[&str],
    requests: usize,
) -> Result<ResourceUsage> {
    let program = context.swarm_program.as_ref().context("the driver was not built")?.display().to_string();
    context.server.set_script(script);
    let engine =
        Engine { name: "swarm".into(), home: context.create_dir("home-swarm")?, program: program.into() };
    let usage = measure_engine(context, &engine, arguments)?;
    ensure!(usage.code == Some(0), "the driver exited with {:?}", usage.code);
    let steps = context.server.steps().len();
    ensure!(steps == requests, "{steps} requests instead of {requests}");
    Ok(usage)
}
