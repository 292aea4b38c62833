//! Fields of inputs that differ in their names only.

use serde_json::{Map, Value};

/// Kimi's name of a field and the engine's.
type FieldPair = (&'static str, &'static str);

/// The fields of one replacement in a file.
pub(super) const REPLACEMENT: &[FieldPair] = &[("old", "old_string"), ("new", "new_string")];
/// The fields of a question to the user.
pub(super) const QUESTION: &[FieldPair] = &[("multi_select", "multiSelect")];
/// The fields of an entry of the to-do list.
pub(super) const TODO: &[FieldPair] = &[("title", "content")];

/// The fields of a call of an agent in older versions of Kimi.
pub(super) const OLDER_AGENT: &[FieldPair] = &[("subagent_name", "subagent_type")];

/// The fields of a tool's input, by the engine's name of the tool.
pub(super) fn of_tool(engine_name: &str) -> &'static [FieldPair] {
    match engine_name {
        "Read" => &[("path", "file_path"), ("line_offset", "offset"), ("n_lines", "limit")],
        "Write" | "Edit" => &[("path", "file_path")],
        "Glob" => &[("directory", "path")],
        _ => &[],
    }
}

/// Gives fields the engine's names.
pub(super) fn rename_for_engine(fields: &mut Map<String, Value>, pairs: &[FieldPair]) {
    rename(fields, |name| pairs.iter().find(|(kimi, _)| *kimi == name).map(|(_, engine)| *engine));
}

/// Gives fields Kimi's names.
pub(super) fn rename_for_kimi(fields: &mut Map<String, Value>, pairs: &[FieldPair]) {
    rename(fields, |name| pairs.iter().find(|(_, engine)| *engine == name).map(|(kimi, _)| *kimi));
}

/// Keeps the order of the fields. A new name that is already taken is not given.
fn rename(fields: &mut Map<String, Value>, new_name: impl Fn(&str) -> Option<&'static str>) {
    let old = std::mem::take(fields);
    let taken: Vec<String> = old.keys().cloned().collect();
    fields.extend(old.into_iter().map(|(name, value)| {
        let new = new_name(&name).filter(|new| !taken.iter().any(|known| known == new));
        (new.map_or(name, str::to_owned), value)
    }));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_keep_their_order_and_lose_nothing() {
        let rows = [
            ("renamed", json!({"n_lines": 1, "path": "a"}), r#"{"limit":1,"file_path":"a"}"#),
            ("unknown", json!({"pages": "1", "path": "a"}), r#"{"pages":"1","file_path":"a"}"#),
            ("taken", json!({"path": "a", "file_path": "b"}), r#"{"path":"a","file_path":"b"}"#),
        ];
        for (name, mut input, expected) in rows {
            rename_for_engine(input.as_object_mut().unwrap(), of_tool("Read"));
            assert_eq!(input.to_string(), expected, "{name}");
        }
    }
}
