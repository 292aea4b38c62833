//! Before anything is measured: what is needed is built, and we start again as a release build in a network that has nothing
//! but loopback, so that no engine can reach anyone else.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::wish::Wish;
use crate::command::{self, root, run_words, succeeds};

/// Turns loopback on and goes on as the words that follow.
const WITH_LOOPBACK: &str = r#"ip link set lo up && exec "$@""#;

/// Builds, and measures inside.
pub(super) fn enter(wish: &Wish) -> Result<()> {
    let words = inside(wish)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if succeeds("unshare", &["-rn", "sh", "-c", WITH_LOOPBACK, "sh", "true"]) {
        return run_words(&[&["unshare", "-rn", "sh", "-c", WITH_LOOPBACK, "sh"], &words[..]].concat(), &[]);
    }
    if !wish.peers.is_empty() {
        bail!(
            "Another engine is only run in a network of its own, which needs `unshare -rn` and `ip`; they do not work here."
        );
    }
    run_words(&words, &[])
}

/// The command line of the release build of this program.
fn inside(wish: &Wish) -> Result<Vec<String>> {
    let engine = engine(wish)?;
    command::run("cargo build --release --locked --package xtask")?;
    let mut words = vec![shown(&built("xtask")), "bench".into(), "--inside".into()];
    words.extend(["--engine".into(), shown(&engine), "--runs".into(), wish.runs.to_string()]);
    for peer in &wish.peers {
        words.extend(["--peer".into(), shown(peer)]);
    }
    if let Some(out) = &wish.out {
        words.extend(["--out".into(), shown(out)]);
    }
    if wish.wants("swarm") {
        // A program with the engine in it is built in its own way, not as we build the engine's process.
        command::run("cargo build --profile embedded --locked --package xtask --example crowd")?;
        words.extend(["--swarm".into(), shown(&target().join("embedded/examples/crowd"))]);
    }
    if wish.wants("mcp") {
        command::run("cargo build --release --locked --package xtask --example mcp")?;
    }
    words.extend(wish.scenarios.iter().cloned());
    Ok(words)
}

/// The engine that is meant; built, if none is given.
pub(super) fn engine(wish: &Wish) -> Result<PathBuf> {
    if let Some(engine) = &wish.engine {
        return Ok(engine.clone());
    }
    command::run("cargo build --release --locked --package whimbrel-cli")?;
    Ok(built("whimbrel"))
}

/// A program of the release build.
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("release").join(name)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
