//! The scenarios: one table row here and one file each.

mod acp;
mod cold_start;
mod delta_latency;
mod file_tools;
mod interrupt;
mod long_session;
mod mcp;
mod parallel_processes;
mod permission_decisions;
mod permission_requests;
mod resume_and_list;
mod serve;
mod soak;
mod stream;
mod swarm;
mod tool_loops;

use anyhow::{Result, bail};

use super::context::BenchContext;
use super::engine::Engine;
use super::metrics::{BaselineMetrics, Metrics};

/// A measurement.
pub(super) struct Scenario {
    /// Name on the command line.
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Runs it once with an engine; `None` if it does not apply to engines.
    pub(super) run: fn(&BenchContext, &Engine) -> Result<Option<Metrics>>,
    /// Measures baselines without an engine, by name.
    pub(super) baseline: fn(&BenchContext) -> Result<BaselineMetrics>,
}

const DEFAULT_SCENARIOS: [Scenario; 15] = [
    Scenario {
        name: "cold",
        description: "spawn, one short reply, exit",
        run: cold_start::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "loop",
        description: "one prompt, Bash turns",
        run: tool_loops::run_bash,
        baseline: tool_loops::shell_baseline,
    },
    Scenario {
        name: "read-loop",
        description: "one prompt, Read turns",
        run: tool_loops::run_read,
        baseline: no_baseline,
    },
    Scenario {
        name: "stream",
        description: "one reply of 10,000 deltas, all forwarded",
        run: stream::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "delta-latency",
        description: "1,000 deltas, one every 2 ms: latency added by the engine",
        run: delta_latency::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "session",
        description: "100 messages in one process",
        run: long_session::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "parallel-8",
        description: "8 processes, 5 Bash turns each",
        run: parallel_processes::run_8,
        baseline: no_baseline,
    },
    Scenario {
        name: "parallel-32",
        description: "32 processes, 5 Bash turns each",
        run: parallel_processes::run_32,
        baseline: no_baseline,
    },
    Scenario {
        name: "swarm",
        description: "1,000 sessions in one process, 5 turns each",
        run: swarm::run,
        baseline: swarm::in_process_baseline,
    },
    Scenario {
        name: "permission-requests",
        description: "20 Bash calls, each allowed by the host",
        run: permission_requests::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "interrupt",
        description: "the model stalls, the host interrupts",
        run: interrupt::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "acp",
        description: "an editor: start, 20 sessions, one answer each",
        run: acp::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "tools",
        description: "tools on 20,000 files, 200 MB",
        run: file_tools::run,
        baseline: file_tools::ripgrep_baseline,
    },
    Scenario {
        name: "permission-decisions",
        description: "permission decisions about commands, under 20 rules",
        run: permission_decisions::run,
        baseline: permission_decisions::decision_baseline,
    },
    Scenario {
        name: "mcp",
        description: "2,000 calls of an MCP tool: a function of the same process, a program",
        run: mcp::run,
        baseline: mcp::call_baseline,
    },
];

/// Scenarios that run only if named, because they take long or need much disk space.
const OPT_IN_SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "serve",
        description: "whimbrel serve: page, memory, messages, 100 browsers, 1,000 sessions",
        run: serve::run,
        baseline: no_baseline,
    },
    Scenario {
        name: "resume",
        description: "resume a session of 5,000 messages",
        run: resume_and_list::run_long,
        baseline: no_baseline,
    },
    Scenario {
        name: "resume-huge",
        description: "resume a session of 2 GB, most of it compacted",
        run: resume_and_list::run_huge,
        baseline: no_baseline,
    },
    Scenario {
        name: "list",
        description: "list 10,000 sessions",
        run: resume_and_list::run_list,
        baseline: no_baseline,
    },
    Scenario {
        name: "soak",
        description: "one turn of 2,000 Bash calls",
        run: soak::run,
        baseline: no_baseline,
    },
];

pub(super) fn names() -> Vec<&'static str> {
    DEFAULT_SCENARIOS.iter().chain(&OPT_IN_SCENARIOS).map(|scenario| scenario.name).collect()
}

/// Selects scenarios by name, in table order; without names all default ones. `parallel` selects both parallel
/// scenarios.
pub(super) fn select(wanted: &[String]) -> Result<Vec<Scenario>> {
    let matches_name = |name: &str, wanted: &str| {
        name == wanted || name.strip_suffix("-8").or(name.strip_suffix("-32")) == Some(wanted)
    };
    if let Some(unknown) = wanted.iter().find(|word| !names().iter().any(|name| matches_name(name, word))) {
        bail!("unknown scenario {unknown:?}; known: {}", names().join(", "));
    }
    if wanted.is_empty() {
        return Ok(DEFAULT_SCENARIOS.into());
    }
    let all = DEFAULT_SCENARIOS.into_iter().chain(OPT_IN_SCENARIOS);
    Ok(all.filter(|scenario| wanted.iter().any(|word| matches_name(scenario.name, word))).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "other baselines can fail")]
fn no_baseline(_: &BenchContext) -> Result<BaselineMetrics> {
    Ok(Vec::new())
}
