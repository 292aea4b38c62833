//! What was asked for on the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What is to be measured.
#[derive(Debug, Default)]
pub(super) struct Wish {
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
    pub(super) kind: Kind,
    /// Where we are.
    pub(super) place: Place,
}

/// What is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Scenarios are played.
    #[default]
    Scenarios,
    /// Instructions are counted.
    Instructions,
    /// The engine is killed as often as there are runs.
    Killed,
}

/// Whether we are in a network of our own yet.
#[derive(Debug, Default)]
pub(super) enum Place {
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

impl Wish {
    /// Reads the words after `bench`.
    pub(super) fn read(words: &[String]) -> Result<Self> {
        let mut wish = Self { runs: 5, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--engine" => wish.engine = Some(absolute(value()?)?),
                "--peer" => wish.peers.push(absolute(value()?)?),
                "--runs" => wish.runs = value()?.parse().context("--runs needs a number")?,
                "--out" => wish.out = Some(absolute(value()?)?),
                "--instructions" => wish.kind = Kind::Instructions,
                "killed" => wish.kind = Kind::Killed,
                "--inside" => wish.place = Place::Inside { swarm: None },
                "--swarm" => wish.place = Place::Inside { swarm: Some(absolute(value()?)?) },
                name if !name.starts_with('-') => wish.scenarios.push(name.to_owned()),
                _ => bail!("{word} is unknown.\n{USAGE}{}", super::scenarios::names().join(" ")),
            }
        }
        super::scenarios::chosen(&wish.scenarios)?;
        Ok(wish)
    }

    /// Whether a scenario is to be played.
    pub(super) fn wants(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario)
    }
}

fn absolute(path: &str) -> Result<PathBuf> {
    std::path::absolute(Path::new(path)).with_context(|| format!("{path:?} is no path"))
}
