use super::*;

fn request(suggestions: &Json) -> CanUseTool {
    serde_json::from_value(json!({
        "tool_name": "Bash", "input": {"command": "rm -r build"}, "tool_use_id": "tu1",
        "permission_suggestions": suggestions,
    }))
    .unwrap()
}

fn rule() -> Json {
    json!([{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "rm -r build"}], "behavior": "allow",
            "destination": "localSettings"}])
}

fn answer(json: Json) -> Answer {
    serde_json::from_value(json).unwrap()
}

#[test]
fn scopes_follow_trust_and_suggestions() {
    let always = json!({"permission_suggestions": rule()});
    let mode = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
    let scopes = |request: &CanUseTool, trusted| scopes_json(&wider_answers(request, trusted));
    let entry = |scope: &str| json!({"scope": scope, "rule": "Bash(rm -r build)"});
    assert_eq!(always["permission_suggestions"], rule());
    let rows = [
        (request(&rule()), false, json!([entry("session"), entry("user")])),
        (request(&rule()), true, json!([entry("session"), entry("local"), entry("project"), entry("user")])),
        (request(&json!([])), true, json!([])),
        (request(&mode), true, json!([{"scope": "session", "rule": "mode acceptEdits"}])),
        (CanUseTool { suppress_always_allow_rule: Some(true), ..request(&rule()) }, true, json!([])),
    ];
    for (request, trusted, expected) in rows {
        assert_eq!(scopes(&request, trusted), expected);
    }
}

#[test]
fn allow_without_input_keeps_it() {
    let outcome = to_outcome(&answer(json!({"decision": "allow"})), &request(&rule()), false).unwrap();
    let PermissionResult::Allow { updated_input, .. } = outcome.result else { panic!() };
    assert_eq!(updated_input, None);
}

#[test]
fn an_empty_input_wipes_nothing() {
    let outcome =
        to_outcome(&answer(json!({"decision": "allow", "input": {}})), &request(&rule()), false).unwrap();
    assert_eq!(outcome.changed_input, None);
}

#[test]
fn unfit_answers_are_refused() {
    let rows = [
        (json!({"decision": "allow", "scope": "project"}), "no_suggestion"),
        (json!({"decision": "allow", "scope": "session", "input": {"command": "ls"}}), "bad_request"),
        (json!({"decision": "deny", "scope": "session"}), "bad_request"),
        (json!({"decision": "allow", "answers": {"a": "b"}}), "bad_request"),
        (json!({"decision": "allow", "mode": "acceptEdits"}), "bad_request"),
    ];
    for (given, code) in rows {
        assert_eq!(
            to_outcome(&answer(given.clone()), &request(&rule()), false).unwrap_err().code,
            code,
            "{given}"
        );
    }
}

#[test]
fn a_wider_answer_changes_the_destination() {
    let outcome =
        to_outcome(&answer(json!({"decision": "allow", "scope": "session"})), &request(&rule()), false)
            .unwrap();
    let PermissionResult::Allow { updated_permissions, .. } = outcome.result else { panic!() };
    assert_eq!(updated_permissions.unwrap()[0].destination(), Destination::Session);
    assert_eq!(outcome.rule.as_deref(), Some("Bash(rm -r build)"));
}

#[test]
fn answers_become_part_of_the_question() {
    let question = CanUseTool { tool_name: "AskUserQuestion".into(), ..request(&json!([])) };
    let given = answer(json!({"decision": "allow", "answers": {"Which?": ["a", "b"]}}));
    let outcome = to_outcome(&given, &question, false).unwrap();
    assert_eq!(outcome.changed_input.unwrap()["answers"], json!({"Which?": ["a", "b"]}));
    let wrong = answer(json!({"decision": "allow", "answers": {"Which?": 3}}));
    assert_eq!(to_outcome(&wrong, &question, false).unwrap_err().code, "bad_input");
}

#[test]
fn content_of_a_form_fits_its_schema() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}, "agrees": {"type": "boolean"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    }});
    let form: Elicitation = serde_json::from_value(json!({
        "mcp_server_name": "forms", "message": "Who?", "requested_schema": schema,
    }))
    .unwrap();
    let rows = [
        (json!({"name": "Ann", "age": 7, "agrees": true, "color": "red", "size": "s", "tags": ["a"]}), None),
        (json!({}), Some("/input/name")),
        (json!({"name": 7}), Some("/input/name")),
        (json!({"name": "Ann", "age": 7.5}), Some("/input/age")),
        (json!({"name": "Ann", "agrees": "yes"}), Some("/input/agrees")),
        (json!({"name": "Ann", "color": "green"}), Some("/input/color")),
        (json!({"name": "Ann", "size": "l"}), Some("/input/size")),
        (json!({"name": "Ann", "tags": ["c"]}), Some("/input/tags")),
        (json!({"name": "Ann", "other": 1}), Some("/input/other")),
    ];
    for (content, wrong) in rows {
        let given = answer(json!({"decision": "allow", "input": content}));
        let error = to_elicitation_reply(&given, &form).err();
        assert_eq!(error.as_ref().map(|error| error.code), wrong.map(|_| "bad_input"), "{content}");
        let path = error.map(|error| error.to_json()["detail"]["path"].clone());
        assert_eq!(path, wrong.map(Json::from), "{content}");
    }
    let declined = to_elicitation_reply(&answer(json!({"decision": "deny"})), &form).unwrap();
    assert_eq!(declined.action, ElicitationAction::Decline);
}
