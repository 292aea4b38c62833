//! Declared side effects of a tool call.

/// Declared side effects of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effects {
    /// No effect outside the engine.
    None,
    /// Reads these files or directories.
    Reads(Vec<String>),
    /// Writes these files.
    Writes(Vec<String>),
    /// Runs a program, which may do anything.
    RunsProgram,
    /// Accesses the network.
    Network,
    /// No effect by itself, but other agents act on it (subagent, message, task list); their calls are checked one by
    /// one.
    OtherAgents,
    /// Changes the session's own state (mode, working directory, team).
    Session,
}

impl Effects {
    /// Returns whether the call may run in parallel with other such calls.
    pub fn is_parallel_safe(&self) -> bool {
        match self {
            Self::None | Self::Reads(_) | Self::Network | Self::OtherAgents => true,
            Self::Writes(_) | Self::RunsProgram | Self::Session => false,
        }
    }

    /// Returns whether an interrupted call has changed nothing and can be repeated.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::None | Self::Reads(_) | Self::Network => true,
            Self::OtherAgents | Self::Writes(_) | Self::RunsProgram | Self::Session => false,
        }
    }
}
