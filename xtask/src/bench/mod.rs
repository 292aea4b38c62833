//! `cargo xtask bench`: measures our engine and others side by side against a canned model on loopback.
//!
//! Modules:
//! - [`args`]: command line; [`prepare`]: builds the programs and enters an isolated network
//! - [`context`]: shared context; [`engine`]: the measured engines; [`engine_process`]: one running engine
//! - [`kill_test`]: not a measurement: kills an engine repeatedly
//! - [`meter`]: process that starts an engine and measures its resource usage; [`memory`], [`proc_stats`]: current
//!   values from /proc; [`transcript_generator`]: long transcripts
//! - [`server`], [`script`]: the model; [`http`]: HTTP parsing of the server
//! - [`scenarios`]: one file per measurement; [`file_tree`]: the files that the tools search
//! - [`metrics`], [`report`]: the output
//! - [`instructions`]: instructions per step on the hot paths, independent of the load of the machine

mod args;
mod clock;
mod context;
mod engine;
mod engine_process;
mod file_tree;
mod http;
mod instructions;
mod kill_test;
mod memory;
pub(crate) mod meter;
mod metrics;
mod prepare;
mod proc_stats;
mod report;
mod scenarios;
mod script;
mod server;
mod transcript_generator;

use anyhow::Result;

use args::{BenchAction, BenchArgs, Isolation};
use context::BenchContext;
pub(crate) use prepare::release_program;
use report::Report;

/// Runs the action given on the command line.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let wish = BenchArgs::parse(words)?;
    match (&wish.isolation, wish.action) {
        (_, BenchAction::Instructions) => instructions::run(),
        (_, BenchAction::KillTest) => kill_test::run(&wish),
        (Isolation::Outside, BenchAction::Scenarios) => prepare::run_isolated(&wish),
        (Isolation::Inside { swarm }, BenchAction::Scenarios) => run_scenarios(&wish, swarm.clone()),
    }
}

/// Runs the scenarios. In each run every engine takes part, in rotating order, so that ratios compare the same minutes
/// on the same machine.
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
