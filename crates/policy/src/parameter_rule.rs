//! Rules about one field of a tool's input: `Tool(field:value)`, for refusing and asking only.

use serde_json::Value;

use crate::rule::name_matches;

/// Fields that say what a call is about; they have rules of their own kind.
const PRIMARY_FIELDS: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// A rule about a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterRule {
    /// The field.
    pub field: String,
    value: String,
}

impl ParameterRule {
    /// Reads the content of a rule as one about a field, if it has that form. Whether the tool has the field is known
    /// only when a call is judged.
    pub fn parse(content: &str) -> Option<Self> {
        let (field, value) = content.split_once(':')?;
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let field = field.trim();
        (!field.is_empty() && field.chars().all(named))
            .then(|| Self { field: field.to_owned(), value: value.trim().to_owned() })
    }

    /// Whether the field has a kind of rule of its own, so that this one is ignored.
    pub fn is_for_primary_field(&self) -> bool {
        PRIMARY_FIELDS.contains(&self.field.as_str())
    }

    /// Whether the input has this value in this field.
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
    fn which_inputs_a_rule_about_a_field_means() {
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
    fn what_is_not_about_a_field() {
        for content in ["plain", "two words:x", ":x", "./a:b"] {
            assert_eq!(ParameterRule::parse(content), None, "{content}");
        }
        assert!(ParameterRule::parse("command:rm *").unwrap().is_for_primary_field());
    }
}
