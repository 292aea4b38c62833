//! What is measured. A scenario is one row here and one file.

mod ask;
mod cold;
mod interrupt;
mod judging;
mod loops;
mod mcp;
mod pace;
mod parallel;
mod resume;
mod session;
mod soak;
mod stream;
mod swarm;
mod tools;

use anyhow::{Result, bail};

use super::engine::Engine;
use super::figures::{Beside, Figures};
use super::lab::Lab;

/// Something to measure.
pub(super) struct Scenario {
    /// Its name.
    pub(super) name: &'static str,
    /// What happens in it.
    pub(super) about: &'static str,
    /// Plays it once with an engine; none if it is not for engines.
    pub(super) play: fn(&Lab, &Engine) -> Result<Option<Figures>>,
    /// Measures what stands beside the engines, by name.
    pub(super) beside: fn(&Lab) -> Result<Beside>,
}

const ALL: [Scenario; 14] = [
    Scenario { name: "cold", about: "spawn, one short reply, exit", play: cold::play, beside: nothing },
    Scenario { name: "loop", about: "one prompt, Bash turns", play: loops::bash, beside: loops::shell_alone },
    Scenario { name: "read-loop", about: "one prompt, Read turns", play: loops::read, beside: nothing },
    Scenario {
        name: "stream",
        about: "one reply of 10,000 deltas, all passed on",
        play: stream::play,
        beside: nothing,
    },
    Scenario {
        name: "pace",
        about: "1,000 deltas, one every 2 ms: what an engine adds",
        play: pace::play,
        beside: nothing,
    },
    Scenario { name: "session", about: "100 messages in one process", play: session::play, beside: nothing },
    Scenario {
        name: "parallel-8",
        about: "8 processes, 5 Bash turns each",
        play: parallel::eight,
        beside: nothing,
    },
    Scenario {
        name: "parallel-32",
        about: "32 processes, 5 Bash turns each",
        play: parallel::thirty_two,
        beside: nothing,
    },
    Scenario {
        name: "swarm",
        about: "1,000 sessions in one process, 5 turns each",
        play: swarm::play,
        beside: swarm::in_process,
    },
    Scenario {
        name: "ask",
        about: "20 Bash calls, each allowed by the host",
        play: ask::play,
        beside: nothing,
    },
    Scenario {
        name: "interrupt",
        about: "the model falls silent, the host interrupts",
        play: interrupt::play,
        beside: nothing,
    },
    Scenario {
        name: "tools",
        about: "tools on 20,000 files, 200 MB",
        play: tools::play,
        beside: tools::ripgrep,
    },
    Scenario {
        name: "judging",
        about: "whether a command may run, under 20 rules",
        play: judging::play,
        beside: judging::alone,
    },
    Scenario {
        name: "mcp",
        about: "2,000 calls of an MCP tool: a function of the same process, a program",
        play: mcp::play,
        beside: mcp::alone,
    },
];

/// What is only measured if it is named: it takes long, or much room on the disk.
const NAMED: [Scenario; 4] = [
    Scenario {
        name: "resume",
        about: "a session of 5,000 messages goes on",
        play: resume::long,
        beside: nothing,
    },
    Scenario {
        name: "resume-huge",
        about: "a session of 2 GB goes on, most of it summarised",
        play: resume::huge,
        beside: nothing,
    },
    Scenario { name: "list", about: "10,000 sessions are listed", play: resume::list, beside: nothing },
    Scenario { name: "soak", about: "one turn of 2,000 Bash calls", play: soak::play, beside: nothing },
];

/// The names of all scenarios.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().chain(&NAMED).map(|scenario| scenario.name).collect()
}

/// The scenarios with these names, in our order; if there are none, all but those that must be named. `parallel` means both.
pub(super) fn chosen(wanted: &[String]) -> Result<Vec<Scenario>> {
    let meant = |name: &str, wanted: &str| {
        name == wanted || name.strip_suffix("-8").or(name.strip_suffix("-32")) == Some(wanted)
    };
    if let Some(unknown) = wanted.iter().find(|word| !names().iter().any(|name| meant(name, word))) {
        bail!("there is no scenario {unknown:?}; there are: {}", names().join(", "));
    }
    if wanted.is_empty() {
        return Ok(ALL.into());
    }
    let all = ALL.into_iter().chain(NAMED);
    Ok(all.filter(|one| wanted.iter().any(|word| meant(one.name, word))).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "others beside the engines can fail")]
fn nothing(_: &Lab) -> Result<Beside> {
    Ok(Vec::new())
}
