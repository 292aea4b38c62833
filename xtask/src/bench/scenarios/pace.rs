//! Deltas at a pace: how long each one is on its way through the engine.

use anyhow::{Result, ensure};
use memchr::memchr_iter;

use crate::bench::clock::ms;
use crate::bench::engine::{Engine, Partial, Start};
use crate::bench::figures::{Figures, percentile};
use crate::bench::lab::Lab;
use crate::bench::run::{Line, Run};
use crate::bench::script::{Reply, Script};

const DELTAS: usize = 1000;
const GAP: std::time::Duration = std::time::Duration::from_millis(2);

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    lab.server.play(Script::one(Reply::Paced { deltas: DELTAS, gap: GAP }));
    let mut run = Run::start(lab, engine, Start { partial: Partial::Wanted, ..Start::default() })?;
    run.say("go")?;
    let mut added = Vec::with_capacity(DELTAS);
    loop {
        let line = run.line()?;
        if line.has("text_delta") {
            added.extend(
                sent(&line).map(|micros| ms(line.at.saturating_duration_since(lab.server.moment(micros)))),
            );
        } else if line.is_result() {
            break;
        }
    }
    let used = run.finish()?;
    ensure!(added.len() == DELTAS, "{} deltas instead of {DELTAS}", added.len());
    Ok(Some(vec![
        ("on its way, median, ms", percentile(&added, 50)),
        ("nine in ten, ms", percentile(&added, 90)),
        ("99 in 100, ms", percentile(&added, 99)),
        ("CPU of the run, ms", used.cpu),
    ]))
}

/// When the delta was sent: the number between two `@`.
fn sent(line: &Line) -> Option<u64> {
    let mut marks = memchr_iter(b'@', &line.text);
    let (from, to) = (marks.next()?, marks.next()?);
    std::str::from_utf8(&line.text[from + 1..to]).ok()?.parse().ok()
}
