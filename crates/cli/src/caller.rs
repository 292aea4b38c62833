//! Who started the program: a user or an SDK, and which one.

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

/// Treatment of the exit code of a failed turn by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// The host accepts any exit code.
    Standard,
    /// TypeScript SDK 0.2: any code but 0 makes it throw, even after the result was delivered. Its own engine exits
    /// with 0 after a turn that reached a limit or was interrupted.
    OldTypeScript,
}

impl HostKind {
    /// Detects the host by `CLAUDE_CODE_ENTRYPOINT` and `CLAUDE_AGENT_SDK_VERSION`, which SDK 0.2 may omit.
    pub(crate) fn from_env(entrypoint: Option<&str>, version: Option<&str>) -> Self {
        match (entrypoint, version) {
            (Some("sdk-ts"), None) => Self::OldTypeScript,
            (Some("sdk-ts"), Some(version)) if version.starts_with("0.2.") => Self::OldTypeScript,
            _ => Self::Standard,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_typescript_host_is_detected_by_its_version() {
        let rows = [
            (Some("sdk-ts"), None, HostKind::OldTypeScript),
            (Some("sdk-ts"), Some("0.2.50"), HostKind::OldTypeScript),
            (Some("sdk-ts"), Some("0.3.325"), HostKind::Standard),
            (Some("sdk-py"), None, HostKind::Standard),
            (Some("sdk-py"), Some("0.2.182"), HostKind::Standard),
            (None, None, HostKind::Standard),
        ];
        for (entrypoint, version, expected) in rows {
            assert_eq!(HostKind::from_env(entrypoint, version), expected, "{entrypoint:?} {version:?}");
        }
    }
}
