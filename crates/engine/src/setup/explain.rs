//! Explains why a call would be allowed, asked about or denied: the decision of a session, as text and JSON.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value, json};
use whimbrel_policy::{Decision, Reason, SourcedRule, ToolKind, ToolProperties};
use whimbrel_tools::permission::PermissionState;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode, PermissionUpdate};

use crate::engine::Engine;
use crate::setup::{SessionRequest, Setup, SetupError};

/// Explanation of a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub tool: String,
    /// Input that was decided on.
    pub input: Value,
    pub mode: PermissionMode,
    #[serde(flatten)]
    pub decision: ExplainedDecision,
    /// Decision if the project were trusted, where it differs: allow rules of an untrusted project do not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_trusted: Option<ExplainedDecision>,
    /// Updates that would allow the call, if it is asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<PermissionUpdate>,
    /// Warnings about the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Decision on a call or on a part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedDecision {
    #[serde(rename = "decision")]
    pub behavior: PermissionBehavior,
    pub reason: String,
    /// Rule that decides, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<DecidingRule>,
    /// Parts of a compound command with their own decisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ExplainedCommand>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedCommand {
    pub text: String,
    #[serde(flatten)]
    pub decision: ExplainedDecision,
}

/// Rule that decides, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidingRule {
    /// Rule text as written.
    pub text: String,
    pub behavior: PermissionBehavior,
    /// Setting source of the rule.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Explains what a session with these options would decide on a call, written like a rule: `Bash(git push)`,
/// `Read(/etc/hosts)`, `WebFetch(https://example.com)`, or a bare tool name.
pub fn explain(engine: &Engine, request: SessionRequest, call: &str) -> Result<Explanation, SetupError> {
    let setup = Setup::resolve(engine, request)?;
    let permissions = &setup.permissions.state;
    let (name, detail) = parse_call(call)?;
    let entry = setup.tools.tool_set.find(name);
    let properties = match &entry {
        Some(entry) => entry.properties().clone(),
        None if name.starts_with("mcp__") => ToolProperties::for_tool(name, &[]),
        None => ToolProperties { known: false, ..ToolProperties::for_tool(name, &[]) },
    };
    let input = build_input(name, properties.kind, detail)?;
    let decision = permissions.decide(name, &properties, &input, None).decision;
    let suggestions = match &decision {
        Decision::Ask(question) => question.suggestions.clone(),
        Decision::Allow(_) | Decision::Deny(_) => Vec::new(),
    };
    let explained = explain_decision(permissions, &decision);
    let (if_trusted, trust_warning) = match permissions.if_trusted() {
        Ok(trusted) => {
            let explained_trusted =
                explain_decision(&trusted, &trusted.decide(name, &properties, &input, None).decision);
            (Some(explained_trusted).filter(|explained_trusted| *explained_trusted != explained), None)
        }
        Err(reason) => {
            (None, Some(format!("The decision for a trusted project cannot be determined. {reason}")))
        }
    };
    let hooks = setup
        .hooks
        .set
        .has_hooks(HookEvent::PreToolUse)
        .then(|| "There are PreToolUse hooks, which may decide differently.".to_owned());
    Ok(Explanation {
        tool: name.to_owned(),
        input,
        mode: permissions.mode(),
        decision: explained,
        if_trusted,
        suggestions,
        warnings: setup.host.warning.into_iter().chain(hooks).chain(trust_warning).collect(),
    })
}

/// Splits `Tool(detail)`.
fn parse_call(call: &str) -> Result<(&str, Option<&str>), SetupError> {
    let call = call.trim();
    let parts = match call.split_once('(') {
        None => Some((call, None)),
        Some((name, rest)) => rest.strip_suffix(')').map(|detail| (name, Some(detail))),
    };
    parts.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        SetupError::Invalid(format!("{call:?} is not a tool call. Write it like a rule: 'Bash(git push)'."))
    })
}

fn build_input(name: &str, kind: ToolKind, detail: Option<&str>) -> Result<Value, SetupError> {
    let Some(detail) = detail else {
        return match kind.primary_field(name) {
            Some(field) => Err(SetupError::Invalid(format!(
                "Add the {field} of the {name} call: '{name}(...)', as in 'Bash(git push)'."
            ))),
            None => Ok(Value::Object(Map::new())),
        };
    };
    let field = match kind {
        ToolKind::Agent => Some("subagent_type"),
        ToolKind::Skill => Some("skill"),
        ToolKind::WebSearch => Some("query"),
        other => other.primary_field(name),
    };
    match field {
        Some(field) => Ok(json!({ field: detail })),
        None if detail.starts_with('{') => serde_json::from_str(detail)
            .map_err(|error| SetupError::Invalid(format!("The input of {name} is not valid JSON: {error}."))),
        None => Err(SetupError::Invalid(format!(
            "{name} has no main field. Write its whole input as JSON: '{name}({{\"field\": \"value\"}})'."
        ))),
    }
}

fn explain_decision(permissions: &PermissionState, decision: &Decision) -> ExplainedDecision {
    let behavior = match decision {
        Decision::Allow(_) => PermissionBehavior::Allow,
        Decision::Ask(_) => PermissionBehavior::Ask,
        Decision::Deny(_) => PermissionBehavior::Deny,
    };
    let (rule, parts) = match decision.reason() {
        Reason::Rule(rule) | Reason::PossibleRule(rule) | Reason::UnknownTool { removed_by: Some(rule) } => {
            (Some(rule), Vec::new())
        }
        Reason::SimpleCommands(parts) => {
            let part = |(text, decision): &(String, Decision)| ExplainedCommand {
                text: text.clone(),
                decision: explain_decision(permissions, decision),
            };
            (None, parts.iter().map(part).collect())
        }
        _ => (None, Vec::new()),
    };
    ExplainedDecision {
        behavior,
        reason: decision.reason().text(),
        rule: rule.map(|rule| locate_rule(permissions, rule)),
        parts,
    }
}

fn locate_rule(permissions: &PermissionState, rule: &SourcedRule) -> DecidingRule {
    let text = rule.rule.to_string();
    let settings = permissions.settings();
    let is_same = |other: &&whimbrel_config::settings::RuleSetting| {
        other.behavior == rule.behavior
            && other.file == rule.file
            && (other.text == text
                || whimbrel_policy::Rule::parse(&other.text).is_ok_and(|other| other == rule.rule))
    };
    let line = settings.effective().rules.iter().find(is_same).and_then(|rule| rule.line);
    DecidingRule {
        text,
        behavior: rule.behavior,
        source: rule.source.to_string(),
        file: rule.file.clone(),
        line,
    }
}
