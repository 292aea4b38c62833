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
    room: &SwapTestSession,
    existing: &str,
    new: impl Fn(usize) -> Option<String>,
) -> [usize; 3] {
    let input = |old: &str, new: &str| json!({"file_path": existing, "old_string": old, "new_string": new});
    room.run_tool("Read", json!({"file_path": existing})).await;
    let swapper = PathSwapper::start(room.path("work/one"), room.path("work/other"));
    let (mut calls, mut successes) = (0, [0; 3]);
    while !swapper.has_run_enough(calls) {
        let write = new(calls).map(|path| ("Write", json!({"file_path": path, "content": "new"})));
        let wanted = [
            Some((1, ("Write", json!({"file_path": existing, "content": "tick"})))),
            Some((2, ("Edit", input("tick", "tock")))),
            Some((2, ("Edit", input("tock", "tick")))),
            write.map(|write| (0, write)),
        ];
        for (kind, (tool, input)) in wanted.into_iter().flatten() {
            successes[kind] += usize::from(!room.run_tool(tool, input).await.is_error);
            calls += 1;
        }
    }
    swapper.stop();
    successes
}

#[tokio::test]
async fn writing_never_follows_a_symlink_that_replaces_a_directory() {
    let room = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    room.write_file("work/one/f.txt", "tick");
    room.write_file("outside/f.txt", "tick");
    symlink(room.path("outside"), room.path("work/other")).unwrap();
    let before = snapshot_dir(&room.path("outside"));
    let new = |call| Some(format!("one/new-{call}.txt"));
    let successes = write_and_edit_during_swaps(&room, "one/f.txt", new).await;
    assert_eq!(snapshot_dir(&room.path("outside")), before, "{successes:?}");
    assert!(successes.iter().all(|count| *count > 0), "{successes:?}");
}

#[tokio::test]
async fn writing_never_follows_a_symlink_that_replaces_the_file() {
    let room = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    room.write_file("work/one", "tick");
    room.write_file("outside/f.txt", "tick");
    symlink(room.path("outside/f.txt"), room.path("work/other")).unwrap();
    let before = snapshot_dir(&room.path("outside"));
    let [_, written, edited] = write_and_edit_during_swaps(&room, "one", |_| None).await;
    assert_eq!(snapshot_dir(&room.path("outside")), before, "{written} {edited}");
    assert!(written > 0 && edited > 0, "{written} {edited}");
}

/// Reads while `work/one` and `work/other` are swapped; allowed content is `fine`, denied content is `secret`.
async fn read_during_swaps(room: &SwapTestSession, path: &str) {
    let swapper = PathSwapper::start(room.path("work/one"), room.path("work/other"));
    let (mut calls, mut successes) = (0, 0);
    while !swapper.has_run_enough(calls) {
        let made = room.run_tool("Read", json!({"file_path": path})).await;
        assert!(
            !result_text(&made).contains("secret") && !made.meta.to_string().contains("secret"),
            "{made:?}"
        );
        let news = render_changes(&room.env.context.workspace);
        assert!(news.as_ref().is_none_or(|news| !news.contains("secret")), "{news:?}");
        successes += usize::from(!made.is_error && result_text(&made).contains("fine"));
        calls += 1;
    }
    swapper.stop();
    assert!(successes > 0);
}

#[tokio::test]
async fn reading_a_swapped_symlink_never_shows_denied_files() {
    let room = SwapTestSession::new(PermissionMode::Default, &["Read(./denied/**)"]);
    room.write_file("work/open/f.txt", "fine");
    room.write_file("work/denied/f.txt", "secret");
    symlink("open/f.txt", room.path("work/one")).unwrap();
    symlink("denied/f.txt", room.path("work/other")).unwrap();
    read_during_swaps(&room, "one").await;
}

#[tokio::test]
async fn reading_a_swapped_directory_never_shows_denied_files() {
    let room = SwapTestSession::new(PermissionMode::Default, &["Read(./denied/**)"]);
    room.write_file("work/one/f.txt", "fine");
    room.write_file("work/denied/f.txt", "secret");
    symlink("denied", room.path("work/other")).unwrap();
    read_during_swaps(&room, "one/f.txt").await;
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
        let room = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
        for folder in ["work/one", "outside"] {
            room.write_file(&format!("{folder}/n.ipynb"), notebook);
            room.write_file(&format!("{folder}/t.txt"), "x");
        }
        symlink(room.path("outside"), room.path("work/other")).unwrap();
        for file in ["one/n.ipynb", "one/t.txt"] {
            assert!(!room.run_tool("Read", json!({ "file_path": file })).await.is_error);
        }
        let before = [snapshot_dir(&room.path("outside")), snapshot_dir(&room.path("work/one"))];
        let swapped = || swap_paths(&room.path("work/one"), &room.path("work/other"));
        let trouble = room.run_tool_after(tool, input, swapped).await.unwrap_err();
        assert!(trouble.reason().contains("changed while the call was made"), "{tool}: {trouble:?}");
        assert!(trouble.reason().contains("Look again"), "{tool}: {trouble:?}");
        swap_paths(&room.path("work/one"), &room.path("work/other"));
        let after = [snapshot_dir(&room.path("outside")), snapshot_dir(&room.path("work/one"))];
        let bytes = |seen: &[DirSnapshot; 2]| {
            seen.clone()
                .map(|seen| seen.into_iter().map(|(path, trace)| (path, trace.bytes)).collect::<Vec<_>>())
        };
        assert_eq!(bytes(&after), bytes(&before), "{tool}");
        assert_eq!(after[0], before[0], "{tool}");
    }
}

#[tokio::test]
async fn a_checked_symlink_is_written_through_and_kept() {
    let room = SwapTestSession::new(PermissionMode::AcceptEdits, &[]);
    room.write_file("work/deep/real.txt", "old");
    symlink("deep", room.path("work/folder")).unwrap();
    symlink("folder/real.txt", room.path("work/link")).unwrap();
    symlink("folder/later.txt", room.path("work/dangling")).unwrap();
    for (tool, input) in [
        ("Read", json!({"file_path": "link"})),
        ("Edit", json!({"file_path": "link", "old_string": "old", "new_string": "newer"})),
        ("Write", json!({"file_path": "dangling", "content": "made"})),
        ("Write", json!({"file_path": "folder/new/x.txt", "content": "made"})),
    ] {
        let made = room.run_tool(tool, input).await;
        assert!(!made.is_error, "{tool}: {made:?}");
    }
    for link in ["folder", "link", "dangling"] {
        assert!(room.path("work").join(link).is_symlink(), "{link}");
    }
    let texts = ["real.txt", "later.txt", "new/x.txt"]
        .map(|name| fs::read_to_string(room.path("work/deep").join(name)).unwrap());
    assert_eq!(texts, ["newer", "made", "made"]);
    let outside = room.path("outside/f.txt");
    symlink(&outside, room.path("work/out")).unwrap();
    let made = room.run_tool("Write", json!({"file_path": "out", "content": "x"})).await;
    assert!(made.denial.is_some() && !outside.exists(), "{made:?}");
}
