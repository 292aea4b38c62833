//! Current memory of a process, from /proc.

use std::fs;

use anyhow::{Context, Result};

/// Memory of one process in megabytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoryUsage {
    /// Resident set size.
    pub(super) resident: f64,
    /// Proportional set size: shared pages divided by their users. The only value that can be summed.
    pub(super) proportional: f64,
    /// Anonymous pages.
    pub(super) anonymous: f64,
}

/// Memory of the engine started by a meter.
pub(super) fn engine_memory(meter: u32) -> Result<MemoryUsage> {
    process_memory(first_child(meter)?)
}

fn process_memory(process: u32) -> Result<MemoryUsage> {
    let text =
        fs::read_to_string(format!("/proc/{process}/smaps_rollup")).context("the process has ended")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap_or_default() / 1024.0
    };
    Ok(MemoryUsage { resident: field("Rss:"), proportional: field("Pss:"), anonymous: field("Anonymous:") })
}

/// First child of a single-threaded process.
pub(super) fn first_child(process: u32) -> Result<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
    text.split_whitespace().next().and_then(|word| word.parse().ok()).context("the process has no child")
}
