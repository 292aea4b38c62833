//! Preparation: builds the programs and starts the release build of this program in a network namespace with loopback
//! only, so that no engine can reach another server.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::args::BenchArgs;
use crate::command::{self, run_args, succeeds, workspace_root};

/// Shell script that enables loopback and executes its arguments.
const WITH_LOOPBACK: &str = r#"ip link set lo up && exec "$@""#;

/// Builds everything and runs the benchmark in the isolated network.
pub(super) fn run_isolated(args: &BenchArgs) -> Result<()> {
    let words = isolated_command(args)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if succeeds("unshare", &["-rn", "sh", "-c", WITH_LOOPBACK, "sh", "true"]) {
        return run_args(&[&["unshare", "-rn", "sh", "-c", WITH_LOOPBACK, "sh"], &words[..]].concat(), &[]);
    }
    if !args.peers.is_empty() {
        bail!(
            "cannot isolate the network, which is required for other engines: `unshare -rn` or `ip` does not work here"
        );
    }
    run_args(&words, &[])
}

/// Builds the programs and returns the command line of the isolated run.
fn isolated_command(args: &BenchArgs) -> Result<Vec<String>> {
    let engine = engine_program(args)?;
    command::run("cargo build --release --locked --package xtask")?;
    let mut words = vec![path_text(&release_program("xtask")), "bench".into(), "--inside".into()];
    words.extend(["--engine".into(), path_text(&engine), "--runs".into(), args.runs.to_string()]);
    for peer in &args.peers {
        words.extend(["--peer".into(), path_text(peer)]);
    }
    if let Some(out) = &args.out {
        words.extend(["--out".into(), path_text(out)]);
    }
    if args.includes("swarm") {
        // An embedding program has its own build profile, unlike the engine binary.
        command::run("cargo build --profile embedded --locked --package xtask --example swarm_sessions")?;
        words.extend(["--swarm".into(), path_text(&target_dir().join("embedded/examples/swarm_sessions"))]);
    }
    if args.includes("mcp") {
        command::run("cargo build --release --locked --package xtask --example mcp_calls")?;
    }
    words.extend(args.scenarios.iter().cloned());
    Ok(words)
}

/// Path of the engine; built if none is given.
pub(super) fn engine_program(args: &BenchArgs) -> Result<PathBuf> {
    if let Some(engine) = &args.engine {
        return Ok(engine.clone());
    }
    command::run("cargo build --release --locked --package whimbrel-cli")?;
    Ok(release_program("whimbrel"))
}

/// Path of a program of the release build.
pub(super) fn release_program(name: &str) -> PathBuf {
    target_dir().join("release").join(name)
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

pub(super) fn path_text(path: &Path) -> String {
    path.display().to_string()
}
