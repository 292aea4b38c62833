//! A flood of deltas, each passed on to the host. The start is taken out by a reply of one delta.

use anyhow::{Result, ensure};

use crate::bench::clock::ms;
use crate::bench::engine::{Engine, Partial, Start};
use crate::bench::figures::Figures;
use crate::bench::lab::Lab;
use crate::bench::run::Run;
use crate::bench::script::Script;

const DELTAS: usize = 10_000;

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    let start = Start { partial: Partial::Wanted, ..Start::default() };
    lab.server.play(Script::long(1));
    let cold = Run::whole(lab, engine, start)?.used;

    lab.server.play(Script::long(DELTAS));
    let mut run = Run::start(lab, engine, start)?;
    run.say("go")?;
    let (mut seen, mut bytes, mut first) = (0, 0, None);
    let result = loop {
        let line = run.line()?;
        if line.has("text_delta") {
            first.get_or_insert(line.at);
            seen += 1;
            bytes += line.text.len();
        } else if line.is_result() {
            break line;
        }
    };
    let used = run.finish()?;
    ensure!(seen == DELTAS, "{seen} deltas instead of {DELTAS}");
    let drained = first.map_or(f64::NAN, |first| ms(result.at - first));
    Ok(Some(vec![
        ("CPU per delta, us", (used.cpu - cold.cpu) * 1000.0 / DELTAS as f64),
        ("CPU of the run, ms", used.cpu),
        ("first delta to result, ms", drained),
        ("written per delta, bytes", bytes as f64 / DELTAS as f64),
        ("largest process, MB", used.largest),
    ]))
}
