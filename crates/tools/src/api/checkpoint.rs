//! Saves checkpoints of files before a call changes them. Every tool call passes here.

use std::sync::Arc;

use whimbrel_os::files;

use crate::api::Effects;
use crate::workspace::Workspace;

/// Saves the files that the call declares to write, if the session keeps checkpoints.
pub(crate) async fn save_checkpoint(effects: Effects, workspace: &Arc<Workspace>) {
    let (Effects::Writes(paths), Some(checkpoints)) = (effects, workspace.checkpoints()) else { return };
    let workspace = Arc::clone(workspace);
    let save = move || {
        let paths = paths.iter().map(|path| files::normalize_path(&workspace.resolve(path)));
        paths
            .filter(|path| !files::is_special_path(path))
            .for_each(|path| checkpoints.snapshot_before_change(&path));
    };
    // Fails only if the runtime is shutting down.
    let _ = files::run_blocking(save).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::builtin::builtin_tools;
    use whimbrel_session_store::checkpoint::{Checkpoints, RewindMode};

    #[test]
    fn every_writing_tool_declares_its_paths() {
        let input = json!({"file_path": "a", "notebook_path": "a", "content": "", "old_string": "", "new_string": "x"});
        let tools = builtin_tools();
        let writes = |effects: &Effects| matches!(effects, Effects::Writes(paths) if paths == &["a"]);
        let writers: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.effects(&input).is_ok_and(|effects| writes(&effects)))
            .map(|tool| tool.name())
            .collect();
        assert_eq!(writers, ["Write", "Edit", "NotebookEdit"]);
    }

    #[tokio::test]
    async fn changed_files_are_saved_except_system_paths() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a"), "old").unwrap();
        let checkpoints = Checkpoints::new(root.join("history"));
        checkpoints.record_prompt("one");
        let workspace = Workspace::new(root.clone(), root.join("spill"), BTreeMap::new());
        let workspace = Arc::new(workspace.with_checkpoints(Some(checkpoints)));
        save_checkpoint(Effects::Writes(vec!["./a".into(), "/proc/self/environ".into()]), &workspace).await;
        save_checkpoint(Effects::Reads(vec!["b".into()]), &workspace).await;
        fs::write(root.join("a"), "new").unwrap();
        fs::write(root.join("b"), "new").unwrap();
        let rewound = workspace.checkpoints().unwrap().rewind("one", RewindMode::Restore).unwrap();
        assert_eq!(rewound.changed, [root.join("a")]);
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "old");
    }
}
