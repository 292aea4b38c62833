//! Who started the program: a user or an SDK.

/// Caller of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A user or a script.
    User,
    /// An official SDK, possibly newer than this program.
    Sdk,
}

impl Caller {
    /// Detects the caller by `CLAUDE_CODE_ENTRYPOINT`.
    pub(crate) fn from_entrypoint(entrypoint: Option<&str>) -> Self {
        match entrypoint {
            Some(name) if name.starts_with("sdk-") => Self::Sdk,
            _ => Self::User,
        }
    }
}
