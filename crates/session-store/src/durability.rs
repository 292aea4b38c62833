//! When transcripts are synced to disk. This matters for power loss only: after a kill of the engine all written lines
//! are still in the page cache.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system decides.
    #[default]
    System,
    /// Before the result of a turn is sent.
    Turn,
    /// Before each message is sent and before a tool call with effects runs; calls that cannot be recorded do not run.
    Strict,
}

impl Durability {
    /// Environment variable for this setting.
    pub const VARIABLE: &str = "WHIMBREL_DURABILITY";

    /// Parses the value of [`Self::VARIABLE`]. The error is a text for the user.
    pub fn parse(name: Option<&str>) -> Result<Self, String> {
        match name.map(str::trim) {
            None | Some("" | "none") => Ok(Self::System),
            Some("turn") => Ok(Self::Turn),
            Some("strict") => Ok(Self::Strict),
            Some(other) => Err(format!("{} must be none, turn or strict, but is {other:?}.", Self::VARIABLE)),
        }
    }
}
