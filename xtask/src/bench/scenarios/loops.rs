//! A tool loop: one prompt, many turns. The start is taken out by playing a short and a long one.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::engine::{Engine, Start};
use crate::bench::figures::{Beside, Figures, gaps, median};
use crate::bench::lab::Lab;
use crate::bench::meter::Used;
use crate::bench::run::{Run, alone};
use crate::bench::script::{Call, Script};
use crate::bench::server::Step;

const SHORT: usize = 10;
const LONG: usize = 110;

/// Turns of a command that does nothing.
pub(super) fn bash(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    // The number keeps an engine from thinking that it goes in circles.
    both(lab, engine, |number| Call::bash(&format!("true {number}"))).map(Some)
}

/// Turns of reading a small file.
pub(super) fn read(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    let file = lab.small_file();
    // Each time another part, so that no engine can say "as before".
    both(lab, engine, |number| {
        Call::new("Read", json!({ "file_path": file, "offset": 1 + number % 15, "limit": 5 }))
    })
    .map(Some)
}

/// What the shell alone costs.
pub(super) fn shell_alone(lab: &Lab) -> Result<Beside> {
    let shells = (0..20).map(|_| alone(lab, "bash", &["-c", "true"])).collect::<Result<Vec<Used>>>()?;
    let figure = |of: fn(&Used) -> f64| median(&shells.iter().map(of).collect::<Vec<_>>());
    let figures = vec![(CPU, figure(|used| used.cpu)), (GAP, figure(|used| used.wall))];
    Ok(vec![("bash -c true".into(), figures)])
}

const CPU: &str = "CPU per turn, ms";
const GAP: &str = "reply to next request, ms";

fn both(lab: &Lab, engine: &Engine, call: impl Fn(usize) -> Call) -> Result<Figures> {
    let (short, _) = one(lab, engine, SHORT, &call)?;
    let (long, steps) = one(lab, engine, LONG, &call)?;
    let gaps = gaps(&steps);
    let (first, last) = (steps[0].bytes as f64, steps[steps.len() - 1].bytes as f64);
    Ok(vec![
        (CPU, (long.cpu - short.cpu) / (LONG - SHORT) as f64),
        (GAP, median(&gaps)),
        ("the same, last ten turns, ms", median(&gaps[gaps.len() - 10..])),
        ("CPU of 110 turns, ms", long.cpu),
        ("largest process, MB", long.largest),
        ("added to the request per turn, bytes", (last - first) / LONG as f64),
    ])
}

fn one(lab: &Lab, engine: &Engine, turns: usize, call: impl Fn(usize) -> Call) -> Result<(Used, Vec<Step>)> {
    lab.server.play(Script::repeat(turns, call));
    let whole = Run::whole(lab, engine, Start::default())?;
    let steps = lab.server.steps();
    ensure!(steps.len() == turns + 1, "{} requests instead of {}", steps.len(), turns + 1);
    Ok((whole.used, steps))
}
