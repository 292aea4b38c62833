//! Command line arguments of `cargo xtask bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Parsed arguments.
#[derive(Debug, Default)]
pub(super) struct BenchArgs {
    /// Our engine; built if not given.
    pub(super) engine: Option<PathBuf>,
    /// Other engines with the same protocol.
    pub(super) peers: Vec<PathBuf>,
    /// Number of runs per scenario.
    pub(super) runs: usize,
    /// File for the raw metrics.
    pub(super) out: Option<PathBuf>,
    /// Scenario names; all default scenarios if empty.
    pub(super) scenarios: Vec<String>,
    pub(super) action: BenchAction,
    /// Whether this process runs in the isolated network.
    pub(super) isolation: Isolation,
}

/// Action of the benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BenchAction {
    /// Runs scenarios.
    #[default]
    Scenarios,
    /// Counts instructions.
    Instructions,
    /// Kills the engine `runs` times.
    KillTest,
}

/// Whether this process runs in the isolated network.
#[derive(Debug, Default)]
pub(super) enum Isolation {
    /// No: builds the programs and starts the isolated process.
    #[default]
    Outside,
    /// Yes.
    Inside {
        /// Driver that runs many sessions in one process, if needed.
        swarm: Option<PathBuf>,
    },
}

const USAGE: &str = "\
cargo xtask bench [--engine PATH] [--peer PATH]... [--runs N] [--out FILE] [SCENARIO]...
cargo xtask bench --instructions
cargo xtask bench killed [--engine PATH] [--runs KILLS]

Scenarios: ";

impl BenchArgs {
    /// Parses the arguments after `bench`.
    pub(super) fn parse(words: &[String]) -> Result<Self> {
        let mut args = Self { runs: 5, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--engine" => args.engine = Some(absolute_path(value()?)?),
                "--peer" => args.peers.push(absolute_path(value()?)?),
                "--runs" => args.runs = value()?.parse().context("--runs needs a number")?,
                "--out" => args.out = Some(absolute_path(value()?)?),
                "--instructions" => args.action = BenchAction::Instructions,
                "killed" => args.action = BenchAction::KillTest,
                "--inside" => args.isolation = Isolation::Inside { swarm: None },
                "--swarm" => args.isolation = Isolation::Inside { swarm: Some(absolute_path(value()?)?) },
                name if !name.starts_with('-') => args.scenarios.push(name.to_owned()),
                _ => bail!("unknown option {word}\n{USAGE}{}", super::scenarios::names().join(" ")),
            }
        }
        super::scenarios::select(&args.scenarios)?;
        Ok(args)
    }

    /// Returns true if a scenario is selected.
    pub(super) fn includes(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario)
    }
}

fn absolute_path(path: &str) -> Result<PathBuf> {
    std::path::absolute(Path::new(path)).with_context(|| format!("{path:?} is not a valid path"))
}
