//! What a call is about: a command, a file, a host, or nothing that rules look into. Each step of `decide` asks here.

use whimbrel_wire::permission::PermissionBehavior;

use crate::bash::Command;
use crate::decide::Case;
use crate::decision::{Danger, Decision, Reason};
use crate::domain::host_of;
use crate::files::FileAccess;
use crate::place::Place;
use crate::ruleset::RuleRef;
use crate::tools::ToolKind;

/// What a call is about.
#[derive(Debug)]
pub(crate) enum Subject<'a> {
    /// A shell command.
    Command(Box<Command<'a>>),
    /// A file or a directory.
    File(FileAccess),
    /// A host.
    Host(String),
    /// Nothing that rules look into.
    Plain,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let kind = case.facts.tool.kind;
        let text = kind.primary_field(case.call.tool).and_then(|field| case.text(field));
        match (kind, text) {
            (ToolKind::Shell, Some(text)) => Self::Command(Box::new(Command::new(text, case))),
            (ToolKind::Read | ToolKind::Edit | ToolKind::Search, text) => {
                Self::File(FileAccess::new(text, case))
            }
            (ToolKind::WebFetch, Some(text)) => host_of(text).map_or(Self::Plain, Self::Host),
            _ => Self::Plain,
        }
    }

    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Host(host) => Some(host),
            Self::Command(_) | Self::File(_) | Self::Plain => None,
        }
    }

    /// The one file that the call reads or changes.
    pub(crate) fn place(self) -> Option<Place> {
        match self {
            Self::File(file) => file.place,
            Self::Command(_) | Self::Host(_) | Self::Plain => None,
        }
    }

    /// What the rules about commands or files with this behavior say.
    pub(crate) fn rule_hit(&self, case: &Case<'_>, behavior: PermissionBehavior) -> Option<Decision> {
        match self {
            Self::Command(command) => command.rule_hit(case, behavior),
            Self::File(file) => {
                let reason = Reason::Rule(file.limiting_rule(case, behavior)?.clone());
                Some(match behavior {
                    PermissionBehavior::Deny => Decision::Deny(reason),
                    PermissionBehavior::Ask | PermissionBehavior::Allow => Decision::ask(reason),
                })
            }
            Self::Host(_) | Self::Plain => None,
        }
    }

    /// Whether it is clear what would be done.
    pub(crate) fn is_understood(&self) -> bool {
        match self {
            Self::Command(command) => command.script.unanalysable.is_empty() && !command.script.opaque(),
            Self::File(_) | Self::Host(_) | Self::Plain => true,
        }
    }

    pub(crate) fn critical_removal(&self, case: &Case<'_>) -> Option<String> {
        match self {
            Self::Command(command) => command.critical_removal(case),
            Self::File(_) | Self::Host(_) | Self::Plain => None,
        }
    }

    pub(crate) fn dangerous_write(&self, case: &Case<'_>) -> Option<(Danger, String)> {
        match self {
            Self::Command(command) => command.dangerous_write(case),
            Self::File(file) => file.dangerous_write(case),
            Self::Host(_) | Self::Plain => None,
        }
    }

    /// Whether more comes of a command than was followed.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self, Self::Command(command) if command.script.cut_short)
    }

    pub(crate) fn runs_in_background(&self) -> bool {
        matches!(self, Self::Command(command) if command.script.background)
    }

    pub(crate) fn is_plan_file(&self, case: &Case<'_>) -> bool {
        match (self, &case.facts.plan_file) {
            (Self::File(file), Some(plan)) => file.is_edit_of(plan),
            _ => false,
        }
    }

    /// Whether a command is read-only without the help of any rule about commands.
    pub(crate) fn only_reads(&self, case: &Case<'_>) -> bool {
        matches!(self, Self::Command(command) if command.only_reads(case))
    }

    /// Whether a grant of the whole tool says too little, because limits could be evaded by what cannot be seen.
    pub(crate) fn hides_what_it_runs(&self, case: &Case<'_>) -> bool {
        matches!(self, Self::Command(command) if command.script.opaque() && case.rules.has_scoped_limits())
    }

    /// The rule about commands or files that allows the call.
    pub(crate) fn granting_rule(&self, case: &Case<'_>) -> Option<RuleRef> {
        match self {
            Self::Command(command) => command.granting_rule(case),
            Self::File(file) => file.granting_rule(case).cloned(),
            Self::Host(_) | Self::Plain => None,
        }
    }

    pub(crate) fn is_accepted_edit(&self, case: &Case<'_>) -> bool {
        match self {
            Self::Command(command) => command.is_covered(case),
            Self::File(file) => file.is_edit() && file.is_inside(case),
            Self::Host(_) | Self::Plain => false,
        }
    }

    /// Whether everything in the call is read-only or allowed part by part.
    pub(crate) fn is_covered(&self, case: &Case<'_>) -> bool {
        match self {
            Self::Command(command) => command.is_covered(case),
            Self::File(file) => !file.is_edit() && file.is_inside(case),
            Self::Host(_) | Self::Plain => false,
        }
    }

    /// Why nothing allows the call, and the path that stands in the way.
    pub(crate) fn what_stands_in_the_way(&self, case: &Case<'_>) -> (Reason, Option<String>) {
        match self {
            Self::Command(command) => command.what_stands_in_the_way(case),
            Self::File(file) => file.what_stands_in_the_way(case),
            Self::Host(_) | Self::Plain => (Reason::NeedsApproval, None),
        }
    }
}
