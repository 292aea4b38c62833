//! What comes out: a table per scenario on stdout, each run as a line of JSON in a file, and word of what goes on on stderr.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::figures::{Figures, median, ratio, shown};

/// All that was measured.
pub(super) struct Report {
    out: Option<File>,
    engines: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    scenario: &'static str,
    who: String,
    figures: Figures,
}

impl Report {
    /// A report on these engines; the second one is what the first is compared with.
    pub(super) fn new(out: Option<&Path>, engines: Vec<String>) -> Result<Self> {
        let out = out.map(|path| File::options().append(true).create(true).open(path)).transpose()?;
        Ok(Self { out, engines, rows: Vec::new() })
    }

    /// Adds one run. One that failed is told of, and not counted.
    pub(super) fn add(
        &mut self,
        scenario: &'static str,
        who: &str,
        run: usize,
        outcome: Result<Figures>,
    ) -> Result<()> {
        let mut line = json!({ "scenario": scenario, "engine": who, "run": run });
        match outcome {
            Ok(figures) => {
                tell(&format!("{scenario} {run} {who}: {}", told(&figures)));
                let map: Map<String, Value> =
                    figures.iter().map(|(name, figure)| ((*name).into(), (*figure).into())).collect();
                line["figures"] = Value::Object(map);
                self.rows.push(Row { scenario, who: who.to_owned(), figures });
            }
            Err(error) => {
                tell(&format!("{scenario} {run} {who}: {error:#}"));
                line["error"] = format!("{error:#}").into();
            }
        }
        if let Some(out) = &mut self.out {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Shows the table of a scenario: figures down, engines across.
    #[expect(clippy::print_stdout, reason = "the table is what the person asked for")]
    pub(super) fn show(&self, scenario: &str, about: &str) {
        println!("{}", self.table(scenario, about));
    }

    fn table(&self, scenario: &str, about: &str) -> String {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.scenario == scenario).collect();
        let others = rows
            .iter()
            .map(|row| row.who.as_str())
            .filter(|who| !self.engines.iter().any(|name| name == who));
        let mut columns: Vec<&str> = self.engines.iter().map(String::as_str).collect();
        columns.retain(|who| rows.iter().any(|row| row.who == *who));
        others.for_each(|who| push_new(&mut columns, who));
        let mut names = Vec::new();
        rows.iter().flat_map(|row| &row.figures).for_each(|(name, _)| push_new(&mut names, name));

        let compared = match self.engines.as_slice() {
            [ours, theirs, ..] if columns.contains(&theirs.as_str()) => {
                Some((ours.as_str(), theirs.as_str()))
            }
            _ => None,
        };
        let mut head = columns.join(" | ");
        if let Some((ours, theirs)) = compared {
            head += &format!(" | {ours} / {theirs}");
        }
        let width = columns.len() + usize::from(compared.is_some());
        let mut table =
            format!("\n### {scenario}: {about}\n\n| | {head} |\n|---|{}\n", "---:|".repeat(width));
        for name in names {
            let of = |who: &str| -> Vec<f64> {
                rows.iter().filter(|row| row.who == who).filter_map(|row| find(&row.figures, name)).collect()
            };
            let mut cells: Vec<String> = columns.iter().map(|who| cell(&of(who))).collect();
            cells.extend(compared.map(|(ours, theirs)| ratio(median(&of(ours)), median(&of(theirs)))));
            table += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        table
    }
}

/// Says what goes on.
#[expect(clippy::print_stderr, reason = "a benchmark takes long; whoever waits wants to see it move")]
pub(super) fn tell(text: &str) {
    eprintln!("{text}");
}

fn told(figures: &Figures) -> String {
    figures.iter().map(|(name, figure)| format!("{name} {}", shown(*figure))).collect::<Vec<_>>().join("; ")
}

/// The median, and the range it comes from.
fn cell(figures: &[f64]) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match figures {
        [] => "-".into(),
        _ if shown(least) == shown(most) => shown(most),
        _ => format!("{} ({}..{})", shown(median(figures)), shown(least), shown(most)),
    }
}

fn find(figures: &Figures, name: &str) -> Option<f64> {
    figures.iter().find(|(known, _)| *known == name).map(|(_, figure)| *figure)
}

fn push_new<'a>(list: &mut Vec<&'a str>, item: &'a str) {
    if !list.contains(&item) {
        list.push(item);
    }
}
