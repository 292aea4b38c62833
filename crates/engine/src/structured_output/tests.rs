//! Tests of structured output.

use serde_json::json;

use super::*;

fn person_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "born": {"$ref": "#/$defs/year"},
            "mail": {"type": "array", "items": {"type": "string", "pattern": "^[^@]+@[^@]+$"}},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"year": {"type": "integer", "minimum": 1900}},
    })
}

#[test]
fn output_is_validated_and_errors_name_their_path() {
    let schema = OutputSchema::new(&person_schema(), DEFAULT_ATTEMPTS).unwrap();
    let table: [(&str, Value, &[&str]); 6] = [
        ("valid", json!({"name": "Ada", "born": 1915, "mail": ["ada@home"]}), &[]),
        ("a field is missing", json!({}), &["the top level", "\"name\" is a required property"]),
        ("a wrong type", json!({"name": 7}), &["/name: value is not of type \"string\""]),
        ("within a definition", json!({"name": "Ada", "born": 12}), &["/born", "minimum of 1900"]),
        ("within a list", json!({"name": "Ada", "mail": ["a@b", "nobody"]}), &["/mail/1"]),
        ("several at once", json!({"born": "x", "more": 1}), &["/born", "name", "more"]),
    ];
    for (name, answer, parts) in table {
        match schema.validate(&answer) {
            Ok(()) => assert!(parts.is_empty(), "{name}"),
            Err(text) => {
                assert!(!parts.is_empty(), "{name}: {text}");
                assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
            }
        }
    }
    let many = Value::Object((0..100).map(|n| (format!("f{n}"), json!(n))).collect());
    let strict = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = OutputSchema::new(&strict, DEFAULT_ATTEMPTS).unwrap().validate(&many).unwrap_err();
    assert!(text.contains("and 92 more"), "{text}");
}

#[test]
fn unusable_schema_is_rejected_with_reason() {
    let table = [
        ("no object", json!([]), "it is not an object"),
        ("a list", json!({"type": "array", "items": {}}), "must be an object"),
        ("an unknown type", json!({"type": "object", "properties": {"n": {"type": "intger"}}}), "intger"),
        ("a wrong keyword", json!({"type": "object", "required": "n"}), "required"),
        (
            "another server",
            json!({"type": "object", "properties": {"n": {"$ref": "http://127.0.0.1:9/n.json"}}}),
            "not fetched",
        ),
        (
            "a file",
            json!({"type": "object", "properties": {"n": {"$ref": "file:///etc/passwd"}}}),
            "not fetched",
        ),
        (
            "an undefined reference",
            json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}),
            "n",
        ),
    ];
    for (name, schema, reason) in table {
        let text = OutputSchema::new(&schema, DEFAULT_ATTEMPTS).err().unwrap_or_default();
        assert!(text.starts_with("The JSON Schema of the output is not usable"), "{name}: {text}");
        assert!(text.contains(reason), "{name}: {text}");
    }
}

#[test]
fn model_sees_schema_unchanged() {
    let schema = |given: &Value| -> Value {
        let spec = OutputSchema::new(given, DEFAULT_ATTEMPTS).unwrap().spec();
        serde_json::from_str(spec.input_schema.as_str()).unwrap()
    };
    assert_eq!(schema(&person_schema()), person_schema());
    assert_eq!(schema(&json!({"properties": {}})), json!({"properties": {}, "type": "object"}));
}

#[test]
fn output_is_pending_until_a_call_succeeds() {
    let result = |id: &str, is_error| ToolCallResult {
        id: id.into(),
        content: "x".to_owned().into(),
        meta: json!({"structured_output": {"n": 1}}),
        is_error,
        command_exit: None,
        denial: None,
        notes: Vec::new(),
        end_turn: None,
        hook_deferred_call: None,
    };
    let pending =
        |attempts, reminders| next_step::OutputRequirement::Pending { attempts, reminders, limit: 3 };
    let mut output = StructuredOutput::new(OutputSchema::new(&json!({"type": "object"}), 3).ok());
    assert_eq!(output.requirement(), pending(0, 0));
    output.record_call("Bash", "a");
    output.record_result(&result("a", false));
    assert_eq!(output.requirement(), pending(0, 0), "another tool's result is no answer");
    output.record_call(TOOL_NAME, "b");
    output.record_result(&result("b", true));
    output.record_reminder();
    assert_eq!(output.requirement(), pending(1, 1));
    output.record_call(TOOL_NAME, "c");
    output.record_result(&result("c", false));
    assert_eq!(output.requirement(), next_step::OutputRequirement::Satisfied);
    assert_eq!(output.take_output(), Some(json!({"n": 1})));
    output.begin_turn();
    assert_eq!(output.requirement(), pending(0, 0));
    let mut not_required = StructuredOutput::default();
    not_required.record_call(TOOL_NAME, "d");
    assert_eq!(not_required.requirement(), next_step::OutputRequirement::NotRequired);
}
