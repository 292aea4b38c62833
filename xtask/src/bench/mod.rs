//! `cargo xtask bench`: measures our engine and others side by side against a canned model on loopback.
//!
//! Modules:
//! - [`args`]: command line; [`programs`]: builds the programs; [`network_isolation`]: enters an isolated
//!   network
//! - [`context`]: shared context; [`engine`]: the measured engines; [`engine_process`]: one running engine
//! - [`resource_usage`]: process that starts an engine and measures its resource usage; [`process_snapshot`]: current
//!   values from /proc; [`transcript_generator`]: long transcripts
//! - [`model_server`], [`model_script`]: the model; [`http`]: HTTP parsing of the server
//! - [`scenarios`]: one file per measurement; [`file_tree`]: the files that the tools search
//! - [`metrics`], [`report`]: the output
//! - [`instruction_counts`]: instructions per step on the hot paths, independent of the load of the machine

mod args;
mod clock;
mod context;
mod engine;
mod engine_process;
mod file_tree;
mod http;
mod instruction_counts;
mod metrics;
mod model_script;
mod model_server;
mod network_isolation;
mod process_snapshot;
mod programs;
mod report;
pub(crate) mod resource_usage;
mod scenarios;
mod transcript_generator;

use anyhow::Result;

use args::{BenchAction, BenchArgs, Isolation};
use context::BenchContext;
use programs::{build_kill_test, engine_program, path_text};
use report::Report;

use crate::command::run_args;

/// Runs the action given on the command line.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let args = BenchArgs::parse(words)?;
    match (&args.isolation, args.action) {
        (_, BenchAction::Instructions) => instruction_counts::run(),
        (_, BenchAction::KillTest) => run_kill_test(&args),
        (Isolation::Outside, BenchAction::Scenarios) => network_isolation::run_isolated(&args),
        (Isolation::Inside { swarm }, BenchAction::Scenarios) => run_scenarios(&args, swarm.clone()),
    }
}

/// Runs the scenarios. In each run every engine takes part, in rotating order, so that ratios compare the same minutes
/// on the same machine.
fn run_scenarios(args: &BenchArgs, swarm: Option<std::path::PathBuf>) -> Result<()> {
    let context = BenchContext::new(swarm)?;
    let engines = engine::create_engines(args, &context)?;
    let mut report =
        Report::new(args.out.as_deref(), engines.iter().map(|engine| engine.name.clone()).collect())?;
    for engine in &engines {
        context.warm_up(engine)?;
    }
    for scenario in scenarios::select(&args.scenarios)? {
        for number in 0..args.runs {
            for offset in 0..engines.len() {
                let engine = &engines[(offset + number) % engines.len()];
                if let Some(metrics) = (scenario.run)(&context, engine).transpose() {
                    report.add(scenario.name, &engine.name, number, metrics)?;
                }
            }
            match (scenario.baseline)(&context) {
                Ok(baselines) => {
                    for (name, metrics) in baselines {
                        report.add(scenario.name, &name, number, Ok(metrics))?;
                    }
                }
                Err(error) => report.add(scenario.name, "baseline", number, Err(error))?,
            }
        }
        report.print_table(scenario.name, scenario.description);
    }
    Ok(())
}

/// Runs the kill test of `crates/testkit`, which is no measurement: the engine is killed at arbitrary moments, `--runs`
/// times, and must resume without losing anything that it reported or did.
fn run_kill_test(args: &BenchArgs) -> Result<()> {
    let engine = engine_program(args)?;
    let kill_test = build_kill_test()?;
    run_args(&[&path_text(&kill_test), &path_text(&engine), &args.runs.to_string()], &[])
}
