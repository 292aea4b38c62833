//! Files that were changed by others since the model read them; reported with the next prompt.

use std::path::Path;

use whimbrel_os::files::{FileHandle, FileKind, FileStamp};
use whimbrel_tools::builtin::patch;
use whimbrel_tools::workspace::{SeenFile, Workspace};

/// Limit for comparing contents; larger files are only reported as changed.
const MAX_COMPARED_BYTES: u64 = 256 * 1024;

/// Limit on the characters of a diff.
const MAX_DIFF_CHARS: usize = 4_000;

/// Renders the changes for the model, each once; `None` if there are none.
pub fn render_changes(workspace: &Workspace) -> Option<String> {
    let mut changes: Vec<String> = Vec::new();
    for (path, seen) in workspace.seen_files() {
        // The file that was read, not the current target of its path, which was not checked.
        let Some((handle, now)) = open_file(&seen.real_path) else {
            workspace.forget_seen(&path);
            changes.push(format!("{} was deleted.", path.display()));
            continue;
        };
        if (now.modified, now.size) == (seen.modified, seen.size) {
            continue;
        }
        let text = handle.read(MAX_COMPARED_BYTES).ok().and_then(|(bytes, _)| String::from_utf8(bytes).ok());
        changes.extend(describe_change(&path, seen.text.as_deref(), text.as_deref()));
        let seen = SeenFile {
            real_path: seen.real_path,
            modified: now.modified,
            size: now.size,
            text: text.map(Into::into),
        };
        workspace.record_seen(&path, seen);
    }
    changes.sort();
    (!changes.is_empty()).then(|| {
        format!(
            "<system-reminder>\nFiles changed outside this session since you read them:\n{}\n</system-reminder>",
            changes.join("\n")
        )
    })
}

/// A handle to the file and its metadata; `None` if it does not exist.
fn open_file(real_path: &Path) -> Option<(FileHandle, FileStamp)> {
    let handle = FileHandle::for_real_path(real_path).ok()?;
    match handle.kind() {
        Ok(FileKind::File(now)) => Some((handle, now)),
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
    if let Some((end, _)) = diff.char_indices().nth(MAX_DIFF_CHARS) {
        diff.truncate(end);
        diff.push_str("\n(truncated)");
    }
    Some(format!("{}:\n{diff}", path.display()))
}
