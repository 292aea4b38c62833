//! AskUserQuestion: asks the user. The host shows the questions and returns the answers as part of the changed input.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::lenient;
use crate::api::{Availability, Effects, Example, Tool, ToolContext, ToolOutput, ToolResult};

pub(super) struct AskUserQuestionTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct AskUserQuestionInput {
    #[schemars(length(min = 1, max = 4))]
    #[serde(deserialize_with = "deserialize_questions")]
    questions: Vec<Question>,
    /// Answers by question text.
    #[schemars(skip)]
    answers: Option<Map<String, Value>>,
    /// The user's notes on the answers.
    #[schemars(skip)]
    annotations: Option<BTreeMap<String, Annotation>>,
    /// The user's free response instead of answers.
    #[schemars(skip)]
    response: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Question {
    question: String,
    /// Label of at most 12 characters
    header: String,
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Choice>,
    /// Allow several answers
    #[serde(default, deserialize_with = "lenient::flag")]
    multi_select: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Choice {
    /// 1-5 words
    label: String,
    /// What the choice means
    description: String,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Annotation {
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Deserializes questions and checks their number, options and uniqueness.
fn deserialize_questions<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Question>, D::Error> {
    let questions = Vec::<Question>::deserialize(deserializer)?;
    let mut texts = HashSet::new();
    let error = match questions.iter().find(|question| !texts.insert(&question.question)) {
        Some(duplicate) => Some(format!("the question {:?} occurs twice", duplicate.question)),
        None if !(1..=4).contains(&questions.len()) => {
            Some(format!("expected 1 to 4 questions, got {}", questions.len()))
        }
        None => {
            questions.iter().find(|question| !(2..=4).contains(&question.options.len())).map(|question| {
                format!(
                    "the question {:?} needs 2 to 4 options, got {}",
                    question.question,
                    question.options.len()
                )
            })
        }
    };
    match error {
        Some(error) => Err(serde::de::Error::custom(error)),
        None => Ok(questions),
    }
}

impl Tool for AskUserQuestionTool {
    type Input = AskUserQuestionInput;

    const NAME: &'static str = super::ASK_USER_QUESTION;
    const DESCRIPTION: &'static str = "Asks the user questions and waits for the answers. Use it only for what you \
        cannot find out and should not decide yourself. Put the recommended option first. The user can always answer \
        in their own words; do not add an \"other\" option.";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &AskUserQuestionInput) -> Effects {
        Effects::None
    }

    async fn run(&self, input: AskUserQuestionInput, call: ToolContext) -> ToolResult {
        let AskUserQuestionInput { questions, answers, annotations, response } = input;
        let answers = user_answers(answers.unwrap_or_default(), call.original_input.as_deref());
        let from_user = call.original_input.is_some();
        let annotations = annotations.filter(|_| from_user);
        let response = response.filter(|text| from_user && !text.trim().is_empty());
        let text = render_answers(&questions, &answers, annotations.as_ref(), response.as_deref());
        let mut meta = json!({"questions": questions, "answers": answers});
        if let Some(annotations) = annotations {
            meta["annotations"] = json!(annotations);
        }
        if let Some(response) = response {
            meta["response"] = response.into();
        }
        Ok(ToolOutput::text(text, meta))
    }

    fn examples() -> Vec<Example> {
        let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
        let color = json!({"question": "Which color?", "header": "Color", "options": options});
        vec![
            Example::new("an unanswered question is not a yes", json!({"questions": [color]}))
                .expect_output(&["did not answer"]),
            Example::new(
                "the model cannot answer itself",
                json!({"questions": [color], "answers": {"Which color?": "Red"}}),
            )
            .expect_output(&["did not answer"]),
            Example::new("at least one question is required", json!({"questions": []}))
                .expect_error(&["1 to 4 questions"]),
            Example::new("duplicate questions are rejected", json!({"questions": [color, color]}))
                .expect_error(&["occurs twice"]),
            Example::new(
                "a question without options is rejected",
                json!({"questions": [{"question": "Yes?", "header": "Yes", "options": []}]}),
            )
            .expect_error(&["2 to 4 options"]),
        ]
    }
}

/// The answers that did not come from the model, as text. `original_input` is the model's.
fn user_answers(answers: Map<String, Value>, original_input: Option<&Value>) -> BTreeMap<String, String> {
    let Some(original_input) = original_input else { return BTreeMap::new() };
    let model_answers = original_input.get("answers").and_then(Value::as_object);
    let from_user = |(question, answer): &(String, Value)| {
        model_answers.and_then(|model_answers| model_answers.get(question)) != Some(answer)
    };
    let answers = answers.into_iter().filter(from_user);
    let answers = answers.map(|(question, answer)| (question, answer_text(&answer)));
    answers.filter(|(_, answer)| !answer.trim().is_empty()).collect()
}

/// An answer as text; several choices are joined.
fn answer_text(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(several) => several.iter().map(answer_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn render_answers(
    questions: &[Question],
    answers: &BTreeMap<String, String>,
    annotations: Option<&BTreeMap<String, Annotation>>,
    response: Option<&str>,
) -> String {
    let free_response = response.map(|text| format!("The user replied in their own words: {text}"));
    if answers.is_empty() {
        return free_response.unwrap_or_else(|| {
            "The user did not answer. Treat that as neither yes nor no: continue only with work that does not depend \
             on it, or ask in your reply.".into()
        });
    }
    let note = |question: &str| {
        let note = annotations.and_then(|all| all.get(question)).and_then(|one| one.notes.as_deref());
        note.filter(|note| !note.trim().is_empty())
            .map_or_else(String::new, |note| format!(" (note: {note})"))
    };
    let line = |question: &str| match answers.get(question) {
        Some(answer) => format!("- {question} → {answer}{}", note(question)),
        None => format!("- {question} → no answer{}", note(question)),
    };
    // Some hosts use another key than the question's text.
    let other = answers.keys().filter(|key| !questions.iter().any(|one| one.question == **key));
    let lines = questions.iter().map(|one| &one.question).chain(other).map(|question| line(question));
    let answered = format!("The user answered:\n{}", lines.collect::<Vec<_>>().join("\n"));
    [Some(answered), free_response].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
