//! The answer to one call, with everything that is needed to explain it.

use std::path::PathBuf;

use whimbrel_wire::permission::{PermissionBehavior, PermissionMode, PermissionUpdate};

use crate::call::GitProgram;
use crate::ruleset::SourcedRule;
use crate::shell::UnanalyzableCause;
use crate::tool_kind::ToolKind;

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It may.
    Allow(Reason),
    /// It may not.
    Deny(Reason),
    /// Somebody must be asked.
    Ask(Box<PermissionQuestion>),
}

/// What is to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionQuestion {
    /// Why.
    pub reason: Reason,
    /// The path that stands in the way, absolute.
    pub blocked_path: Option<String>,
    /// Changes of rules that would allow the same call from now on.
    pub suggestions: Vec<PermissionUpdate>,
    /// The rule that asks, where there is a graver reason to ask besides.
    pub ask_rule: Option<SourcedRule>,
}

/// Why it was decided so.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A rule says so.
    Rule(SourcedRule),
    /// A rule would say so for some of the names that the call may turn out to mean.
    PossibleRule(SourcedRule),
    /// The mode says so.
    Mode(PermissionMode),
    /// A hook says so.
    Hook {
        /// Which hook.
        source: String,
        /// Its words.
        text: String,
    },
    /// It could do lasting harm.
    Safety {
        /// Which harm.
        danger: Danger,
        /// Whether a classifier may answer in a person's place.
        approvable: bool,
    },
    /// It leaves the working directories.
    WorkingDir {
        /// Where to.
        path: PathBuf,
    },
    /// A command of several parts: each part that is not read-only by itself, and what was decided on it.
    Subcommands(Vec<(String, Decision)>),
    /// The tool is answered by a person.
    Interaction,
    /// It runs in the sandbox.
    Sandbox,
    /// It only reads.
    ReadOnly,
    /// The tool needs no approval.
    NoApprovalNeeded,
    /// Reading the repository would run a program that the repository names, and nobody vouches for it.
    GitProgram(GitProgram),
    /// The command is not understood completely.
    Unanalyzable(UnanalyzableCause),
    /// Nothing allows it.
    NeedsApproval,
    /// The input is wrong, and how.
    InvalidInput(String),
    /// There is no such tool, or a rule has taken it away.
    UnknownTool {
        /// The rule.
        removed_by: Option<SourcedRule>,
    },
}

/// A harm that no setting allows beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Danger {
    /// Removes the root, a home, the working directory or the like.
    CriticalRemoval,
    /// Writes a file that decides what other programs run.
    ProtectedPath,
    /// Writes a name that systems read differently.
    SuspiciousPath,
    /// Starts something with `&` that nobody watches.
    Background,
}

impl Decision {
    /// A plain question.
    pub fn ask(reason: Reason) -> Self {
        Self::Ask(Box::new(PermissionQuestion { reason, blocked_path: None, suggestions: Vec::new(), ask_rule: None }))
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        match self {
            Self::Allow(reason) | Self::Deny(reason) => reason,
            Self::Ask(question) => &question.reason,
        }
    }

    /// What follows in this mode: where nobody is ever asked, a question is a no.
    #[must_use]
    pub fn in_mode(self, mode: PermissionMode) -> Self {
        match self {
            Self::Ask(_) if mode == PermissionMode::DontAsk => Self::Deny(Reason::Mode(mode)),
            other => other,
        }
    }
}

impl PermissionQuestion {
    /// The name of the reason on the wire, for a tool of this sort; none where hosts expect none.
    pub fn reason_type(&self, kind: ToolKind) -> Option<&'static str> {
        match &self.reason {
            Reason::WorkingDir { .. } if kind == ToolKind::Shell => None,
            Reason::NeedsApproval if kind == ToolKind::Shell => Some("other"),
            Reason::Rule(_) | Reason::PossibleRule(_) => Some("rule"),
            Reason::Hook { .. } => Some("hook"),
            Reason::Mode(_) => Some("mode"),
            Reason::Safety { .. } => Some("safetyCheck"),
            Reason::WorkingDir { .. } => Some("workingDir"),
            Reason::Subcommands(_) => Some("subcommandResults"),
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

    /// The rule that asks, if one does.
    pub fn matched_ask_rule(&self) -> Option<&SourcedRule> {
        match &self.reason {
            Reason::Rule(rule) | Reason::PossibleRule(rule) => {
                Some(rule).filter(|rule| rule.behavior == PermissionBehavior::Ask)
            }
            _ => self.ask_rule.as_ref(),
        }
    }

    /// Whether a classifier may answer; none if the question is not about safety.
    pub fn classifier_approvable(&self) -> Option<bool> {
        match self.reason {
            Reason::Safety { approvable, .. } => Some(approvable),
            _ => None,
        }
    }

    /// Whether "no" should be the answer that is offered first.
    pub fn should_default_to_no(&self) -> bool {
        self.classifier_approvable() == Some(false)
    }

    /// Whether only a person can answer.
    pub fn requires_user_interaction(&self) -> bool {
        matches!(self.reason, Reason::Interaction)
    }
}

impl Reason {
    /// The reason in a few words, for a person.
    pub fn text(&self) -> String {
        match self {
            Self::Rule(rule) => format!("The {rule} says so."),
            Self::PossibleRule(rule) => format!("The {rule} may be about what this call turns out to mean."),
            Self::Mode(mode) => format!("The mode {mode} says so."),
            Self::Hook { source, text } if text.is_empty() => format!("The hook {source} says so."),
            Self::Hook { source, text } => format!("The hook {source} says: {text}"),
            Self::Safety { danger, .. } => danger.text().to_owned(),
            Self::WorkingDir { path } => {
                format!("{} lies outside the directories of this session.", path.display())
            }
            Self::Subcommands(parts) => {
                let open = parts.iter().filter(|(_, decision)| !matches!(decision, Decision::Allow(_)));
                let open: Vec<String> = open.map(|(text, _)| format!("`{text}`")).collect();
                if open.is_empty() {
                    return "The command changes the directory in a way that needs approval.".to_owned();
                }
                format!("These parts of the command need approval: {}.", open.join(", "))
            }
            Self::Interaction => "This is answered by a person.".to_owned(),
            Self::Sandbox => "The command runs in the sandbox.".to_owned(),
            Self::ReadOnly => "The call only reads.".to_owned(),
            Self::NoApprovalNeeded => "This tool needs no approval.".to_owned(),
            Self::Unanalyzable(kind) => {
                format!("The command has {} and cannot be judged in advance.", kind.text())
            }
            Self::GitProgram(GitProgram { key, file }) => format!(
                "Git may run a program that this repository names ({key} in {}), and the project is not trusted.",
                file.display()
            ),
            Self::NeedsApproval => "Nothing allows this call in advance.".to_owned(),
            Self::InvalidInput(text) => text.clone(),
            Self::UnknownTool { removed_by: None } => "There is no such tool in this session.".to_owned(),
            Self::UnknownTool { removed_by: Some(rule) } => format!("The {rule} takes this tool away."),
        }
    }
}

impl Danger {
    /// The harm in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::CriticalRemoval => {
                "The command removes a directory that cannot be given up, or everything in it."
            }
            Self::ProtectedPath => "The call changes a file that decides what other programs run.",
            Self::SuspiciousPath => "The call writes a name that systems read differently.",
            Self::Background => {
                "The command leaves something in the background with `&`; use run_in_background instead."
            }
        }
    }
}
