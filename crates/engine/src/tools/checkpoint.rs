//! Before a call changes files, they are kept, if the session keeps checkpoints. Every tool passes here.

use std::sync::Arc;

use super::{Touches, target};
use crate::files;
use crate::workspace::Workspace;

/// Keeps what a call is about to change.
pub(super) async fn keep(touches: Touches, workspace: &Arc<Workspace>) {
    let (Touches::Writes(paths), Some(checkpoints)) = (touches, workspace.checkpoints()) else { return };
    let workspace = Arc::clone(workspace);
    let keep = move || {
        let paths = paths.iter().map(|path| files::tidy(&workspace.resolve(path)));
        paths.filter(|path| !target::is_off_limits(path)).for_each(|path| checkpoints.before_change(&path));
    };
    // Fails only if the program is about to end.
    let _ = files::aside(keep).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::session::checkpoint::{Checkpoints, Wish};
    use crate::tools::all;

    #[test]
    fn every_tool_that_changes_files_says_which() {
        let input = json!({"file_path": "a", "notebook_path": "a", "content": "", "old_string": "", "new_string": "x"});
        let tools = all();
        let writes = |touches: &Touches| matches!(touches, Touches::Writes(paths) if paths == &["a"]);
        let writers: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.touches(&input).is_ok_and(|touches| writes(&touches)))
            .map(|tool| tool.name())
            .collect();
        assert_eq!(writers, ["Write", "Edit", "NotebookEdit"]);
    }

    #[tokio::test]
    async fn what_a_call_is_about_to_change_is_kept_and_nothing_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a"), "old").unwrap();
        let checkpoints = Checkpoints::new(root.join("history"));
        checkpoints.begin("one");
        let workspace = Workspace::new(root.clone(), root.join("spill"), BTreeMap::new());
        let workspace = Arc::new(workspace.with_checkpoints(Some(checkpoints)));
        keep(Touches::Writes(vec!["./a".into(), "/proc/self/environ".into()]), &workspace).await;
        keep(Touches::Reads(vec!["b".into()]), &workspace).await;
        fs::write(root.join("a"), "new").unwrap();
        fs::write(root.join("b"), "new").unwrap();
        let rewound = workspace.checkpoints().unwrap().rewind("one", Wish::PutBack).unwrap();
        assert_eq!(rewound.changed, [root.join("a")]);
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "old");
    }
}
