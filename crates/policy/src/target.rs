//! The target of a call: a command, a file, a host, or nothing that rules inspect. The steps of `decide` query it.

use whimbrel_wire::permission::PermissionBehavior;

use crate::command::ShellCommand;
use crate::decision::{Decision, Reason, SafetyRisk};
use crate::decision_input::DecisionInput;
use crate::file_access::FileAccess;
use crate::paths::ResolvedFile;
use crate::rules::domain::parse_host;
use crate::rules::rule_set::SourcedRule;
use crate::tool_kind::ToolKind;

/// Target of a call.
#[derive(Debug)]
pub(crate) enum CallTarget<'a> {
    Command(Box<ShellCommand<'a>>),
    File(FileAccess),
    Host(String),
    /// Nothing that rules inspect.
    Other,
}

impl<'a> CallTarget<'a> {
    pub(crate) fn for_call(input: &DecisionInput<'a>) -> Self {
        let kind = input.context.tool.kind;
        let text = kind.primary_field(input.call.tool).and_then(|field| input.input_text(field));
        match (kind, text) {
            (ToolKind::Shell, Some(text)) => Self::Command(Box::new(ShellCommand::new(text, input))),
            (ToolKind::Read | ToolKind::Edit | ToolKind::Search, text) => {
                Self::File(FileAccess::new(text, input))
            }
            (ToolKind::WebFetch, Some(text)) => parse_host(text).map_or(Self::Other, Self::Host),
            _ => Self::Other,
        }
    }

    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Host(host) => Some(host),
            Self::Command(_) | Self::File(_) | Self::Other => None,
        }
    }

    /// The one file that the call reads or writes.
    pub(crate) fn into_resolved_file(self) -> Option<ResolvedFile> {
        match self {
            Self::File(file) => file.resolved_file,
            Self::Command(_) | Self::Host(_) | Self::Other => None,
        }
    }

    /// Applies the command and file rules with this behavior.
    pub(crate) fn decide_by_rules(
        &self,
        input: &DecisionInput<'_>,
        behavior: PermissionBehavior,
    ) -> Option<Decision> {
        match self {
            Self::Command(command) => command.decide_by_rules(input, behavior),
            Self::File(file) => {
                let reason = Reason::Rule(file.find_restricting_rule(input, behavior)?.clone());
                Some(match behavior {
                    PermissionBehavior::Deny => Decision::Deny(reason),
                    PermissionBehavior::Ask | PermissionBehavior::Allow => Decision::ask(reason),
                })
            }
            Self::Host(_) | Self::Other => None,
        }
    }

    /// Returns true if the analysis shows everything that the call would do.
    pub(crate) fn is_fully_analyzed(&self) -> bool {
        match self {
            Self::Command(command) => {
                command.analysis.unanalyzable.is_empty() && !command.analysis.is_opaque()
            }
            Self::File(_) | Self::Host(_) | Self::Other => true,
        }
    }

    pub(crate) fn find_critical_removal(&self, input: &DecisionInput<'_>) -> Option<String> {
        match self {
            Self::Command(command) => command.find_critical_removal(input),
            Self::File(_) | Self::Host(_) | Self::Other => None,
        }
    }

    pub(crate) fn find_risky_write(&self, input: &DecisionInput<'_>) -> Option<(SafetyRisk, String)> {
        match self {
            Self::Command(command) => command.find_risky_write(input),
            Self::File(file) => file.find_risky_write(input),
            Self::Host(_) | Self::Other => None,
        }
    }

    /// Returns true if a limit cut the analysis of a command short.
    pub(crate) fn is_truncated(&self) -> bool {
        matches!(self, Self::Command(command) if command.analysis.truncated)
    }

    pub(crate) fn runs_in_background(&self) -> bool {
        matches!(self, Self::Command(command) if command.analysis.background)
    }

    pub(crate) fn edits_plan_file(&self, input: &DecisionInput<'_>) -> bool {
        match (self, &input.context.plan_file) {
            (Self::File(file), Some(plan)) => file.is_edit_of(plan),
            _ => false,
        }
    }

    /// Returns true if a command is read-only without help from a command rule.
    pub(crate) fn is_read_only(&self, input: &DecisionInput<'_>) -> bool {
        matches!(self, Self::Command(command) if command.is_read_only(input))
    }

    /// Returns true if an allow rule for the whole tool is not enough, because unknown commands could evade a
    /// restricting rule.
    pub(crate) fn may_evade_restrictions(&self, input: &DecisionInput<'_>) -> bool {
        matches!(self, Self::Command(command) if command.analysis.is_opaque() && input.rules.has_scoped_restrictions())
    }

    /// Finds the command or file rule that allows the call.
    pub(crate) fn find_allow_rule(&self, input: &DecisionInput<'_>) -> Option<SourcedRule> {
        match self {
            Self::Command(command) => command.find_allow_rule(input),
            Self::File(file) => file.find_allow_rule(input).cloned(),
            Self::Host(_) | Self::Other => None,
        }
    }

    pub(crate) fn is_accepted_edit(&self, input: &DecisionInput<'_>) -> bool {
        match self {
            Self::Command(command) => command.is_covered(input),
            Self::File(file) => file.is_edit() && file.is_in_work_dirs(input),
            Self::Host(_) | Self::Other => false,
        }
    }

    /// Returns true if everything in the call is read-only or allowed on its own.
    pub(crate) fn is_covered(&self, input: &DecisionInput<'_>) -> bool {
        match self {
            Self::Command(command) => command.is_covered(input),
            Self::File(file) => !file.is_edit() && file.is_in_work_dirs(input),
            Self::Host(_) | Self::Other => false,
        }
    }

    /// Builds the reason why the call needs approval, and the path that blocks it.
    pub(crate) fn build_approval_reason(&self, input: &DecisionInput<'_>) -> (Reason, Option<String>) {
        match self {
            Self::Command(command) => command.build_approval_reason(input),
            Self::File(file) => file.build_approval_reason(input),
            Self::Host(_) | Self::Other => (Reason::NeedsApproval, None),
        }
    }
}
