//! What a tool call touches, and which calls can disturb each other.

/// What a tool call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effects {
    /// Nothing outside the engine.
    None,
    /// Reads these files or folders.
    Reads(Vec<String>),
    /// Writes these files.
    Writes(Vec<String>),
    /// Runs a program, which may do anything.
    RunsProgram,
    /// Talks to the network.
    Network,
    /// Nothing itself, but others act on it: an agent, whoever reads a message or works on a list. What they do is judged
    /// call by call.
    OtherAgents,
    /// Changes what the session itself may do.
    Session,
}

impl Effects {
    /// Whether a call may run beside others of its kind without changing what they see.
    pub fn is_parallel_safe(&self) -> bool {
        match self {
            Self::None | Self::Reads(_) | Self::Network | Self::OtherAgents => true,
            Self::Writes(_) | Self::RunsProgram | Self::Session => false,
        }
    }

    /// Whether a call that was cut off has changed nothing, so that it can be made again.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::None | Self::Reads(_) | Self::Network => true,
            Self::OtherAgents | Self::Writes(_) | Self::RunsProgram | Self::Session => false,
        }
    }
}
