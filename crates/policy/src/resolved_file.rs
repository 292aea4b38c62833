//! The file that a decision is about. The tool must use this resolved path and not resolve the name again: a
//! directory could have become a link in between.

use std::path::{Component, Path, PathBuf};

use crate::decision::Decision;
use crate::paths::ResolvedPath;

/// A decision and the file it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedDecision {
    pub decision: Decision,
    /// The one file that the call reads or writes; none for all other calls.
    pub file: Option<ResolvedFile>,
}

/// A file, as resolved when the call was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    /// Absolute path without dots, for display. It may lead through links.
    pub display_path: PathBuf,
    /// Path without links at decision time. A link found there later was not part of the decision.
    pub real_path: PathBuf,
}

impl ResolvedFile {
    /// Creates a file from its resolved path. A `..` behind a link leaves the link's target, not the directory of the
    /// link, so the lexical path would be wrong; the physical path is displayed then.
    pub(crate) fn new(written: &str, path: &ResolvedPath) -> Self {
        let goes_back = Path::new(written).components().any(|part| part == Component::ParentDir);
        let shown = if goes_back && path.is_linked() { &path.physical } else { &path.lexical };
        Self { display_path: shown.clone(), real_path: path.physical.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::permission::PermissionMode;

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn decision_resolves_the_file() {
        let room = Fixture::new();
        let place = |tool: &str, input| room.decide_and_resolve(PermissionMode::Default, tool, &input).file;
        let rows = [
            ("src/./app.ts", "/fx/proj/src/app.ts", "/fx/proj/src/app.ts"),
            ("src/../notes.txt", "/fx/proj/notes.txt", "/fx/proj/notes.txt"),
            ("link_secret", "/fx/proj/link_secret", "/fx/proj/secrets/key.txt"),
            ("link_out/new/x", "/fx/proj/link_out/new/x", "/fx/outside/new/x"),
            ("link_out/../x", "/fx/x", "/fx/x"),
            ("~/.bashrc", "/fx/home/.bashrc", "/fx/home/.bashrc"),
        ];
        for (written, shown, real) in rows {
            let expected = Some(ResolvedFile { display_path: shown.into(), real_path: real.into() });
            assert_eq!(place("Read", json!({"file_path": written})), expected, "{written}");
            assert_eq!(place("Write", json!({"file_path": written, "content": ""})), expected, "{written}");
            assert_eq!(place("NotebookEdit", json!({"notebook_path": written})), expected, "{written}");
        }
        assert_eq!(place("Grep", json!({"pattern": "x", "path": "src"})), None);
        assert_eq!(place("Bash", json!({"command": "cat src/app.ts"})), None);
    }
}
