//! The programs that a benchmark runs: builds them and returns their paths.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::args::BenchArgs;
use crate::command::{self, target_dir};

/// Path of the engine; built if none is given.
pub(super) fn engine_program(args: &BenchArgs) -> Result<PathBuf> {
    if let Some(engine) = &args.engine {
        return Ok(engine.clone());
    }
    command::run("cargo build --release --locked --package whimbrel-cli")?;
    Ok(release_program("whimbrel"))
}

/// Builds this program and returns the path of its release build.
pub(super) fn build_bench_program() -> Result<PathBuf> {
    command::run("cargo build --release --locked --package xtask")?;
    Ok(release_program("xtask"))
}

/// Builds the driver of the scenario `swarm`.
pub(super) fn build_swarm_driver() -> Result<PathBuf> {
    // An embedding program has its own build profile, unlike the engine binary.
    command::run("cargo build --profile embedded --locked --package xtask --example swarm_sessions")?;
    Ok(target_dir().join("embedded/examples/swarm_sessions"))
}

/// Builds the driver of the scenario `mcp`, which is found beside this program.
pub(super) fn build_mcp_driver() -> Result<()> {
    command::run("cargo build --release --locked --package xtask --example mcp_calls")
}

/// Builds the kill test.
pub(super) fn build_kill_test() -> Result<PathBuf> {
    command::run("cargo build --release --locked --package xtask --example kill_test")?;
    Ok(release_program("examples/kill_test"))
}

/// Path of a program of the release build.
fn release_program(name: &str) -> PathBuf {
    target_dir().join("release").join(name)
}

pub(super) fn path_text(path: &Path) -> String {
    path.display().to_string()
}
