//! A turn without end: 2,000 Bash calls in one process. What a call costs and what the process holds must not grow with what
//! was done before, apart from the bytes that are sent.

use anyhow::{Context, Result, ensure};

use crate::bench::engine::{Engine, Start};
use crate::bench::figures::{Figures, gaps, median};
use crate::bench::lab::Lab;
use crate::bench::run::Run;
use crate::bench::script::{Call, Script};
use crate::bench::vitals::{self, Vitals};

const CALLS: usize = 2000;

/// After how many calls the process is looked at: around an early stretch and a late one.
const LOOKS: [usize; 4] = [200, 400, 1800, 2000];

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    lab.server.play(Script::repeat(CALLS, |number| Call::bash(&format!("true {number}"))));
    let mut run = Run::start(lab, engine, Start::default())?;
    run.say("go")?;
    let mut looks: Vec<Vitals> = Vec::new();
    for call in 1..=CALLS {
        run.line_with(r#""tool_result""#)?;
        if LOOKS.contains(&call) {
            looks.push(vitals::below(run.meter())?);
        }
    }
    run.result()?;
    run.finish()?;
    let steps = lab.server.steps();
    ensure!(steps.len() == CALLS + 1, "{} requests instead of {}", steps.len(), CALLS + 1);
    let [first, second, third, last] = looks[..] else { anyhow::bail!("the process was not seen") };
    let per_call = |from: &Vitals, to: &Vitals| (to.cpu - from.cpu) / 200.0;
    let gaps = gaps(&steps);
    let sent = steps.last().context("the model was not asked")?.bytes;
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
        ("last request, bytes", sent as f64),
    ]))
}
