//! Tests of answers from hosts.

use std::sync::Arc;

use super::*;
use crate::test_support::TestWorkspace;

fn questions() -> Value {
    let options =
        json!([{"label": "A", "description": "a"}, {"label": "B", "description": "b", "preview": "p"}]);
    json!([
        {"question": "Which color?", "header": "Color", "options": options, "multiSelect": false},
        {"question": "Which sizes?", "header": "Sizes", "options": options, "multiSelect": true},
    ])
}

/// Runs the tool with a model input and the input changed by the host.
async fn run_with_answers(by_model: Value, by_host: Value) -> ToolOutput {
    let with = |more: Value| {
        let mut input = json!({"questions": questions()});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let call =
        ToolContext { original_input: Some(Arc::new(with(by_model))), ..TestWorkspace::new(&[]).context() };
    AskUserQuestionTool.run(serde_json::from_value(with(by_host)).unwrap(), call).await.unwrap()
}

fn output_text(output: &ToolOutput) -> &str {
    match &output.content {
        whimbrel_wire::content::ResultContent::Text(text) => text,
        whimbrel_wire::content::ResultContent::Blocks(_) => unreachable!("the tool returns text"),
    }
}

#[tokio::test]
async fn answers_follow_the_order_of_the_questions() {
    let host_input = json!({"answers": {"Which sizes?": ["S", "L"], "Which color?": "Blue"}});
    let output = run_with_answers(json!({}), host_input).await;
    let answers = json!({"Which color?": "Blue", "Which sizes?": "S, L"});
    assert_eq!(output.meta, json!({"questions": questions(), "answers": answers}));
    assert_eq!(output_text(&output), "The user answered:\n- Which color? → Blue\n- Which sizes? → S, L");
}

#[tokio::test]
async fn missing_answers_notes_and_responses_are_rendered() {
    let notes = json!({"Which color?": {"notes": "a dark one", "preview": "p"}});
    let host_input = json!({"answers": {"Which color?": "Blue", "Sizes": "S"}, "annotations": notes, "response": "Hurry."});
    let output = run_with_answers(json!({}), host_input).await;
    assert_eq!(
        output_text(&output),
        "The user answered:\n- Which color? → Blue (note: a dark one)\n- Which sizes? → no answer\n- Sizes → S\nThe \
         user replied in their own words: Hurry."
    );
    assert_eq!((&output.meta["annotations"], &output.meta["response"]), (&notes, &json!("Hurry.")));
}

#[tokio::test]
async fn a_free_response_replaces_answers() {
    let output = run_with_answers(json!({}), json!({"response": "Neither, please."})).await;
    assert_eq!(output_text(&output), "The user replied in their own words: Neither, please.");
}

#[tokio::test]
async fn only_answers_from_the_host_count() {
    let model_input = json!({"answers": {"Which color?": "Red"}});
    let rows = [
        (json!({"answers": {"Which color?": "Red"}}), json!({})),
        (json!({"answers": {"Which color?": " ", "Which sizes?": null}}), json!({})),
        (json!({"answers": {"Which color?": "Red", "Which sizes?": "S"}}), json!({"Which sizes?": "S"})),
    ];
    for (host_input, expected) in rows {
        assert_eq!(
            run_with_answers(model_input.clone(), host_input.clone()).await.meta["answers"],
            expected,
            "{host_input}"
        );
    }
}
