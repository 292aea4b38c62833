//! All rules in force: the source of each and its compiled matcher.
//!
//! A [`RuleSet`] is built once from [`RuleLayer`]s and then only queried. Rules of all sources apply together;
//! `decide` defines which behavior wins.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::permission::{Destination, PermissionBehavior};

use crate::rules::command_pattern::CommandPattern;
use crate::rules::domain::DomainPattern;
use crate::rules::parameter_rule::ParameterRule;
use crate::rules::path_pattern::PathPattern;
use crate::rules::rule::Rule;
use crate::rules::tool_name::{ToolName, names_tool};

mod compile;
mod layer;

pub use layer::{LoadReport, RuleLayer, RuleWarning};

/// Source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleSource {
    /// Settings fixed by the administrator of the machine or by the host.
    Managed,
    /// Options of the host or the command line.
    CliArg,
    /// A settings file named on the command line.
    FlagSettings,
    /// The project's settings on this machine.
    LocalSettings,
    /// The project's shared settings.
    ProjectSettings,
    /// The user's own settings.
    UserSettings,
    /// Permission updates of this session.
    Session,
    /// A skill in use.
    Skill,
}

impl RuleSource {
    /// The rule source that a permission update with this destination changes.
    pub fn from_destination(destination: Destination) -> Self {
        match destination {
            Destination::UserSettings => Self::UserSettings,
            Destination::ProjectSettings => Self::ProjectSettings,
            Destination::LocalSettings => Self::LocalSettings,
            Destination::Session => Self::Session,
            Destination::CliArg => Self::CliArg,
        }
    }

    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "policySettings",
            Self::CliArg => "cliArg",
            Self::FlagSettings => "flagSettings",
            Self::LocalSettings => "localSettings",
            Self::ProjectSettings => "projectSettings",
            Self::UserSettings => "userSettings",
            Self::Session => "session",
            Self::Skill => "command",
        }
    }
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule with its behavior and source, as needed for explanations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    pub rule: Rule,
    pub behavior: PermissionBehavior,
    pub source: RuleSource,
    /// The settings file that contains the rule, if any.
    pub file: Option<PathBuf>,
}

impl fmt::Display for SourcedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rule `{}` of {}", self.behavior, self.rule, self.source)?;
        match &self.file {
            Some(file) => write!(f, " ({})", file.display()),
            None => Ok(()),
        }
    }
}

/// Target that a compiled rule is matched against.
#[derive(Debug, Clone)]
pub enum RuleMatcher {
    /// Every call of the tool.
    AllCalls,
    /// Nothing: the rule is listed but has no effect.
    Never,
    /// Simple shell commands.
    Command(CommandPattern),
    /// Files to read.
    Read(PathPattern),
    /// Files to edit.
    Edit(PathPattern),
    /// Hosts.
    Domain(DomainPattern),
    /// Agent type of a subagent.
    Agent(String),
    /// Name of a skill.
    Skill(String),
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    pub sourced: SourcedRule,
    pub matcher: RuleMatcher,
    /// Matcher that takes precedence if the tool has an input field of this name.
    pub parameter: Option<ParameterRule>,
}

/// All rules in force.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Shared, so that cloning a set to try an update is cheap.
    rules: Vec<Arc<CompiledRule>>,
    managed_only: bool,
    layers: Vec<layer::RuleOrigin>,
    home: PathBuf,
    original_cwd: PathBuf,
}

impl RuleSet {
    /// Creates an empty set.
    pub fn new(home: &Path, original_cwd: &Path) -> Self {
        Self { home: home.to_owned(), original_cwd: original_cwd.to_owned(), ..Self::default() }
    }

    /// Returns the rules of some sources.
    pub(crate) fn only_from(&self, keep: impl Fn(RuleSource) -> bool) -> Self {
        let mut set = self.clone();
        set.rules.retain(|rule| keep(rule.sourced.source));
        set
    }

    /// Restricts the set to managed rules and to deny and ask rules of the host. Nothing is suggested from then on,
    /// and no update can allow more.
    pub fn limit_to_managed(&mut self) {
        self.managed_only = true;
    }

    /// Returns true if only managed rules apply.
    pub fn is_managed_only(&self) -> bool {
        self.managed_only
    }

    /// Rules in force with this behavior.
    pub fn with_behavior(&self, behavior: PermissionBehavior) -> impl Iterator<Item = &CompiledRule> {
        self.rules.iter().map(Arc::as_ref).filter(move |rule| {
            rule.sourced.behavior == behavior
                && (!self.managed_only || applies_when_managed_only(&rule.sourced))
        })
    }

    /// All rules, in insertion order.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter().map(|rule| &rule.sourced)
    }

    /// Finds the bare deny rule that removes a tool.
    pub fn find_rule_removing_tool(&self, tool: ToolName<'_>) -> Option<&SourcedRule> {
        if tool.name == "EndConversation" {
            return None;
        }
        self.find_bare_rule(PermissionBehavior::Deny, tool)
    }

    /// Finds the first rule with this behavior that applies to every call of the tool.
    pub fn find_bare_rule(&self, behavior: PermissionBehavior, tool: ToolName<'_>) -> Option<&SourcedRule> {
        self.with_behavior(behavior)
            .find(|rule| rule.sourced.rule.is_bare() && names_tool(&rule.sourced.rule.tool, behavior, tool))
            .map(|rule| &rule.sourced)
    }

    /// Rules with this behavior that apply to some or all calls of the tool.
    pub fn rules_for_tool<'a>(
        &'a self,
        behavior: PermissionBehavior,
        tool: ToolName<'a>,
    ) -> impl Iterator<Item = &'a CompiledRule> {
        self.with_behavior(behavior).filter(move |rule| names_tool(&rule.sourced.rule.tool, behavior, tool))
    }

    /// Command patterns with this behavior. Rules for Bash apply to Monitor as well.
    pub fn command_rules<'a>(
        &'a self,
        behavior: PermissionBehavior,
        tool: &'a str,
    ) -> impl Iterator<Item = (&'a SourcedRule, &'a CommandPattern)> {
        self.with_behavior(behavior).filter_map(move |rule| match &rule.matcher {
            RuleMatcher::Command(pattern)
                if rule.sourced.rule.tool == "Bash" || rule.sourced.rule.tool == tool =>
            {
                Some((&rule.sourced, pattern))
            }
            _ => None,
        })
    }

    /// Patterns of Read rules with this behavior.
    pub fn read_rules(
        &self,
        behavior: PermissionBehavior,
    ) -> impl Iterator<Item = (&SourcedRule, &PathPattern)> {
        self.with_behavior(behavior).filter_map(|rule| match &rule.matcher {
            RuleMatcher::Read(pattern) => Some((&rule.sourced, pattern)),
            _ => None,
        })
    }

    /// Patterns of Edit rules with this behavior.
    pub fn edit_rules(
        &self,
        behavior: PermissionBehavior,
    ) -> impl Iterator<Item = (&SourcedRule, &PathPattern)> {
        self.with_behavior(behavior).filter_map(|rule| match &rule.matcher {
            RuleMatcher::Edit(pattern) => Some((&rule.sourced, pattern)),
            _ => None,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn merged_with(&self, others: &Self) -> Self {
        let mut merged = self.clone();
        merged.rules.extend(others.rules.iter().cloned());
        merged
    }

    /// Returns only the rules with this behavior.
    #[must_use]
    pub fn filtered_by(&self, behavior: PermissionBehavior) -> Self {
        let mut filtered = self.clone();
        filtered.rules.retain(|rule| rule.sourced.behavior == behavior);
        filtered
    }

    /// Returns true if a deny or ask rule applies to certain commands or files rather than to a whole tool.
    pub fn has_scoped_restrictions(&self) -> bool {
        let behaviors = [PermissionBehavior::Deny, PermissionBehavior::Ask];
        behaviors.into_iter().any(|behavior| {
            self.with_behavior(behavior).any(|rule| {
                matches!(rule.matcher, RuleMatcher::Command(_) | RuleMatcher::Read(_) | RuleMatcher::Edit(_))
            })
        })
    }
}

/// Returns true if a rule applies in a managed-only set: managed rules, and deny and ask rules of the host.
fn applies_when_managed_only(rule: &SourcedRule) -> bool {
    match rule.source {
        RuleSource::Managed => true,
        RuleSource::CliArg | RuleSource::FlagSettings | RuleSource::Session => {
            rule.behavior != PermissionBehavior::Allow
        }
        RuleSource::LocalSettings
        | RuleSource::ProjectSettings
        | RuleSource::UserSettings
        | RuleSource::Skill => false,
    }
}

#[cfg(test)]
mod tests;
