//! The life of a run, pure: what its host sees of it, and when it is over.
//!
//! A run whose input is finished ends when nothing runs and nothing is queued. Agents in the background are work that the
//! answer may need, so they are waited for, up to a ceiling; a command in the background may be a server that never ends, so
//! it gets a short grace only. The host can have it otherwise.

use std::time::Duration;

use whimbrel_wire::system::SessionState;

/// How long commands in the background may go on once nothing else is due.
pub const COMMAND_GRACE: Duration = Duration::from_secs(3);

/// How long background work is waited for at most, unless the host says otherwise.
pub const BACKGROUND_WAIT_LIMIT: Duration = Duration::from_secs(600);

/// What can still come from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostInput {
    /// Prompts, requests and answers.
    Open,
    /// No prompts any more, but answers to questions.
    Finished,
    /// Nothing.
    Closed,
}

/// What becomes of background work when nothing else is due and no input can come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundPolicy {
    /// Agents are waited for; commands get a grace.
    #[default]
    WaitForAgents,
    /// All of it is waited for.
    WaitForAll,
    /// It is stopped.
    Stop,
    /// Agents are waited for, for they cannot live without their engine; commands are let go.
    Detach,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// What can still come from the host.
    pub input: HostInput,
    /// Whether a turn runs.
    pub turn_running: bool,
    /// Whether something waits for a turn.
    pub input_pending: bool,
    /// How many questions the host has not answered.
    pub pending_requests: usize,
    /// How many agents work in the background.
    pub running_agents: usize,
    /// How many commands run in the background.
    pub running_commands: usize,
}

/// Where a run goes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopDecision {
    /// On, as long as it takes.
    Run,
    /// On until background work has ended, but not longer than this since nothing else was due.
    WaitFor(Option<Duration>),
    /// It is over.
    Exit,
}

impl Activity {
    /// What the host sees.
    pub fn session_state(&self) -> SessionState {
        if self.pending_requests > 0 {
            SessionState::RequiresAction
        } else if self.turn_running || self.input_pending || self.running_agents > 0 {
            SessionState::Running
        } else {
            SessionState::Idle
        }
    }

    /// Where the run goes from here; `ceiling` is how long background work is waited for, none for as long as it takes.
    pub fn decide(&self, at_end: BackgroundPolicy, ceiling: Option<Duration>) -> LoopDecision {
        if self.input == HostInput::Open || self.turn_running || self.input_pending {
            return LoopDecision::Run;
        }
        match (at_end, self.running_agents, self.running_commands) {
            (_, 0, 0) | (BackgroundPolicy::Stop, ..) | (BackgroundPolicy::Detach, 0, _) => LoopDecision::Exit,
            (BackgroundPolicy::WaitForAgents, 0, _) => LoopDecision::WaitFor(Some(COMMAND_GRACE)),
            (BackgroundPolicy::WaitForAgents | BackgroundPolicy::WaitForAll | BackgroundPolicy::Detach, ..) => LoopDecision::WaitFor(ceiling),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Activity =
        Activity { input: HostInput::Finished, turn_running: false, input_pending: false, pending_requests: 0, running_agents: 0, running_commands: 0 };

    #[test]
    fn what_the_host_sees() {
        use SessionState::{Idle, RequiresAction, Running};
        let table = [
            ("nothing goes on", IDLE, Idle),
            ("the input is open, and nothing goes on", Activity { input: HostInput::Open, ..IDLE }, Idle),
            ("a turn runs", Activity { turn_running: true, ..IDLE }, Running),
            ("a prompt waits", Activity { input_pending: true, ..IDLE }, Running),
            ("an agent works in the background", Activity { running_agents: 1, ..IDLE }, Running),
            ("a command runs in the background", Activity { running_commands: 1, ..IDLE }, Idle),
            ("the turn waits for the host", Activity { turn_running: true, pending_requests: 1, ..IDLE }, RequiresAction),
            ("an agent waits for the host", Activity { running_agents: 2, pending_requests: 1, ..IDLE }, RequiresAction),
        ];
        for (name, moment, expected) in table {
            assert_eq!(moment.session_state(), expected, "{name}");
        }
    }

    #[test]
    fn when_a_run_is_over() {
        use LoopDecision::{Run, Exit, WaitFor};
        let (open, gone) = (Activity { input: HostInput::Open, ..IDLE }, Activity { input: HostInput::Closed, ..IDLE });
        let (agent, command) = (Activity { running_agents: 1, ..IDLE }, Activity { running_commands: 1, ..IDLE });
        let both = Activity { running_agents: 1, running_commands: 1, ..IDLE };
        let limit = Some(BACKGROUND_WAIT_LIMIT);
        let table = [
            ("input may come", open, BackgroundPolicy::WaitForAgents, Run),
            ("input may come, whatever is stopped at the end", open, BackgroundPolicy::Stop, Run),
            ("a turn runs", Activity { turn_running: true, ..IDLE }, BackgroundPolicy::Stop, Run),
            ("something is due", Activity { input_pending: true, ..gone }, BackgroundPolicy::Stop, Run),
            ("nothing runs and nothing is due", IDLE, BackgroundPolicy::WaitForAgents, Exit),
            ("nor can anybody answer", gone, BackgroundPolicy::WaitForAll, Exit),
            ("an agent works", agent, BackgroundPolicy::WaitForAgents, WaitFor(limit)),
            (
                "an agent works for a host that is gone",
                Activity { input: HostInput::Closed, ..agent },
                BackgroundPolicy::WaitForAgents,
                WaitFor(limit),
            ),
            ("a command runs", command, BackgroundPolicy::WaitForAgents, WaitFor(Some(COMMAND_GRACE))),
            ("a command beside an agent", both, BackgroundPolicy::WaitForAgents, WaitFor(limit)),
            ("a command is waited for", command, BackgroundPolicy::WaitForAll, WaitFor(limit)),
            ("nothing is waited for", both, BackgroundPolicy::Stop, Exit),
            ("a command is let go", command, BackgroundPolicy::Detach, Exit),
            ("a command is let go once no agent works", both, BackgroundPolicy::Detach, WaitFor(limit)),
        ];
        for (name, moment, at_end, expected) in table {
            assert_eq!(moment.decide(at_end, limit), expected, "{name}");
        }
        assert_eq!(agent.decide(BackgroundPolicy::WaitForAgents, None), WaitFor(None), "without a ceiling");
    }
}
