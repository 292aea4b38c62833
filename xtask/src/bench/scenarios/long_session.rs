//! Long session: 100 prompts in one process, each sent after the previous result.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::{Metrics, median};
use crate::bench::model_script::ModelScript;
use crate::bench::process_snapshot;

const MESSAGES: usize = 100;

/// Time for work after a result, which is not counted as growth.
const SETTLE_TIME: Duration = Duration::from_millis(300);

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    context.server.set_script(ModelScript::short_reply());
    let cold = EngineProcess::run_one_prompt(context, engine, LaunchOptions::default())?.usage;

    context.server.set_script(ModelScript::short_reply());
    let mut run = EngineProcess::start(context, engine, LaunchOptions::default())?;
    let mut times = Vec::with_capacity(MESSAGES);
    let mut memories = Vec::new();
    for number in 1..=MESSAGES {
        let sent = clock::now();
        run.send_prompt(&format!("message {number}"))?;
        times.push(to_ms(run.next_result()?.received_at - sent));
        if number == 1 || number == MESSAGES {
            clock::sleep(SETTLE_TIME);
            memories.push(process_snapshot::engine_memory(run.meter_pid())?);
        }
    }
    let usage = run.finish()?;
    let last = *context.server.steps().last().context("the model got no request")?;
    let [after_one, after_all] = memories[..] else { anyhow::bail!("the memory was not sampled") };
    Ok(Some(vec![
        ("CPU per message, ms", (usage.cpu - cold.cpu) / (MESSAGES - 1) as f64),
        ("message to result, ms", median(&times)),
        ("resident after 1, MB", after_one.resident),
        ("resident after 100, MB", after_all.resident),
        ("growth, anonymous, MB", after_all.anonymous - after_one.anonymous),
        ("last request, bytes", last.bytes as f64),
    ]))
}
