//! Tests of the requests that the user answers.

use serde_json::{Value, json};

use super::*;
use crate::screen::KeyCode;

fn prompt(request: Value) -> Prompt {
    let mut prompt = Prompt::new(1, serde_json::from_value(request).unwrap(), String::new());
    prompt.show(Instant::now() - Duration::from_secs(10), None);
    prompt
}

fn press(prompt: &mut Prompt, keys: &[KeyCode]) -> PromptOutcome {
    let table = KeyTable::default();
    let mut outcome = PromptOutcome::Open;
    for code in keys {
        outcome = prompt.handle_key(&Key::plain(*code), &table);
    }
    outcome
}

fn answered(outcome: PromptOutcome) -> Value {
    match outcome {
        PromptOutcome::Answered(PromptAnswer::Answer(answer)) => serde_json::to_value(answer).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn bash() -> Value {
    let rule = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "cargo test:*"}]});
    json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "cargo test"}, "permission_suggestions": [rule]})
}

#[test]
fn permission_choices_name_the_rule_and_where_it_is_kept() {
    let prompt = prompt(bash());
    let shown: Vec<(&str, &str)> =
        prompt.menu().choices.iter().map(|choice| (choice.label.as_str(), choice.detail.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("Allow once", ""),
            ("Always allow Bash(cargo test:*)", "until this session ends"),
            ("Always allow Bash(cargo test:*)", "kept for this project, .claude/settings.local.json"),
            ("Refuse", ""),
            ("Refuse and say why", ""),
        ]
    );
    assert_eq!(prompt.menu().selected(), Some(0));
}

#[test]
fn permission_answers_carry_the_updates_or_the_words() {
    use KeyCode::{Char, Enter};
    assert_eq!(answered(press(&mut prompt(bash()), &[Char('y')])), json!({"behavior": "allow"}));
    let always = answered(press(&mut prompt(bash()), &[Char('3')]));
    assert_eq!(always["updatedPermissions"][0]["destination"], "localSettings");
    let session = answered(press(&mut prompt(bash()), &[Char('2')]));
    assert_eq!(session["updatedPermissions"][0]["destination"], "session");
    let words = answered(press(&mut prompt(bash()), &[Char('5'), Char('n'), Char('o'), Enter]));
    assert!(words["message"].as_str().unwrap().ends_with("said: no"), "{words}");
    assert_eq!(answered(press(&mut prompt(bash()), &[Char('n')]))["behavior"], "deny");
}

#[test]
fn escape_refuses_and_interrupts() {
    let outcome = press(&mut prompt(bash()), &[KeyCode::Escape]);
    let PromptOutcome::Answered(PromptAnswer::RefuseAndInterrupt(PermissionResult::Deny {
        interrupt, ..
    })) = outcome
    else {
        panic!("{outcome:?}")
    };
    assert!(interrupt);
}

#[test]
fn refusal_is_the_default_where_the_engine_says_so() {
    let mut request = bash();
    request["default_to_no"] = true.into();
    let prompt = prompt(request);
    let selected = prompt.menu().selected().unwrap();
    assert_eq!(prompt.menu().choices[selected].label, "Refuse");
}

#[test]
fn keys_typed_before_the_prompt_do_not_answer_it() {
    let table = KeyTable::default();
    let start = Instant::now();
    let mut prompt = Prompt::new(1, serde_json::from_value(bash()).unwrap(), String::new());
    let key = |ms: u64| Key { at: start + Duration::from_millis(ms), ..Key::plain(KeyCode::Char('y')) };
    assert_eq!(prompt.handle_key(&key(0), &table), PromptOutcome::TypeAhead);
    prompt.show(start + Duration::from_millis(1000), Some(start + Duration::from_millis(900)));
    for (ms, expected) in [(950, true), (1200, true), (1450, true), (1800, false)] {
        assert_eq!(prompt.handle_key(&key(ms), &table) == PromptOutcome::TypeAhead, expected, "{ms}");
    }
}

#[test]
fn message_typed_at_a_prompt_does_not_answer_it() {
    let table = KeyTable::default();
    let mut prompt = prompt(bash());
    let start = Instant::now();
    let mut press = |ms: u64, code| {
        prompt.handle_key(&Key { at: start + Duration::from_millis(ms), ..Key::plain(code) }, &table)
    };
    for (step, typed) in "why not?".chars().enumerate() {
        let outcome = press(1000 + 200 * step as u64, KeyCode::Char(typed));
        assert_eq!(outcome, PromptOutcome::TypeAhead, "{typed}");
    }
    assert_eq!(press(2600, KeyCode::Enter), PromptOutcome::TypeAhead);
    assert!(matches!(press(9000, KeyCode::Char('y')), PromptOutcome::Answered(_)));
}

#[test]
fn answer_settles_other_requests_with_the_same_rule() {
    let other = prompt(bash());
    let mut first = prompt(bash());
    let PromptOutcome::Answered(PromptAnswer::Answer(answer)) = press(&mut first, &[KeyCode::Char('2')])
    else {
        panic!()
    };
    assert!(other.is_settled_by(&answer));
    let mut unrelated = bash();
    unrelated["permission_suggestions"][0]["rules"][0]["ruleContent"] = "rm:*".into();
    assert!(!prompt(unrelated).is_settled_by(&answer));
    assert!(!other.is_settled_by(&PermissionResult::allow()));
}

#[test]
fn plan_is_started_in_the_chosen_mode_or_kept() {
    use KeyCode::{Char, Enter};
    let request = json!({"tool_name": "ExitPlanMode", "tool_use_id": "t", "input": {"plan": "1. Build"}});
    assert_eq!(prompt(request.clone()).plan(), Some("1. Build"));
    let edits = answered(press(&mut prompt(request.clone()), &[Char('1')]));
    assert_eq!(edits["updatedPermissions"][0]["mode"], "acceptEdits");
    let default = answered(press(&mut prompt(request.clone()), &[Enter]));
    assert_eq!(default["updatedPermissions"][0]["mode"], "default");
    let words = answered(press(&mut prompt(request), &[Char('3'), Char('x'), Enter]));
    assert!(words["message"].as_str().unwrap().ends_with("said: x"), "{words}");
}

#[test]
fn questions_are_answered_one_after_the_other() {
    use KeyCode::{Char, Enter, Tab};
    let option = |label: &str| json!({"label": label, "description": "d"});
    let request = json!({"tool_name": "AskUserQuestion", "tool_use_id": "t", "input": {"questions": [
        {"question": "Color?", "header": "Color", "options": [option("Red"), option("Blue")]},
        {"question": "Sizes?", "header": "Size", "multiSelect": true, "options": [option("S"), option("M")]},
        {"question": "Why?", "header": "Why", "options": [option("A"), option("B")]},
    ]}});
    let mut open = prompt(request);
    assert_eq!(press(&mut open, &[Tab]), PromptOutcome::Open);
    assert_eq!(open.menu().title, "Sizes?");
    assert_eq!(press(&mut open, &[Char('1'), Char('2'), Enter, Char('2')]), PromptOutcome::Open);
    let answer = answered(press(&mut open, &[Char('3'), Char('h'), Char('m'), Enter]));
    assert_eq!(answer["updatedInput"]["answers"], json!({"Color?": "Blue", "Sizes?": "S, M", "Why?": "hm"}));
}
