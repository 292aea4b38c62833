//! Current resource usage of a process, from /proc.

use std::fs;

use anyhow::{Context, Result};

use super::memory::{self, MemoryUsage};

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

/// Resource usage of the engine started by a meter.
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

/// Clock ticks per second: the kernel reports times in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the fields of /proc/PID/stat after the process name, which may contain any character.
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
        // A child that has been reaped meanwhile is not a zombie.
        count += children.filter(|child| read_stat(*child).is_ok_and(|fields| fields[0] == "Z")).count();
    }
    Ok(count)
}
