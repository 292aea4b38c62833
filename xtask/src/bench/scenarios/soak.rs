//! Long turn: 2,000 Bash calls in one process. The cost per call and the memory must not grow, apart from the size of
//! the requests.

use anyhow::{Context, Result, ensure};

use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::{Metrics, median, turn_gaps};
use crate::bench::model_script::{ModelScript, ToolCall};
use crate::bench::process_snapshot::{self, ProcessStats};

const CALLS: usize = 2000;

/// Call numbers at which the process is sampled: around an early and a late stretch.
const SAMPLE_CALLS: [usize; 4] = [200, 400, 1800, 2000];

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    context
        .server
        .set_script(ModelScript::repeat_call(CALLS, |number| ToolCall::bash(&format!("true {number}"))));
    let mut run = EngineProcess::start(context, engine, LaunchOptions::default())?;
    run.send_prompt("go")?;
    let mut samples: Vec<ProcessStats> = Vec::new();
    for call in 1..=CALLS {
        run.next_line_with(r#""tool_result""#)?;
        if SAMPLE_CALLS.contains(&call) {
            samples.push(process_snapshot::engine_stats(run.meter_pid())?);
        }
    }
    run.next_result()?;
    run.finish()?;
    let steps = context.server.steps();
    ensure!(steps.len() == CALLS + 1, "{} requests instead of {}", steps.len(), CALLS + 1);
    let [first, second, third, last] = samples[..] else { anyhow::bail!("the process was not sampled") };
    let per_call = |from: &ProcessStats, to: &ProcessStats| (to.cpu - from.cpu) / 200.0;
    let gaps = turn_gaps(&steps);
    let last_bytes = steps.last().context("the model got no request")?.bytes;
    Ok(Some(vec![
        ("CPU per call, calls 200 to 400, ms", per_call(&first, &second)),
        ("CPU per call, calls 1800 to 2000, ms", per_call(&third, &last)),
        ("reply to next request, calls 200 to 400, ms", median(&gaps[200..400])),
        ("reply to next request, calls 1800 to 2000, ms", median(&gaps[1800..])),
        ("growth from call 200 on, anonymous, MB", last.memory.anonymous - first.memory.anonymous),
        ("resident at the end, MB", last.memory.resident),
        ("descriptors at call 200", first.descriptors),
        ("descriptors at the end", last.descriptors),
        ("zombies at the end", last.zombies),
        ("last request, bytes", last_bytes as f64),
    ]))
}
