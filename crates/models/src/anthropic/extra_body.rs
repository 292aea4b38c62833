//! `CLAUDE_CODE_EXTRA_BODY`: fields that the user adds to the body of every request. Pure.

use serde_json::{Map, Value};

/// Variable with the fields, as a JSON object.
pub const EXTRA_BODY_VARIABLE: &str = "CLAUDE_CODE_EXTRA_BODY";

/// Fields that cannot be replaced: the engine counts on what it sends there.
const RESERVED_FIELDS: [&str; 6] = ["model", "max_tokens", "messages", "system", "tools", "stream"];

/// Fields for the body of every request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtraBody(Map<String, Value>);

impl ExtraBody {
    /// Parses the variable; unset and blank mean no fields.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self::default());
        };
        let example = "Write an object such as {\"service_tier\": \"auto\"}.";
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(format!("{EXTRA_BODY_VARIABLE} is not a JSON object. {example}")),
            Err(error) => return Err(format!("{EXTRA_BODY_VARIABLE} is not valid JSON: {error}. {example}")),
        };
        match RESERVED_FIELDS.iter().find(|name| fields.contains_key(**name)) {
            Some(name) => Err(format!(
                "{EXTRA_BODY_VARIABLE} contains `{name}`, which the engine sets itself. Remove it; models and limits \
                 have options and variables of their own."
            )),
            None => Ok(Self(fields)),
        }
    }

    /// Adds the fields to the beginning of a body, `{"name":value,`. A field that is there already is replaced.
    pub(super) fn merge_into(&self, head: String) -> String {
        let parsed = serde_json::from_str(&format!("{}}}", head.trim_end_matches(',')));
        let Ok(Value::Object(mut fields)) = parsed else { return head };
        fields.extend(self.0.clone());
        let mut merged = Value::Object(fields).to_string();
        merged.pop();
        merged.push(',');
        merged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_without_reserved_fields_are_accepted() {
        let rows = [
            ("unset", None, Ok("{}")),
            ("blank", Some(" "), Ok("{}")),
            ("an object", Some(r#" {"a": {"b": 1}} "#), Ok(r#"{"a":{"b":1}}"#)),
            ("a list", Some("[1]"), Err("is not a JSON object")),
            ("a text", Some("speed=fast"), Err("is not valid JSON: expected value at line 1")),
            ("cut off", Some(r#"{"a": "#), Err("is not valid JSON: EOF")),
            ("the model", Some(r#"{"model": "x"}"#), Err("contains `model`")),
            ("the messages", Some(r#"{"a": 1, "messages": []}"#), Err("contains `messages`")),
        ];
        for (name, text, expected) in rows {
            match (ExtraBody::parse(text), expected) {
                (Ok(extra), Ok(expected)) => {
                    assert_eq!(Value::Object(extra.0).to_string(), expected, "{name}");
                }
                (Err(error), Err(part)) => {
                    assert!(
                        error.starts_with(EXTRA_BODY_VARIABLE) && error.contains(part),
                        "{name}: {error}"
                    );
                }
                (parsed, _) => panic!("{name}: {parsed:?}"),
            }
        }
    }

    #[test]
    fn fields_are_added_or_replaced() {
        let extra = ExtraBody::parse(Some(r#"{"thinking": {"type": "disabled"}, "speed": "fast"}"#)).unwrap();
        let head = r#"{"model":"m","thinking":{"type":"adaptive"},"stream":true,"#;
        assert_eq!(
            extra.merge_into(head.into()),
            r#"{"model":"m","thinking":{"type":"disabled"},"stream":true,"speed":"fast","#
        );
    }
}
