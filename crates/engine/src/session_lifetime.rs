//! Pure decision about a session: whether to run, wait or exit.
//!
//! After the host has finished its input, a session exits once nothing runs and nothing is queued. Background agents
//! may still contribute to the answer, so the session waits for them, up to a limit; a background command may be a
//! server that never ends, so it gets a short grace period only. The host can choose another policy.

use std::time::Duration;

use whimbrel_tools::tasks::BackgroundPolicy;

/// Time for background commands to finish once nothing else is pending.
pub const COMMAND_GRACE: Duration = Duration::from_secs(3);

/// Default limit on the wait for background work.
pub const BACKGROUND_WAIT_LIMIT: Duration = Duration::from_secs(600);

/// State of the host's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostInput {
    /// Accepts prompts, control requests and responses.
    Open,
    /// Accepts no prompts, but responses to pending requests.
    Finished,
    /// Accepts nothing.
    Closed,
}

/// Activity of a session at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    pub input: HostInput,
    pub turn_running: bool,
    /// Whether input waits for a turn.
    pub input_pending: bool,
    /// Requests that the host has not answered.
    pub pending_requests: usize,
    /// Agents running in the background.
    pub running_agents: usize,
    /// Commands running in the background.
    pub running_commands: usize,
}

/// Next action of the event loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopDecision {
    /// Wait for events without a limit.
    WaitForEvents,
    /// Wait for background work, at most this long after everything else ended.
    WaitForBackground(Option<Duration>),
    Exit,
}

impl Activity {
    /// Decides whether to run, wait or exit; `wait_limit` limits the wait for background work (`None`: no limit).
    pub fn decide(&self, policy: BackgroundPolicy, wait_limit: Option<Duration>) -> LoopDecision {
        if self.input == HostInput::Open || self.turn_running || self.input_pending {
            return LoopDecision::WaitForEvents;
        }
        match (policy, self.running_agents, self.running_commands) {
            (_, 0, 0) | (BackgroundPolicy::Stop, ..) | (BackgroundPolicy::Detach, 0, _) => LoopDecision::Exit,
            (BackgroundPolicy::WaitForAgents, 0, _) => LoopDecision::WaitForBackground(Some(COMMAND_GRACE)),
            (
                BackgroundPolicy::WaitForAgents | BackgroundPolicy::WaitForAll | BackgroundPolicy::Detach,
                ..,
            ) => LoopDecision::WaitForBackground(wait_limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Activity = Activity {
        input: HostInput::Finished,
        turn_running: false,
        input_pending: false,
        pending_requests: 0,
        running_agents: 0,
        running_commands: 0,
    };

    #[test]
    fn session_exit_decision() {
        use LoopDecision::{Exit, WaitForBackground, WaitForEvents};
        let (open, closed) =
            (Activity { input: HostInput::Open, ..IDLE }, Activity { input: HostInput::Closed, ..IDLE });
        let (agent, command) =
            (Activity { running_agents: 1, ..IDLE }, Activity { running_commands: 1, ..IDLE });
        let both = Activity { running_agents: 1, running_commands: 1, ..IDLE };
        let limit = Some(BACKGROUND_WAIT_LIMIT);
        let table = [
            ("input is open", open, BackgroundPolicy::WaitForAgents, WaitForEvents),
            ("input is open, stop policy", open, BackgroundPolicy::Stop, WaitForEvents),
            ("a turn runs", Activity { turn_running: true, ..IDLE }, BackgroundPolicy::Stop, WaitForEvents),
            (
                "input is pending",
                Activity { input_pending: true, ..closed },
                BackgroundPolicy::Stop,
                WaitForEvents,
            ),
            ("input finished, no activity", IDLE, BackgroundPolicy::WaitForAgents, Exit),
            ("input closed, no activity", closed, BackgroundPolicy::WaitForAll, Exit),
            ("an agent runs", agent, BackgroundPolicy::WaitForAgents, WaitForBackground(limit)),
            (
                "an agent runs after the host closed its input",
                Activity { input: HostInput::Closed, ..agent },
                BackgroundPolicy::WaitForAgents,
                WaitForBackground(limit),
            ),
            (
                "a command runs",
                command,
                BackgroundPolicy::WaitForAgents,
                WaitForBackground(Some(COMMAND_GRACE)),
            ),
            ("a command and an agent run", both, BackgroundPolicy::WaitForAgents, WaitForBackground(limit)),
            ("a command is waited for", command, BackgroundPolicy::WaitForAll, WaitForBackground(limit)),
            ("nothing is waited for", both, BackgroundPolicy::Stop, Exit),
            ("a command is detached", command, BackgroundPolicy::Detach, Exit),
            (
                "a command is detached after the agents end",
                both,
                BackgroundPolicy::Detach,
                WaitForBackground(limit),
            ),
        ];
        for (name, activity, policy, expected) in table {
            assert_eq!(activity.decide(policy, limit), expected, "{name}");
        }
        assert_eq!(
            agent.decide(BackgroundPolicy::WaitForAgents, None),
            WaitForBackground(None),
            "without a wait limit"
        );
    }
}
