//! A cold start: spawn, one short reply, exit.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::clock::ms;
use crate::bench::engine::{Engine, Start};
use crate::bench::figures::Figures;
use crate::bench::lab::Lab;
use crate::bench::run::Run;
use crate::bench::script::Script;

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    lab.server.play(Script::word());
    let whole = Run::whole(lab, engine, Start::default())?;
    let steps = lab.server.steps();
    let first = steps.first().context("the model was not asked")?;
    Ok(Some(vec![
        ("CPU, ms", whole.used.cpu),
        ("largest process, MB", whole.used.largest),
        ("spawn to first request, ms", ms(first.asked - whole.began)),
        ("spawn to result, ms", ms(whole.result - whole.began)),
        ("whole process, ms", whole.used.wall),
        ("first request, bytes", first.bytes as f64),
        ("program file, MB", fs::metadata(&engine.program)?.len() as f64 / 1e6),
    ]))
}
