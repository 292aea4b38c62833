//! Starts the release build of this program in a network namespace with loopback only, so that no engine can reach
//! another server.

use anyhow::{Result, bail};

use super::args::BenchArgs;
use super::programs::{build_bench_program, build_mcp_driver, build_swarm_driver, engine_program, path_text};
use crate::command::{run_args, succeeds};

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
    let mut words = vec![path_text(&build_bench_program()?), "bench".into(), "--inside".into()];
    words.extend(["--engine".into(), path_text(&engine), "--runs".into(), args.runs.to_string()]);
    for peer in &args.peers {
        words.extend(["--peer".into(), path_text(peer)]);
    }
    if let Some(out) = &args.out {
        words.extend(["--out".into(), path_text(out)]);
    }
    if args.includes("swarm") {
        words.extend(["--swarm".into(), path_text(&build_swarm_driver()?)]);
    }
    if args.includes("mcp") {
        build_mcp_driver()?;
    }
    words.extend(args.scenarios.iter().cloned());
    Ok(words)
}
