//! A small workspace for tests of the search tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::ResultContent;

use crate::tasks::Tasks;
use crate::tools::{AnyTool, Call, Done, Example, Output, Tool};
use crate::workspace::Workspace;

/// A folder with files, and a session in it.
pub(in crate::tools) struct Trial {
    pub(in crate::tools) folder: TempDir,
    pub(in crate::tools) call: Call,
}

impl Trial {
    /// A workspace with these files.
    pub(in crate::tools) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_path_buf();
        let workspace = Arc::new(Workspace::new(root.clone(), root.join(".spill"), BTreeMap::new()));
        let tasks = Tasks::new(tokio::sync::mpsc::unbounded_channel().0);
        Self { folder, call: Call { id: "call".into(), workspace, tasks, cancel: CancellationToken::new() } }
    }

    /// Makes one call.
    pub(in crate::tools) async fn output(&self, tool: &impl Tool, input: Value) -> Output {
        AnyTool::run(tool, input, self.call.clone()).await
    }

    /// Makes a call that works.
    pub(in crate::tools) async fn done(&self, tool: &impl Tool, input: Value) -> Done {
        self.output(tool, input).await.unwrap()
    }

    /// Makes a call that works, and gives what the model reads.
    pub(in crate::tools) async fn text(&self, tool: &impl Tool, input: Value) -> String {
        text(&self.done(tool, input).await)
    }
}

/// What the model reads of a call.
pub(in crate::tools) fn text(done: &Done) -> String {
    match &done.content {
        ResultContent::Text(text) => text.clone(),
        other => panic!("not a text: {other:?}"),
    }
}

/// Runs a tool's examples.
pub(in crate::tools) async fn examples<T: Tool>(tool: &T) {
    for Example { shows, files, input, says, fails, .. } in T::examples() {
        let output = Trial::new(files).output(tool, input).await;
        assert_eq!(output.is_err(), fails, "{shows}: {output:?}");
        let said = output.map_or_else(|trouble| trouble.for_model(), |done| text(&done));
        for words in says {
            assert!(said.contains(words), "{shows}: {said}");
        }
    }
}
