//! The changed regions of a file.

use std::time::Duration;

use serde_json::Value;
use similar::{Algorithm, ChangeTag, TextDiff};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// After this time the rest counts as changed.
const TIMEOUT: Duration = Duration::from_millis(200);

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Created,
    Deleted,
    Edited,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Old,
    New,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub(crate) side: Side,
    /// Number in the old file, or in the new one for lines that only it has.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// A changed region with lines around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) lines: Vec<DiffLine>,
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: String,
    pub(crate) change: FileChange,
    pub(crate) hunks: Vec<Hunk>,
    /// False if the numbers of the lines are those of an excerpt.
    pub(crate) has_numbers: bool,
}

impl FileDiff {
    /// Compares two versions of a file; none means that the file does not exist.
    pub(crate) fn from_texts(path: &str, old: Option<&str>, new: Option<&str>) -> Self {
        let change = match (old, new) {
            (None, _) => FileChange::Created,
            (_, None) => FileChange::Deleted,
            _ => FileChange::Edited,
        };
        let hunks = compute_hunks(old.unwrap_or_default(), new.unwrap_or_default());
        Self { path: path.to_owned(), change, hunks, has_numbers: true }
    }

    /// Compares two excerpts whose place in the file is not known.
    pub(crate) fn from_excerpts(path: &str, old: &str, new: &str) -> Self {
        Self { has_numbers: false, ..Self::from_texts(path, Some(old), Some(new)) }
    }

    /// Reads the patch in the structured result of a tool that edits files; none if there is no change in it.
    pub(crate) fn from_patch(path: &str, patch: &Value) -> Option<Self> {
        let hunks: Vec<Hunk> = patch.as_array()?.iter().filter_map(read_hunk).collect();
        let path = path.to_owned();
        (!hunks.is_empty()).then_some(Self { path, change: FileChange::Edited, hunks, has_numbers: true })
    }

    pub(crate) fn added(&self) -> usize {
        self.count(Side::New)
    }

    pub(crate) fn removed(&self) -> usize {
        self.count(Side::Old)
    }

    fn count(&self, side: Side) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side == side).count()
    }
}

fn compute_hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(TIMEOUT).diff_lines(old, new);
    let hunk = |group: &Vec<similar::DiffOp>| {
        let changes = group.iter().flat_map(|change| diff.iter_changes(change));
        let lines = changes.map(|change| {
            let (side, index) = match change.tag() {
                ChangeTag::Equal => (Side::Both, change.new_index()),
                ChangeTag::Delete => (Side::Old, change.old_index()),
                ChangeTag::Insert => (Side::New, change.new_index()),
            };
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            DiffLine { side, number: index.unwrap_or(0) + 1, text }
        });
        Hunk { lines: lines.collect() }
    };
    diff.grouped_ops(CONTEXT_LINES).iter().map(hunk).collect()
}

fn read_hunk(hunk: &Value) -> Option<Hunk> {
    let number = |name: &str| hunk.get(name)?.as_u64().and_then(|number| usize::try_from(number).ok());
    let (mut old, mut new) = (number("oldStart")?, number("newStart")?);
    let mut lines = Vec::new();
    for line in hunk.get("lines")?.as_array()?.iter().filter_map(Value::as_str) {
        let (side, number) = match line.chars().next() {
            Some('-') => (Side::Old, &mut old),
            Some('+') => (Side::New, &mut new),
            Some('\\') => continue,
            _ => {
                old += 1;
                (Side::Both, &mut new)
            }
        };
        let text = line.get(1..).unwrap_or_default().trim_end_matches('\r').to_owned();
        lines.push(DiffLine { side, number: *number, text });
        *number += 1;
    }
    Some(Hunk { lines })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_patches_give_the_same_hunks() {
        let patch = json!([{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3,
            "lines": [" a", "-b", "+B", " c"]}]);
        let from_patch = FileDiff::from_patch("f", &patch).unwrap();
        assert_eq!(from_patch, FileDiff::from_texts("f", Some("a\nb\nc\n"), Some("a\nB\nc\n")));
        assert_eq!((from_patch.added(), from_patch.removed()), (1, 1));
    }

    #[test]
    fn invalid_patches_are_no_diff() {
        for patch in [json!(null), json!([]), json!([{"lines": ["+a"]}]), json!("text")] {
            assert_eq!(FileDiff::from_patch("f", &patch), None, "{patch}");
        }
    }

    #[test]
    fn new_and_deleted_files_are_told() {
        assert_eq!(FileDiff::from_texts("f", None, Some("a\n")).change, FileChange::Created);
        assert_eq!(FileDiff::from_texts("f", Some("a\n"), None).change, FileChange::Deleted);
    }
}
