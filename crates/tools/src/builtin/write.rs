//! Write: creates a file, replaces its content or appends to it.

use std::slice;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::files;

use super::edit::replace_matches;
use super::encoding::encode;
use super::file_target::{ExistingFile, FileContent, FileTarget, TargetState};
use super::patch;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::workspace::{LineCounts, ReadState, Workspace};

pub(super) struct WriteTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteInput {
    file_path: String,
    content: String,
    // Not in the schema: for hosts whose models know another tool.
    #[schemars(skip)]
    mode: Option<WriteMode>,
}

/// What becomes of the text of an existing file.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    Overwrite,
    Append,
}

/// Bytes of a very long text that are sent back to the host.
const MAX_ECHO_BYTES: usize = 100_000;

impl Tool for WriteTool {
    type Input = WriteInput;

    const NAME: &'static str = "Write";

    const DESCRIPTION: &'static str = "Creates a file and its directories, or overwrites a file that you have read. To \
        change parts of a file, use Edit.";

    fn effects(input: &WriteInput) -> Effects {
        Effects::Writes(vec![input.file_path.clone()])
    }

    async fn run(&self, input: WriteInput, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || write_file(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "creates a file and its directories",
                json!({"file_path": "new/deep/x.txt", "content": "hello\n"}),
            )
            .expect_output(&["created", "new/deep/x.txt"])
            .expect_files(&[("new/deep/x.txt", "hello\n")]),
            Example::new("replaces a file that was read", json!({"file_path": "a.txt", "content": "new\n"}))
                .with_files(&[("a.txt", "old\n")])
                .after_call("Read", json!({"file_path": "a.txt"}))
                .expect_output(&["updated"])
                .expect_files(&[("a.txt", "new\n")]),
            Example::new("rejects an unread file", json!({"file_path": "a.txt", "content": "new\n"}))
                .with_files(&[("a.txt", "old\n")])
                .expect_error(&["not been read"])
                .expect_files(&[("a.txt", "old\n")]),
            Example::new("writes the same file twice", json!({"file_path": "a.txt", "content": "two"}))
                .after_call("Write", json!({"file_path": "./a.txt", "content": "one"}))
                .expect_files(&[("a.txt", "two")]),
            Example::new(
                "appends to a file that was not read",
                json!({"file_path": "a.txt", "content": "two\n", "mode": "append"}),
            )
            .with_files(&[("a.txt", "one\n")])
            .expect_output(&["updated"])
            .expect_files(&[("a.txt", "one\ntwo\n")]),
            Example::new(
                "creates the file to append to",
                json!({"file_path": "a.txt", "content": "one\n", "mode": "append"}),
            )
            .expect_output(&["created"])
            .expect_files(&[("a.txt", "one\n")]),
            Example::new("rejects a directory", json!({"file_path": "src", "content": "x"}))
                .with_files(&[("src/a.txt", "a")])
                .expect_error(&["EISDIR"]),
        ]
    }
}

fn write_file(input: &WriteInput, call: &ToolContext) -> ToolResult {
    let (workspace, content) = (&*call.workspace, input.content.as_str());
    let target = FileTarget::resolve(call, &input.file_path)?;
    match target.load(workspace)? {
        TargetState::Missing => create_file(workspace, &target, content),
        TargetState::File(existing) => match input.mode.unwrap_or(WriteMode::Overwrite) {
            WriteMode::Overwrite => replace_file(workspace, &target, content, &existing),
            WriteMode::Append => append_to_file(workspace, &target, content, &existing),
        },
    }
}

fn create_file(workspace: &Workspace, target: &FileTarget, content: &str) -> ToolResult {
    let stamp = target.create(content.as_bytes())?;
    target.record_seen(workspace, stamp, Some(content));
    workspace.add_changed_lines(LineCounts { added: content.lines().count() as u64, removed: 0 });
    let path = &target.path;
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
    target: &FileTarget,
    content: &str,
    existing: &ExistingFile,
) -> ToolResult {
    let path = &target.path;
    existing.require_fresh_read(path)?;
    let stamp = target.replace(content.as_bytes())?;
    target.record_seen(workspace, stamp, Some(content));
    let old = match &existing.content {
        FileContent::Text(decoded) => Some(decoded.text.as_str()),
        FileContent::Binary | FileContent::TooLarge => None,
    };
    Ok(update_result(workspace, target, old, content))
}

/// Appends text with the file's line ending and encoding. The file need not have been read; if it was not, it still
/// counts as unread.
fn append_to_file(
    workspace: &Workspace,
    target: &FileTarget,
    content: &str,
    existing: &ExistingFile,
) -> ToolResult {
    let path = target.path.as_path();
    let old = existing.require_editable(path)?;
    let end = old.text.len()..old.text.len();
    let new = replace_matches(&old.text, slice::from_ref(&end), content);
    let Some(bytes) = encode(&new, old.encoding) else {
        let text = format!(
            "{} is encoded in Windows-1252, which cannot represent some characters of content.",
            path.display()
        );
        return Err(ToolError::Rejected(text));
    };
    let stamp = target.replace(&bytes)?;
    if existing.read_state == ReadState::Current {
        target.record_seen(workspace, stamp, Some(&new));
    }
    Ok(update_result(workspace, target, Some(&old.text), &new))
}

/// Result of a changed file; `old` is its text before, if it was text.
fn update_result(workspace: &Workspace, target: &FileTarget, old: Option<&str>, content: &str) -> ToolOutput {
    let path = &target.path;
    let hunks = old.map(|old| patch::compute_hunks(old, content)).unwrap_or_default();
    workspace.add_changed_lines(patch::count_changed_lines(&hunks));
    let meta = json!({
        "type": "update",
        "filePath": path.to_string_lossy(),
        "content": content_for_host(content),
        "structuredPatch": hunks,
        "originalFile": old.map(patch::text_for_host),
    });
    ToolOutput::text(format!("File updated: {}", path.display()), meta)
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
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn the_host_gets_old_content_and_patch() {
        let fixture = TestWorkspace::new(&[("a.txt", "old\n")]);
        fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        let output =
            fixture.run_tool("Write", json!({"file_path": "a.txt", "content": "new\n"})).await.unwrap();
        let expected = json!({
            "type": "update",
            "filePath": fixture.path("a.txt"),
            "content": "new\n",
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-old", "+new"]}],
            "originalFile": "old\n",
        });
        assert_eq!(output.meta, expected);
    }

    #[tokio::test]
    async fn appended_text_keeps_encoding_and_line_endings() {
        let fixture = TestWorkspace::new(&[]);
        let append = |content: &str| json!({"file_path": "a.txt", "content": content, "mode": "append"});
        for (name, before, content, after) in [
            ("with returns", &b"a\r\n"[..], "b\nc", Some(&b"a\r\nb\r\nc"[..])),
            ("no last newline", b"a", "b\n", Some(b"ab\n")),
            ("utf-16", b"\xFF\xFEa\0", "b", Some(b"\xFF\xFEa\0b\0")),
            ("western", b"caf\xE9", "\u{e9}", Some(b"caf\xE9\xE9")),
            ("empty", b"", "x", Some(b"x")),
            ("character that the encoding lacks", b"caf\xE9", "\u{8336}", None),
            ("binary", b"\x7FELF\0", "x", None),
        ] {
            fs::write(fixture.path("a.txt"), before).unwrap();
            let result = fixture.run_tool("Write", append(content)).await;
            assert_eq!(result.is_ok(), after.is_some(), "{name}: {result:?}");
            assert_eq!(fs::read(fixture.path("a.txt")).unwrap(), after.unwrap_or(before), "{name}");
        }
    }

    #[tokio::test]
    async fn the_host_gets_the_patch_of_appended_text() {
        let fixture = TestWorkspace::new(&[("a.txt", "old\n")]);
        let input = json!({"file_path": "a.txt", "content": "new\n", "mode": "append"});
        let expected = json!({
            "type": "update",
            "filePath": fixture.path("a.txt"),
            "content": "old\nnew\n",
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2, "lines": [" old", "+new"]}],
            "originalFile": "old\n",
        });
        assert_eq!(fixture.run_tool("Write", input).await.unwrap().meta, expected);
    }

    #[tokio::test]
    async fn appending_does_not_count_as_reading() {
        let fixture = TestWorkspace::new(&[("a.txt", "old\n")]);
        let append = json!({"file_path": "a.txt", "content": "x\n", "mode": "append"});
        let overwrite = json!({"file_path": "a.txt", "content": "new\n", "mode": "overwrite"});
        fixture.run_tool("Write", append.clone()).await.unwrap();
        let error = fixture.run_tool("Write", overwrite.clone()).await.unwrap_err();
        assert!(error.reason().contains("not been read"), "{error:?}");
        fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        fixture.run_tool("Write", append).await.unwrap();
        fixture.run_tool("Write", overwrite).await.unwrap();
        let unknown = json!({"file_path": "a.txt", "content": "", "mode": "truncate"});
        let error = fixture.run_tool("Write", unknown).await.unwrap_err();
        assert!(error.reason().contains("`mode`"), "{error:?}");
    }

    #[tokio::test]
    async fn a_file_changed_by_others_is_not_overwritten() {
        let fixture = TestWorkspace::new(&[("a.txt", "old\n")]);
        fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        fs::write(fixture.path("a.txt"), "theirs\n").unwrap();
        let error =
            fixture.run_tool("Write", json!({"file_path": "a.txt", "content": "mine\n"})).await.unwrap_err();
        assert!(error.reason().contains("changed since it was read"), "{error:?}");
        assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), "theirs\n");
    }

    #[tokio::test]
    async fn a_failing_write_leaves_everything_unchanged() {
        let fixture = TestWorkspace::new(&[("blocker", "old\n")]);
        let error = fixture
            .run_tool("Write", json!({"file_path": "blocker/x.txt", "content": "x"}))
            .await
            .unwrap_err();
        assert!(matches!(error, ToolError::Failed(_)), "{error:?}");
        assert_eq!(files::entry_names(fixture.root(), 9), ["blocker"]);
    }

    #[tokio::test]
    async fn pipes_and_devices_are_rejected_symlinks_followed() {
        let fixture = TestWorkspace::new(&[]);
        nix::unistd::mkfifo(&fixture.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in ["pipe", "/dev/null"] {
            let error =
                fixture.run_tool("Write", json!({"file_path": path, "content": "x"})).await.unwrap_err();
            assert!(matches!(error, ToolError::Rejected(_)), "{error:?}");
        }
        symlink("real.txt", fixture.path("link.txt")).unwrap();
        fixture.run_tool("Write", json!({"file_path": "link.txt", "content": "x"})).await.unwrap();
        assert_eq!(fs::read_to_string(fixture.path("real.txt")).unwrap(), "x");
    }

    #[tokio::test]
    async fn a_binary_file_can_be_overwritten_after_reading() {
        let damaged_image = [&b"\x89PNG\r\n\x1a\n"[..], &[7; 40]].concat();
        let large = [&b"\x7FELF\0"[..], &[1; 400_000]].concat();
        for (name, bytes) in [("small", &b"\x7FELF\0\0"[..]), ("picture", &damaged_image), ("large", &large)]
        {
            let fixture = TestWorkspace::new(&[]);
            fs::write(fixture.path("a.bin"), bytes).unwrap();
            let input = json!({"file_path": "a.bin", "content": "text\n"});
            let error = fixture.run_tool("Write", input.clone()).await.unwrap_err();
            assert!(error.reason().contains("not been read"), "{name}: {error:?}");
            fixture.run_tool("Read", json!({"file_path": "a.bin"})).await.unwrap_err();
            let output =
                fixture.run_tool("Write", input).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(
                (&output.meta["originalFile"], &output.meta["type"]),
                (&Value::Null, &json!("update"))
            );
            assert_eq!(fs::read_to_string(fixture.path("a.bin")).unwrap(), "text\n", "{name}");
        }
    }

    #[tokio::test]
    async fn a_read_only_file_is_rejected_and_hard_links_kept() {
        let fixture = TestWorkspace::new(&[
            ("a.txt", "old\n"),
            ("n.ipynb", r#"{"cells": [{"id": "c", "source": "x"}]}"#),
        ]);
        for path in ["a.txt", "n.ipynb"] {
            fixture.run_tool("Read", json!({ "file_path": path })).await.unwrap();
            fs::hard_link(fixture.path(path), fixture.path(&format!("other-{path}"))).unwrap();
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
            let before = fs::read(fixture.path(path)).unwrap();
            let mode =
                |mode| fs::set_permissions(fixture.path(path), fs::Permissions::from_mode(mode)).unwrap();
            mode(0o444);
            if tool == "Edit" {
                // Written by the previous call.
                assert_eq!(before, b"new\n");
            }
            let text = fixture.run_to_text(tool, input.clone()).await;
            assert!(text.contains("read-only (EACCES)") && text.contains("chmod u+w"), "{tool}: {text}");
            assert!(text.contains(fixture.path(path).to_str().unwrap()), "{tool}: {text}");
            assert_eq!(fs::read(fixture.path(path)).unwrap(), before);
            mode(0o644);
            fixture.run_tool(tool, input).await.unwrap();
            let after = fs::read(fixture.path(path)).unwrap();
            assert_ne!(after, before);
            assert_eq!(fs::read(fixture.path(&format!("other-{path}"))).unwrap(), after, "{tool}");
        }
    }

    #[tokio::test]
    async fn a_running_program_can_be_replaced() {
        let fixture = TestWorkspace::new(&[]);
        let start = "cp \"$(command -v sleep)\" sleep; chmod 755 sleep; ./sleep 60 & \
                     until [ /proc/$!/exe -ef sleep ]; do :; done";
        fixture.run_tool("Bash", json!({ "command": start })).await.unwrap();
        fixture.run_tool("Read", json!({"file_path": "sleep"})).await.unwrap_err();
        fixture.run_tool("Write", json!({"file_path": "sleep", "content": "#!/bin/sh\n"})).await.unwrap();
        assert_eq!(fixture.run_to_text("Bash", json!({"command": "./sleep; stat -c %a sleep"})).await, "755");
    }

    #[tokio::test]
    async fn every_tool_names_path_cause_and_remedy() {
        let fixture = TestWorkspace::new(&[("file", "x")]);
        symlink("round", fixture.path("round")).unwrap();
        let long = "n".repeat(300);
        for (path, expected) in [
            ("file/below/x", "/file is a file, not a directory"),
            ("round", "its symbolic links form a loop (ELOOP). Name the target file"),
            (&long, "the name is too long (at most 255 bytes per name, 4096 per path) (ENAMETOOLONG). Use a"),
            (".", "is a directory, not a file. "),
            ("nul\0", "NUL byte. Remove it."),
        ] {
            let calls = [
                ("Read", json!({ "file_path": path })),
                ("Write", json!({"file_path": path, "content": "x"})),
                ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})),
                ("Edit", json!({"file_path": path, "old_string": "", "new_string": "b"})),
                ("NotebookEdit", json!({"notebook_path": path, "cell_id": "a", "new_source": "b"})),
            ];
            for (tool, input) in calls {
                let text = fixture.run_to_text(tool, input).await;
                assert!(text.contains(expected), "{tool} {path:?}: {text}");
            }
        }
        assert_eq!(files::entry_names(fixture.root(), 9).len(), 2);
    }

    #[tokio::test]
    async fn a_huge_text_is_shortened_for_the_host_only() {
        let fixture = TestWorkspace::new(&[]);
        let content = "é".repeat(400_000);
        let output =
            fixture.run_tool("Write", json!({"file_path": "a.txt", "content": content})).await.unwrap();
        assert!(output.meta["content"].as_str().is_some_and(|echo| echo.len() <= MAX_ECHO_BYTES));
        assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), content);
        let output = fixture.run_tool("Write", json!({"file_path": "a.txt", "content": ""})).await.unwrap();
        assert_eq!(output.meta["originalFile"], Value::Null);
    }
}
