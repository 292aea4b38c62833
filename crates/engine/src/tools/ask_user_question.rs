//! AskUserQuestion: asks the user. The host shows the questions and returns the answers as part of the changed input.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Availability, Effects, Example, Tool, ToolContext, ToolOutput, ToolResult};
use crate::tools::lenient;

pub(super) struct AskUserQuestionTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 4))]
    #[serde(deserialize_with = "askable")]
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
    /// Label, at most 12 characters
    header: String,
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Choice>,
    /// Whether several may be chosen
    #[serde(default, deserialize_with = "lenient::flag")]
    multi_select: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Choice {
    /// 1-5 words
    label: String,
    /// What it means
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
fn askable<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Question>, D::Error> {
    let questions = Vec::<Question>::deserialize(deserializer)?;
    let mut texts = HashSet::new();
    let problem = match questions.iter().find(|asked| !texts.insert(&asked.question)) {
        Some(twice) => Some(format!("{:?} is asked twice", twice.question)),
        None if !(1..=4).contains(&questions.len()) => {
            Some(format!("1 to 4 questions can be asked at once, not {}", questions.len()))
        }
        None => questions.iter().find(|asked| !(2..=4).contains(&asked.options.len())).map(|asked| {
            format!("{:?} must have 2 to 4 options, not {}", asked.question, asked.options.len())
        }),
    };
    match problem {
        Some(problem) => Err(serde::de::Error::custom(problem)),
        None => Ok(questions),
    }
}

impl Tool for AskUserQuestionTool {
    type Input = Input;

    const NAME: &'static str = super::ASK_USER_QUESTION;
    const DESCRIPTION: &'static str = "Asks the user and waits for the answers. Only for what you cannot find out and should not decide alone. Put the option you recommend first. The user can always answer in other words, so offer no \"other\".";
    const AVAILABILITY: Availability = Availability::Interactive;

    fn effects(_: &Input) -> Effects {
        Effects::None
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let Input { questions, answers, annotations, response } = input;
        let answers = user_answers(answers.unwrap_or_default(), call.original_input.as_deref());
        let from_person = call.original_input.is_some();
        let annotations = annotations.filter(|_| from_person);
        let response = response.filter(|text| from_person && !text.trim().is_empty());
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
        let colour = json!({"question": "Which colour?", "header": "Colour", "options": options});
        vec![
            Example::new("a question that nobody answered is no yes", json!({"questions": [colour]}))
                .expect_output(&["no answer"]),
            Example::new(
                "the model cannot answer itself",
                json!({"questions": [colour], "answers": {"Which colour?": "Red"}}),
            )
            .expect_output(&["no answer"]),
            Example::new("there must be a question", json!({"questions": []}))
                .expect_error(&["1 to 4 questions"]),
            Example::new("the same question twice is refused", json!({"questions": [colour, colour]}))
                .expect_error(&["asked twice"]),
            Example::new(
                "a question without a choice is refused",
                json!({"questions": [{"question": "Yes?", "header": "Yes", "options": []}]}),
            )
            .expect_error(&["2 to 4 options"]),
        ]
    }
}

/// The answers that did not come from the model, as text. `written` is the model's original input.
fn user_answers(answers: Map<String, Value>, written: Option<&Value>) -> BTreeMap<String, String> {
    let Some(written) = written else { return BTreeMap::new() };
    let own = written.get("answers").and_then(Value::as_object);
    let from_person =
        |(question, answer): &(String, Value)| own.and_then(|own| own.get(question)) != Some(answer);
    let answers = answers.into_iter().filter(from_person);
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
    let in_their_words = response.map(|text| format!("The user replied in their own words: {text}"));
    if answers.is_empty() {
        return in_their_words.unwrap_or_else(|| {
            "The user gave no answer. That is neither a yes nor a no: go on only with what does not depend on it, or ask in your reply.".into()
        });
    }
    let note = |question: &str| {
        let note = annotations.and_then(|all| all.get(question)).and_then(|one| one.notes.as_deref());
        note.filter(|note| !note.trim().is_empty())
            .map_or_else(String::new, |note| format!(" (their note: {note})"))
    };
    let line = |question: &str| match answers.get(question) {
        Some(answer) => format!("- {question} → {answer}{}", note(question)),
        None => format!("- {question} → no answer{}", note(question)),
    };
    // Some hosts use another key than the question's text.
    let other = answers.keys().filter(|key| !questions.iter().any(|asked| asked.question == **key));
    let lines = questions.iter().map(|asked| &asked.question).chain(other).map(|question| line(question));
    let answered = format!("The user answered:\n{}", lines.collect::<Vec<_>>().join("\n"));
    [Some(answered), in_their_words].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
