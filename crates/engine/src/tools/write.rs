//! Write: creates a file or replaces its content.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::files;

use super::file_target::{ExistingFile, FileContent, FileTarget, TargetState};
use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, patch};
use crate::workspace::{LineCounts, Workspace};

pub(super) struct WriteTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    content: String,
}

/// Bytes of a very long text that are sent back to the host.
const MAX_ECHO_BYTES: usize = 100_000;

impl Tool for WriteTool {
    type Input = Input;

    const NAME: &'static str = "Write";

    const DESCRIPTION: &'static str = "Creates a file, with its folders, or overwrites one that you have read. To change parts of a file, use Edit.";

    fn effects(input: &Input) -> Effects {
        Effects::Writes(vec![input.file_path.clone()])
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || write_file(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "makes a file and its folders",
                json!({"file_path": "new/deep/x.txt", "content": "hello\n"}),
            )
            .expect_output(&["created", "new/deep/x.txt"])
            .expect_files(&[("new/deep/x.txt", "hello\n")]),
            Example::new("replaces a file that was read", json!({"file_path": "a.txt", "content": "new\n"}))
                .with_files(&[("a.txt", "old\n")])
                .after_call("Read", json!({"file_path": "a.txt"}))
                .expect_output(&["updated"])
                .expect_files(&[("a.txt", "new\n")]),
            Example::new(
                "does not replace an unknown file",
                json!({"file_path": "a.txt", "content": "new\n"}),
            )
            .with_files(&[("a.txt", "old\n")])
            .expect_error(&["not been read"])
            .expect_files(&[("a.txt", "old\n")]),
            Example::new("writes the same file twice", json!({"file_path": "a.txt", "content": "two"}))
                .after_call("Write", json!({"file_path": "./a.txt", "content": "one"}))
                .expect_files(&[("a.txt", "two")]),
            Example::new("does not take a folder for a file", json!({"file_path": "src", "content": "x"}))
                .with_files(&[("src/a.txt", "a")])
                .expect_error(&["EISDIR"]),
        ]
    }
}

fn write_file(input: &Input, call: &ToolContext) -> ToolResult {
    let site = FileTarget::resolve(call, &input.file_path)?;
    match site.load(&call.workspace)? {
        TargetState::Missing => create_file(&call.workspace, &site, &input.content),
        TargetState::File(existing) => replace_file(&call.workspace, &site, &input.content, &existing),
    }
}

fn create_file(workspace: &Workspace, site: &FileTarget, content: &str) -> ToolResult {
    let stamp = site.create(content.as_bytes())?;
    site.record_seen(workspace, stamp, Some(content));
    workspace.add_changed_lines(LineCounts { added: content.lines().count() as u64, removed: 0 });
    let path = &site.path;
    let meta = json!({
        "type": "create",
        "filePath": path.to_string_lossy(),
        "content": content_for_host(content),
        "structuredPatch": [],
        "originalFile": null,
    });
    Ok(ToolOutput::text(format!("File created: {}", path.display()), meta))
}

fn replace_file(
    workspace: &Workspace,
    site: &FileTarget,
    content: &str,
    existing: &ExistingFile,
) -> ToolResult {
    let path = &site.path;
    existing.require_fresh_read(path)?;
    let stamp = site.replace(content.as_bytes())?;
    site.record_seen(workspace, stamp, Some(content));
    let old = match &existing.content {
        FileContent::Text(decoded) => Some(decoded.text.as_str()),
        FileContent::Binary | FileContent::TooLarge => None,
    };
    let hunks = old.map(|old| patch::compute_hunks(old, content)).unwrap_or_default();
    workspace.add_changed_lines(patch::count_changed_lines(&hunks));
    let meta = json!({
        "type": "update",
        "filePath": path.to_string_lossy(),
        "content": content_for_host(content),
        "structuredPatch": hunks,
        "originalFile": old.map(patch::text_for_host),
    });
    Ok(ToolOutput::text(format!("File updated: {}", path.display()), meta))
}

/// The written text for the host, shortened if very long.
fn content_for_host(content: &str) -> &str {
    if patch::fits_host_frame(content) {
        content
    } else {
        &content[..content.floor_char_boundary(MAX_ECHO_BYTES)]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::Value;

    use super::*;
    use crate::tools::example::TestWorkspace;

    #[tokio::test]
    async fn the_host_gets_old_content_and_patch() {
        let bench = TestWorkspace::new(&[("a.txt", "old\n")]);
        bench.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        let done = bench.run_tool("Write", json!({"file_path": "a.txt", "content": "new\n"})).await.unwrap();
        let expected = json!({
            "type": "update",
            "filePath": bench.path("a.txt"),
            "content": "new\n",
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-old", "+new"]}],
            "originalFile": "old\n",
        });
        assert_eq!(done.meta, expected);
    }

    #[tokio::test]
    async fn a_file_changed_by_others_is_not_overwritten() {
        let bench = TestWorkspace::new(&[("a.txt", "old\n")]);
        bench.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        fs::write(bench.path("a.txt"), "theirs\n").unwrap();
        let trouble =
            bench.run_tool("Write", json!({"file_path": "a.txt", "content": "mine\n"})).await.unwrap_err();
        assert!(trouble.reason().contains("changed since it was read"), "{trouble:?}");
        assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "theirs\n");
    }

    #[tokio::test]
    async fn a_failing_write_leaves_everything_unchanged() {
        let bench = TestWorkspace::new(&[("blocker", "old\n")]);
        let trouble =
            bench.run_tool("Write", json!({"file_path": "blocker/x.txt", "content": "x"})).await.unwrap_err();
        assert!(matches!(trouble, ToolError::Failed(_)), "{trouble:?}");
        assert_eq!(files::entry_names(bench.root(), 9), ["blocker"]);
    }

    #[tokio::test]
    async fn pipes_and_devices_are_rejected_symlinks_followed() {
        let bench = TestWorkspace::new(&[]);
        nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in ["pipe", "/dev/null"] {
            let trouble =
                bench.run_tool("Write", json!({"file_path": path, "content": "x"})).await.unwrap_err();
            assert!(matches!(trouble, ToolError::Rejected(_)), "{trouble:?}");
        }
        symlink("real.txt", bench.path("link.txt")).unwrap();
        bench.run_tool("Write", json!({"file_path": "link.txt", "content": "x"})).await.unwrap();
        assert_eq!(fs::read_to_string(bench.path("real.txt")).unwrap(), "x");
    }

    #[tokio::test]
    async fn a_binary_file_can_be_overwritten_after_reading() {
        let broken_picture = [&b"\x89PNG\r\n\x1a\n"[..], &[7; 40]].concat();
        let large = [&b"\x7FELF\0"[..], &[1; 400_000]].concat();
        for (name, bytes) in [("small", &b"\x7FELF\0\0"[..]), ("picture", &broken_picture), ("large", &large)]
        {
            let bench = TestWorkspace::new(&[]);
            fs::write(bench.path("a.bin"), bytes).unwrap();
            let input = json!({"file_path": "a.bin", "content": "text\n"});
            let trouble = bench.run_tool("Write", input.clone()).await.unwrap_err();
            assert!(trouble.reason().contains("not been read"), "{name}: {trouble:?}");
            bench.run_tool("Read", json!({"file_path": "a.bin"})).await.unwrap_err();
            let done =
                bench.run_tool("Write", input).await.unwrap_or_else(|trouble| panic!("{name}: {trouble:?}"));
            assert_eq!((&done.meta["originalFile"], &done.meta["type"]), (&Value::Null, &json!("update")));
            assert_eq!(fs::read_to_string(bench.path("a.bin")).unwrap(), "text\n", "{name}");
        }
    }

    #[tokio::test]
    async fn a_read_only_file_is_rejected_and_hard_links_kept() {
        let bench = TestWorkspace::new(&[
            ("a.txt", "old\n"),
            ("n.ipynb", r#"{"cells": [{"id": "c", "source": "x"}]}"#),
        ]);
        for path in ["a.txt", "n.ipynb"] {
            bench.run_tool("Read", json!({ "file_path": path })).await.unwrap();
            fs::hard_link(bench.path(path), bench.path(&format!("other-{path}"))).unwrap();
        }
        let calls = [
            ("Write", json!({"file_path": "a.txt", "content": "new\n"}), "a.txt"),
            ("Edit", json!({"file_path": "a.txt", "old_string": "new", "new_string": "newer"}), "a.txt"),
            (
                "NotebookEdit",
                json!({"notebook_path": "n.ipynb", "cell_id": "c", "new_source": "y"}),
                "n.ipynb",
            ),
        ];
        for (tool, input, path) in calls {
            let before = fs::read(bench.path(path)).unwrap();
            let mode =
                |mode| fs::set_permissions(bench.path(path), fs::Permissions::from_mode(mode)).unwrap();
            mode(0o444);
            if tool == "Edit" {
                // Written by the previous call.
                assert_eq!(before, b"new\n");
            }
            let said = bench.run_to_text(tool, input.clone()).await;
            assert!(said.contains("read-only (EACCES)") && said.contains("chmod u+w"), "{tool}: {said}");
            assert!(said.contains(bench.path(path).to_str().unwrap()), "{tool}: {said}");
            assert_eq!(fs::read(bench.path(path)).unwrap(), before);
            mode(0o644);
            bench.run_tool(tool, input).await.unwrap();
            let after = fs::read(bench.path(path)).unwrap();
            assert_ne!(after, before);
            assert_eq!(fs::read(bench.path(&format!("other-{path}"))).unwrap(), after, "{tool}");
        }
    }

    #[tokio::test]
    async fn a_running_program_can_be_replaced() {
        let bench = TestWorkspace::new(&[]);
        let start = "cp \"$(command -v sleep)\" sleep; chmod 755 sleep; ./sleep 60 & \
                     until [ /proc/$!/exe -ef sleep ]; do :; done";
        bench.run_tool("Bash", json!({ "command": start })).await.unwrap();
        bench.run_tool("Read", json!({"file_path": "sleep"})).await.unwrap_err();
        bench.run_tool("Write", json!({"file_path": "sleep", "content": "#!/bin/sh\n"})).await.unwrap();
        assert_eq!(bench.run_to_text("Bash", json!({"command": "./sleep; stat -c %a sleep"})).await, "755");
    }

    #[tokio::test]
    async fn every_tool_names_path_cause_and_remedy() {
        let bench = TestWorkspace::new(&[("file", "x")]);
        symlink("round", bench.path("round")).unwrap();
        let long = "n".repeat(300);
        for (path, words) in [
            ("file/below/x", "/file is a file, not a folder"),
            ("round", "its symbolic links lead in a circle (ELOOP). Name the file"),
            (&long, "the name is too long (a name has at most 255 bytes, a path 4096) (ENAMETOOLONG). Use a"),
            (".", "is a folder, not a file. "),
            ("nul\0", "NUL byte in it. Leave it out."),
        ] {
            let calls = [
                ("Read", json!({ "file_path": path })),
                ("Write", json!({"file_path": path, "content": "x"})),
                ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})),
                ("Edit", json!({"file_path": path, "old_string": "", "new_string": "b"})),
                ("NotebookEdit", json!({"notebook_path": path, "cell_id": "a", "new_source": "b"})),
            ];
            for (tool, input) in calls {
                let said = bench.run_to_text(tool, input).await;
                assert!(said.contains(words), "{tool} {path:?}: {said}");
            }
        }
        assert_eq!(files::entry_names(bench.root(), 9).len(), 2);
    }

    #[tokio::test]
    async fn a_huge_text_is_shortened_for_the_host_only() {
        let bench = TestWorkspace::new(&[]);
        let content = "é".repeat(400_000);
        let done = bench.run_tool("Write", json!({"file_path": "a.txt", "content": content})).await.unwrap();
        assert!(done.meta["content"].as_str().is_some_and(|echo| echo.len() <= MAX_ECHO_BYTES));
        assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), content);
        let done = bench.run_tool("Write", json!({"file_path": "a.txt", "content": ""})).await.unwrap();
        assert_eq!(done.meta["originalFile"], Value::Null);
    }
}
