//! Deltas at a fixed pace: the latency that the engine adds to each.

use anyhow::{Result, ensure};
use memchr::memchr_iter;

use crate::bench::clock::to_ms;
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions, PartialMessages};
use crate::bench::engine_process::{EngineProcess, OutputLine};
use crate::bench::metrics::{Metrics, percentile};
use crate::bench::model_script::{ModelReply, ModelScript};

const DELTAS: usize = 1000;
const GAP: std::time::Duration = std::time::Duration::from_millis(2);

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    context.server.set_script(ModelScript::single_reply(ModelReply::Paced { deltas: DELTAS, gap: GAP }));
    let mut run = EngineProcess::start(
        context,
        engine,
        LaunchOptions { partial_messages: PartialMessages::On, ..LaunchOptions::default() },
    )?;
    run.send_prompt("go")?;
    let mut added = Vec::with_capacity(DELTAS);
    loop {
        let line = run.next_line()?;
        if line.contains("text_delta") {
            added.extend(sent_micros(&line).map(|micros| {
                to_ms(line.received_at.saturating_duration_since(context.server.instant_at(micros)))
            }));
        } else if line.is_result() {
            break;
        }
    }
    let usage = run.finish()?;
    ensure!(added.len() == DELTAS, "{} deltas instead of {DELTAS}", added.len());
    Ok(Some(vec![
        ("latency p50, ms", percentile(&added, 50)),
        ("latency p90, ms", percentile(&added, 90)),
        ("latency p99, ms", percentile(&added, 99)),
        ("CPU of the run, ms", usage.cpu),
    ]))
}

/// Time at which a delta was sent: the number between two `@`.
fn sent_micros(line: &OutputLine) -> Option<u64> {
    let mut marks = memchr_iter(b'@', &line.text);
    let (from, to) = (marks.next()?, marks.next()?);
    std::str::from_utf8(&line.text[from + 1..to]).ok()?.parse().ok()
}
