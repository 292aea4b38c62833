//! Builds permission requests to the host.

use serde_json::Value;
use whimbrel_policy::{AskDetails, ToolKind, ToolProperties};
use whimbrel_wire::control::{CanUseTool, MatchedAskRule};
use whimbrel_wire::invisible::is_invisible;

/// Maximum length of a description.
const MAX_DESCRIPTION_CHARS: usize = 500;

/// Builds the permission request of a call.
///
/// `display_path` shortens a path for display.
pub fn build_request(
    (tool, properties): (&str, &ToolProperties),
    id: &str,
    input: &Value,
    details: &AskDetails,
    display_path: impl Fn(&str) -> String,
) -> CanUseTool {
    let needs_user = properties.requires_interaction || details.requires_user_interaction();
    let reason_type = details.reason_type(properties.kind);
    CanUseTool {
        tool_name: tool.to_owned(),
        input: input.as_object().cloned().unwrap_or_default(),
        tool_use_id: id.to_owned(),
        permission_suggestions: (!needs_user).then(|| details.suggestions.clone()),
        blocked_path: details.blocked_path.clone(),
        decision_reason: reason_type.map(|_| strip_invisible(&details.reason.text())),
        decision_reason_type: reason_type.map(Into::into),
        classifier_approvable: details.classifier_approvable(),
        suppress_always_allow_rule: (needs_user || details.suggestions.is_empty()).then_some(true),
        default_to_no: details.should_default_to_no().then_some(true),
        matched_ask_rule: details.matched_ask_rule().map(|rule| {
            let value = rule.rule.to_value();
            MatchedAskRule {
                source: rule.source.to_string(),
                tool_name: value.tool_name,
                rule_content: value.rule_content,
            }
        }),
        display_name: Some(tool.to_owned()),
        description: description(tool, properties.kind, input, display_path),
        requires_user_interaction: needs_user.then_some(true),
        ..CanUseTool::default()
    }
}

/// Description of the call, from its input.
fn description(
    tool: &str,
    kind: ToolKind,
    input: &Value,
    display_path: impl Fn(&str) -> String,
) -> Option<String> {
    let field = match kind {
        ToolKind::Shell => "description",
        ToolKind::WebSearch => "query",
        other => other.primary_field(tool)?,
    };
    let text = input.get(field)?.as_str()?;
    let description = match kind {
        ToolKind::Read | ToolKind::Edit => display_path(text),
        _ => text.to_owned(),
    };
    Some(strip_invisible(&description)).filter(|text| !text.is_empty())
}

/// Removes control and invisible characters, which could spoof the display, and truncates.
fn strip_invisible(text: &str) -> String {
    let is_hidden = |c: &char| c.is_control() && *c != '\n' || is_invisible(*c);
    text.chars().filter(|c| !is_hidden(c)).take(MAX_DESCRIPTION_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn descriptions_are_taken_from_the_input() {
        let rows = [
            (
                "Bash",
                json!({"command": "ls", "description": "List\u{1b}[31m fi\u{ad}les\u{202e}\u{e0041}"}),
                Some("List[31m files"),
            ),
            ("Bash", json!({"command": "ls"}), None),
            ("Write", json!({"file_path": "/a/b/c\u{202e}.txt"}), Some("<b/c.txt>")),
            ("WebFetch", json!({"url": "https://example.com/"}), Some("https://example.com/")),
            ("Agent", json!({"prompt": "x"}), None),
        ];
        for (tool, input, expected) in rows {
            let display_path = |path: &str| format!("<{}>", path.trim_start_matches("/a/"));
            assert_eq!(
                description(tool, ToolKind::from_name(tool), &input, display_path).as_deref(),
                expected,
                "{tool}"
            );
        }
    }
}
