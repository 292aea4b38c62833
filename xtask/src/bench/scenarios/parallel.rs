//! Many processes at once, started together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::clock::{self, ms};
use crate::bench::engine::{Engine, Start};
use crate::bench::figures::Figures;
use crate::bench::lab::Lab;
use crate::bench::memory::{self, Memory};
use crate::bench::run::Run;
use crate::bench::script::{Call, Script};

const TURNS: usize = 5;

/// The least time between two looks at memory.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn eight(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    many(lab, engine, 8).map(Some)
}

pub(super) fn thirty_two(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    many(lab, engine, 32).map(Some)
}

fn many(lab: &Lab, engine: &Engine, count: usize) -> Result<Figures> {
    lab.server.play(Script::repeat(TURNS, |number| Call::bash(&format!("true {number}"))));
    let began = clock::now();
    let mut runs = Vec::with_capacity(count);
    for _ in 0..count {
        let mut run = Run::start(lab, engine, Start::default())?;
        run.say("go")?;
        runs.push(run);
    }
    let over = AtomicBool::new(false);
    let (ended, most) = thread::scope(|scope| {
        let meters: Vec<u32> = runs.iter().map(Run::meter).collect();
        let over = &over;
        let watching = scope.spawn(move || watch(&meters, over));
        let ended = finish(runs);
        over.store(true, Ordering::Relaxed);
        (ended, watching.join().unwrap_or_default())
    });
    let (cpu, last) = ended?;
    let steps = lab.server.steps().len();
    ensure!(steps == count * (TURNS + 1), "{steps} requests instead of {}", count * (TURNS + 1));
    Ok(vec![
        ("CPU, ms", cpu),
        ("CPU per process, ms", cpu / count as f64),
        ("until the last result, ms", ms(last - began)),
        ("memory of all, shared pages once, MB", most.proportional),
        ("of it anonymous, MB", most.anonymous),
    ])
}

/// Waits for all results, then for all ends: CPU of all, and when the last result came.
fn finish(mut runs: Vec<Run>) -> Result<(f64, std::time::Instant)> {
    let mut last = clock::now();
    for run in &mut runs {
        last = last.max(run.result()?.at);
    }
    let mut cpu = 0.0;
    for run in runs {
        cpu += run.finish()?.cpu;
    }
    Ok((cpu, last))
}

/// The most that the engines held together, their children not counted.
fn watch(meters: &[u32], over: &AtomicBool) -> Memory {
    let mut most = Memory::default();
    while !over.load(Ordering::Relaxed) {
        let began = clock::now();
        let mut sum = Memory::default();
        // One that has ended, or not yet begun, holds nothing.
        for memory in meters.iter().filter_map(|meter| memory::below(*meter).ok()) {
            sum.proportional += memory.proportional;
            sum.anonymous += memory.anonymous;
        }
        most.proportional = most.proportional.max(sum.proportional);
        most.anonymous = most.anonymous.max(sum.anonymous);
        // Looking costs time that the engines lack: at most a fifth of one processor goes into it.
        clock::pause(LOOK.max(4 * began.elapsed()));
    }
    most
}
