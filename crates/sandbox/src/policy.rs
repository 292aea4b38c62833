//! What a confined command may do: data. Paths are resolved in `resolve`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) mod pattern;

/// Names that are read-only below every writable root if they exist, because programs outside of the sandbox execute or
/// obey them. Git's own files are handled by the resolution, see `resolve::git`.
pub const PROTECTED_NAMES: [&str; 22] = [
    ".claude",
    ".whimbrel",
    ".mcp.json",
    ".gitmodules",
    ".gitconfig",
    ".vscode",
    ".idea",
    ".husky",
    ".devcontainer",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".ripgreprc",
    ".envrc",
];

/// A path below a protected folder that stays writable.
pub const WRITABLE_EXCEPTION: &str = ".claude/worktrees";

/// What a command may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A writable root. Missing protected names are covered here, and in the other working directories.
    pub working_directory: PathBuf,
    /// Folder for temporary files, shared by the commands of a session. Writable, without protected names.
    pub scratch: PathBuf,
    pub files: FileLayer,
    pub network: Network,
    pub unix_sockets: UnixSockets,
    pub namespaces: NestedNamespaces,
    pub proc_view: ProcView,
    pub limits: Limits,
}

impl Policy {
    /// The default policy: the working directory and the scratch folder are writable, everything is readable, and there
    /// is no network.
    pub fn new(working_directory: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            working_directory: working_directory.into(),
            scratch: scratch.into(),
            files: FileLayer::Confined(FileRules::default()),
            network: Network::Isolated,
            unix_sockets: UnixSockets::Closed,
            namespaces: NestedNamespaces::Refused,
            proc_view: ProcView::Own,
            limits: Limits::default(),
        }
    }
}

/// Whether files are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileLayer {
    Confined(FileRules),
    /// No file layer. Processes, network and system calls stay confined.
    Open,
}

/// What may be written and read. A deny wins over an allow, except that the more specific of a read deny and a read
/// allow wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRules {
    /// Further working directories: writable roots in which missing protected names are covered. Missing ones are
    /// skipped.
    pub work_directories: Vec<PathBuf>,
    /// Writable roots beside the working directories and the scratch folder. Missing ones are skipped.
    pub allow_write: Vec<PathBuf>,
    pub deny_write: Vec<PathRule>,
    pub deny_read: Vec<PathRule>,
    /// Readable again inside a path of `deny_read`.
    pub allow_read: Vec<PathBuf>,
    /// Never readable, whatever `allow_read` says: the caller's own credentials.
    pub hidden: Vec<PathBuf>,
    /// Names that are protected at the top of each writable root.
    pub protected_names: Vec<String>,
}

impl Default for FileRules {
    fn default() -> Self {
        Self {
            work_directories: Vec::new(),
            allow_write: Vec::new(),
            deny_write: Vec::new(),
            deny_read: Vec::new(),
            allow_read: Vec::new(),
            hidden: Vec::new(),
            protected_names: PROTECTED_NAMES.map(String::from).to_vec(),
        }
    }
}

/// One path, or all paths that match a pattern when the command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathRule {
    Literal(PathBuf),
    /// An absolute glob pattern with a literal start.
    Glob(String),
}

/// A rule that can be carried out nowhere.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("{path} cannot be a writable root. Name a folder below it")]
    ForbiddenRoot { path: PathBuf },
    #[error("the pattern {pattern:?} is invalid: {reason}")]
    InvalidPattern { pattern: String, reason: String },
}

/// Checks that a path can be a writable root. A path that exists is judged by where it leads.
pub fn check_root(path: &Path) -> Result<(), RuleError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_forbidden =
        real.parent().is_none() || ["/proc", "/dev", "/sys"].iter().any(|top| real.starts_with(top));
    if is_forbidden { Err(RuleError::ForbiddenRoot { path: real }) } else { Ok(()) }
}

impl PathRule {
    /// Checks that a pattern can be matched.
    pub fn check(&self) -> Result<(), RuleError> {
        match self {
            Self::Literal(_) => Ok(()),
            Self::Glob(pattern) => pattern::compile(pattern).map(drop),
        }
    }

    /// Reads an absolute path or pattern. A trailing `/**` is dropped: a rule covers what is below it anyway.
    pub fn parse(text: &str) -> Self {
        let trimmed = text.strip_suffix("/**").filter(|rest| !rest.is_empty()).unwrap_or(text);
        if trimmed.contains(['*', '?', '[', '{']) {
            Self::Glob(trimmed.to_owned())
        } else {
            Self::Literal(trimmed.into())
        }
    }
}

/// What a command can reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// A loopback device of its own and nothing else.
    Isolated,
    /// As [`Self::Isolated`], and the proxy listens on that loopback device.
    Proxied(LoopbackScope),
}

/// Which commands share a loopback device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoopbackScope {
    Command,
    /// All commands of a session: a server in the background answers later commands.
    Session,
}

/// Whether local (unix) sockets can be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnixSockets {
    Closed,
    /// Only sockets at these paths can be reached. Needs Landlock ABI 9; the launcher refuses to start without it.
    Paths(Vec<PathBuf>),
    All,
}

/// Whether commands may make user namespaces of their own, as browsers and container tools do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NestedNamespaces {
    Refused,
    /// Protected names are no boundary any more.
    Allowed,
}

/// What `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcView {
    /// The processes of the command.
    Own,
    /// If the machine refuses a fresh `/proc`, that of the machine.
    MachineIfRefused,
}

/// Limits of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Number of processes and threads at a time.
    pub processes: u32,
    /// Soft limit of open files. The hard limit is that of the caller.
    pub open_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { processes: 4096, open_files: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_rules_are_read_as_literals_or_globs() {
        let glob = |text: &str| PathRule::Glob(text.into());
        let literal = |text: &str| PathRule::Literal(text.into());
        let rows = [
            ("/a/b", literal("/a/b")),
            ("/a/b/**", literal("/a/b")),
            ("/a/*.pem", glob("/a/*.pem")),
            ("/a/**/key", glob("/a/**/key")),
            ("/**", glob("/**")),
        ];
        for (text, expected) in rows {
            assert_eq!(PathRule::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn policy_survives_serialization() {
        let policy = Policy::new("/work", "/scratch");
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }
}
