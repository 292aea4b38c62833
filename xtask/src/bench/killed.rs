//! The drill of `crates/testkit/src/drill.rs`, as often as there are runs: an engine is killed at any moment and must go on
//! with all that it had said and done.

use anyhow::Result;

use super::prepare::{built, engine, shown};
use super::wish::Wish;
use crate::command::{self, run_words};

/// Builds what is needed and does it.
pub(super) fn run(wish: &Wish) -> Result<()> {
    let engine = engine(wish)?;
    command::run("cargo build --release --locked --package xtask --example killed")?;
    run_words(&[&shown(&built("examples/killed")), &shown(&engine), &wish.runs.to_string()], &[])
}
