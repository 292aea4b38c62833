//! File tools: the path that a call accesses, and the rules that cover it.

use std::path::{Component, Path, PathBuf};

use whimbrel_wire::permission::PermissionBehavior;

use crate::decision::{Reason, SafetyRisk};
use crate::decision_input::DecisionInput;
use crate::dir_walk::{LinkPolicy, match_rules_below};
use crate::fs::FsView;
use crate::paths::suspicious::is_suspicious;
use crate::paths::{PathContext, ResolvedFile, ResolvedPath, resolve, resolve_absolute};
use crate::rules::path_pattern::PathPattern;
use crate::rules::rule_set::{RuleSet, RuleSource, SourcedRule};
use crate::tool_kind::ToolKind;

/// Kind of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    /// Searches a directory.
    Search,
    Edit,
}

/// A path and the access to it.
#[derive(Debug, Clone)]
pub(crate) struct FileAccess {
    pub(crate) access: AccessKind,
    pub(crate) path: ResolvedPath,
    /// The file; `None` for a search of a directory.
    pub(crate) resolved_file: Option<ResolvedFile>,
}

impl FileAccess {
    pub(crate) fn new(written: Option<&str>, input: &DecisionInput<'_>) -> Self {
        let context = input.context.path_context();
        let access = match input.context.tool.kind {
            ToolKind::Edit => AccessKind::Edit,
            ToolKind::Search => AccessKind::Search,
            _ => AccessKind::Read,
        };
        let written = written.filter(|written| !written.is_empty()).unwrap_or(".");
        let path = match input.input_text("pattern") {
            Some(pattern) if input.call.tool == "Glob" => {
                let root = resolve(written, &context).lexical;
                resolve_absolute(&resolve_glob_root(&root, pattern), &context)
            }
            _ => resolve(written, &context),
        };
        let resolved_file = (access != AccessKind::Search).then(|| ResolvedFile::new(written, &path));
        Self { access, path, resolved_file }
    }

    pub(crate) fn is_edit(&self) -> bool {
        self.access == AccessKind::Edit
    }

    pub(crate) fn is_in_work_dirs(&self, input: &DecisionInput<'_>) -> bool {
        input.dirs.contains(&self.path)
    }

    pub(crate) fn is_edit_of(&self, plan: &Path) -> bool {
        self.is_edit() && self.path.forms().all(|path| path == plan)
    }

    /// Finds the deny or ask rule that matches some form of the path. A path that must not be read must not be
    /// edited either.
    pub(crate) fn find_restricting_rule<'a>(
        &self,
        input: &DecisionInput<'a>,
        behavior: PermissionBehavior,
    ) -> Option<&'a SourcedRule> {
        let edits = input.rules.edit_rules(behavior).filter(|_| self.is_edit());
        let (references, rules): (Vec<_>, Vec<_>) = input.rules.read_rules(behavior).chain(edits).unzip();
        // A search filters out denied files itself; files that require permission must be found before it runs.
        let below = match (self.access, behavior) {
            (AccessKind::Search, PermissionBehavior::Ask) => match_rules_below(
                &rules,
                &self.path.physical,
                LinkPolicy::Ignore,
                &input.context.path_context(),
            ),
            _ => Vec::new(),
        };
        let matches = |index: usize, rule: &PathPattern| {
            matches_any_form(rule, &self.path) || below.get(index).is_some_and(|matched| *matched)
        };
        let found = rules.iter().enumerate().position(|(index, rule)| matches(index, rule))?;
        references.get(found).copied()
    }

    /// Finds the rule that allows the access to this path.
    pub(crate) fn find_allow_rule<'a>(&self, input: &DecisionInput<'a>) -> Option<&'a SourcedRule> {
        match self.access {
            AccessKind::Edit => find_allow_rule_for_edit(input, &self.path),
            AccessKind::Search => find_allow_rule_for_read(input, &self.path),
            AccessKind::Read => find_allow_rule_for_read(input, &self.path)
                .or_else(|| find_allow_rule_for_edit(input, &self.path)),
        }
    }

    pub(crate) fn find_risky_write(&self, input: &DecisionInput<'_>) -> Option<(SafetyRisk, String)> {
        let is_plan_file = input.context.plan_file.as_deref().is_some_and(|plan| self.is_edit_of(plan));
        if !self.is_edit() || is_plan_file {
            return None;
        }
        let risk = find_write_risk(input, &self.path)?;
        Some((risk, self.path.physical.display().to_string()))
    }

    pub(crate) fn build_approval_reason(&self, input: &DecisionInput<'_>) -> (Reason, Option<String>) {
        if self.is_in_work_dirs(input) {
            return (Reason::NeedsApproval, None);
        }
        let path = self.path.physical.clone();
        let blocked = path.display().to_string();
        (Reason::WorkingDir { path }, Some(blocked))
    }
}

/// Finds the rule that allows reading a path. Each form must match an allow rule or lie in a working directory.
pub(crate) fn find_allow_rule_for_read<'a>(
    input: &DecisionInput<'a>,
    path: &ResolvedPath,
) -> Option<&'a SourcedRule> {
    let inside = |form: &Path| !path.via_proc && input.dirs.all().any(|dir| dir.contains(form));
    let mut first_rule = None;
    for form in path.forms() {
        let mut rules = input.rules.read_rules(PermissionBehavior::Allow);
        match rules.find(|(_, rule)| rule.matches(form)) {
            Some((reference, _)) => first_rule = first_rule.or(Some(reference)),
            None if inside(form) => {}
            None => return None,
        }
    }
    first_rule
}

/// Finds the Edit rule that allows every form of a path.
pub(crate) fn find_allow_rule_for_edit<'a>(
    input: &DecisionInput<'a>,
    path: &ResolvedPath,
) -> Option<&'a SourcedRule> {
    input
        .rules
        .edit_rules(PermissionBehavior::Allow)
        .find(|(_, rule)| path.forms().all(|form| rule.matches(form)))
        .map(sourced_rule)
}

/// Finds the risk because of which a write requires permission, whatever the rules are.
pub(crate) fn find_write_risk(input: &DecisionInput<'_>, path: &ResolvedPath) -> Option<SafetyRisk> {
    if path.forms().any(|path| input.is_protected(path)) && !is_allowed_by_session_rule(input, path) {
        return Some(SafetyRisk::ProtectedPath);
    }
    path.forms().any(is_suspicious).then_some(SafetyRisk::SuspiciousPath)
}

/// Returns true if a rule of this session names the protected path itself.
fn is_allowed_by_session_rule(input: &DecisionInput<'_>, path: &ResolvedPath) -> bool {
    input.rules.edit_rules(PermissionBehavior::Allow).any(|(reference, rule)| {
        reference.source == RuleSource::Session
            && rule.fixed_paths().iter().any(|known| input.is_protected(known))
            && path.forms().all(|form| rule.matches(form))
    })
}

/// Returns true if a pattern matches some form of the path.
pub(crate) fn matches_any_form(rule: &PathPattern, path: &ResolvedPath) -> bool {
    path.forms().any(|form| rule.matches(form))
}

fn sourced_rule<'a>((reference, _): (&'a SourcedRule, &'a PathPattern)) -> &'a SourcedRule {
    reference
}

/// Resolves the directory in which a Glob call starts: its root, moved by the components before the first wildcard and
/// by every `..`.
fn resolve_glob_root(root: &Path, pattern: &str) -> PathBuf {
    let has_wildcard = |part: &str| part.contains(['*', '?', '[', '{']);
    let mut directory = root.to_owned();
    let mut seen_wildcard = false;
    let components: Vec<Component<'_>> = Path::new(pattern).components().collect();
    for (index, component) in components.iter().enumerate() {
        let last = index + 1 == components.len();
        match component {
            Component::RootDir => directory = PathBuf::from("/"),
            Component::ParentDir => {
                directory.pop();
            }
            Component::Normal(name) if !seen_wildcard && !has_wildcard(&name.to_string_lossy()) && !last => {
                directory.push(name);
            }
            Component::Normal(_) => seen_wildcard = true,
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    directory
}

/// Filter for files that a search must leave out of its results.
#[derive(Debug, Clone, Copy)]
pub struct ReadFilter<'a> {
    rules: &'a RuleSet,
    fs: &'a dyn FsView,
    home: &'a Path,
}

impl<'a> ReadFilter<'a> {
    /// Creates a filter; `None` if no rule hides anything, so that the search can skip it.
    pub fn new(rules: &'a RuleSet, fs: &'a dyn FsView, home: &'a Path) -> Option<Self> {
        rules.read_rules(PermissionBehavior::Deny).next()?;
        Some(Self { rules, fs, home })
    }

    /// Returns true if the file at this absolute path must not be shown.
    pub fn hides(&self, path: &Path) -> bool {
        let context = PathContext { cwd: Path::new("/"), home: self.home, fs: self.fs };
        let path = resolve_absolute(path, &context);
        self.rules.read_rules(PermissionBehavior::Deny).any(|(_, rule)| matches_any_form(rule, &path))
    }

    /// Like `hides`, without disk access, for an absolute path without dots and links.
    pub fn hides_resolved(&self, path: &Path) -> bool {
        self.rules.read_rules(PermissionBehavior::Deny).any(|(_, rule)| rule.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn start_directory_of_a_glob() {
        let rows = [
            ("**/*.rs", "/w"),
            ("src/*.rs", "/w/src"),
            ("../outside/*", "/outside"),
            ("/etc/*", "/etc"),
            ("/etc/passwd", "/etc"),
            ("*/../../x", "/"),
            ("{a,b}/c", "/w"),
        ];
        for (pattern, expected) in rows {
            assert_eq!(resolve_glob_root(Path::new("/w"), pattern), Path::new(expected), "{pattern}");
        }
    }

    #[test]
    fn search_hides_denied_files() {
        let fixture = Fixture::new().with_rules(&[], &[], &["Read(secrets/**)", "Read(.env)"]);
        let filter = ReadFilter::new(&fixture.rules, &fixture.fs, Path::new("/fx/home")).unwrap();
        let hidden =
            ["/fx/proj/secrets/key.txt", "/fx/proj/sub/.env", "/fx/proj/link_secret", "/fx/proj/SECRETS/x"];
        for path in hidden {
            assert!(filter.hides(Path::new(path)), "{path}");
            assert_eq!(filter.hides_resolved(Path::new(path)), !path.contains("link"), "{path}");
        }
        assert!(!filter.hides(Path::new("/fx/proj/notes.txt")));
        let without_rules = Fixture::new();
        assert!(ReadFilter::new(&without_rules.rules, &without_rules.fs, Path::new("/fx/home")).is_none());
    }
}
