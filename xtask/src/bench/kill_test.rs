//! Runs the kill test of `crates/testkit`, with `--runs` as number of kills: an engine is killed at arbitrary moments
//! and must resume without losing anything it reported or did.

use anyhow::Result;

use super::args::BenchArgs;
use super::prepare::{engine_program, path_text, release_program};
use crate::command::{self, run_args};

/// Builds the engine and the driver, and runs the test.
pub(super) fn run(wish: &BenchArgs) -> Result<()> {
    let engine = engine_program(wish)?;
    command::run("cargo build --release --locked --package xtask --example killed")?;
    run_args(
        &[&path_text(&release_program("examples/killed")), &path_text(&engine), &wish.runs.to_string()],
        &[],
    )
}
