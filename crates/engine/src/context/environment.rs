//! Environment of the session: directory, platform, date, model. It is a message before the first prompt, not part of
//! the system prompt, so that the cached prefix is the same on every machine and every day.

use std::path::Path;

use whimbrel_os::clock;
use whimbrel_os::files::{self, FileKind};

/// Renders the environment for the model.
pub fn render_environment(cwd: &Path, model: &str, branch: Option<&str>) -> String {
    let git = match branch {
        Some(branch) => format!("a git repository, on {branch}"),
        None => "not a git repository".into(),
    };
    format!(
        "<system-reminder>\nWorking directory: {} ({git})\nPlatform: {} {}\nToday: {}\nModel: {model}\n</system-reminder>",
        cwd.display(),
        std::env::consts::OS,
        std::env::consts::ARCH,
        clock::today(),
    )
}

/// The branch checked out at or above a directory, read from the repository's files; a short commit hash if HEAD is
/// detached.
pub fn git_branch(cwd: &Path) -> Option<String> {
    let git = cwd
        .ancestors()
        .map(|dir| dir.join(".git"))
        .find(|git| !matches!(files::file_kind(git), Ok(FileKind::Missing) | Err(_)))?;
    // In a worktree `.git` is a file that names the real directory.
    let dir = match read_text(&git) {
        Some(text) => git.parent()?.join(text.strip_prefix("gitdir: ")?.trim()),
        None => git,
    };
    let head = read_text(&dir.join("HEAD"))?;
    match head.trim().strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => Some(head.trim().chars().take(8).collect()),
    }
}

fn read_text(path: &Path) -> Option<String> {
    let (bytes, _) = files::read(path, 4096).ok()?;
    String::from_utf8(bytes).ok()
}
