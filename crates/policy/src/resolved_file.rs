//! The file that a call was judged by. Whoever makes the call uses this place and does not look for it again: between
//! two looks, a folder can become a link.

use std::path::{Component, Path, PathBuf};

use crate::decision::Decision;
use crate::paths::ResolvedPath;

/// A decision, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedDecision {
    /// Whether the call may be made.
    pub decision: Decision,
    /// The one file that it reads or changes; none for all other calls.
    pub file: Option<ResolvedFile>,
}

/// Where a file lies, as it was found when the call was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    /// How people call it: absolute and without dots. It may lead through links.
    pub display_path: PathBuf,
    /// Where it really lies. There was no link on the way, so one that is found there later was not judged.
    pub real_path: PathBuf,
}

impl ResolvedFile {
    /// The place of a path. A `..` behind a link leads out of the folder that the link leads to, not back to where the
    /// link stands: only the real path is a name for that.
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
    fn a_judged_file_has_a_name_and_a_place() {
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
