//! Instructions per step on the hot paths, counted by valgrind: independent of the load of the machine.
//!
//! The benches are plain programs: `NAME TIMES` repeats one case. Each case runs twice with different repeat counts;
//! the difference is the cost of the repetitions without startup and setup.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::metrics::format_metric;
use crate::command::{self, succeeds};

const FEW_REPEATS: u64 = 20;
const MANY_REPEATS: u64 = 220;

/// Packages with a `hot_paths` bench.
const PACKAGES: [&str; 3] = ["whimbrel-wire", "whimbrel-models", "whimbrel-policy"];

/// Builds the benches, runs every case and prints the counts.
#[expect(clippy::print_stdout, reason = "the table is the output")]
pub(super) fn run() -> Result<()> {
    ensure!(
        succeeds("valgrind", &["--version"]),
        "valgrind is not installed; install it to count instructions"
    );
    println!("| case | instructions |\n|---|---:|");
    for package in PACKAGES {
        let bench = build_bench(package)?;
        for case in command::stdout(&[&bench, "--list"])?.lines() {
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
fn build_bench(package: &str) -> Result<String> {
    let words =
        ["cargo", "bench", "--locked", "--bench", "hot_paths", "--no-run", "--message-format", "json"];
    let output = command::stdout(&[&words[..], &["--package", package]].concat())?;
    let messages = output.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let path = messages.filter_map(|message| message["executable"].as_str().map(str::to_owned)).next();
    path.with_context(|| format!("cargo has built no bench for {package}"))
}

/// Total instructions of one run.
fn count_instructions(bench: &str, case: &str, times: u64) -> Result<u64> {
    let valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = command::stderr(&[&valgrind[..], &[bench, case, &times.to_string()]].concat())?;
    parse_collected(&output).with_context(|| format!("valgrind reported no count for {case}: {output}"))
}

/// Parses the number in `==1== Collected : 123`.
fn parse_collected(output: &str) -> Option<u64> {
    output.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
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
