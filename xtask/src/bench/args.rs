//! What was asked for on the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What is to be measured.
#[derive(Debug, Default)]
pub(super) struct BenchArgs {
    /// Our engine; built, if none is given.
    pub(super) engine: Option<PathBuf>,
    /// Other engines that speak the same language.
    pub(super) peers: Vec<PathBuf>,
    /// How often each scenario is played.
    pub(super) runs: usize,
    /// Where the raw figures go.
    pub(super) out: Option<PathBuf>,
    /// The scenarios; all, if none is named.
    pub(super) scenarios: Vec<String>,
    /// What is done.
    pub(super) action: BenchAction,
    /// Where we are.
    pub(super) isolation: Isolation,
}

/// What is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BenchAction {
    /// Scenarios are played.
    #[default]
    Scenarios,
    /// Instructions are counted.
    Instructions,
    /// The engine is killed as often as there are runs.
    KillTest,
}

/// Whether we are in a network of our own yet.
#[derive(Debug, Default)]
pub(super) enum Isolation {
    /// Not yet: things are to be built first.
    #[default]
    Outside,
    /// We are.
    Inside {
        /// The program that runs many sessions in one process, if that is wanted.
        swarm: Option<PathBuf>,
    },
}

const USAGE: &str = "\
cargo xtask bench [--engine PATH] [--peer PATH]... [--runs N] [--out FILE] [SCENARIO]...
cargo xtask bench --instructions
cargo xtask bench killed [--engine PATH] [--runs KILLS]

Scenarios: ";

impl BenchArgs {
    /// Reads the words after `bench`.
    pub(super) fn parse(words: &[String]) -> Result<Self> {
        let mut wish = Self { runs: 5, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--engine" => wish.engine = Some(absolute_path(value()?)?),
                "--peer" => wish.peers.push(absolute_path(value()?)?),
                "--runs" => wish.runs = value()?.parse().context("--runs needs a number")?,
                "--out" => wish.out = Some(absolute_path(value()?)?),
                "--instructions" => wish.action = BenchAction::Instructions,
                "killed" => wish.action = BenchAction::KillTest,
                "--inside" => wish.isolation = Isolation::Inside { swarm: None },
                "--swarm" => wish.isolation = Isolation::Inside { swarm: Some(absolute_path(value()?)?) },
                name if !name.starts_with('-') => wish.scenarios.push(name.to_owned()),
                _ => bail!("{word} is unknown.\n{USAGE}{}", super::scenarios::names().join(" ")),
            }
        }
        super::scenarios::select(&wish.scenarios)?;
        Ok(wish)
    }

    /// Whether a scenario is to be played.
    pub(super) fn includes(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario)
    }
}

fn absolute_path(path: &str) -> Result<PathBuf> {
    std::path::absolute(Path::new(path)).with_context(|| format!("{path:?} is no path"))
}
