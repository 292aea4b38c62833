//! Output: one table per scenario on stdout, one JSON line per run in a file, progress on stderr.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::metrics::{Metrics, format_metric, format_ratio, median};

/// All measurements.
pub(super) struct Report {
    out: Option<File>,
    engines: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    scenario: &'static str,
    subject: String,
    metrics: Metrics,
}

impl Report {
    /// Creates a report; the first engine is compared with the second.
    pub(super) fn new(out: Option<&Path>, engines: Vec<String>) -> Result<Self> {
        let out = out.map(|path| File::options().append(true).create(true).open(path)).transpose()?;
        Ok(Self { out, engines, rows: Vec::new() })
    }

    /// Adds one run. A failed run is reported but not counted.
    pub(super) fn add(
        &mut self,
        scenario: &'static str,
        who: &str,
        run: usize,
        outcome: Result<Metrics>,
    ) -> Result<()> {
        let mut line = json!({ "scenario": scenario, "engine": who, "run": run });
        match outcome {
            Ok(figures) => {
                print_progress(&format!("{scenario} {run} {who}: {}", format_metrics(&figures)));
                let map: Map<String, Value> =
                    figures.iter().map(|(name, figure)| ((*name).into(), (*figure).into())).collect();
                line["figures"] = Value::Object(map);
                self.rows.push(Row { scenario, subject: who.to_owned(), metrics: figures });
            }
            Err(error) => {
                print_progress(&format!("{scenario} {run} {who}: {error:#}"));
                line["error"] = format!("{error:#}").into();
            }
        }
        if let Some(out) = &mut self.out {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Prints the table of a scenario: metrics as rows, engines as columns.
    #[expect(clippy::print_stdout, reason = "the table is what the person asked for")]
    pub(super) fn print_table(&self, scenario: &str, about: &str) {
        println!("{}", self.render_table(scenario, about));
    }

    fn render_table(&self, scenario: &str, about: &str) -> String {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.scenario == scenario).collect();
        let others = rows
            .iter()
            .map(|row| row.subject.as_str())
            .filter(|who| !self.engines.iter().any(|name| name == who));
        let mut columns: Vec<&str> = self.engines.iter().map(String::as_str).collect();
        columns.retain(|who| rows.iter().any(|row| row.subject == *who));
        others.for_each(|who| push_unique(&mut columns, who));
        let mut names = Vec::new();
        rows.iter().flat_map(|row| &row.metrics).for_each(|(name, _)| push_unique(&mut names, name));

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
                rows.iter()
                    .filter(|row| row.subject == who)
                    .filter_map(|row| find_metric(&row.metrics, name))
                    .collect()
            };
            let mut cells: Vec<String> = columns.iter().map(|who| format_cell(&of(who))).collect();
            cells.extend(compared.map(|(ours, theirs)| format_ratio(median(&of(ours)), median(&of(theirs)))));
            table += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        table
    }
}

/// Prints a line of progress.
#[expect(clippy::print_stderr, reason = "a benchmark takes long; whoever waits wants to see it move")]
pub(super) fn print_progress(text: &str) {
    eprintln!("{text}");
}

fn format_metrics(figures: &Metrics) -> String {
    figures
        .iter()
        .map(|(name, figure)| format!("{name} {}", format_metric(*figure)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Formats the median with its range.
fn format_cell(figures: &[f64]) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match figures {
        [] => "-".into(),
        _ if format_metric(least) == format_metric(most) => format_metric(most),
        _ => {
            format!("{} ({}..{})", format_metric(median(figures)), format_metric(least), format_metric(most))
        }
    }
}

fn find_metric(figures: &Metrics, name: &str) -> Option<f64> {
    figures.iter().find(|(known, _)| *known == name).map(|(_, figure)| *figure)
}

fn push_unique<'a>(list: &mut Vec<&'a str>, item: &'a str) {
    if !list.contains(&item) {
        list.push(item);
    }
}
