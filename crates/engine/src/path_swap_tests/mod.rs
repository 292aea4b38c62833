//! Tests of the file tools while files, directories and symlinks are swapped concurrently. Calls go through the
//! permission checker and the scheduler.

mod fixture;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use whimbrel_wire::permission::PermissionMode;

use self::fixture::{DirSnapshot, PathSwapper, SwapTestSession, result_text, snapshot_dir, swap_paths};
use crate::context::stale_files::render_changes;

/// Writes and edits below `work` while `work/one` and `work/other` are swapped. Returns the number of successful calls
/// of each kind.
async fn write_and_edit_during_swaps(
    fixture: &SwapTestSession,
    existing: &str,
    new: impl Fn(usize) -> Option<String>,
) -> [usize; 3] {
    let input = |old: &str, new: &str| json!({"file_path": existing, "old_string": old, "new_string": new});
    fixture.run_tool("Read", json!({"file_path": existing})).await;
    let swapper = PathSwapper::start(fixture.path("work/one"), fixture.path("work/other"));
    let (mut calls, mut successes) = (0, [0; 3]);
    while !swapper.has_run_enough(calls) {
        let write = new(calls).map(|path| ("Write", json!({"file_path": path, "content": "new"})));
        let requests = [
            Some((1, ("Write", json!({"file_path": existing, "content": "tick"})))),
            Some((2, ("Edit", input("tick", "tock")))),
            Some((2, ("Edit", input("tock", "tick")))),
            write.map(|write| (0, write)),
        ];
        for (kind, (tool, input)) in requests.into_iter().flatten() {
            successes[kind] += usize::from(!fixture.run_tool(tool, input).await.is_error);
            calls += 1;
        }
    }
    swapper.stop();
    successes
}

#[tokio::test]
async fn writing_never_follows_a_symlink_that_replaces_a_directory() {
    let fixture = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    fixture.write_file("work/one/f.txt", "tick");
    fixture.write_file("outside/f.txt", "tick");
    symlink(fixture.path("outside"), fixture.path("work/other")).unwrap();
    let before = snapshot_dir(&fixture.path("outside"));
    let new = |call| Some(format!("one/new-{call}.txt"));
    let successes = write_and_edit_during_swaps(&fixture, "one/f.txt", new).await;
    assert_eq!(snapshot_dir(&fixture.path("outside")), before, "{successes:?}");
    assert!(successes.iter().all(|count| *count > 0), "{successes:?}");
}

#[tokio::test]
async fn writing_never_follows_a_symlink_that_replaces_the_file() {
    let fixture = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    fixture.write_file("work/one", "tick");
    fixture.write_file("outside/f.txt", "tick");
    symlink(fixture.path("outside/f.txt"), fixture.path("work/other")).unwrap();
    let before = snapshot_dir(&fixture.path("outside"));
    let [_, written, edited] = write_and_edit_during_swaps(&fixture, "one", |_| None).await;
    assert_eq!(snapshot_dir(&fixture.path("outside")), before, "{written} {edited}");
    assert!(written > 0 && edited > 0, "{written} {edited}");
}

/// Reads while `work/one` and `work/other` are swapped; allowed content is `fine`, denied content is `secret`.
async fn read_during_swaps(fixture: &SwapTestSession, path: &str) {
    let swapper = PathSwapper::start(fixture.path("work/one"), fixture.path("work/other"));
    let (mut calls, mut successes) = (0, 0);
    while !swapper.has_run_enough(calls) {
        let result = fixture.run_tool("Read", json!({"file_path": path})).await;
        assert!(
            !result_text(&result).contains("secret") && !result.meta.to_string().contains("secret"),
            "{result:?}"
        );
        let changes = render_changes(&fixture.env.context.workspace);
        assert!(changes.as_ref().is_none_or(|changes| !changes.contains("secret")), "{changes:?}");
        successes += usize::from(!result.is_error && result_text(&result).contains("fine"));
        calls += 1;
    }
    swapper.stop();
    assert!(successes > 0);
}

#[tokio::test]
async fn reading_a_swapped_symlink_never_shows_denied_files() {
    let fixture = SwapTestSession::new(PermissionMode::Default, &["Read(./denied/**)"]);
    fixture.write_file("work/open/f.txt", "fine");
    fixture.write_file("work/denied/f.txt", "secret");
    symlink("open/f.txt", fixture.path("work/one")).unwrap();
    symlink("denied/f.txt", fixture.path("work/other")).unwrap();
    read_during_swaps(&fixture, "one").await;
}

#[tokio::test]
async fn reading_a_swapped_directory_never_shows_denied_files() {
    let fixture = SwapTestSession::new(PermissionMode::Default, &["Read(./denied/**)"]);
    fixture.write_file("work/one/f.txt", "fine");
    fixture.write_file("work/denied/f.txt", "secret");
    symlink("denied", fixture.path("work/other")).unwrap();
    read_during_swaps(&fixture, "one/f.txt").await;
}

#[tokio::test]
async fn a_path_swapped_after_the_check_has_no_effect() {
    let notebook = r#"{"cells": [{"id": "c", "source": "x"}]}"#;
    let calls = [
        ("Read", json!({"file_path": "one/n.ipynb"})),
        ("Write", json!({"file_path": "one/n.ipynb", "content": "y"})),
        ("Write", json!({"file_path": "one/new", "content": "y"})),
        ("Edit", json!({"file_path": "one/t.txt", "old_string": "x", "new_string": "y"})),
        ("Edit", json!({"file_path": "one/new", "old_string": "", "new_string": "y"})),
        ("NotebookEdit", json!({"notebook_path": "one/n.ipynb", "cell_id": "c", "new_source": "y"})),
    ];
    for (tool, input) in calls {
        let fixture = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
        for dir in ["work/one", "outside"] {
            fixture.write_file(&format!("{dir}/n.ipynb"), notebook);
            fixture.write_file(&format!("{dir}/t.txt"), "x");
        }
        symlink(fixture.path("outside"), fixture.path("work/other")).unwrap();
        for file in ["one/n.ipynb", "one/t.txt"] {
            assert!(!fixture.run_tool("Read", json!({ "file_path": file })).await.is_error);
        }
        let before = [snapshot_dir(&fixture.path("outside")), snapshot_dir(&fixture.path("work/one"))];
        let swap = || swap_paths(&fixture.path("work/one"), &fixture.path("work/other"));
        let error = fixture.run_tool_after(tool, input, swap).await.unwrap_err();
        assert!(error.reason().contains("changed during the call"), "{tool}: {error:?}");
        assert!(error.reason().contains("Look at it again"), "{tool}: {error:?}");
        swap_paths(&fixture.path("work/one"), &fixture.path("work/other"));
        let after = [snapshot_dir(&fixture.path("outside")), snapshot_dir(&fixture.path("work/one"))];
        let bytes = |snapshots: &[DirSnapshot; 2]| {
            snapshots.clone().map(|snapshots| {
                snapshots.into_iter().map(|(path, entry)| (path, entry.bytes)).collect::<Vec<_>>()
            })
        };
        assert_eq!(bytes(&after), bytes(&before), "{tool}");
        assert_eq!(after[0], before[0], "{tool}");
    }
}

#[tokio::test]
async fn a_checked_symlink_is_written_through_and_kept() {
    let fixture = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    fixture.write_file("work/deep/real.txt", "old");
    symlink("deep", fixture.path("work/folder")).unwrap();
    symlink("folder/real.txt", fixture.path("work/link")).unwrap();
    symlink("folder/later.txt", fixture.path("work/dangling")).unwrap();
    for (tool, input) in [
        ("Read", json!({"file_path": "link"})),
        ("Edit", json!({"file_path": "link", "old_string": "old", "new_string": "newer"})),
        ("Write", json!({"file_path": "dangling", "content": "made"})),
        ("Write", json!({"file_path": "folder/new/x.txt", "content": "made"})),
    ] {
        let result = fixture.run_tool(tool, input).await;
        assert!(!result.is_error, "{tool}: {result:?}");
    }
    for link in ["folder", "link", "dangling"] {
        assert!(fixture.path("work").join(link).is_symlink(), "{link}");
    }
    let texts = ["real.txt", "later.txt", "new/x.txt"]
        .map(|name| fs::read_to_string(fixture.path("work/deep").join(name)).unwrap());
    assert_eq!(texts, ["newer", "made", "made"]);
    let outside = fixture.path("outside/f.txt");
    symlink(&outside, fixture.path("work/out")).unwrap();
    let result = fixture.run_tool("Write", json!({"file_path": "out", "content": "x"})).await;
    assert!(result.denial.is_some() && !outside.exists(), "{result:?}");
}
