//! A call of the model in the engine's words. What does not fit is passed on, so that the engine's own check rejects it.

use serde_json::{Map, Number, Value};

use super::field_names::{self, OLDER_AGENT, QUESTION, REPLACEMENT, TODO, rename_for_engine};
use super::names::{self, engine_name};

/// What the engine's tool for pages is asked, because Kimi's tool has no question.
pub(super) const PAGE_QUESTION: &str = "What does the page say? Give its whole main content as Markdown, in its own \
words and with its links. Leave out navigation and advertising.";

/// Translates name and input. A call by the engine's own name stays as it is.
pub(crate) fn to_engine(kimi_name: &str, input: Value) -> (&str, Value) {
    let tool = engine_name(kimi_name);
    if tool == kimi_name && names::kimi_name(tool) != kimi_name {
        return (tool, input);
    }
    let Value::Object(mut fields) = input else { return (tool, input) };
    rename_for_engine(&mut fields, field_names::of_tool(tool));
    match tool {
        "Bash" | "TaskOutput" => change(&mut fields, "timeout", seconds_to_millis),
        "Edit" => flatten_edit(&mut fields),
        "Grep" => change(&mut fields, "output_mode", engine_mode),
        "TodoWrite" => change_items(&mut fields, "todos", engine_todo),
        "AskUserQuestion" => {
            change_items(&mut fields, "questions", |question| rename_for_engine(question, QUESTION));
        }
        "Agent" => {
            rename_for_engine(&mut fields, OLDER_AGENT);
            change(&mut fields, "subagent_type", engine_agent);
        }
        "WebFetch" if fields.contains_key("url") => {
            fields.entry("prompt").or_insert_with(|| PAGE_QUESTION.into());
        }
        _ => {}
    }
    (tool, Value::Object(fields))
}

/// Changes the value of a field, if there is one.
pub(super) fn change(fields: &mut Map<String, Value>, name: &str, new: impl FnOnce(&Value) -> Option<Value>) {
    if let Some(value) = fields.get_mut(name)
        && let Some(new) = new(value)
    {
        *value = new;
    }
}

/// Changes the objects in a list.
pub(super) fn change_items(
    fields: &mut Map<String, Value>,
    name: &str,
    change: impl Fn(&mut Map<String, Value>),
) {
    let items = fields.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

/// Also quoted numbers, which the engine would take for milliseconds.
fn seconds_to_millis(seconds: &Value) -> Option<Value> {
    let number = match seconds {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // The cast saturates.
    (number.is_finite() && number >= 0.0).then(|| Number::from((number * 1000.0).round() as u64).into())
}

fn engine_mode(mode: &Value) -> Option<Value> {
    (mode == "count_matches").then(|| "count".into())
}

fn engine_agent(name: &Value) -> Option<Value> {
    match name.as_str()? {
        "coder" => Some("general-purpose".into()),
        "explore" => Some("Explore".into()),
        "plan" => Some("Plan".into()),
        _ => None,
    }
}

fn engine_todo(todo: &mut Map<String, Value>) {
    rename_for_engine(todo, TODO);
    change(todo, "status", |status| (status == "done").then(|| "completed".into()));
    if let Some(title) = todo.get("content").cloned() {
        todo.entry("activeForm").or_insert(title);
    }
}

/// One replacement becomes fields of the input, a list becomes `edits`.
fn flatten_edit(fields: &mut Map<String, Value>) {
    match fields.shift_remove("edit") {
        Some(Value::Object(mut edit)) => {
            rename_for_engine(&mut edit, REPLACEMENT);
            for (name, value) in edit {
                fields.entry(name).or_insert(value);
            }
        }
        Some(list @ Value::Array(_)) => {
            fields.insert("edits".into(), list);
            change_items(fields, "edits", |edit| rename_for_engine(edit, REPLACEMENT));
        }
        Some(other) => drop(fields.insert("edit".into(), other)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_that_do_not_fit_are_passed_on() {
        let rows = [
            ("no object", "Shell", json!("ls"), "Bash", json!("ls")),
            ("edit is no object", "StrReplaceFile", json!({"edit": "x"}), "Edit", json!({"edit": "x"})),
            (
                "half an edit",
                "StrReplaceFile",
                json!({"edit": {"old": "x"}}),
                "Edit",
                json!({"old_string": "x"}),
            ),
            (
                "status",
                "SetTodoList",
                json!({"todos": [{"status": "soon"}, 5]}),
                "TodoWrite",
                json!({"todos": [{"status": "soon"}, 5]}),
            ),
            ("timeout", "Shell", json!({"timeout": "soon"}), "Bash", json!({"timeout": "soon"})),
            ("negative timeout", "Shell", json!({"timeout": -1}), "Bash", json!({"timeout": -1})),
            ("no address", "FetchURL", json!({}), "WebFetch", json!({})),
        ];
        for (name, kimi, input, engine, expected) in rows {
            assert_eq!(to_engine(kimi, input), (engine, expected), "{name}");
        }
    }

    #[test]
    fn other_forms_are_accepted() {
        let rows = [
            ("quoted number", "Shell", json!({"timeout": "60"}), "Bash", json!({"timeout": 60_000})),
            ("engine's name", "Bash", json!({"timeout": 60_000}), "Bash", json!({"timeout": 60_000})),
            ("engine's fields", "ReadFile", json!({"file_path": "a"}), "Read", json!({"file_path": "a"})),
            ("engine's directory", "Glob", json!({"path": "a"}), "Glob", json!({"path": "a"})),
            ("picture", "ReadMediaFile", json!({"path": "a.png"}), "Read", json!({"file_path": "a.png"})),
            (
                "older agent",
                "Task",
                json!({"subagent_name": "coder", "prompt": "p"}),
                "Agent",
                json!({"subagent_type": "general-purpose", "prompt": "p"}),
            ),
            (
                "own question",
                "FetchURL",
                json!({"url": "u", "prompt": "p"}),
                "WebFetch",
                json!({"url": "u", "prompt": "p"}),
            ),
        ];
        for (name, kimi, input, engine, expected) in rows {
            assert_eq!(to_engine(kimi, input), (engine, expected), "{name}");
        }
    }
}
