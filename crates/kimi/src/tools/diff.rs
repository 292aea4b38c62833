//! Changes of files as display blocks: from the input of a call, and from its structured result.

use serde::Deserialize;
use serde_json::Value;

use super::display::DisplayBlock;

/// A changed part of a file, with context. Lines begin with a space, `-` or `+`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hunk {
    old_start: u64,
    new_start: u64,
    lines: Vec<String>,
}

/// The fields of results of Edit and Write.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangedFile {
    file_path: String,
    structured_patch: Vec<Hunk>,
    #[serde(default)]
    content: String,
    #[serde(default, rename = "type")]
    change: Option<String>,
}

/// The change that a call has made.
pub(super) fn from_result(result: &Value) -> Vec<DisplayBlock> {
    let Ok(changed) = ChangedFile::deserialize(result) else { return Vec::new() };
    let ChangedFile { file_path, structured_patch, content, change } = changed;
    if change.as_deref() == Some("create") {
        return vec![whole_file(&file_path, String::new(), content)];
    }
    structured_patch.iter().map(|hunk| hunk.to_block(&file_path)).collect()
}

/// The change that a call of Edit or Write would make. `read_text` reads the text of a file, if there is one.
pub(super) fn from_input(
    engine_name: &str,
    input: &Value,
    read_text: impl FnOnce(&str) -> Option<String>,
) -> Vec<DisplayBlock> {
    let Some(path) = input["file_path"].as_str() else { return Vec::new() };
    let edits = input["edits"].as_array().filter(|edits| !edits.is_empty());
    match (engine_name, input["content"].as_str(), edits) {
        ("Write", Some(content), _) => {
            let old = read_text(path).unwrap_or_default();
            let new = match input["mode"].as_str() {
                Some("append") => format!("{old}{content}"),
                _ => content.to_owned(),
            };
            vec![whole_file(path, old, new)]
        }
        ("Edit", _, Some(edits)) => edits.iter().filter_map(|edit| replacement(path, edit)).collect(),
        ("Edit", _, None) => replacement(path, input).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn whole_file(path: &str, old_text: String, new_text: String) -> DisplayBlock {
    DisplayBlock::Diff {
        path: path.to_owned(),
        old_text,
        new_text,
        old_start: Some(1),
        new_start: Some(1),
        is_summary: None,
    }
}

/// Where the text is in the file is not known before the call.
fn replacement(path: &str, edit: &Value) -> Option<DisplayBlock> {
    Some(DisplayBlock::Diff {
        path: path.to_owned(),
        old_text: edit["old_string"].as_str()?.to_owned(),
        new_text: edit["new_string"].as_str()?.to_owned(),
        old_start: None,
        new_start: None,
        is_summary: None,
    })
}

impl Hunk {
    fn to_block(&self, path: &str) -> DisplayBlock {
        DisplayBlock::Diff {
            path: path.to_owned(),
            old_text: self.side('-'),
            new_text: self.side('+'),
            old_start: Some(self.old_start),
            new_start: Some(self.new_start),
            is_summary: None,
        }
    }

    /// The text before (`-`) or after (`+`) the change.
    fn side(&self, mark: char) -> String {
        let lines = self.lines.iter().filter_map(|line| line.strip_prefix([' ', mark]));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diff(old_text: &str, new_text: &str, starts: Option<(u64, u64)>) -> DisplayBlock {
        DisplayBlock::Diff {
            path: "/w/a".into(),
            old_text: old_text.into(),
            new_text: new_text.into(),
            old_start: starts.map(|(old, _)| old),
            new_start: starts.map(|(_, new)| new),
            is_summary: None,
        }
    }

    #[test]
    fn results_show_what_was_changed() {
        let first = json!({"oldStart": 4, "oldLines": 3, "newStart": 4, "newLines": 3,
            "lines": [" x", "-old", "+new", " y", "\\ No newline at end of file"]});
        let second =
            json!({"oldStart": 90, "oldLines": 1, "newStart": 91, "newLines": 0, "lines": ["-gone"]});
        let rows = [
            (
                "edited",
                json!({"filePath": "/w/a", "structuredPatch": [first, second]}),
                vec![diff("x\nold\ny", "x\nnew\ny", Some((4, 4))), diff("gone", "", Some((90, 91)))],
            ),
            (
                "created",
                json!({"type": "create", "filePath": "/w/a", "content": "t\n", "structuredPatch": []}),
                vec![diff("", "t\n", Some((1, 1)))],
            ),
            (
                "unchanged",
                json!({"type": "update", "filePath": "/w/a", "content": "t\n", "structuredPatch": []}),
                vec![],
            ),
            ("no file", json!({"stdout": ""}), vec![]),
            ("error", json!("Error: x"), vec![]),
        ];
        for (name, result, expected) in rows {
            assert_eq!(from_result(&result), expected, "{name}");
        }
    }

    #[test]
    fn inputs_show_what_would_be_changed() {
        let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
        let rows = [
            (
                "edit",
                "Edit",
                json!({"file_path": "/w/a", "old_string": "x", "new_string": "y"}),
                vec![diff("x", "y", None)],
            ),
            (
                "several edits",
                "Edit",
                json!({"file_path": "/w/a", "edits": [edit("x", "y"), edit("z", "")]}),
                vec![diff("x", "y", None), diff("z", "", None)],
            ),
            ("half an edit", "Edit", json!({"file_path": "/w/a", "old_string": "x"}), vec![]),
            (
                "overwritten",
                "Write",
                json!({"file_path": "/w/a", "content": "new\n"}),
                vec![diff("old\n", "new\n", Some((1, 1)))],
            ),
            (
                "appended",
                "Write",
                json!({"file_path": "/w/a", "content": "new\n", "mode": "append"}),
                vec![diff("old\n", "old\nnew\n", Some((1, 1)))],
            ),
            ("no path", "Write", json!({"content": "new\n"}), vec![]),
        ];
        for (name, tool, input, expected) in rows {
            assert_eq!(from_input(tool, &input, |_| Some("old\n".into())), expected, "{name}");
        }
        let created = from_input("Write", &json!({"file_path": "/w/a", "content": "new\n"}), |_| None);
        assert_eq!(created, [diff("", "new\n", Some((1, 1)))]);
    }
}
