//! Agent definitions on the command line: JSON by name. Errors name the agent, the field and the expected type.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use whimbrel_wire::options::AgentDefinition;

const TEXT: &str = "a string";
const TEXTS: &str = "a list of strings";
const NUMBER: &str = "a whole number, 0 or more";
const SWITCH: &str = "true or false";

/// Expected type of each field.
const FIELDS: [(&str, &str); 18] = [
    ("description", TEXT),
    ("prompt", TEXT),
    ("tools", TEXTS),
    ("disallowedTools", TEXTS),
    ("model", TEXT),
    ("mcpServers", "a list of names and configurations"),
    ("criticalSystemReminder_EXPERIMENTAL", TEXT),
    ("skills", TEXTS),
    ("maxTurns", NUMBER),
    ("initialPrompt", TEXT),
    ("autoCompactWindow", NUMBER),
    ("background", SWITCH),
    ("omitClaudeMd", SWITCH),
    ("memory", TEXT),
    ("isolation", TEXT),
    ("effort", "low, medium, high, xhigh or max"),
    ("permissionMode", "default, acceptEdits, plan, dontAsk, auto or bypassPermissions"),
    ("observerMessage", TEXT),
];

/// Parses the agent definitions in a JSON object.
pub(super) fn parse_agents(given: Value) -> Result<BTreeMap<String, AgentDefinition>, String> {
    let Value::Object(agents) = given else {
        return Err(format!(
            "must be an object with an agent for each name, such as {{\"reviewer\": {{\"description\": \"...\", \
                \"prompt\": \"...\"}}}}, but is {}",
            type_name(&given)
        ));
    };
    agents.into_iter().map(|(name, given)| Ok((name.clone(), parse_agent(&name, given)?))).collect()
}

fn parse_agent(name: &str, given: Value) -> Result<AgentDefinition, String> {
    let wrong = |what: String| format!("the agent {name:?} {what}");
    let Value::Object(fields) = given else {
        return Err(wrong(format!(
            "must be an object with a description and a prompt, but is {}",
            type_name(&given)
        )));
    };
    for needed in ["description", "prompt"] {
        if !fields.contains_key(needed) {
            return Err(wrong(format!("has no {needed:?}, which must be {TEXT}")));
        }
    }
    serde_json::from_value(Value::Object(fields.clone())).map_err(|error| match find_invalid_field(&fields) {
        Some(error_text) => wrong(error_text),
        None => wrong(format!("cannot be read: {error}")),
    })
}

/// Describes the first field of the wrong type.
fn find_invalid_field(fields: &Map<String, Value>) -> Option<String> {
    FIELDS.iter().find_map(|(field, expected)| {
        let value = fields.get(*field)?;
        let mut alone = json!({"description": "", "prompt": ""});
        alone[*field] = value.clone();
        let fits = serde_json::from_value::<AgentDefinition>(alone).is_ok();
        (!fits).then(|| {
            format!("has an invalid {field:?}: it must be {expected}, but is {}", describe_value(value))
        })
    })
}

/// Describes a value: short ones verbatim, others by their type.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        Value::String(text) if text.len() > 40 => type_name(value).to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_agent_and_the_field() {
        let agent = |more: Value| {
            let mut agent = json!({"description": "d", "prompt": "p"});
            agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"good": {"description": "d", "prompt": "p"}, "bad": agent})
        };
        let rows = [
            (json!([]), "must be an object with an agent for each name"),
            (
                json!({"bad": 7}),
                "the agent \"bad\" must be an object with a description and a prompt, but is a number",
            ),
            (
                json!({"bad": {"prompt": "p"}}),
                "the agent \"bad\" has no \"description\", which must be a string",
            ),
            (agent(json!({"prompt": 7})), "\"bad\" has an invalid \"prompt\": it must be a string, but is 7"),
            (agent(json!({"tools": "Read"})), "\"tools\": it must be a list of strings, but is \"Read\""),
            (agent(json!({"tools": ["Read", 7]})), "\"tools\": it must be a list of strings, but is a list"),
            (agent(json!({"maxTurns": -1})), "\"maxTurns\": it must be a whole number, 0 or more, but is -1"),
            (agent(json!({"isolation": true})), "\"isolation\": it must be a string, but is true"),
            (agent(json!({"background": "yes"})), "\"background\": it must be true or false"),
            (
                agent(json!({"effort": "huge"})),
                "\"effort\": it must be low, medium, high, xhigh or max, but is \"huge\"",
            ),
        ];
        for (given, expected) in rows {
            let error = parse_agents(given).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(parse_agents(agent(json!({"unknown": "field", "model": null}))).unwrap().len(), 2);
    }
}
