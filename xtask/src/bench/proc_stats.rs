//! What a process has used and holds open at this moment, as the kernel tells it.

use std::fs;

use anyhow::{Context, Result};

use super::memory::{self, MemoryUsage};

/// A process at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessStats {
    /// Time on a processor, its own and that of children it has waited for, in milliseconds.
    pub(super) cpu: f64,
    /// Open descriptors.
    pub(super) descriptors: f64,
    /// Children that have ended and that it has not waited for.
    pub(super) zombies: f64,
    /// What it holds.
    pub(super) memory: MemoryUsage,
}

/// The engine below a meter.
pub(super) fn engine_stats(meter: u32) -> Result<ProcessStats> {
    let process = memory::first_child(meter)?;
    let fields = read_stat(process)?;
    let ticks: f64 = (11..15).filter_map(|field| fields.get(field)?.parse::<f64>().ok()).sum();
    Ok(ProcessStats {
        cpu: ticks * 1000.0 / TICKS_PER_SECOND,
        descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count() as f64,
        zombies: count_zombies(process)? as f64,
        memory: memory::engine_memory(meter)?,
    })
}

/// Ticks per second: the kernel tells times in hundredths, whatever it counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// The fields of a process from its state on; its name, which may hold anything, stands before them.
fn read_stat(process: u32) -> Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).context("the process has ended")?;
    let (_, fields) = text.rsplit_once(')').context("the process cannot be read")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

fn count_zombies(process: u32) -> Result<usize> {
    let mut count = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|word| word.parse().ok());
        // A child that is gone meanwhile is no zombie.
        count += children.filter(|child| read_stat(*child).is_ok_and(|fields| fields[0] == "Z")).count();
    }
    Ok(count)
}
