//! Files that the model has read and that somebody else has changed since: told to the model with the next prompt.

use std::path::Path;

use crate::files::{Kind, Spot, Stamp};
use crate::tools::patch;
use crate::workspace::{Seen, Workspace};

/// Larger files are only said to have changed.
const COMPARED: u64 = 256 * 1024;

/// How much of a difference the model is shown.
const SHOWN: usize = 4_000;

/// What changed, as the model reads it; none if nothing did. What was told once is not told again.
pub fn since_seen(workspace: &Workspace) -> Option<String> {
    let mut news: Vec<String> = Vec::new();
    for (path, seen) in workspace.all_seen() {
        // The file that was read, not what its path leads to by now: nobody has judged that.
        let Some((spot, now)) = find(&seen.real) else {
            workspace.forget(&path);
            news.push(format!("{} is gone.", path.display()));
            continue;
        };
        if (now.modified, now.size) == (seen.modified, seen.size) {
            continue;
        }
        let text = spot.read(COMPARED).ok().and_then(|(bytes, _)| String::from_utf8(bytes).ok());
        news.extend(describe(&path, seen.text.as_deref(), text.as_deref()));
        let seen =
            Seen { real: seen.real, modified: now.modified, size: now.size, text: text.map(Into::into) };
        workspace.note_seen(&path, seen);
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
fn find(real: &Path) -> Option<(Spot, Stamp)> {
    let spot = Spot::find(real).ok()?;
    match spot.kind() {
        Ok(Kind::File(now)) => Some((spot, now)),
        _ => None,
    }
}

fn describe(path: &Path, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (Some(before), Some(after)) = (before, after) else {
        return Some(format!("{} (read it again before you edit it)", path.display()));
    };
    if before == after {
        return None;
    }
    let mut diff: String = patch::hunks(before, after).iter().map(ToString::to_string).collect();
    if let Some((cut, _)) = diff.char_indices().nth(SHOWN) {
        diff.truncate(cut);
        diff.push_str("\n(and more)");
    }
    Some(format!("{}:\n{diff}", path.display()))
}
