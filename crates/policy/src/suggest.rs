//! What a host may offer as "always allow": changes of rules after which the same call is allowed, and little else.

mod command;

use std::path::Path;

use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};

use crate::call::Facts;
use crate::decide::{Case, walk};
use crate::decision::{Danger, Decision, Question, Reason};
use crate::files::{Access, FileAccess};
use crate::paths;
use crate::subject::Subject;
use crate::tools::ToolKind;
use crate::update::{Bounds, Standing, apply};

/// The changes to offer; empty if there is none that helps.
pub(crate) fn suggestions(
    question: &Question,
    case: &Case<'_>,
    subject: &Subject<'_>,
) -> Vec<PermissionUpdate> {
    if case.rules.is_managed_only() || !may_suggest(&question.reason) {
        return Vec::new();
    }
    let offered = match subject {
        Subject::Command(command) => command::suggestions(command, case),
        Subject::File(file) => of_file(file, &question.reason, case),
        Subject::Host(host) => vec![local("WebFetch", Some(format!("domain:{host}")))],
        Subject::Plain => of_plain(case),
    };
    if offered.is_empty() || !suffices(&offered, case, subject) { Vec::new() } else { offered }
}

/// Whether a change of rules can answer a question with this reason.
fn may_suggest(reason: &Reason) -> bool {
    match reason {
        Reason::WorkingDir { .. } | Reason::Subcommands(_) | Reason::NeedsApproval => true,
        Reason::Safety { danger, .. } => *danger == Danger::ProtectedPath,
        Reason::Rule(_)
        | Reason::PossibleRule(_)
        | Reason::Mode(_)
        | Reason::Hook { .. }
        | Reason::Interaction
        | Reason::Sandbox
        | Reason::ReadOnly
        | Reason::NoApprovalNeeded
        | Reason::GitProgram(_)
        | Reason::Unanalysable(_)
        | Reason::InvalidInput(_)
        | Reason::UnknownTool { .. } => false,
    }
}

/// Whether the same call is allowed once the changes are made.
fn suffices(offered: &[PermissionUpdate], case: &Case<'_>, subject: &Subject<'_>) -> bool {
    let mut standing = Standing { rules: case.rules.clone(), mode: case.mode, dirs: case.dirs.clone() };
    let bounds = Bounds { bypass_available: false, fs: case.facts.fs };
    for update in offered {
        apply(&mut standing, update, &bounds);
    }
    let Standing { rules, mode, dirs } = &standing;
    let tried = Case { rules, mode: *mode, dirs, ..*case };
    matches!(walk(&tried, subject), Decision::Allow(_))
}

fn of_file(file: &FileAccess, reason: &Reason, case: &Case<'_>) -> Vec<PermissionUpdate> {
    if matches!(reason, Reason::Safety { .. }) {
        return skill_directory(file, case).into_iter().collect();
    }
    match file.access {
        Access::Read | Access::Search => readable(file, case),
        Access::Edit => {
            let mut updates = vec![accept_edits()];
            if !file.is_inside(case) {
                let Some(parent) = file.path.physical.parent().filter(|parent| may_be_opened(parent, case))
                else {
                    return Vec::new();
                };
                updates.push(open_directory(parent));
            }
            updates
        }
    }
}

/// A rule for each spelling of what is to be read that lies outside.
fn readable(file: &FileAccess, case: &Case<'_>) -> Vec<PermissionUpdate> {
    let outside = file.path.all().filter(|path| !case.dirs.all().any(|dir| dir.holds(path)));
    let contents = outside.map(|path| match (file.access, path.parent()) {
        // A rule for a directory counts for whatever is below it.
        _ if !may_be_opened(path, case) => None,
        (Access::Search, _) => Some(below(path)),
        (_, Some(parent)) if may_be_opened(parent, case) => Some(below(parent)),
        _ => Some(exactly(path)),
    });
    let mut updates: Vec<PermissionUpdate> = Vec::new();
    for content in contents.flatten() {
        let update = session("Read", content);
        if !updates.contains(&update) {
            updates.push(update);
        }
    }
    updates
}

/// Skills are written by agents often enough to be granted one by one.
fn skill_directory(file: &FileAccess, case: &Case<'_>) -> Option<PermissionUpdate> {
    let below = file.path.physical.strip_prefix(&case.dirs.primary.physical).ok()?;
    let mut parts = below.strip_prefix(".claude/skills").ok()?.components();
    let name = parts.next()?.as_os_str().to_str()?;
    parts.next()?;
    Some(session("Edit", format!("/.claude/skills/{}/**", escape_path(name))))
}

fn of_plain(case: &Case<'_>) -> Vec<PermissionUpdate> {
    match case.facts.tool.kind {
        ToolKind::WebSearch | ToolKind::Mcp => vec![local(case.call.tool, None)],
        ToolKind::Skill => {
            let names = case.skill().map(|name| [name.to_owned(), format!("{name}:*")]);
            names.into_iter().flatten().map(|name| local("Skill", Some(name))).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a directory may be opened as a whole: never one that holds the home, or what the session is configured by.
fn may_be_opened(directory: &Path, case: &Case<'_>) -> bool {
    let Facts { home, fs, protected, .. } = case.facts;
    let physical = paths::physical(directory, *fs);
    let holds = |place: &Path| place.starts_with(directory) || place.starts_with(&physical);
    !holds(home) && !holds(&paths::physical(home, *fs)) && !protected.iter().any(|place| holds(place))
}

fn accept_edits() -> PermissionUpdate {
    PermissionUpdate::SetMode { mode: PermissionMode::AcceptEdits, destination: Destination::Session }
}

fn open_directory(directory: &Path) -> PermissionUpdate {
    PermissionUpdate::AddDirectories {
        directories: vec![directory.display().to_string()],
        destination: Destination::Session,
    }
}

fn rules(rules: Vec<RuleValue>, destination: Destination) -> PermissionUpdate {
    PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, destination }
}

fn local(tool: &str, content: Option<String>) -> PermissionUpdate {
    let value = RuleValue { tool_name: tool.to_owned(), rule_content: content };
    rules(vec![value], Destination::LocalSettings)
}

fn session(tool: &str, content: String) -> PermissionUpdate {
    let value = RuleValue { tool_name: tool.to_owned(), rule_content: Some(content) };
    rules(vec![value], Destination::Session)
}

/// The content of a path rule about everything below a directory.
fn below(directory: &Path) -> String {
    format!("{}/**", exactly(directory).trim_end_matches('/'))
}

/// The content of a path rule about this path.
fn exactly(path: &Path) -> String {
    format!("/{}", escape_path(&path.display().to_string()))
}

/// The path as it must stand in a rule to mean itself.
fn escape_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '!') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests;
