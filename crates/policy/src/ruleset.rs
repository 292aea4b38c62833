//! All rules that are in force: where each comes from and what it is compared with.
//!
//! A [`RuleSet`] is built once from [`Layer`]s, patterns compiled, and then only asked. Rules of all sources count
//! together; which behavior wins is the business of `decide`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::permission::{Destination, PermissionBehavior};

use crate::command_pattern::CommandPattern;
use crate::domain::DomainPattern;
use crate::parameter_rule::ParameterRule;
use crate::path_pattern::PathPattern;
use crate::rule::{Rule, name_matches};

mod compile;
mod layer;

pub use layer::{RuleLayer, LoadReport, RuleWarning};

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleSource {
    /// Settings that the administrator of the machine or the host has fixed.
    Managed,
    /// Options of the host or the command line.
    CliArg,
    /// A settings file named on the command line.
    FlagSettings,
    /// The project's settings on this machine.
    LocalSettings,
    /// The project's shared settings.
    ProjectSettings,
    /// The person's own settings.
    UserSettings,
    /// Answers given in this session.
    Session,
    /// A skill that is in use.
    Skill,
}

impl RuleSource {
    /// The source that a change with this destination belongs to.
    pub fn from_destination(destination: Destination) -> Self {
        match destination {
            Destination::UserSettings => Self::UserSettings,
            Destination::ProjectSettings => Self::ProjectSettings,
            Destination::LocalSettings => Self::LocalSettings,
            Destination::Session => Self::Session,
            Destination::CliArg => Self::CliArg,
        }
    }

    /// The name that it has on the wire.
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

/// A rule with its origin: what an explanation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    /// The rule.
    pub rule: Rule,
    /// What it says.
    pub behavior: PermissionBehavior,
    /// Where it comes from.
    pub source: RuleSource,
    /// The file that it stands in, if it stands in one.
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

/// What a rule is compared with.
#[derive(Debug, Clone)]
pub enum RuleMatcher {
    /// Every call of the tool.
    AllCalls,
    /// Nothing: the rule is kept and shown, but has no effect.
    Never,
    /// Simple commands.
    Command(CommandPattern),
    /// Files that are read.
    Read(PathPattern),
    /// Files that are changed.
    Edit(PathPattern),
    /// Hosts.
    Domain(DomainPattern),
    /// The type of a subagent.
    Agent(String),
    /// The name of a skill.
    Skill(String),
}

/// A rule, compiled.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    /// The rule and its origin.
    pub sourced: SourcedRule,
    /// What it is compared with.
    pub matcher: RuleMatcher,
    /// What it is compared with if the tool has a field of that name.
    pub parameter: Option<ParameterRule>,
}

/// A tool, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct ToolName<'a> {
    /// The current name.
    pub name: &'a str,
    /// The MCP server that it belongs to.
    pub server: Option<&'a str>,
}

/// All rules in force.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Shared, so that a set can be copied to try a change out.
    rules: Vec<Arc<CompiledRule>>,
    managed_only: bool,
    layers: Vec<layer::LayerOrigin>,
    home: PathBuf,
    original_cwd: PathBuf,
}

impl RuleSet {
    /// Without any rule yet.
    pub fn new(home: &Path, original_cwd: &Path) -> Self {
        Self { home: home.to_owned(), original_cwd: original_cwd.to_owned(), ..Self::default() }
    }

    /// From now on only managed rules count, and what the host forbids; nothing is suggested, and no update can loosen
    /// anything.
    pub fn limit_to_managed(&mut self) {
        self.managed_only = true;
    }

    /// Whether only managed rules count.
    pub fn is_managed_only(&self) -> bool {
        self.managed_only
    }

    /// The rules that say this, of all sources that count.
    pub fn with_behavior(&self, behavior: PermissionBehavior) -> impl Iterator<Item = &CompiledRule> {
        self.rules.iter().map(Arc::as_ref).filter(move |rule| {
            rule.sourced.behavior == behavior
                && (!self.managed_only || applies_when_managed_only(&rule.sourced))
        })
    }

    /// All rules, in the order in which they came.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter().map(|rule| &rule.sourced)
    }

    /// The rule that takes a tool away altogether, if there is one.
    pub fn rule_removing_tool(&self, tool: ToolName<'_>) -> Option<&SourcedRule> {
        if tool.name == "EndConversation" {
            return None;
        }
        self.bare_rule(PermissionBehavior::Deny, tool)
    }

    /// The first rule that says this about every call of the tool.
    pub fn bare_rule(&self, behavior: PermissionBehavior, tool: ToolName<'_>) -> Option<&SourcedRule> {
        self.with_behavior(behavior)
            .find(|rule| rule.sourced.rule.is_bare() && names_tool(&rule.sourced.rule.tool, behavior, tool))
            .map(|rule| &rule.sourced)
    }

    /// The rules that say this about some calls of the tool or all of them.
    pub fn rules_for_tool<'a>(
        &'a self,
        behavior: PermissionBehavior,
        tool: ToolName<'a>,
    ) -> impl Iterator<Item = &'a CompiledRule> {
        self.with_behavior(behavior).filter(move |rule| names_tool(&rule.sourced.rule.tool, behavior, tool))
    }

    /// The patterns of simple commands with this behavior. Monitor has Bash's rules besides its own.
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

    /// The patterns of files with this behavior: those about reading.
    pub fn read_rules(&self, behavior: PermissionBehavior) -> impl Iterator<Item = (&SourcedRule, &PathPattern)> {
        self.with_behavior(behavior).filter_map(|rule| match &rule.matcher {
            RuleMatcher::Read(pattern) => Some((&rule.sourced, pattern)),
            _ => None,
        })
    }

    /// The patterns of files with this behavior: those about changing.
    pub fn edit_rules(&self, behavior: PermissionBehavior) -> impl Iterator<Item = (&SourcedRule, &PathPattern)> {
        self.with_behavior(behavior).filter_map(|rule| match &rule.matcher {
            RuleMatcher::Edit(pattern) => Some((&rule.sourced, pattern)),
            _ => None,
        })
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// These rules, and others beside them.
    #[must_use]
    pub fn merged_with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.rules.extend(others.rules.iter().cloned());
        all
    }

    /// Those of the rules that say this.
    #[must_use]
    pub fn filtered_by(&self, behavior: PermissionBehavior) -> Self {
        let mut some = self.clone();
        some.rules.retain(|rule| rule.sourced.behavior == behavior);
        some
    }

    /// Whether some rule refuses or asks about some commands or files, not whole tools.
    pub fn has_scoped_restrictions(&self) -> bool {
        let limits = [PermissionBehavior::Deny, PermissionBehavior::Ask];
        limits.into_iter().any(|behavior| {
            self.with_behavior(behavior)
                .any(|rule| matches!(rule.matcher, RuleMatcher::Command(_) | RuleMatcher::Read(_) | RuleMatcher::Edit(_)))
        })
    }
}

/// Whether a rule counts where only managed ones do: an administrator's, and what the host says to forbid more.
fn applies_when_managed_only(rule: &SourcedRule) -> bool {
    match rule.source {
        RuleSource::Managed => true,
        RuleSource::CliArg | RuleSource::FlagSettings | RuleSource::Session => rule.behavior != PermissionBehavior::Allow,
        RuleSource::LocalSettings | RuleSource::ProjectSettings | RuleSource::UserSettings | RuleSource::Skill => false,
    }
}

/// Whether the name in a rule means this tool. A server is told by what is recorded for the tool: a name alone does not
/// say where the server's part of it ends. A name that can be read in two ways grants the lesser and limits both.
fn names_tool(pattern: &str, behavior: PermissionBehavior, tool: ToolName<'_>) -> bool {
    if pattern == tool.name {
        return true;
    }
    let grants = behavior == PermissionBehavior::Allow;
    let (Some(server), Some(named)) = (tool.server, pattern.strip_prefix("mcp__")) else {
        return pattern.contains('*') && name_matches(pattern, tool.name);
    };
    if !named.contains('*') {
        // `mcp__a__b` is a tool of `a` before it is a server.
        return server == named && !(grants && named.contains("__"));
    }
    match named.strip_suffix("__*") {
        Some(whole) if !whole.contains('*') => server == whole,
        _ if grants => {
            named.split_once("__").is_some_and(|(first, _)| first == server)
                && name_matches(pattern, tool.name)
        }
        _ => name_matches(pattern, tool.name),
    }
}

#[cfg(test)]
mod tests;
