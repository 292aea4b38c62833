//! What a tool call touches, and which calls can disturb each other.

/// What a tool call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touches {
    /// Nothing outside the engine.
    Nothing,
    /// Reads these files or folders.
    Reads(Vec<String>),
    /// Writes these files.
    Writes(Vec<String>),
    /// Runs a program, which may do anything.
    Runs,
    /// Talks to the network.
    Network,
    /// Nothing itself, but others act on it: an agent, whoever reads a message or works on a list. What they do is judged
    /// call by call.
    Others,
    /// Changes what the session itself may do.
    Session,
}

impl Touches {
    /// Whether a call may run beside others of its kind without changing what they see.
    pub fn is_harmless(&self) -> bool {
        match self {
            Self::Nothing | Self::Reads(_) | Self::Network | Self::Others => true,
            Self::Writes(_) | Self::Runs | Self::Session => false,
        }
    }

    /// Whether a call that was cut off has changed nothing, so that it can be made again.
    pub fn leaves_nothing(&self) -> bool {
        match self {
            Self::Nothing | Self::Reads(_) | Self::Network => true,
            Self::Others | Self::Writes(_) | Self::Runs | Self::Session => false,
        }
    }
}
