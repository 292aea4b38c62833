//! Instructions per step on the hot paths, counted by valgrind: independent of the load of the machine.
//!
//! The benches are plain programs: `NAME TIMES` repeats one case. Each case runs twice with different repeat counts;
//! the difference is the cost of the repetitions without startup and setup.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::metrics::format_metric;
use crate::command::{succeeds, workspace_root};

const FEW_REPEATS: u64 = 20;
const MANY_REPEATS: u64 = 220;

/// Packages with a `hot_paths` bench.
const PACKAGES: [&str; 3] = ["whimbrel-wire", "whimbrel-models", "whimbrel-policy"];

/// Builds the benches, runs every case and prints the counts.
#[expect(clippy::print_stdout, reason = "the table is what the person asked for")]
pub(super) fn run() -> Result<()> {
    ensure!(
        succeeds("valgrind", &["--version"]),
        "Counting instructions needs valgrind, which is not installed."
    );
    println!("| case | instructions |\n|---|---:|");
    for package in PACKAGES {
        let bench = build_bench(package)?;
        for case in output(command(&bench).arg("--list"))?.lines() {
            let (few, many) = (
                count_instructions(&bench, case, FEW_REPEATS)?,
                count_instructions(&bench, case, MANY_REPEATS)?,
            );
            println!(
                "| {case} | {} |",
                format_metric((many - few) as f64 / (MANY_REPEATS - FEW_REPEATS) as f64)
            );
        }
    }
    Ok(())
}

/// Builds the bench of a package and returns its path.
fn build_bench(package: &str) -> Result<PathBuf> {
    let words = ["bench", "--locked", "--bench", "hot_paths", "--no-run", "--message-format", "json"];
    let told = output(command("cargo".as_ref()).args(words).args(["--package", package]))?;
    let built = told.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let path = built.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next();
    path.with_context(|| format!("cargo built no bench for {package}"))
}

/// Total instructions of one run.
fn count_instructions(bench: &PathBuf, case: &str, times: u64) -> Result<u64> {
    let mut command = command("valgrind".as_ref());
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(bench)
        .args([case, &times.to_string()]);
    let run = command.output().context("valgrind cannot be started")?;
    let told = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "{case} failed under valgrind: {told}");
    parse_collected(&told).with_context(|| format!("valgrind told no count for {case}: {told}"))
}

/// Parses the number in `==1== Collected : 123`.
fn parse_collected(told: &str) -> Option<u64> {
    told.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

fn output(command: &mut Command) -> Result<String> {
    let run = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(run.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&run.stderr));
    Ok(String::from_utf8(run.stdout)?)
}

#[expect(clippy::disallowed_methods, reason = "counting means running programs")]
fn command(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace_root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_count_is_parsed() {
        assert_eq!(parse_collected("==7== Events    : Ir\n==7== Collected : 154672\n==7==\n"), Some(154_672));
        assert_eq!(parse_collected("==7== nothing"), None);
    }
}
