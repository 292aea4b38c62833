//! Current resource usage of a process, from /proc: CPU time, memory, descriptors, zombies.

use std::fs;

use anyhow::{Context, Result};

/// Resource usage at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessStats {
    /// CPU time of the process and its reaped children, in milliseconds.
    pub(super) cpu: f64,
    /// Open file descriptors.
    pub(super) descriptors: f64,
    /// Children that have exited but are not reaped.
    pub(super) zombies: f64,
    pub(super) memory: MemoryUsage,
}

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

/// Resource usage of the engine started by a meter.
pub(super) fn engine_stats(meter: u32) -> Result<ProcessStats> {
    let process = first_child(meter)?;
    let fields = read_stat(process)?;
    let ticks: f64 = (11..15).filter_map(|field| fields.get(field)?.parse::<f64>().ok()).sum();
    Ok(ProcessStats {
        cpu: ticks * 1000.0 / TICKS_PER_SECOND,
        descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count() as f64,
        zombies: count_zombies(process)? as f64,
        memory: engine_memory(meter)?,
    })
}

/// Memory of the engine started by a meter.
pub(super) fn engine_memory(meter: u32) -> Result<MemoryUsage> {
    process_memory(first_child(meter)?)
}

fn process_memory(process: u32) -> Result<MemoryUsage> {
    let text =
        fs::read_to_string(format!("/proc/{process}/smaps_rollup")).context("the process has exited")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap_or_default() / 1024.0
    };
    Ok(MemoryUsage { resident: field("Rss:"), proportional: field("Pss:"), anonymous: field("Anonymous:") })
}

/// First child of a single-threaded process.
pub(super) fn first_child(process: u32) -> Result<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.split_whitespace().next().and_then(|word| word.parse().ok()).context("the process has no child")
}

/// Clock ticks per second: the kernel reports times in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the fields of /proc/PID/stat after the process name, which may contain any character.
fn read_stat(process: u32) -> Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).context("the process has exited")?;
    let (_, fields) = text.rsplit_once(')').context("/proc/PID/stat has an unknown format")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

fn count_zombies(process: u32) -> Result<usize> {
    let mut count = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|word| word.parse().ok());
        // A child that has been reaped meanwhile is not a zombie.
        count += children.filter(|child| read_stat(*child).is_ok_and(|fields| fields[0] == "Z")).count();
    }
    Ok(count)
}
