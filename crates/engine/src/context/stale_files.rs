//! Files that the model has read and that somebody else has changed since: told to the model with the next prompt.

use std::path::Path;

use crate::files::{FileKind, FileHandle, FileStamp};
use crate::tools::patch;
use crate::workspace::{SeenFile, Workspace};

/// Larger files are only said to have changed.
const MAX_COMPARED_BYTES: u64 = 256 * 1024;

/// How much of a difference the model is shown.
const MAX_DIFF_CHARS: usize = 4_000;

/// What changed, as the model reads it; none if nothing did. What was told once is not told again.
pub fn render_changes(workspace: &Workspace) -> Option<String> {
    let mut news: Vec<String> = Vec::new();
    for (path, seen) in workspace.seen_files() {
        // The file that was read, not what its path leads to by now: nobody has judged that.
        let Some((spot, now)) = open_file(&seen.real_path) else {
            workspace.forget_seen(&path);
            news.push(format!("{} is gone.", path.display()));
            continue;
        };
        if (now.modified, now.size) == (seen.modified, seen.size) {
            continue;
        }
        let text = spot.read(MAX_COMPARED_BYTES).ok().and_then(|(bytes, _)| String::from_utf8(bytes).ok());
        news.extend(describe_change(&path, seen.text.as_deref(), text.as_deref()));
        let seen =
            SeenFile { real_path: seen.real_path, modified: now.modified, size: now.size, text: text.map(Into::into) };
        workspace.record_seen(&path, seen);
    }
    news.sort();
    (!news.is_empty()).then(|| {
        format!(
            "<system-reminder>\nChanged by somebody else since you read it:\n{}\n</system-reminder>",
            news.join("\n")
        )
    })
}

/// Where a file is, and how it is now.
fn open_file(real: &Path) -> Option<(FileHandle, FileStamp)> {
    let spot = FileHandle::for_real_path(real).ok()?;
    match spot.kind() {
        Ok(FileKind::File(now)) => Some((spot, now)),
        _ => None,
    }
}

fn describe_change(path: &Path, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (Some(before), Some(after)) = (before, after) else {
        return Some(format!("{} (read it again before you edit it)", path.display()));
    };
    if before == after {
        return None;
    }
    let mut diff: String = patch::compute_hunks(before, after).iter().map(ToString::to_string).collect();
    if let Some((cut, _)) = diff.char_indices().nth(MAX_DIFF_CHARS) {
        diff.truncate(cut);
        diff.push_str("\n(and more)");
    }
    Some(format!("{}:\n{diff}", path.display()))
}
