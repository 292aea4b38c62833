//! Questions of the model: choices with descriptions, several marks, own words. Several questions are tabs.

use serde_json::{Map, Value};
use whimbrel::PermissionResult;

use super::PromptAnswer;
use crate::menu::{Choice, Menu, MenuOutcome, MenuStyle};

/// The questions of one call.
#[derive(Debug, Clone)]
pub(crate) struct QuestionPrompt {
    questions: Vec<Question>,
    current: usize,
}

#[derive(Debug, Clone)]
struct Question {
    text: String,
    header: String,
    labels: Vec<String>,
    menu: Menu,
    answer: Option<String>,
}

impl QuestionPrompt {
    /// Reads the questions; `None` if there are none.
    pub(super) fn new(input: &Map<String, Value>) -> Option<Self> {
        let questions: Vec<Question> =
            input.get("questions")?.as_array()?.iter().map(parse_question).collect();
        (!questions.is_empty()).then_some(Self { questions, current: 0 })
    }

    pub(crate) fn menu(&self) -> &Menu {
        &self.questions[self.current].menu
    }

    pub(super) fn menu_mut(&mut self) -> &mut Menu {
        &mut self.questions[self.current].menu
    }

    /// The headers of the questions, with marks for the open one and for those with an answer.
    pub(crate) fn tabs(&self) -> impl Iterator<Item = (&str, bool, bool)> {
        self.questions.iter().enumerate().map(|(index, question)| {
            (question.header.as_str(), index == self.current, question.answer.is_some())
        })
    }

    pub(super) fn answer(
        &mut self,
        outcome: MenuOutcome,
        input: &Map<String, Value>,
    ) -> Option<PromptAnswer> {
        let count = self.questions.len();
        let question = &mut self.questions[self.current];
        match outcome {
            MenuOutcome::Open => return None,
            MenuOutcome::Next => {
                self.current = (self.current + 1) % count;
                return None;
            }
            MenuOutcome::Previous => {
                self.current = (self.current + count - 1) % count;
                return None;
            }
            MenuOutcome::Taken(index) => question.answer = question.labels.get(index).cloned(),
            MenuOutcome::Marked(indices) => {
                let labels = indices.iter().filter_map(|index| question.labels.get(*index));
                question.answer = Some(labels.cloned().collect::<Vec<_>>().join(", "));
            }
            MenuOutcome::TakenWithText(_, words) => {
                question.answer = Some(words).filter(|words| !words.trim().is_empty());
            }
            MenuOutcome::Cancelled => {
                return Some(PromptAnswer::Answer(PermissionResult::deny(
                    "The user skipped the questions. Go on without the answers, or ask in your reply.",
                )));
            }
        }
        match self.questions.iter().position(|question| question.answer.is_none()) {
            Some(open) => {
                self.current = open;
                None
            }
            None => Some(PromptAnswer::Answer(self.to_result(input))),
        }
    }

    fn to_result(&self, input: &Map<String, Value>) -> PermissionResult {
        let answers: Map<String, Value> = self
            .questions
            .iter()
            .filter_map(|question| Some((question.text.clone(), question.answer.clone()?.into())))
            .collect();
        let mut updated = input.clone();
        updated.insert("answers".into(), answers.into());
        PermissionResult::allow().with_input(updated)
    }
}

fn parse_question(question: &Value) -> Question {
    let field =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let options = question.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let labels: Vec<String> = options.iter().map(|option| field(option, "label")).collect();
    let mut choices: Vec<Choice> = options
        .iter()
        .map(|option| Choice::new(field(option, "label")).detail(field(option, "description")))
        .collect();
    choices.push(Choice::new("Something else").with_text("your own words"));
    let is_multi = question.get("multiSelect") == Some(&Value::Bool(true));
    let (style, footer) = match is_multi {
        true => (MenuStyle::Marked, "Space marks, Enter answers, Esc skips"),
        false => (MenuStyle::Numbered, "Enter answers, Esc skips"),
    };
    let text = field(question, "question");
    let menu = Menu::new(text.clone(), choices).style(style).footer(footer);
    let header = field(question, "header");
    Question {
        header: if header.is_empty() { text.clone() } else { header },
        text,
        labels,
        menu,
        answer: None,
    }
}
