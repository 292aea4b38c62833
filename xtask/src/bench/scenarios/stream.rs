//! Burst of deltas, all forwarded to the host. The startup cost is removed by comparing with a reply of one delta.

use anyhow::{Result, ensure};

use crate::bench::clock::to_ms;
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions, PartialMessages};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::Metrics;
use crate::bench::model_script::ModelScript;

const DELTAS: usize = 10_000;

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let start = LaunchOptions { partial_messages: PartialMessages::On, ..LaunchOptions::default() };
    context.server.set_script(ModelScript::long_text(1));
    let cold = EngineProcess::run_one_prompt(context, engine, start)?.usage;

    context.server.set_script(ModelScript::long_text(DELTAS));
    let mut run = EngineProcess::start(context, engine, start)?;
    run.send_prompt("go")?;
    let (mut seen, mut bytes, mut first) = (0, 0, None);
    let result = loop {
        let line = run.next_line()?;
        if line.contains("text_delta") {
            first.get_or_insert(line.received_at);
            seen += 1;
            bytes += line.text.len();
        } else if line.is_result() {
            break line;
        }
    };
    let usage = run.finish()?;
    ensure!(seen == DELTAS, "{seen} deltas instead of {DELTAS}");
    let drained = first.map_or(f64::NAN, |first| to_ms(result.received_at - first));
    Ok(Some(vec![
        ("CPU per delta, us", (usage.cpu - cold.cpu) * 1000.0 / DELTAS as f64),
        ("CPU of the run, ms", usage.cpu),
        ("first delta to result, ms", drained),
        ("written per delta, bytes", bytes as f64 / DELTAS as f64),
        ("largest process, MB", usage.largest),
    ]))
}
