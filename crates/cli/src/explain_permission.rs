//! `whimbrel permissions explain`: why a call would be allowed, asked about or denied.

use std::io::{self, Write};

use whimbrel_engine::setup::explain::{DecidingRule, ExplainedDecision, Explanation, explain};
use whimbrel_engine::{Engine, SessionRequest};
use whimbrel_models::providers::Providers;
use whimbrel_wire::permission::PermissionUpdate;

/// Prints the explanation of a call as text or as JSON. The error is a text for stderr.
pub(crate) fn run(request: SessionRequest, call: &str, as_json: bool) -> Result<(), String> {
    let engine = Engine::new(Providers::offline());
    let explanation = explain(&engine, request, call).map_err(|error| error.to_string())?;
    let text = match as_json {
        true => serde_json::to_string_pretty(&explanation).map_err(|error| error.to_string())? + "\n",
        false => render_page(&explanation),
    };
    io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}

/// Renders the explanation as text.
fn render_page(explanation: &Explanation) -> String {
    let Explanation { decision, mode, if_trusted, suggestions, warnings, .. } = explanation;
    let mut page = format!("{} in the mode {mode}\n", decision.behavior);
    render_decision(decision, 1, &mut page);
    if let Some(then) = if_trusted {
        page += &format!("  If the directory were trusted: {}\n", then.behavior);
        render_decision(then, 2, &mut page);
    }
    if !suggestions.is_empty() {
        page += "  To decide this permanently:\n";
        for suggestion in suggestions {
            page += &format!("    {}\n", describe_update(suggestion));
        }
    }
    for warning in warnings.iter().flat_map(|warning| warning.lines()) {
        page += &format!("  Note: {warning}\n");
    }
    page
}

fn render_decision(decision: &ExplainedDecision, depth: usize, page: &mut String) {
    let indent = "  ".repeat(depth);
    match &decision.rule {
        Some(rule) => *page += &format!("{indent}{}\n", describe_rule(rule)),
        None => *page += &format!("{indent}{}\n", decision.reason),
    }
    for part in &decision.parts {
        *page += &format!("{indent}{}: {}\n", part.decision.behavior, part.text);
        render_decision(&part.decision, depth + 1, page);
    }
}

fn describe_rule(rule: &DecidingRule) -> String {
    let location = match (&rule.file, rule.line) {
        (Some(file), Some(line)) => format!("{}, line {line}", file.display()),
        (Some(file), None) => file.display().to_string(),
        (None, _) => rule.source.clone(),
    };
    format!("The {} rule {} decides ({location}).", rule.behavior, rule.text)
}

fn describe_update(update: &PermissionUpdate) -> String {
    let destination = update.destination();
    match update {
        PermissionUpdate::AddRules { rules, behavior, .. }
        | PermissionUpdate::ReplaceRules { rules, behavior, .. }
        | PermissionUpdate::RemoveRules { rules, behavior, .. } => {
            let rules: Vec<String> = rules
                .iter()
                .map(|rule| match &rule.rule_content {
                    Some(content) => format!("{}({content})", rule.tool_name),
                    None => rule.tool_name.clone(),
                })
                .collect();
            format!("{behavior} {} ({destination})", rules.join(", "))
        }
        PermissionUpdate::SetMode { mode, .. } => format!("the mode {mode} ({destination})"),
        PermissionUpdate::AddDirectories { directories, .. }
        | PermissionUpdate::RemoveDirectories { directories, .. } => {
            format!("working directory {} ({destination})", directories.join(", "))
        }
    }
}
