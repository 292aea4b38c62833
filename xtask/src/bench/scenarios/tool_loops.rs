//! Tool loop: one prompt, many turns. The startup cost is removed by comparing a short and a long loop.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::{EngineProcess, measure_program};
use crate::bench::metrics::{BaselineMetrics, Metrics, median, turn_gaps};
use crate::bench::model_script::{ModelScript, ToolCall};
use crate::bench::model_server::StepTiming;
use crate::bench::resource_usage::ResourceUsage;

const SHORT: usize = 10;
const LONG: usize = 110;

/// Turns with a no-op command.
pub(super) fn run_bash(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    // The number prevents an engine from detecting a loop.
    run_short_and_long(context, engine, |number| ToolCall::bash(&format!("true {number}"))).map(Some)
}

/// Turns that read a small file.
pub(super) fn run_read(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let file = context.small_file();
    // A different part each time, so that no engine can answer "unchanged".
    run_short_and_long(context, engine, |number| {
        ToolCall::new("Read", json!({ "file_path": file, "offset": 1 + number % 15, "limit": 5 }))
    })
    .map(Some)
}

/// Baseline: cost of the shell alone.
pub(super) fn shell_baseline(context: &BenchContext) -> Result<BaselineMetrics> {
    let shells = (0..20)
        .map(|_| measure_program(context, "bash", &["-c", "true"]))
        .collect::<Result<Vec<ResourceUsage>>>()?;
    let metric = |field: fn(&ResourceUsage) -> f64| median(&shells.iter().map(field).collect::<Vec<_>>());
    let metrics = vec![(CPU_METRIC, metric(|usage| usage.cpu)), (GAP_METRIC, metric(|usage| usage.wall))];
    Ok(vec![("bash -c true".into(), metrics)])
}

const CPU_METRIC: &str = "CPU per turn, ms";
const GAP_METRIC: &str = "reply to next request, ms";

fn run_short_and_long(
    context: &BenchContext,
    engine: &Engine,
    call: impl Fn(usize) -> ToolCall,
) -> Result<Metrics> {
    let (short, _) = run_loop(context, engine, SHORT, &call)?;
    let (long, steps) = run_loop(context, engine, LONG, &call)?;
    let gaps = turn_gaps(&steps);
    let (first, last) = (steps[0].bytes as f64, steps[steps.len() - 1].bytes as f64);
    Ok(vec![
        (CPU_METRIC, (long.cpu - short.cpu) / (LONG - SHORT) as f64),
        (GAP_METRIC, median(&gaps)),
        ("the same, last ten turns, ms", median(&gaps[gaps.len() - 10..])),
        ("CPU of 110 turns, ms", long.cpu),
        ("largest process, MB", long.largest),
        ("added to the request per turn, bytes", (last - first) / LONG as f64),
    ])
}

fn run_loop(
    context: &BenchContext,
    engine: &Engine,
    turns: usize,
    call: impl Fn(usize) -> ToolCall,
) -> Result<(ResourceUsage, Vec<StepTiming>)> {
    context.server.set_script(ModelScript::repeat_call(turns, call));
    let run = EngineProcess::run_one_prompt(context, engine, LaunchOptions::default())?;
    let steps = context.server.steps();
    ensure!(steps.len() == turns + 1, "{} requests instead of {}", steps.len(), turns + 1);
    Ok((run.usage, steps))
}
