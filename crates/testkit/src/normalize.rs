//! Normalization of a run: replaces everything that differs from run to run, without IO.
//!
//! - Ids made by the engine are named in the order of first appearance: `<session-1>`, `<request-1>`, `<task-1>`,
//!   `<agent-1>`. Any other UUID becomes `<uuid>`, unless it occurs in the scenario itself.
//! - Timestamps become `<time>`; durations, delays and process ids become 0.
//! - Paths and addresses of the run become `<workspace>`, `<home>`, `<tmp>`, `<api>`.
//! - `init` loses its commands, skills and agents, and its version becomes `<version>`: they change with the engine
//!   and are not part of a scenario.
//! - The provider's request id is removed: the scripted model has none.
//! - Zero counts in `usage` are removed to keep the frames short.
//! - Adjacent tool results are sorted by id, because parallel calls finish in any order.

use serde_json::Value;

/// Fields that hold an id, and the kind in its placeholder.
const ID_FIELDS: [(&str, &str); 5] = [
    ("session_id", "session"),
    ("request_id", "request"),
    ("task_id", "task"),
    ("agent_id", "agent"),
    ("agentId", "agent"),
];

/// Shorter ids could be part of another text.
const MIN_ID_LEN: usize = 6;

/// Values of a run that the normalization replaces or keeps.
#[derive(Debug, Clone, Default)]
pub struct NormalizeOptions {
    /// Texts of this run and their placeholders.
    pub placeholders: Vec<(String, String)>,
    /// UUIDs and ids that occur in this text are kept.
    pub scenario_text: String,
}

/// Replaces everything in the frames that differs from run to run.
pub fn normalize_frames(frames: &[Value], known: &NormalizeOptions) -> Vec<Value> {
    let mut names = known.placeholders.clone();
    // Longest first, so that a nested directory is replaced before its parent.
    names.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    let frames: Vec<Value> = frames.iter().cloned().map(remove_request_id).collect();
    names.extend(assign_id_names(&frames, known));
    let mut frames: Vec<Value> =
        frames.iter().map(|frame| normalize_value(frame, "", &names, known)).collect();
    frames.iter_mut().for_each(normalize_init);
    sort_adjacent_results(&mut frames, |frame| tool_result_id(&frame["message"]["content"][0]));
    frames
}

/// Removes the provider's request id from an assistant frame.
fn remove_request_id(mut frame: Value) -> Value {
    if frame["type"] == "assistant"
        && let Value::Object(fields) = &mut frame
    {
        fields.remove("request_id");
    }
    frame
}

/// Removes the lists from `init` that change with the engine.
fn normalize_init(frame: &mut Value) {
    if frame["type"] != "system" || frame["subtype"] != "init" {
        return;
    }
    if let Value::Object(fields) = frame {
        fields.retain(|name, _| !["slash_commands", "skills", "agents"].contains(&name.as_str()));
        fields.entry("claude_code_version").and_modify(|version| *version = "<version>".into());
    }
}

/// Sorts adjacent tool results by id.
pub(crate) fn sort_adjacent_results(items: &mut [Value], id: impl Fn(&Value) -> Option<&str>) {
    for run in items.chunk_by_mut(|a, b| id(a).is_some() && id(b).is_some()) {
        run.sort_by_key(|item| id(item).map(str::to_owned));
    }
}

/// Returns the id of the call that a tool result block answers.
pub(crate) fn tool_result_id(block: &Value) -> Option<&str> {
    (block["type"] == "tool_result").then(|| block["tool_use_id"].as_str())?
}

/// Assigns names to the ids made by the engine.
fn assign_id_names(frames: &[Value], known: &NormalizeOptions) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    for (field, id) in frames.iter().flat_map(collect_ids) {
        let is_new = names.iter().all(|(known, _)| *known != id);
        if is_new && id.len() >= MIN_ID_LEN && !id.starts_with("host_") && !known.scenario_text.contains(&id)
        {
            let kind = ID_FIELDS.iter().find(|(name, _)| *name == field).map_or("id", |(_, kind)| kind);
            let prefix = format!("<{kind}-");
            let number = names.iter().filter(|(_, name)| name.starts_with(&prefix)).count() + 1;
            names.push((id, format!("{prefix}{number}>")));
        }
    }
    names
}

fn collect_ids(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) => {
            let ids_in_field = |name: &str, value: &Value| match value {
                Value::String(id) if ID_FIELDS.iter().any(|(field, _)| *field == name) => {
                    vec![(name.to_owned(), id.clone())]
                }
                other => collect_ids(other),
            };
            fields.iter().flat_map(|(name, value)| ids_in_field(name, value)).collect()
        }
        Value::Array(items) => items.iter().flat_map(collect_ids).collect(),
        _ => Vec::new(),
    }
}

fn normalize_value(
    value: &Value,
    field: &str,
    names: &[(String, String)],
    known: &NormalizeOptions,
) -> Value {
    match value {
        Value::Object(fields) => {
            let is_relevant = |name: &str, value: &Value| is_volatile(name) || !is_zero(value);
            let relevant = fields.iter().filter(|(name, value)| field != "usage" || is_relevant(name, value));
            relevant.map(|(name, value)| (name.clone(), normalize_value(value, name, names, known))).collect()
        }
        Value::Array(items) => items.iter().map(|item| normalize_value(item, field, names, known)).collect(),
        Value::Number(_) if is_volatile(field) => 0.into(),
        Value::String(text) => {
            let named = names.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to));
            Value::String(replace_timestamps(&replace_uuids(&named, &known.scenario_text)))
        }
        other => other.clone(),
    }
}

/// Returns whether a number, or every number of an object, is zero.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Object(fields) => fields.values().all(is_zero),
        _ => false,
    }
}

/// Returns whether a number in this field is a duration, a delay, a point in time or a process id.
fn is_volatile(field: &str) -> bool {
    matches!(field, "pid" | "end_time")
        || ["_ms", "Ms", "_seconds", "Seconds"].iter().any(|end| field.ends_with(end))
}

fn replace_uuids(text: &str, scenario_text: &str) -> String {
    replace_matches(text, |rest| {
        let candidate = rest.get(..36)?;
        (is_uuid(candidate) && !scenario_text.contains(candidate)).then_some((36, "<uuid>"))
    })
}

fn is_uuid(text: &str) -> bool {
    let is_valid = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_valid)
}

fn replace_timestamps(text: &str) -> String {
    replace_matches(text, |rest| {
        let head = rest.get(..19)?;
        let matches = |(byte, template): (u8, u8)| {
            if template == b'0' { byte.is_ascii_digit() } else { byte == template }
        };
        let is_suffix = |byte: &u8| byte.is_ascii_digit() || b".:+-Z".contains(byte);
        head.bytes().zip(*b"0000-00-00T00:00:00").all(matches).then(|| {
            let suffix = rest.as_bytes()[19..].iter().take_while(|byte| is_suffix(byte)).count();
            (19 + suffix, "<time>")
        })
    })
}

/// Replaces every match of `find`, which returns the length of the match and its replacement.
fn replace_matches(text: &str, find: impl Fn(&str) -> Option<(usize, &'static str)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match find(rest) {
            Some((length, replacement)) => {
                out.push_str(replacement);
                rest = &rest[length..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "3e0f3b6e-7a0a-4f0e-9a52-5f6f2f0d1a11";
    const B: &str = "9b7f6d3c-0d7e-4a5e-8b1c-2c1e5e0a7b22";

    fn test_options() -> NormalizeOptions {
        let placeholder = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        NormalizeOptions {
            placeholders: vec![placeholder("/t/x", "<root>"), placeholder("/t/x/workspace", "<workspace>")],
            scenario_text: B.into(),
        }
    }

    #[test]
    fn run_specific_values_are_replaced() {
        let table = [
            (
                "a named id",
                json!({"session_id": A, "text": A}),
                json!({"session_id": "<session-1>", "text": "<session-1>"}),
            ),
            ("another id", json!({"uuid": A}), json!({"uuid": "<uuid>"})),
            (
                "an id of the scenario",
                json!({"uuid": B, "session_id": B}),
                json!({"uuid": B, "session_id": B}),
            ),
            ("an id of the host", json!({"request_id": "host_1"}), json!({"request_id": "host_1"})),
            (
                "a request id of the provider",
                json!({"type": "assistant", "request_id": "req_123456"}),
                json!({"type": "assistant"}),
            ),
            ("a time", json!("at 2026-11-15T10:00:00.123Z."), json!("at <time>")),
            (
                "a duration",
                json!({"duration_ms": 12, "durationMs": 3, "n": 4}),
                json!({"duration_ms": 0, "durationMs": 0, "n": 4}),
            ),
            (
                "zero counts",
                json!({"usage": {"a": 1, "b": 0, "c": {"d": 0}}, "b": 0}),
                json!({"usage": {"a": 1}, "b": 0}),
            ),
            (
                "lists of the engine",
                json!({"type": "system", "subtype": "init", "tools": ["Read"], "skills": ["a"], "claude_code_version": "1"}),
                json!({"type": "system", "subtype": "init", "tools": ["Read"], "claude_code_version": "<version>"}),
            ),
            ("a directory", json!(["/t/x/workspace/größe"]), json!(["<workspace>/größe"])),
        ];
        for (name, frame, expected) in table {
            assert_eq!(normalize_frames(&[frame], &test_options()), [expected], "{name}");
        }
    }

    #[test]
    fn ids_are_numbered_by_first_appearance() {
        let frames = [json!({"request_id": A}), json!({"request_id": "abcdefgh"}), json!({"x": A})];
        let expected = [
            json!({"request_id": "<request-1>"}),
            json!({"request_id": "<request-2>"}),
            json!({"x": "<request-1>"}),
        ];
        assert_eq!(normalize_frames(&frames, &test_options()), expected);
    }

    #[test]
    fn adjacent_tool_results_are_sorted() {
        let result = |id: &str| json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]}});
        let other = json!({"type": "assistant"});
        let frames = [result("2"), result("1"), other.clone(), result("0")];
        assert_eq!(
            normalize_frames(&frames, &test_options()),
            [result("1"), result("2"), other, result("0")]
        );
    }
}
