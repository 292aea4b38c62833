//! A long session: 100 messages in one process, each sent after the result of the one before.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::clock::{self, ms};
use crate::bench::engine::{Engine, Start};
use crate::bench::figures::{Figures, median};
use crate::bench::lab::Lab;
use crate::bench::memory;
use crate::bench::run::Run;
use crate::bench::script::Script;

const MESSAGES: usize = 100;

/// What an engine does after a result is not counted as growth.
const SETTLE: Duration = Duration::from_millis(300);

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    lab.server.play(Script::word());
    let cold = Run::whole(lab, engine, Start::default())?.used;

    lab.server.play(Script::word());
    let mut run = Run::start(lab, engine, Start::default())?;
    let mut times = Vec::with_capacity(MESSAGES);
    let mut memories = Vec::new();
    for number in 1..=MESSAGES {
        let sent = clock::now();
        run.say(&format!("message {number}"))?;
        times.push(ms(run.result()?.at - sent));
        if number == 1 || number == MESSAGES {
            clock::pause(SETTLE);
            memories.push(memory::below(run.meter())?);
        }
    }
    let used = run.finish()?;
    let last = *lab.server.steps().last().context("the model was not asked")?;
    let [after_one, after_all] = memories[..] else { anyhow::bail!("the memory could not be read") };
    Ok(Some(vec![
        ("CPU per message, ms", (used.cpu - cold.cpu) / (MESSAGES - 1) as f64),
        ("message to result, ms", median(&times)),
        ("resident after 1, MB", after_one.resident),
        ("resident after 100, MB", after_all.resident),
        ("growth, anonymous, MB", after_all.anonymous - after_one.anonymous),
        ("last request, bytes", last.bytes as f64),
    ]))
}
