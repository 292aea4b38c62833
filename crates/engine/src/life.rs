//! The life of a run, pure: what its host sees of it, and when it is over.
//!
//! A run whose input is finished ends when nothing runs and nothing is queued. Agents in the background are work that the
//! answer may need, so they are waited for, up to a ceiling; a command in the background may be a server that never ends, so
//! it gets a short grace only. The host can have it otherwise.

use std::time::Duration;

use whimbrel_wire::system::SessionState;

/// How long commands in the background may go on once nothing else is due.
pub const GRACE: Duration = Duration::from_secs(3);

/// How long background work is waited for at most, unless the host says otherwise.
pub const CEILING: Duration = Duration::from_secs(600);

/// What can still come from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Prompts, requests and answers.
    Open,
    /// No prompts any more, but answers to questions.
    Finished,
    /// Nothing.
    Gone,
}

/// What becomes of background work when nothing else is due and no input can come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// Agents are waited for; commands get a grace.
    #[default]
    Customary,
    /// All of it is waited for.
    Wait,
    /// It is stopped.
    Stop,
    /// Agents are waited for, for they cannot live without their engine; commands are let go.
    Detach,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What can still come from the host.
    pub input: Input,
    /// Whether a turn runs.
    pub turn: bool,
    /// Whether something waits for a turn.
    pub due: bool,
    /// How many questions the host has not answered.
    pub questions: usize,
    /// How many agents work in the background.
    pub agents: usize,
    /// How many commands run in the background.
    pub commands: usize,
}

/// Where a run goes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// On, as long as it takes.
    On,
    /// On until background work has ended, but not longer than this since nothing else was due.
    Until(Option<Duration>),
    /// It is over.
    Over,
}

impl Moment {
    /// What the host sees.
    pub fn state(&self) -> SessionState {
        if self.questions > 0 {
            SessionState::RequiresAction
        } else if self.turn || self.due || self.agents > 0 {
            SessionState::Running
        } else {
            SessionState::Idle
        }
    }

    /// Where the run goes from here; `ceiling` is how long background work is waited for, none for as long as it takes.
    pub fn course(&self, at_end: AtEnd, ceiling: Option<Duration>) -> Course {
        if self.input == Input::Open || self.turn || self.due {
            return Course::On;
        }
        match (at_end, self.agents, self.commands) {
            (_, 0, 0) | (AtEnd::Stop, ..) | (AtEnd::Detach, 0, _) => Course::Over,
            (AtEnd::Customary, 0, _) => Course::Until(Some(GRACE)),
            (AtEnd::Customary | AtEnd::Wait | AtEnd::Detach, ..) => Course::Until(ceiling),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Moment =
        Moment { input: Input::Finished, turn: false, due: false, questions: 0, agents: 0, commands: 0 };

    #[test]
    fn what_the_host_sees() {
        use SessionState::{Idle, RequiresAction, Running};
        let table = [
            ("nothing goes on", QUIET, Idle),
            ("the input is open, and nothing goes on", Moment { input: Input::Open, ..QUIET }, Idle),
            ("a turn runs", Moment { turn: true, ..QUIET }, Running),
            ("a prompt waits", Moment { due: true, ..QUIET }, Running),
            ("an agent works in the background", Moment { agents: 1, ..QUIET }, Running),
            ("a command runs in the background", Moment { commands: 1, ..QUIET }, Idle),
            ("the turn waits for the host", Moment { turn: true, questions: 1, ..QUIET }, RequiresAction),
            ("an agent waits for the host", Moment { agents: 2, questions: 1, ..QUIET }, RequiresAction),
        ];
        for (name, moment, expected) in table {
            assert_eq!(moment.state(), expected, "{name}");
        }
    }

    #[test]
    fn when_a_run_is_over() {
        use Course::{On, Over, Until};
        let (open, gone) = (Moment { input: Input::Open, ..QUIET }, Moment { input: Input::Gone, ..QUIET });
        let (agent, command) = (Moment { agents: 1, ..QUIET }, Moment { commands: 1, ..QUIET });
        let both = Moment { agents: 1, commands: 1, ..QUIET };
        let limit = Some(CEILING);
        let table = [
            ("input may come", open, AtEnd::Customary, On),
            ("input may come, whatever is stopped at the end", open, AtEnd::Stop, On),
            ("a turn runs", Moment { turn: true, ..QUIET }, AtEnd::Stop, On),
            ("something is due", Moment { due: true, ..gone }, AtEnd::Stop, On),
            ("nothing runs and nothing is due", QUIET, AtEnd::Customary, Over),
            ("nor can anybody answer", gone, AtEnd::Wait, Over),
            ("an agent works", agent, AtEnd::Customary, Until(limit)),
            (
                "an agent works for a host that is gone",
                Moment { input: Input::Gone, ..agent },
                AtEnd::Customary,
                Until(limit),
            ),
            ("a command runs", command, AtEnd::Customary, Until(Some(GRACE))),
            ("a command beside an agent", both, AtEnd::Customary, Until(limit)),
            ("a command is waited for", command, AtEnd::Wait, Until(limit)),
            ("nothing is waited for", both, AtEnd::Stop, Over),
            ("a command is let go", command, AtEnd::Detach, Over),
            ("a command is let go once no agent works", both, AtEnd::Detach, Until(limit)),
        ];
        for (name, moment, at_end, expected) in table {
            assert_eq!(moment.course(at_end, limit), expected, "{name}");
        }
        assert_eq!(agent.course(AtEnd::Customary, None), Until(None), "without a ceiling");
    }
}
