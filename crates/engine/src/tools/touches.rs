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
    /// Changes what the session itself may do.
    Session,
}

impl Touches {
    /// Whether a call may run beside others of its kind without changing what they see.
    pub fn is_harmless(&self) -> bool {
        match self {
            Self::Nothing | Self::Reads(_) | Self::Network => true,
            Self::Writes(_) | Self::Runs | Self::Session => false,
        }
    }
}
