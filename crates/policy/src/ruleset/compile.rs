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
            None => (Matcher::Whole, unknown_tool(rule, *behavior)),
            Some(content) => specifier(rule, content, *behavior, anchors, real)?,
        };
        let parameter = rule.content.as_deref().filter(|_| !grants).and_then(ParameterRule::read);
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
        ToolKind::Edit => (Matcher::Edit(path()?), None),
        ToolKind::Search => (Matcher::Read(path()?), None),
        ToolKind::WebFetch => match (content.strip_prefix("domain:"), grants) {
            (Some(host), true) => (Matcher::Domain(DomainPattern::new(host)), None),
            (Some(host), false) => (Matcher::Domain(DomainPattern::new(host.trim())), None),
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
