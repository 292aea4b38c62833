//! Questions of the AskUserQuestion tool, asked one after the other at the terminal.

use serde_json::{Map, Value};
use whimbrel_wire::permission::PermissionResult;

use super::format::{LineBreaks, sanitize};
use super::permission_prompt::NO_ANSWER;

/// Tool whose requests need more than a yes.
pub(super) const TOOL_NAME: &str = "AskUserQuestion";

/// Asks every question and returns the answers with the input. `ask` shows a text and reads a line; `None` means no
/// answer, which denies the call.
pub(super) fn ask_questions(
    mut input: Map<String, Value>,
    mut ask: impl FnMut(&str) -> Option<String>,
) -> PermissionResult {
    let mut answers = Map::new();
    for question in input.get("questions").and_then(Value::as_array).into_iter().flatten() {
        let text = question["question"].as_str().unwrap_or_default();
        let Some(answer_line) = ask(&render_question(text, question)) else {
            return PermissionResult::deny(NO_ANSWER);
        };
        if let Some(answer) = parse_answer(&answer_line, question) {
            answers.insert(text.to_owned(), answer.into());
        }
    }
    input.insert("answers".into(), answers.into());
    PermissionResult::allow().with_input(input)
}

/// Renders a question with its numbered choices.
fn render_question(text: &str, question: &Value) -> String {
    let mut rendered = format!("  ? {}\n", sanitize(text, LineBreaks::Replace));
    for (index, option) in question_options(question).enumerate() {
        let part = |field: &str| sanitize(option[field].as_str().unwrap_or_default(), LineBreaks::Replace);
        let (label, description) = (part("label"), part("description"));
        let gap = if description.is_empty() { "" } else { ": " };
        rendered += &format!("    {}. {label}{gap}{description}\n", index + 1);
    }
    let what = if question["multiSelect"] == true { "numbers" } else { "number" };
    rendered + &format!("    {what}, or your own text: ")
}

/// Interprets a typed line: the labels of the numbered choices, or the text itself; `None` if it is empty.
fn parse_answer(answer_line: &str, question: &Value) -> Option<String> {
    let answer_line = answer_line.trim();
    let label = |word: &str| {
        let number: usize = word.parse().ok()?;
        question_options(question).nth(number.checked_sub(1)?)?["label"].as_str().map(str::to_owned)
    };
    let words = answer_line.split([',', ' ']).filter(|word| !word.is_empty());
    let labels: Option<Vec<String>> = words.map(label).collect();
    let answer = labels.map_or_else(|| answer_line.to_owned(), |labels| labels.join(", "));
    (!answer.is_empty()).then_some(answer)
}

fn question_options(question: &Value) -> impl Iterator<Item = &Value> {
    question["options"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn color_question() -> Value {
        json!({"question": "Which\ncolor?", "multiSelect": true, "options": [
            {"label": "Red", "description": "warm\u{1b}[2A"}, {"label": "Dark blue", "description": ""}]})
    }

    #[test]
    fn number_selects_a_choice_and_other_text_is_kept() {
        let rows = [
            ("2\n", Some("Dark blue")),
            (" 1, 2 ", Some("Red, Dark blue")),
            ("3", Some("3")),
            ("0", Some("0")),
            ("1 of each", Some("1 of each")),
            ("\n", None),
        ];
        for (answer_line, expected) in rows {
            assert_eq!(parse_answer(answer_line, &color_question()).as_deref(), expected, "{answer_line:?}");
        }
    }

    #[test]
    fn question_is_shown_with_sanitized_choices() {
        let expected = "  ? Which color?\n    1. Red: warm\u{fffd}[2A\n    2. Dark blue\n    numbers, or your own text: ";
        assert_eq!(render_question("Which\ncolor?", &color_question()), expected);
    }

    #[test]
    fn answers_are_returned_and_no_answer_denies() {
        let input = json!({"questions": [color_question(), {"question": "Why?", "options": []}]});
        let mut lines = ["1", ""].into_iter();
        let answered = ask_questions(input.as_object().unwrap().clone(), |_| lines.next().map(str::to_owned));
        let PermissionResult::Allow { updated_input: Some(given), .. } = answered else {
            panic!("{answered:?}")
        };
        assert_eq!(given["answers"], json!({"Which\ncolor?": "Red"}));
        assert_eq!(given["questions"], input["questions"]);
        let silent = ask_questions(input.as_object().unwrap().clone(), |_| None);
        assert_eq!(silent, PermissionResult::deny(NO_ANSWER));
    }
}
