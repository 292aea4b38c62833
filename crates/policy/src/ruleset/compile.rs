//! From a rule to what it is compared with: the table of specifiers by tool.

use std::path::{Path, PathBuf};

use whimbrel_wire::permission::PermissionBehavior;

use super::{Compiled, Matcher, RuleRef, Warning};
use crate::command_pattern::CommandPattern;
use crate::domain::DomainPattern;
use crate::params::ParameterRule;
use crate::path_pattern::{Anchors, PathPattern};
use crate::rule::{Rule, RuleError};
use crate::tools::ToolKind;

impl Compiled {
    /// Compiles a rule, and says what should be told about it.
    pub(super) fn new(
        reference: RuleRef,
        anchors: &Anchors,
        real: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<(Self, Option<Warning>), RuleError> {
        let RuleRef { rule, behavior, .. } = &reference;
        let grants = *behavior == PermissionBehavior::Allow;
        if grants {
            check_grant(rule)?;
        }
        let (matcher, warning) = match rule.content.as_deref() {
            None => (Matcher::Whole, None),
            Some(content) => specifier(rule, content, *behavior, anchors, real)?,
        };
        let parameter = rule.content.as_deref().filter(|_| !grants).and_then(ParameterRule::read);
        let warning = warning
            .or_else(|| about_primary_field(rule, parameter.as_ref()))
            .or_else(|| unknown_tool(rule, *behavior));
        Ok((Self { reference, matcher, parameter }, warning))
    }
}

/// A grant must say what it is about.
fn check_grant(rule: &Rule) -> Result<(), RuleError> {
    let text = || rule.to_string();
    if rule.content.as_deref().is_some_and(|content| matches!(content.trim(), "" | ":*")) {
        return Err(RuleError::EmptySpecifier(text()));
    }
    if !rule.tool.contains('*') {
        return Ok(());
    }
    let named_server = rule.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match named_server {
        Some((server, _)) if !server.is_empty() && !server.contains('*') => Ok(()),
        _ => Err(RuleError::WideAllow(text())),
    }
}

fn specifier(
    rule: &Rule,
    content: &str,
    behavior: PermissionBehavior,
    anchors: &Anchors,
    real: &dyn Fn(&Path) -> PathBuf,
) -> Result<(Matcher, Option<Warning>), RuleError> {
    let path = || PathPattern::new(content, behavior, anchors, real);
    let grants = behavior == PermissionBehavior::Allow;
    let for_all = || (Matcher::Whole, Some(Warning::CountsForAll { rule: rule.clone(), behavior }));
    let no_effect =
        |remedy: String| (Matcher::Nothing, Some(Warning::NoEffect { rule: rule.clone(), remedy }));
    let counts_as = |tool: &str| {
        let instead = Rule { tool: tool.to_owned(), content: rule.content.clone() };
        Some(Warning::CountsAs { rule: rule.clone(), behavior, instead })
    };
    if !grants && (content.trim().is_empty() || rule.tool.contains('*')) {
        return Ok(for_all());
    }
    Ok(match ToolKind::of(&rule.tool) {
        ToolKind::Shell => (Matcher::Command(CommandPattern::new(content)), None),
        ToolKind::Read => (Matcher::Read(path()?), None),
        ToolKind::Edit if rule.tool == "Edit" => (Matcher::Edit(path()?), None),
        ToolKind::Edit if grants => no_effect(format!("write `Edit({content})`, which covers {}", rule.tool)),
        ToolKind::Search if grants => {
            no_effect(format!("write `Read({content})`, which covers {}", rule.tool))
        }
        ToolKind::Edit => (Matcher::Edit(path()?), counts_as("Edit")),
        ToolKind::Search => (Matcher::Read(path()?), counts_as("Read")),
        ToolKind::WebFetch => match (content.strip_prefix("domain:"), grants) {
            (Some(host), true) => (Matcher::Domain(DomainPattern::new(host)), None),
            (Some(host), false) if bare_host(host).is_empty() => for_all(),
            (Some(host), false) => (Matcher::Domain(DomainPattern::new(bare_host(host))), None),
            (None, true) => no_effect("write `WebFetch(domain:HOST)`".to_owned()),
            (None, false) => for_all_but_fields(content, for_all),
        },
        ToolKind::Agent => (Matcher::Agent(content.to_owned()), None),
        ToolKind::Skill => (Matcher::Skill(skill_name(content).to_owned()), None),
        ToolKind::WebSearch | ToolKind::Interaction | ToolKind::Free | ToolKind::Mcp | ToolKind::Other => {
            if grants {
                no_effect(format!("write `{}` alone", rule.tool))
            } else {
                for_all_but_fields(content, for_all)
            }
        }
    })
}

/// A rule about a field is not about every call; whether the tool has the field is known only when a call is judged.
fn for_all_but_fields(
    content: &str,
    for_all: impl Fn() -> (Matcher, Option<Warning>),
) -> (Matcher, Option<Warning>) {
    match ParameterRule::read(content) {
        Some(_) => (Matcher::Whole, None),
        None => for_all(),
    }
}

/// The host in what may be written as an address: a limit means the host all the same.
fn bare_host(text: &str) -> &str {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let host = text.get(..end).unwrap_or(text);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// A rule about the field that the tool's own specifier is for never matches.
fn about_primary_field(rule: &Rule, parameter: Option<&ParameterRule>) -> Option<Warning> {
    let field = ToolKind::of(&rule.tool).primary_field(&rule.tool)?;
    let is_meant = parameter.is_some_and(|parameter| parameter.field == field);
    let remedy = format!("`{field}` is what the specifier is about by itself: leave `{field}:` out");
    is_meant.then(|| Warning::NoEffect { rule: rule.clone(), remedy })
}

/// The skill that a specifier names; what follows it is not looked at.
fn skill_name(content: &str) -> &str {
    let content = content.trim().trim_start_matches('/');
    content.strip_suffix(" *").or_else(|| content.strip_suffix(":*")).unwrap_or(content).trim()
}

fn unknown_tool(rule: &Rule, behavior: PermissionBehavior) -> Option<Warning> {
    let unknown = behavior != PermissionBehavior::Allow
        && ToolKind::of(&rule.tool) == ToolKind::Other
        && !rule.tool.contains(['_', '*']);
    unknown.then(|| Warning::UnknownTool { rule: rule.clone(), behavior })
}
