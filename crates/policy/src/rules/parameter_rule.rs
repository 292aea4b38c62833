//! Rules about one field of a tool's input: `Tool(field:value)`, for deny and ask rules only.

use serde_json::Value;

use crate::rules::tool_name::name_matches;

/// Fields that have a rule syntax of their own.
const PRIMARY_FIELDS: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterRule {
    pub field: String,
    value: String,
}

impl ParameterRule {
    /// Parses the specifier of a rule as `field:value`. Whether the tool has the field is known only when a call is
    /// decided.
    pub fn parse(content: &str) -> Option<Self> {
        let (field, value) = content.split_once(':')?;
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let field = field.trim();
        (!field.is_empty() && field.chars().all(named))
            .then(|| Self { field: field.to_owned(), value: value.trim().to_owned() })
    }

    /// Returns true if the field has a rule syntax of its own, so that this rule is ignored.
    pub fn is_for_primary_field(&self) -> bool {
        PRIMARY_FIELDS.contains(&self.field.as_str())
    }

    /// Returns true if the input has a matching scalar in this field.
    pub fn matches(&self, input: &Value) -> bool {
        match input.get(&self.field) {
            None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => false,
            Some(Value::String(text)) => name_matches(&self.value, text),
            Some(scalar @ (Value::Bool(_) | Value::Number(_))) => {
                name_matches(&self.value, &scalar.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_rule_matches_inputs() {
        let input = json!({"run": true, "model": "opus", "n": 3, "list": [1], "none": null});
        let rows = [
            ("run:true", true),
            (" run : true ", true),
            ("run:false", false),
            ("run:*", true),
            ("model:opus", true),
            ("model:op*", true),
            ("model:Opus", false),
            ("n:3", true),
            ("list:*", false),
            ("none:*", false),
            ("absent:*", false),
        ];
        for (content, expected) in rows {
            let rule = ParameterRule::parse(content).unwrap();
            assert_eq!(rule.matches(&input), expected, "{content}");
        }
    }

    #[test]
    fn specifier_without_field() {
        for content in ["plain", "two words:x", ":x", "./a:b"] {
            assert_eq!(ParameterRule::parse(content), None, "{content}");
        }
        assert!(ParameterRule::parse("command:rm *").unwrap().is_for_primary_field());
    }
}
