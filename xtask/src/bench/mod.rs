//! `cargo xtask bench`: our engine and others side by side, against a canned model on loopback. Nothing here judges a figure.
//!
//! The rooms:
//! - [`wish`]: what was asked for on the command line; [`prepare`]: builds what is needed and enters a network of our own
//! - [`lab`]: what all runs share; [`engine`]: who is measured; [`run`](mod@run): one engine process that is talked to
//! - [`killed`]: no measurement, but a drill: an engine is killed again and again
//! - [`meter`]: a process that starts an engine and counts what it and its children used; [`memory`], [`vitals`]: what a process holds
//!   and has used by now; [`grown`]: long transcripts
//! - [`server`], [`script`]: the model; [`http`]: what the server reads
//! - [`scenarios`]: what is measured, one file each; [`tree`]: the files that the tools search
//! - [`figures`], [`report`]: what comes out
//! - [`instructions`]: instructions per step on the hot paths, which do not depend on how busy the machine is

mod clock;
mod engine;
mod figures;
mod grown;
mod http;
mod instructions;
mod killed;
mod lab;
mod memory;
pub(crate) mod meter;
mod prepare;
mod report;
mod run;
mod scenarios;
mod script;
mod server;
mod tree;
mod vitals;
mod wish;

use anyhow::Result;

use lab::Lab;
pub(crate) use prepare::built;
use report::Report;
use wish::{Kind, Place, Wish};

/// Does what the words ask for.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let wish = Wish::read(words)?;
    match (&wish.place, wish.kind) {
        (_, Kind::Instructions) => instructions::run(),
        (_, Kind::Killed) => killed::run(&wish),
        (Place::Outside, Kind::Scenarios) => prepare::enter(&wish),
        (Place::Inside { swarm }, Kind::Scenarios) => measure(&wish, swarm.clone()),
    }
}

/// Plays the scenarios. In each run every engine has its turn, and another one begins, so that a ratio comes from the same
/// minutes of the same machine.
fn measure(wish: &Wish, swarm: Option<std::path::PathBuf>) -> Result<()> {
    let lab = Lab::new(swarm)?;
    let engines = engine::all(wish, &lab)?;
    let mut report =
        Report::new(wish.out.as_deref(), engines.iter().map(|engine| engine.name.clone()).collect())?;
    for engine in &engines {
        lab.warm_up(engine)?;
    }
    for scenario in scenarios::chosen(&wish.scenarios)? {
        for number in 0..wish.runs {
            for place in 0..engines.len() {
                let engine = &engines[(place + number) % engines.len()];
                if let Some(figures) = (scenario.play)(&lab, engine).transpose() {
                    report.add(scenario.name, &engine.name, number, figures)?;
                }
            }
            match (scenario.beside)(&lab) {
                Ok(beside) => {
                    for (name, figures) in beside {
                        report.add(scenario.name, &name, number, Ok(figures))?;
                    }
                }
                Err(error) => report.add(scenario.name, "beside", number, Err(error))?,
            }
        }
        report.show(scenario.name, scenario.about);
    }
    Ok(())
}
