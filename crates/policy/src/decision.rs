//! The decision on one call, with everything needed to explain it.

use std::path::PathBuf;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode, PermissionUpdate};

use crate::call::GitProgram;
use crate::paths::ResolvedFile;
use crate::rules::rule_set::SourcedRule;
use crate::sandbox::SandboxState;
use crate::shell::UnanalyzableCause;
use crate::tool_kind::ToolKind;

/// Decision on a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Allow(Reason),
    Deny(Reason),
    /// The host or the user must be asked.
    Ask(Box<AskDetails>),
}

/// A decision and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedDecision {
    pub decision: Decision,
    pub checked: CheckedCall,
}

/// What a decision was made about. The tool must do this and nothing else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedCall {
    /// The one file that the call reads or writes; `None` for all other calls.
    pub file: Option<ResolvedFile>,
    /// How a shell command runs; `None` without a sandbox and for all other calls.
    pub sandbox: Option<SandboxState>,
}

/// Details of an ask decision: the content of the permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct AskDetails {
    pub reason: Reason,
    /// Absolute path that blocks the call.
    pub blocked_path: Option<String>,
    /// Permission updates that would allow the same call from now on.
    pub suggestions: Vec<PermissionUpdate>,
    /// The ask rule that matched, if a safety reason takes its place in `reason`.
    pub ask_rule: Option<SourcedRule>,
}

/// Reason for a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A rule matches.
    Rule(SourcedRule),
    /// A rule matches some of the values that an unknown part of the call may have.
    PossibleRule(SourcedRule),
    /// The permission mode decides.
    Mode(PermissionMode),
    /// A hook decides.
    Hook {
        /// Name of the hook.
        source: String,
        /// Text given by the hook.
        text: String,
    },
    /// The call has a safety risk.
    Safety {
        risk: SafetyRisk,
        /// True if a classifier may answer instead of the user.
        approvable: bool,
    },
    /// The call reaches outside the working directories.
    WorkingDir {
        /// The path outside.
        path: PathBuf,
    },
    /// A command with several simple commands: each of them that is not read-only, with the decision on it.
    SimpleCommands(Vec<(String, Decision)>),
    /// Only the user can answer the tool.
    Interaction,
    /// The command runs in the sandbox.
    Sandbox,
    /// The model asks to run the command outside of the sandbox.
    SandboxOverride,
    /// The call is read-only.
    ReadOnly,
    /// The tool needs no approval.
    NoApprovalNeeded,
    /// Reading the repository would run a program that it configures, and the project is not trusted.
    GitProgram(GitProgram),
    /// The command cannot be analyzed completely.
    Unanalyzable(UnanalyzableCause),
    /// Nothing allows the call.
    NeedsApproval,
    /// The input is invalid; holds the error text.
    InvalidInput(String),
    /// The tool does not exist, or a rule removes it.
    UnknownTool { removed_by: Option<SourcedRule> },
}

/// Risk that no setting can allow in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafetyRisk {
    /// Removes the root, a home directory, the working directory or the like.
    CriticalRemoval,
    /// Writes a file that determines what other programs run.
    ProtectedPath,
    /// Writes a name that file systems interpret differently.
    SuspiciousPath,
    /// Starts a background process with `&`, outside the control of the session.
    Background,
}

impl Decision {
    /// Creates an ask decision without blocked path or suggestions.
    pub fn ask(reason: Reason) -> Self {
        Self::Ask(Box::new(AskDetails {
            reason,
            blocked_path: None,
            suggestions: Vec::new(),
            ask_rule: None,
        }))
    }

    pub fn reason(&self) -> &Reason {
        match self {
            Self::Allow(reason) | Self::Deny(reason) => reason,
            Self::Ask(details) => &details.reason,
        }
    }
}

impl AskDetails {
    /// Wire name of the reason for a tool of this kind; `None` where hosts expect no name.
    pub fn reason_type(&self, kind: ToolKind) -> Option<&'static str> {
        match &self.reason {
            Reason::WorkingDir { .. } if kind == ToolKind::Shell => None,
            Reason::NeedsApproval if kind == ToolKind::Shell => Some("other"),
            Reason::Rule(_) | Reason::PossibleRule(_) => Some("rule"),
            Reason::Hook { .. } => Some("hook"),
            Reason::Mode(_) => Some("mode"),
            Reason::Safety { .. } => Some("safetyCheck"),
            Reason::WorkingDir { .. } => Some("workingDir"),
            Reason::SimpleCommands(_) => Some("subcommandResults"),
            Reason::SandboxOverride => Some("sandboxOverride"),
            Reason::GitProgram(_) | Reason::Unanalyzable(_) => Some("other"),
            Reason::Interaction
            | Reason::Sandbox
            | Reason::ReadOnly
            | Reason::NoApprovalNeeded
            | Reason::NeedsApproval
            | Reason::InvalidInput(_)
            | Reason::UnknownTool { .. } => None,
        }
    }

    /// The ask rule that matched, if any.
    pub fn matched_ask_rule(&self) -> Option<&SourcedRule> {
        match &self.reason {
            Reason::Rule(rule) | Reason::PossibleRule(rule) => {
                Some(rule).filter(|rule| rule.behavior == PermissionBehavior::Ask)
            }
            _ => self.ask_rule.as_ref(),
        }
    }

    /// Permission for a classifier to answer; `None` if the reason is not about safety.
    pub fn classifier_approvable(&self) -> Option<bool> {
        match self.reason {
            Reason::Safety { approvable, .. } => Some(approvable),
            _ => None,
        }
    }

    /// Returns true if the host should preselect "no".
    pub fn should_default_to_no(&self) -> bool {
        self.classifier_approvable() == Some(false)
    }

    /// Returns true if only the user can answer.
    pub fn requires_user_interaction(&self) -> bool {
        matches!(self.reason, Reason::Interaction)
    }
}

impl Reason {
    /// Short explanation for the user.
    pub fn text(&self) -> String {
        match self {
            Self::Rule(rule) => format!("The {rule} applies."),
            Self::PossibleRule(rule) => format!("The {rule} may apply to this call."),
            Self::Mode(mode) => format!("The permission mode is {mode}."),
            Self::Hook { source, text } if text.is_empty() => {
                format!("The hook {source} made this decision.")
            }
            Self::Hook { source, text } => format!("The hook {source} says: {text}"),
            Self::Safety { risk, .. } => risk.text().to_owned(),
            Self::WorkingDir { path } => {
                format!("{} is outside the working directories of this session.", path.display())
            }
            Self::SimpleCommands(simple_commands) => {
                let open =
                    simple_commands.iter().filter(|(_, decision)| !matches!(decision, Decision::Allow(_)));
                let open: Vec<String> = open.map(|(text, _)| format!("`{text}`")).collect();
                if open.is_empty() {
                    return "The command changes the directory in a way that needs approval.".to_owned();
                }
                format!("These parts of the command need approval: {}.", open.join(", "))
            }
            Self::Interaction => "Only the user can answer this.".to_owned(),
            Self::Sandbox => "The command runs in the sandbox.".to_owned(),
            Self::SandboxOverride => "The command would run outside of the sandbox.".to_owned(),
            Self::ReadOnly => "The call only reads.".to_owned(),
            Self::NoApprovalNeeded => "This tool needs no approval.".to_owned(),
            Self::Unanalyzable(kind) => {
                format!("The command has {}, so it cannot be fully analyzed.", kind.text())
            }
            Self::GitProgram(GitProgram { key, file }) => format!(
                "Git may run a program that this repository configures ({key} in {}), and the project is not trusted.",
                file.display()
            ),
            Self::NeedsApproval => "Nothing allows this call in advance.".to_owned(),
            Self::InvalidInput(text) => text.clone(),
            Self::UnknownTool { removed_by: None } => "This session has no such tool.".to_owned(),
            Self::UnknownTool { removed_by: Some(rule) } => format!("The {rule} removes this tool."),
        }
    }
}

impl SafetyRisk {
    /// Short explanation of the risk.
    pub fn text(self) -> &'static str {
        match self {
            Self::CriticalRemoval => "The command removes a critical directory or everything in it.",
            Self::ProtectedPath => "The call changes a file that decides what other programs run.",
            Self::SuspiciousPath => "The call writes a file name that file systems interpret differently.",
            Self::Background => {
                "The command starts a background process with `&`; use run_in_background instead."
            }
        }
    }
}
