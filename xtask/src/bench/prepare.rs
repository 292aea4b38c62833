//! Preparation: builds the programs and starts the release build of this program in a network namespace with loopback
//! only, so that no engine can reach another server.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::args::BenchArgs;
use crate::command::{self, run_args, succeeds, workspace_root};

/// Shell script that enables loopback and executes its arguments.
const WITH_LOOPBACK: &str = r#"ip link set lo up && exec "$@""#;

/// Builds everything and runs the benchmark in the isolated network.
pub(super) fn run_isolated(wish: &BenchArgs) -> Result<()> {
    let words = isolated_command(wish)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if succeeds("unshare", &["-rn", "sh", "-c", WITH_LOOPBACK, "sh", "true"]) {
        return run_args(&[&["unshare", "-rn", "sh", "-c", WITH_LOOPBACK, "sh"], &words[..]].concat(), &[]);
    }
    if !wish.peers.is_empty() {
        bail!(
            "Another engine is only run in a network of its own, which needs `unshare -rn` and `ip`; they do not work here."
        );
    }
    run_args(&words, &[])
}

/// Builds the programs and returns the command line of the isolated run.
fn isolated_command(wish: &BenchArgs) -> Result<Vec<String>> {
    let engine = engine_program(wish)?;
    command::run("cargo build --release --locked --package xtask")?;
    let mut words = vec![path_text(&release_program("xtask")), "bench".into(), "--inside".into()];
    words.extend(["--engine".into(), path_text(&engine), "--runs".into(), wish.runs.to_string()]);
    for peer in &wish.peers {
        words.extend(["--peer".into(), path_text(peer)]);
    }
    if let Some(out) = &wish.out {
        words.extend(["--out".into(), path_text(out)]);
    }
    if wish.includes("swarm") {
        // An embedding program has its own build profile, unlike the engine binary.
        command::run("cargo build --profile embedded --locked --package xtask --example crowd")?;
        words.extend(["--swarm".into(), path_text(&target_dir().join("embedded/examples/crowd"))]);
    }
    if wish.includes("mcp") {
        command::run("cargo build --release --locked --package xtask --example mcp")?;
    }
    words.extend(wish.scenarios.iter().cloned());
    Ok(words)
}

/// Path of the engine; built if none is given.
pub(super) fn engine_program(wish: &BenchArgs) -> Result<PathBuf> {
    if let Some(engine) = &wish.engine {
        return Ok(engine.clone());
    }
    command::run("cargo build --release --locked --package whimbrel-cli")?;
    Ok(release_program("whimbrel"))
}

/// Path of a program of the release build.
pub(crate) fn release_program(name: &str) -> PathBuf {
    target_dir().join("release").join(name)
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

pub(super) fn path_text(path: &Path) -> String {
    path.display().to_string()
}
