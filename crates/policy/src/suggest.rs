//! Suggested permission updates ("always allow"): they allow the same call and little else.

mod command;

use std::path::Path;

use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};

use crate::call::CallContext;
use crate::decision::{AskDetails, Decision, Reason, SafetyRisk};
use crate::decision_input::DecisionInput;
use crate::decision_order::run_steps;
use crate::file_access::{AccessKind, FileAccess};
use crate::paths;
use crate::target::CallTarget;
use crate::tool_kind::ToolKind;
use crate::update::{PermissionSet, UpdateContext, apply_update};

/// Builds the suggested updates; empty if none would allow the call.
pub(crate) fn build_suggestions(
    details: &AskDetails,
    input: &DecisionInput<'_>,
    target: &CallTarget<'_>,
) -> Vec<PermissionUpdate> {
    if input.rules.is_managed_only() || !can_suggest(&details.reason) {
        return Vec::new();
    }
    let updates = match target {
        CallTarget::Command(command) => command::build_suggestions(command, input),
        CallTarget::File(file) => suggest_for_file(file, &details.reason, input),
        CallTarget::Host(host) => vec![build_local_rule_update("WebFetch", Some(format!("domain:{host}")))],
        CallTarget::Other => suggest_for_other(input),
    };
    if updates.is_empty() || !is_sufficient(&updates, input, target) { Vec::new() } else { updates }
}

/// Returns true if a permission update can allow a call with this reason.
fn can_suggest(reason: &Reason) -> bool {
    match reason {
        Reason::WorkingDir { .. } | Reason::SimpleCommands(_) | Reason::NeedsApproval => true,
        Reason::Safety { risk, .. } => *risk == SafetyRisk::ProtectedPath,
        Reason::Rule(_)
        | Reason::PossibleRule(_)
        | Reason::Mode(_)
        | Reason::Hook { .. }
        | Reason::Interaction
        | Reason::Sandbox
        | Reason::SandboxOverride
        | Reason::ReadOnly
        | Reason::NoApprovalNeeded
        | Reason::GitProgram(_)
        | Reason::Unanalyzable(_)
        | Reason::InvalidInput(_)
        | Reason::UnknownTool { .. } => false,
    }
}

/// Returns true if the same call is allowed after these updates.
fn is_sufficient(updates: &[PermissionUpdate], input: &DecisionInput<'_>, target: &CallTarget<'_>) -> bool {
    let mut permissions =
        PermissionSet { rules: input.rules.clone(), mode: input.mode, dirs: input.dirs.clone() };
    let context = UpdateContext { bypass_available: false, fs: input.context.fs };
    for update in updates {
        apply_update(&mut permissions, update, &context);
    }
    let PermissionSet { rules, mode, dirs } = &permissions;
    let updated = DecisionInput { rules, mode: *mode, dirs, ..*input };
    matches!(run_steps(&updated, target), Decision::Allow(_))
}

fn suggest_for_file(file: &FileAccess, reason: &Reason, input: &DecisionInput<'_>) -> Vec<PermissionUpdate> {
    if matches!(reason, Reason::Safety { .. }) {
        return suggest_skill_directory(file, input).into_iter().collect();
    }
    match file.access {
        AccessKind::Read | AccessKind::Search => suggest_reads(file, input),
        AccessKind::Edit => {
            let mut updates = vec![build_accept_edits_update()];
            if !file.is_in_work_dirs(input) {
                let Some(parent) =
                    file.path.physical.parent().filter(|parent| can_open_directory(parent, input))
                else {
                    return Vec::new();
                };
                updates.push(build_add_directory_update(parent));
            }
            updates
        }
    }
}

/// Suggests a Read rule for each form of the path outside the working directories.
fn suggest_reads(file: &FileAccess, input: &DecisionInput<'_>) -> Vec<PermissionUpdate> {
    let outside = file.path.forms().filter(|path| !input.dirs.all().any(|dir| dir.contains(path)));
    let patterns = outside.map(|path| match (file.access, path.parent()) {
        // A rule for a directory applies to everything below it.
        _ if !can_open_directory(path, input) => None,
        (AccessKind::Search, _) => Some(build_contents_pattern(path)),
        (_, Some(parent)) if can_open_directory(parent, input) => Some(build_contents_pattern(parent)),
        _ => Some(build_exact_pattern(path)),
    });
    let mut updates: Vec<PermissionUpdate> = Vec::new();
    for content in patterns.flatten() {
        let update = build_session_rule_update("Read", content);
        if !updates.contains(&update) {
            updates.push(update);
        }
    }
    updates
}

/// Suggests an Edit rule for one skill directory. Agents write skills often enough for that.
fn suggest_skill_directory(file: &FileAccess, input: &DecisionInput<'_>) -> Option<PermissionUpdate> {
    let below = file.path.physical.strip_prefix(&input.dirs.primary.physical).ok()?;
    let mut parts = below.strip_prefix(".claude/skills").ok()?.components();
    let name = parts.next()?.as_os_str().to_str()?;
    parts.next()?;
    Some(build_session_rule_update("Edit", format!("/.claude/skills/{}/**", escape_path(name))))
}

fn suggest_for_other(input: &DecisionInput<'_>) -> Vec<PermissionUpdate> {
    match input.context.tool.kind {
        ToolKind::WebSearch | ToolKind::Mcp => vec![build_local_rule_update(input.call.tool, None)],
        ToolKind::Skill => {
            let names = input.skill_name().map(|name| [name.to_owned(), format!("{name}:*")]);
            names.into_iter().flatten().map(|name| build_local_rule_update("Skill", Some(name))).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if a whole directory may be opened: not one that contains the home directory or configuration of the
/// session.
fn can_open_directory(directory: &Path, input: &DecisionInput<'_>) -> bool {
    let CallContext { home, fs, protected_paths: protected, .. } = input.context;
    let physical = paths::resolve_physical_path(directory, *fs);
    let contains = |path: &Path| path.starts_with(directory) || path.starts_with(&physical);
    !contains(home)
        && !contains(&paths::resolve_physical_path(home, *fs))
        && !protected.iter().any(|path| contains(path))
}

fn build_accept_edits_update() -> PermissionUpdate {
    PermissionUpdate::SetMode { mode: PermissionMode::AcceptEdits, destination: Destination::Session }
}

fn build_add_directory_update(directory: &Path) -> PermissionUpdate {
    PermissionUpdate::AddDirectories {
        directories: vec![directory.display().to_string()],
        destination: Destination::Session,
    }
}

fn build_add_rules_update(rules: Vec<RuleValue>, destination: Destination) -> PermissionUpdate {
    PermissionUpdate::AddRules { rules, behavior: PermissionBehavior::Allow, destination }
}

fn build_local_rule_update(tool: &str, content: Option<String>) -> PermissionUpdate {
    let value = RuleValue { tool_name: tool.to_owned(), rule_content: content };
    build_add_rules_update(vec![value], Destination::LocalSettings)
}

fn build_session_rule_update(tool: &str, content: String) -> PermissionUpdate {
    let value = RuleValue { tool_name: tool.to_owned(), rule_content: Some(content) };
    build_add_rules_update(vec![value], Destination::Session)
}

/// Builds the path pattern for everything below a directory.
fn build_contents_pattern(directory: &Path) -> String {
    format!("{}/**", build_exact_pattern(directory).trim_end_matches('/'))
}

/// Builds the path pattern for exactly this path.
fn build_exact_pattern(path: &Path) -> String {
    format!("/{}", escape_path(&path.display().to_string()))
}

/// Escapes a path so that a pattern matches it literally.
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
