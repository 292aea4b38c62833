//! The questions of `AskUserQuestion` as a form, and the form's values as answers. Pure.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    CreateElicitationResponse, ElicitationAction, ElicitationContentValue, ElicitationSchema, EnumOption,
    MultiSelectPropertySchema, StringPropertySchema,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use whimbrel::PermissionResult;

const ABORTED: &str = "The user closed the questions.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    question: String,
    #[serde(default)]
    header: String,
    #[serde(default)]
    options: Vec<QuestionOption>,
    #[serde(default)]
    multi_select: bool,
}

#[derive(Debug, Deserialize)]
struct QuestionOption {
    label: String,
    #[serde(default)]
    description: String,
}

/// A form: the sentence above it, and its fields.
pub(crate) fn to_form(input: &Map<String, Value>) -> (String, ElicitationSchema) {
    let questions = parse_questions(input);
    let mut schema = ElicitationSchema::new();
    for (index, question) in questions.iter().enumerate() {
        let options: Vec<EnumOption> = question.options.iter().map(to_enum_option).collect();
        let (name, text) = (field_name(index), question.question.clone());
        let title = if question.header.is_empty() { text.clone() } else { question.header.clone() };
        schema = match question.multi_select {
            true => {
                let field = MultiSelectPropertySchema::titled(options).title(title.clone()).description(text);
                schema.property(name, field, false)
            }
            false => {
                let field =
                    StringPropertySchema::new().title(title.clone()).description(text).one_of(options);
                schema.property(name, field, false)
            }
        };
        let own = StringPropertySchema::new()
            .title(format!("{title}: other"))
            .description("Your own answer".to_owned());
        schema = schema.property(own_field_name(index), own, false);
    }
    let message = match &questions[..] {
        [only] => only.question.clone(),
        _ => "The agent has some questions.".to_owned(),
    };
    (message, schema)
}

/// The decision on the call that asks.
pub(crate) fn to_result(
    mut input: Map<String, Value>,
    response: &CreateElicitationResponse,
) -> PermissionResult {
    let content = match &response.action {
        ElicitationAction::Accept(accepted) => accepted.content.clone().unwrap_or_default(),
        // Without answers the model hears that there are none.
        ElicitationAction::Decline => BTreeMap::new(),
        _ => return PermissionResult::deny(ABORTED).and_interrupt(),
    };
    let mut answers = Map::new();
    for (index, question) in parse_questions(&input).iter().enumerate() {
        let chosen = content.get(&field_name(index)).map(value_text);
        let own = content.get(&own_field_name(index)).map(value_text);
        let answer: Vec<String> =
            chosen.into_iter().chain(own).filter(|text| !text.trim().is_empty()).collect();
        if !answer.is_empty() {
            answers.insert(question.question.clone(), answer.join(", ").into());
        }
    }
    input.insert("answers".into(), answers.into());
    PermissionResult::allow().with_input(input)
}

fn parse_questions(input: &Map<String, Value>) -> Vec<Question> {
    input.get("questions").and_then(|questions| Vec::deserialize(questions).ok()).unwrap_or_default()
}

fn to_enum_option(option: &QuestionOption) -> EnumOption {
    let description = Some(option.description.clone()).filter(|text| !text.is_empty());
    EnumOption::new(option.label.clone(), option.label.clone()).description(description)
}

fn field_name(index: usize) -> String {
    format!("question_{index}")
}

fn own_field_name(index: usize) -> String {
    format!("question_{index}_other")
}

fn value_text(value: &ElicitationContentValue) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input() -> Map<String, Value> {
        let color = json!({"question": "Which color?", "header": "Color", "multiSelect": false,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}]});
        let sizes = json!({"question": "Which sizes?", "header": "Sizes", "multiSelect": true,
            "options": [{"label": "S", "description": ""}, {"label": "M", "description": ""}]});
        json!({"questions": [color, sizes]}).as_object().unwrap().clone()
    }

    fn answers(response: Value) -> Option<Value> {
        let response = serde_json::from_value(response).unwrap();
        match to_result(input(), &response) {
            PermissionResult::Allow { updated_input, .. } => Some(updated_input.unwrap()["answers"].clone()),
            PermissionResult::Deny { interrupt, .. } => {
                assert!(interrupt);
                None
            }
        }
    }

    #[test]
    fn each_question_is_a_field_and_has_one_for_own_text() {
        let (_, schema) = to_form(&input());
        let properties = json!(schema)["properties"].clone();
        let one_of = json!([{"const": "Red", "title": "Red", "description": "warm"}, {"const": "Blue", "title": "Blue"}]);
        assert_eq!(
            (&properties["question_0"]["oneOf"], &properties["question_0"]["type"]),
            (&one_of, &json!("string"))
        );
        assert_eq!(properties["question_1"]["type"], "array");
        assert_eq!(properties["question_1_other"]["type"], "string");
        assert_eq!(json!(schema).get("required").and_then(Value::as_array).map_or(0, Vec::len), 0);
    }

    #[test]
    fn values_become_answers() {
        let accept = json!({"action": "accept", "content": {"question_0": "Red", "question_1": ["S", "M"], "question_1_other": "XL"}});
        assert_eq!(answers(accept), Some(json!({"Which color?": "Red", "Which sizes?": "S, M, XL"})));
        assert_eq!(answers(json!({"action": "decline"})), Some(json!({})));
        assert_eq!(answers(json!({"action": "cancel"})), None);
    }
}
