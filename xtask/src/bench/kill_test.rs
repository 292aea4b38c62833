//! The drill of `crates/testkit/src/drill.rs`, as often as there are runs: an engine is killed at any moment and must go on
//! with all that it had said and done.

use anyhow::Result;

use super::prepare::{release_program, engine_program, path_text};
use super::args::BenchArgs;
use crate::command::{self, run_args};

/// Builds what is needed and does it.
pub(super) fn run(wish: &BenchArgs) -> Result<()> {
    let engine = engine_program(wish)?;
    command::run("cargo build --release --locked --package xtask --example killed")?;
    run_args(&[&path_text(&release_program("examples/killed")), &path_text(&engine), &wish.runs.to_string()], &[])
}
