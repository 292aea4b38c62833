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
        subject: &str,
        run: usize,
        outcome: Result<Metrics>,
    ) -> Result<()> {
        let mut line = json!({ "scenario": scenario, "engine": subject, "run": run });
        match outcome {
            Ok(metrics) => {
                print_progress(&format!("{scenario} {run} {subject}: {}", format_metrics(&metrics)));
                let map: Map<String, Value> =
                    metrics.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
                line["figures"] = Value::Object(map);
                self.rows.push(Row { scenario, subject: subject.to_owned(), metrics });
            }
            Err(error) => {
                print_progress(&format!("{scenario} {run} {subject}: {error:#}"));
                line["error"] = format!("{error:#}").into();
            }
        }
        if let Some(out) = &mut self.out {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Prints the table of a scenario: metrics as rows, engines as columns.
    #[expect(clippy::print_stdout, reason = "the table is the output")]
    pub(super) fn print_table(&self, scenario: &str, description: &str) {
        println!("{}", self.render_table(scenario, description));
    }

    fn render_table(&self, scenario: &str, description: &str) -> String {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.scenario == scenario).collect();
        let others = rows
            .iter()
            .map(|row| row.subject.as_str())
            .filter(|subject| !self.engines.iter().any(|name| name == subject));
        let mut columns: Vec<&str> = self.engines.iter().map(String::as_str).collect();
        columns.retain(|subject| rows.iter().any(|row| row.subject == *subject));
        others.for_each(|subject| push_unique(&mut columns, subject));
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
            format!("\n### {scenario}: {description}\n\n| | {head} |\n|---|{}\n", "---:|".repeat(width));
        for name in names {
            let values = |subject: &str| -> Vec<f64> {
                rows.iter()
                    .filter(|row| row.subject == subject)
                    .filter_map(|row| find_metric(&row.metrics, name))
                    .collect()
            };
            let mut cells: Vec<String> =
                columns.iter().map(|subject| format_cell(&values(subject))).collect();
            cells.extend(
                compared.map(|(ours, theirs)| format_ratio(median(&values(ours)), median(&values(theirs)))),
            );
            table += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        table
    }
}

/// Prints a line of progress.
#[expect(clippy::print_stderr, reason = "progress of a long run")]
pub(super) fn print_progress(text: &str) {
    eprintln!("{text}");
}

fn format_metrics(metrics: &Metrics) -> String {
    metrics
        .iter()
        .map(|(name, value)| format!("{name} {}", format_metric(*value)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Formats the median with its range.
fn format_cell(metrics: &[f64]) -> String {
    let min = metrics.iter().copied().fold(f64::INFINITY, f64::min);
    let max = metrics.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match metrics {
        [] => "-".into(),
        _ if format_metric(min) == format_metric(max) => format_metric(max),
        _ => {
            format!("{} ({}..{})", format_metric(median(metrics)), format_metric(min), format_metric(max))
        }
    }
}

fn find_metric(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn push_unique<'a>(list: &mut Vec<&'a str>, item: &'a str) {
    if !list.contains(&item) {
        list.push(item);
    }
}
