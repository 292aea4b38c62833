//! A call of the engine in Kimi's words, for the model's conversation and the host.

use serde_json::{Map, Number, Value};

use super::field_names::{self, QUESTION, REPLACEMENT, TODO, rename_for_kimi};
use super::names::kimi_name;
use super::to_engine::{PAGE_QUESTION, change, change_items};

/// Translates name and input. What does not fit stays as it is.
pub(crate) fn to_kimi<'a>(engine_name: &'a str, input: &Value) -> (&'a str, Value) {
    let name = kimi_name(engine_name);
    let Value::Object(fields) = input else { return (name, input.clone()) };
    let mut fields = fields.clone();
    rename_for_kimi(&mut fields, field_names::of_tool(engine_name));
    match engine_name {
        "Bash" | "TaskOutput" => change(&mut fields, "timeout", millis_to_seconds),
        "Edit" => nest_edit(&mut fields),
        "Grep" => change(&mut fields, "output_mode", kimi_mode),
        "TodoWrite" => change_items(&mut fields, "todos", kimi_todo),
        "AskUserQuestion" => {
            change_items(&mut fields, "questions", |question| rename_for_kimi(question, QUESTION));
        }
        "Agent" => change(&mut fields, "subagent_type", kimi_agent),
        "WebFetch" if fields.get("prompt").is_some_and(|prompt| prompt == PAGE_QUESTION) => {
            fields.shift_remove("prompt");
        }
        _ => {}
    }
    (name, Value::Object(fields))
}

fn millis_to_seconds(millis: &Value) -> Option<Value> {
    match millis.as_u64() {
        Some(millis) if millis % 1000 == 0 => Some((millis / 1000).into()),
        _ => Number::from_f64(millis.as_f64()? / 1000.0).map(Value::Number),
    }
}

fn kimi_mode(mode: &Value) -> Option<Value> {
    (mode == "count").then(|| "count_matches".into())
}

/// The name of an agent that the engine defines.
fn kimi_agent(name: &Value) -> Option<Value> {
    match name.as_str()? {
        "general-purpose" => Some("coder".into()),
        "Explore" => Some("explore".into()),
        "Plan" => Some("plan".into()),
        _ => None,
    }
}

fn kimi_todo(todo: &mut Map<String, Value>) {
    rename_for_kimi(todo, TODO);
    change(todo, "status", |status| (status == "completed").then(|| "done".into()));
    todo.shift_remove("activeForm");
}

fn nest_edit(fields: &mut Map<String, Value>) {
    if let Some(edits) = fields.shift_remove("edits") {
        fields.insert("edit".into(), edits);
        change_items(fields, "edit", |edit| rename_for_kimi(edit, REPLACEMENT));
        return;
    }
    let names = ["old_string", "new_string", "replace_all"];
    let take = |name: &str| Some((name.to_owned(), fields.shift_remove(name)?));
    let mut edit: Map<String, Value> = names.into_iter().filter_map(take).collect();
    if !edit.is_empty() {
        rename_for_kimi(&mut edit, REPLACEMENT);
        fields.insert("edit".into(), edit.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // What a call of Kimi becomes, and back, is tested in `tests`.
    #[test]
    fn calls_in_the_engines_words_are_shown_in_kimis() {
        let rows = [
            ("no object", "Bash", json!("ls"), "Shell", json!("ls")),
            ("milliseconds", "Bash", json!({"timeout": 1500}), "Shell", json!({"timeout": 1.5})),
            (
                "active form",
                "TodoWrite",
                json!({"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a"}]}),
                "SetTodoList",
                json!({"todos": [{"title": "a", "status": "pending"}]}),
            ),
            (
                "question to a page",
                "WebFetch",
                json!({"url": "u", "prompt": "p"}),
                "FetchURL",
                json!({"url": "u", "prompt": "p"}),
            ),
            ("no edit", "Edit", json!({"file_path": "a"}), "StrReplaceFile", json!({"path": "a"})),
            ("hidden tool", "Monitor", json!({"command": "a"}), "Monitor", json!({"command": "a"})),
        ];
        for (name, engine, input, kimi, expected) in rows {
            assert_eq!(to_kimi(engine, &input), (kimi, expected), "{name}");
        }
    }
}
