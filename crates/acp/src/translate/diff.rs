//! Diffs of files from the structured results of the tools that change them. Pure.

use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation};
use serde::Deserialize;
use serde_json::Value;

/// A changed part of a file, with context. Lines begin with a space, `-` or `+`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hunk {
    new_start: u32,
    lines: Vec<String>,
}

/// The fields of results of Edit, Write and NotebookEdit.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChangedFile {
    file_path: Option<String>,
    #[serde(alias = "notebook_path")]
    notebook_path: Option<String>,
    structured_patch: Vec<Hunk>,
    content: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "original_file")]
    original_notebook: Option<String>,
    #[serde(rename = "updated_file")]
    updated_notebook: Option<String>,
}

/// Diffs and where they begin.
pub(crate) fn from_result(result: &Value) -> Option<(Vec<ToolCallContent>, Vec<ToolCallLocation>)> {
    let changed = ChangedFile::deserialize(result).ok()?;
    let path = changed.file_path.or(changed.notebook_path)?;
    if let (Some(old), Some(new)) = (changed.original_notebook, changed.updated_notebook) {
        return Some((vec![Diff::new(&path, new).old_text(old).into()], vec![ToolCallLocation::new(path)]));
    }
    if changed.kind.as_deref() == Some("create") {
        let diff = Diff::new(&path, changed.content.unwrap_or_default());
        return Some((vec![diff.into()], vec![ToolCallLocation::new(path)]));
    }
    if changed.structured_patch.is_empty() {
        return None;
    }
    let (mut diffs, mut locations) = (Vec::new(), Vec::new());
    for hunk in &changed.structured_patch {
        diffs.push(Diff::new(&path, hunk.side('+')).old_text(hunk.side('-')).into());
        locations.push(ToolCallLocation::new(&path).line(hunk.first_changed_line()));
    }
    Some((diffs, locations))
}

impl Hunk {
    /// The text before (`-`) or after (`+`) the change.
    fn side(&self, mark: char) -> String {
        let lines = self.lines.iter().filter_map(|line| {
            let text = line.strip_prefix([' ', mark])?;
            Some(text)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn first_changed_line(&self) -> u32 {
        let before = self.lines.iter().take_while(|line| line.starts_with(' ')).count();
        self.new_start.saturating_add(u32::try_from(before).unwrap_or(u32::MAX)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hunks_become_diffs_with_context() {
        let result = json!({"filePath": "/a", "structuredPatch": [
            {"oldStart": 4, "oldLines": 3, "newStart": 4, "newLines": 3, "lines": [" x", "-old", "+new", " y", "\\ No newline at end of file"]},
        ]});
        let (diffs, locations) = from_result(&result).unwrap();
        assert_eq!(diffs, [Diff::new("/a", "x\nnew\ny").old_text("x\nold\ny".to_owned()).into()]);
        assert_eq!(locations, [ToolCallLocation::new("/a").line(5)]);
    }

    #[test]
    fn created_file_has_no_old_text_and_other_results_no_diff() {
        let created = json!({"type": "create", "filePath": "/a", "content": "text", "structuredPatch": []});
        assert_eq!(from_result(&created).unwrap().0, [Diff::new("/a", "text").into()]);
        let notebook = json!({"notebook_path": "/n", "original_file": "1", "updated_file": "2"});
        assert_eq!(from_result(&notebook).unwrap().0, [Diff::new("/n", "2").old_text("1".to_owned()).into()]);
        assert!(from_result(&json!({"stdout": ""})).is_none());
        assert!(from_result(&json!("Error: x")).is_none());
    }
}
