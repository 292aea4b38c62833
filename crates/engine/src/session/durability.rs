//! How much of a transcript survives a machine that loses its power. A killed engine loses nothing in any class: what was
//! written is the system's.

/// When a transcript is forced onto the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system sees fit.
    #[default]
    System,
    /// Before the result of a turn is told.
    Turn,
    /// Before each message is told, and before a call with effects is made; what cannot be recorded is not begun.
    Strict,
}

impl Durability {
    /// The variable that names the class.
    pub const VARIABLE: &str = "WHIMBREL_DURABILITY";

    /// Reads the class that a variable names; the error says what it may name.
    pub fn parse(name: Option<&str>) -> Result<Self, String> {
        match name.map(str::trim) {
            None | Some("" | "none") => Ok(Self::System),
            Some("turn") => Ok(Self::Turn),
            Some("strict") => Ok(Self::Strict),
            Some(other) => Err(format!("{} must be none, turn or strict, but is {other:?}.", Self::VARIABLE)),
        }
    }
}
