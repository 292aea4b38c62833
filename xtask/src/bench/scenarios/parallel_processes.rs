//! Many processes started together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::EngineProcess;
use crate::bench::metrics::Metrics;
use crate::bench::model_script::{ModelScript, ToolCall};
use crate::bench::process_snapshot::{self, MemoryUsage};

const TURNS: usize = 5;

/// Minimum interval between memory samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

pub(super) fn run_8(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    run_processes(context, engine, 8).map(Some)
}

pub(super) fn run_32(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    run_processes(context, engine, 32).map(Some)
}

fn run_processes(context: &BenchContext, engine: &Engine, count: usize) -> Result<Metrics> {
    context
        .server
        .set_script(ModelScript::repeat_call(TURNS, |number| ToolCall::bash(&format!("true {number}"))));
    let started_at = clock::now();
    let mut runs = Vec::with_capacity(count);
    for _ in 0..count {
        let mut run = EngineProcess::start(context, engine, LaunchOptions::default())?;
        run.send_prompt("go")?;
        runs.push(run);
    }
    let done = AtomicBool::new(false);
    let (finished, peak) = thread::scope(|scope| {
        let meters: Vec<u32> = runs.iter().map(EngineProcess::meter_pid).collect();
        let done = &done;
        let sampler = scope.spawn(move || sample_peak_memory(&meters, done));
        let finished = wait_for_all(runs);
        done.store(true, Ordering::Relaxed);
        (finished, sampler.join().unwrap_or_default())
    });
    let (cpu, last) = finished?;
    let steps = context.server.steps().len();
    ensure!(steps == count * (TURNS + 1), "{steps} requests instead of {}", count * (TURNS + 1));
    Ok(vec![
        ("CPU, ms", cpu),
        ("CPU per process, ms", cpu / count as f64),
        ("until the last result, ms", to_ms(last - started_at)),
        ("memory of all, shared pages once, MB", peak.proportional),
        ("of it anonymous, MB", peak.anonymous),
    ])
}

/// Waits for all results, then for all exits; returns the total CPU time and the time of the last result.
fn wait_for_all(mut runs: Vec<EngineProcess>) -> Result<(f64, std::time::Instant)> {
    let mut last = clock::now();
    for run in &mut runs {
        last = last.max(run.next_result()?.received_at);
    }
    let mut cpu = 0.0;
    for run in runs {
        cpu += run.finish()?.cpu;
    }
    Ok((cpu, last))
}

/// Samples the peak memory of all engines together, without their children.
fn sample_peak_memory(meters: &[u32], done: &AtomicBool) -> MemoryUsage {
    let mut peak = MemoryUsage::default();
    while !done.load(Ordering::Relaxed) {
        let started_at = clock::now();
        let mut sum = MemoryUsage::default();
        // An engine that has exited or not yet started has no memory.
        for memory in meters.iter().filter_map(|meter| process_snapshot::engine_memory(*meter).ok()) {
            sum.proportional += memory.proportional;
            sum.anonymous += memory.anonymous;
        }
        peak.proportional = peak.proportional.max(sum.proportional);
        peak.anonymous = peak.anonymous.max(sum.anonymous);
        // Sampling takes CPU time from the engines, so it is limited to a fifth of one processor.
        clock::sleep(SAMPLE_INTERVAL.max(4 * started_at.elapsed()));
    }
    peak
}
