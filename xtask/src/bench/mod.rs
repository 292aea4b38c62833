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
mod metrics;
mod transcript_generator;
mod http;
mod instructions;
mod kill_test;
mod context;
mod memory;
pub(crate) mod meter;
mod prepare;
mod report;
mod engine_process;
mod scenarios;
mod script;
mod server;
mod file_tree;
mod proc_stats;
mod args;

use anyhow::Result;

use context::BenchContext;
pub(crate) use prepare::release_program;
use report::Report;
use args::{BenchAction, Isolation, BenchArgs};

/// Does what the words ask for.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let wish = BenchArgs::parse(words)?;
    match (&wish.isolation, wish.action) {
        (_, BenchAction::Instructions) => instructions::run(),
        (_, BenchAction::KillTest) => kill_test::run(&wish),
        (Isolation::Outside, BenchAction::Scenarios) => prepare::run_isolated(&wish),
        (Isolation::Inside { swarm }, BenchAction::Scenarios) => run_scenarios(&wish, swarm.clone()),
    }
}

/// Plays the scenarios. In each run every engine has its turn, and another one begins, so that a ratio comes from the same
/// minutes of the same machine.
fn run_scenarios(wish: &BenchArgs, swarm: Option<std::path::PathBuf>) -> Result<()> {
    let lab = BenchContext::new(swarm)?;
    let engines = engine::create_engines(wish, &lab)?;
    let mut report =
        Report::new(wish.out.as_deref(), engines.iter().map(|engine| engine.name.clone()).collect())?;
    for engine in &engines {
        lab.warm_up(engine)?;
    }
    for scenario in scenarios::select(&wish.scenarios)? {
        for number in 0..wish.runs {
            for place in 0..engines.len() {
                let engine = &engines[(place + number) % engines.len()];
                if let Some(figures) = (scenario.run)(&lab, engine).transpose() {
                    report.add(scenario.name, &engine.name, number, figures)?;
                }
            }
            match (scenario.baseline)(&lab) {
                Ok(beside) => {
                    for (name, figures) in beside {
                        report.add(scenario.name, &name, number, Ok(figures))?;
                    }
                }
                Err(error) => report.add(scenario.name, "beside", number, Err(error))?,
            }
        }
        report.print_table(scenario.name, scenario.description);
    }
    Ok(())
}
