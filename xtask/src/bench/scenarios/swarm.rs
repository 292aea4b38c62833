//! Many sessions in one process, through the Rust SDK: the program `examples/crowd.rs`, once with one session and once with
//! a thousand.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::engine::Engine;
use crate::bench::figures::{Beside, Figures};
use crate::bench::lab::Lab;
use crate::bench::meter::Used;
use crate::bench::run::alone_in;
use crate::bench::script::{Call, Script};

const SESSIONS: usize = 1000;
const TURNS: usize = 5;

/// Engines that are processes have no part in this.
#[expect(clippy::unnecessary_wraps, reason = "other scenarios can fail")]
pub(super) fn play(_: &Lab, _: &Engine) -> Result<Option<Figures>> {
    Ok(None)
}

/// Sessions that talk, and sessions that read files.
pub(super) fn in_process(lab: &Lab) -> Result<Beside> {
    let file = lab.small_file();
    let reading = || {
        Script::repeat(TURNS, |number| {
            Call::new("Read", json!({ "file_path": file, "offset": number + 1, "limit": 5 }))
        })
    };
    Ok(vec![
        ("five messages".into(), figures(lab, Script::word, TURNS, TURNS)?),
        ("one message, five Reads".into(), figures(lab, reading, 1, TURNS + 1)?),
    ])
}

fn figures(lab: &Lab, script: impl Fn() -> Script, messages: usize, calls: usize) -> Result<Figures> {
    let one = swarm(lab, script(), 1, messages, calls)?;
    let all = swarm(lab, script(), SESSIONS, messages, calls)?;
    Ok(vec![
        ("CPU, ms", all.cpu),
        ("CPU per model call, us", (all.cpu - one.cpu) * 1000.0 / ((SESSIONS - 1) * calls) as f64),
        ("largest process, MB", all.largest),
        ("per session, KB", (all.largest - one.largest) * 1024.0 / (SESSIONS - 1) as f64),
        ("whole process, ms", all.wall),
    ])
}

fn swarm(lab: &Lab, script: Script, sessions: usize, messages: usize, calls: usize) -> Result<Used> {
    let program = lab.swarm.as_ref().context("the swarm was not built")?.display().to_string();
    lab.server.play(script);
    let engine = Engine { name: "swarm".into(), home: lab.folder("home-swarm")?, program: program.into() };
    let used = alone_in(lab, &engine, &[&sessions.to_string(), &messages.to_string()])?;
    ensure!(used.code == Some(0), "the swarm ended with {:?}", used.code);
    let steps = lab.server.steps().len();
    ensure!(steps == sessions * calls, "{steps} requests instead of {}", sessions * calls);
    Ok(used)
}
