//! Compiles a rule into its matcher: the meaning of specifiers for each tool.

use std::path::{Path, PathBuf};

use whimbrel_wire::permission::PermissionBehavior;

use super::{CompiledRule, RuleMatcher, RuleWarning, SourcedRule};
use crate::rules::broad_allow_rule::reject_broad_allow_rule;
use crate::rules::command_pattern::CommandPattern;
use crate::rules::domain::DomainPattern;
use crate::rules::parameter_rule::ParameterRule;
use crate::rules::path_pattern::{Anchors, PathPattern};
use crate::rules::rule::{Rule, RuleError};
use crate::rules::tool_name::is_official_tool;
use crate::tool_kind::ToolKind;

impl CompiledRule {
    /// Compiles a rule. Also returns a warning if the rule does not do what it seems to.
    pub(super) fn new(
        reference: SourcedRule,
        anchors: &Anchors,
        real: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<(Self, Option<RuleWarning>), RuleError> {
        let SourcedRule { rule, behavior, .. } = &reference;
        let is_allow = *behavior == PermissionBehavior::Allow;
        if is_allow {
            reject_broad_allow_rule(rule)?;
        }
        let (matcher, warning) = match rule.content.as_deref() {
            None => (RuleMatcher::AllCalls, None),
            Some(content) => compile_specifier(rule, content, *behavior, anchors, real)?,
        };
        let parameter = rule.content.as_deref().filter(|_| !is_allow).and_then(ParameterRule::parse);
        let warning = warning
            .or_else(|| warn_about_primary_field(rule, parameter.as_ref()))
            .or_else(|| warn_about_unknown_tool(rule, *behavior));
        Ok((Self { sourced: reference, matcher, parameter }, warning))
    }
}

fn compile_specifier(
    rule: &Rule,
    content: &str,
    behavior: PermissionBehavior,
    anchors: &Anchors,
    real: &dyn Fn(&Path) -> PathBuf,
) -> Result<(RuleMatcher, Option<RuleWarning>), RuleError> {
    let path = || PathPattern::new(content, behavior, anchors, real);
    let is_allow = behavior == PermissionBehavior::Allow;
    let all_calls =
        || (RuleMatcher::AllCalls, Some(RuleWarning::AppliesToAllCalls { rule: rule.clone(), behavior }));
    let no_effect =
        |remedy: String| (RuleMatcher::Never, Some(RuleWarning::NoEffect { rule: rule.clone(), remedy }));
    let applies_as = |tool: &str| {
        let instead = Rule { tool: tool.to_owned(), content: rule.content.clone() };
        Some(RuleWarning::AppliesAs { rule: rule.clone(), behavior, instead })
    };
    if !is_allow && (content.trim().is_empty() || rule.tool.contains('*')) {
        return Ok(all_calls());
    }
    Ok(match ToolKind::from_name(&rule.tool) {
        ToolKind::Shell => (RuleMatcher::Command(CommandPattern::new(content)), None),
        ToolKind::Read => (RuleMatcher::Read(path()?), None),
        ToolKind::Edit if rule.tool == "Edit" => (RuleMatcher::Edit(path()?), None),
        ToolKind::Edit if is_allow => {
            no_effect(format!("write `Edit({content})`, which covers {}", rule.tool))
        }
        ToolKind::Search if is_allow => {
            no_effect(format!("write `Read({content})`, which covers {}", rule.tool))
        }
        ToolKind::Edit => (RuleMatcher::Edit(path()?), applies_as("Edit")),
        ToolKind::Search => (RuleMatcher::Read(path()?), applies_as("Read")),
        ToolKind::WebFetch => match (content.strip_prefix("domain:"), is_allow) {
            (Some(host), true) => (RuleMatcher::Domain(DomainPattern::new(host)), None),
            (Some(host), false) if strip_to_host(host).is_empty() => all_calls(),
            (Some(host), false) => (RuleMatcher::Domain(DomainPattern::new(strip_to_host(host))), None),
            (None, true) => no_effect("write `WebFetch(domain:HOST)`".to_owned()),
            (None, false) => match_all_unless_field(content, all_calls),
        },
        ToolKind::Agent => (RuleMatcher::Agent(content.to_owned()), None),
        ToolKind::Skill => (RuleMatcher::Skill(parse_skill_name(content).to_owned()), None),
        ToolKind::WebSearch
        | ToolKind::Interaction
        | ToolKind::NoApproval
        | ToolKind::Mcp
        | ToolKind::Other => {
            if is_allow {
                no_effect(format!("write `{}` alone", rule.tool))
            } else {
                match_all_unless_field(content, all_calls)
            }
        }
    })
}

/// A rule about a field does not apply to every call; whether the tool has the field is known only when a call is
/// decided.
fn match_all_unless_field(
    content: &str,
    all_calls: impl Fn() -> (RuleMatcher, Option<RuleWarning>),
) -> (RuleMatcher, Option<RuleWarning>) {
    match ParameterRule::parse(content) {
        Some(_) => (RuleMatcher::AllCalls, None),
        None => all_calls(),
    }
}

/// Extracts the host from a text that may be a URL. Deny and ask rules accept both.
fn strip_to_host(text: &str) -> &str {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let host = text.get(..end).unwrap_or(text);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Warns about a rule for the tool's primary field, which never matches because the specifier itself is about that
/// field.
fn warn_about_primary_field(rule: &Rule, parameter: Option<&ParameterRule>) -> Option<RuleWarning> {
    let field = ToolKind::from_name(&rule.tool).primary_field(&rule.tool)?;
    let is_primary = parameter.is_some_and(|parameter| parameter.field == field);
    let remedy = format!("the specifier already matches `{field}`, so remove `{field}:` from it");
    is_primary.then(|| RuleWarning::NoEffect { rule: rule.clone(), remedy })
}

/// Parses the skill name of a specifier; a trailing ` *` or `:*` is ignored.
fn parse_skill_name(content: &str) -> &str {
    let content = content.trim().trim_start_matches('/');
    content.strip_suffix(" *").or_else(|| content.strip_suffix(":*")).unwrap_or(content).trim()
}

fn warn_about_unknown_tool(rule: &Rule, behavior: PermissionBehavior) -> Option<RuleWarning> {
    let unknown = behavior != PermissionBehavior::Allow
        && ToolKind::from_name(&rule.tool) == ToolKind::Other
        && !rule.tool.contains(['_', '*'])
        && !is_official_tool(&rule.tool);
    unknown.then(|| RuleWarning::UnknownTool { rule: rule.clone(), behavior })
}
