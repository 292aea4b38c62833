//! Tests of Edit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use super::*;
use crate::builtin::encoding::TextEncoding;
use crate::test_support::TestWorkspace;

fn apply_edit(text: &str, old: &str, new: &str) -> String {
    replace_matches(text, &find_matches(text, old), new)
}

#[test]
fn line_endings_are_kept() {
    for (name, text, old, new, expected) in [
        ("plain", "a\nb\nc\n", "a\nb", "x\ny", "x\ny\nc\n"),
        ("with returns", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("one line of many", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("returns in the input", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("the line end itself", "a\r\nb\r\n", "a\n", "", "b\r\n"),
        ("from a line end", "a\r\nb\r\nc", "\nb", "", "a\r\nc"),
        ("mixed, plain part", "a\nb\r\nc\n", "a", "x\ny", "x\ny\nb\r\nc\n"),
        ("mixed, across both", "a\nb\r\nc\n", "a\nb\nc", "x", "x\n"),
        ("mixed, other part", "a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"),
        ("no last newline", "a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
        ("a return alone", "a\rb\n", "a\rb", "x", "x\n"),
    ] {
        assert_eq!(apply_edit(text, old, new), expected, "{name}");
    }
}

#[test]
fn hints_name_the_likely_mistake() {
    let text = "fn main() {\n    let total = add(1, 2);\n}\n";
    assert!(
        mismatch_hint(text, "let totl = add(1, 2);").contains("most similar line is 2: let total"),
        "{}",
        mismatch_hint(text, "let totl")
    );
    assert!(mismatch_hint(text, "1\tfn main() {\n2\t    let x").contains("line number and tab"));
    assert!(mismatch_hint(text, "  let total = add(1, 2);").contains("lines 2-2"));
    assert_eq!(mismatch_hint(text, "nothing like it whatsoever"), "");
    assert_eq!(mismatch_hint(text, " \n "), "");
}

async fn read_and_edit(fixture: &TestWorkspace, old: &str, new: &str) -> ToolResult {
    fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
    fixture.run_tool("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new})).await
}

#[tokio::test]
async fn the_host_gets_the_whole_change() {
    let fixture = TestWorkspace::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let output = read_and_edit(&fixture, "two", "2").await.unwrap();
    let expected = json!({
        "filePath": fixture.path("a.txt"),
        "oldString": "two",
        "newString": "2",
        "originalFile": "one\ntwo\nthree\n",
        "structuredPatch": [{
            "oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"],
        }],
        "userModified": false,
        "replaceAll": false,
    });
    assert_eq!(output.meta, expected);
}

#[tokio::test]
async fn encoding_mode_and_symlinks_are_kept() {
    let utf16 = |text: &str| encode(text, TextEncoding::Utf16Le).unwrap();
    let fixture = TestWorkspace::new(&[]);
    fs::write(fixture.path("real.txt"), utf16("grün\r\nrot\r\n")).unwrap();
    fs::set_permissions(fixture.path("real.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("real.txt", fixture.path("a.txt")).unwrap();
    read_and_edit(&fixture, "grün\nrot", "blau\ngelb").await.unwrap();
    assert_eq!(fs::read(fixture.path("real.txt")).unwrap(), utf16("blau\r\ngelb\r\n"));
    assert_eq!(fs::metadata(fixture.path("real.txt")).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(fs::symlink_metadata(fixture.path("a.txt")).unwrap().is_symlink());
}

#[tokio::test]
async fn text_the_encoding_lacks_is_rejected() {
    let fixture = TestWorkspace::new(&[]);
    fs::write(fixture.path("a.txt"), b"caf\xE9\n").unwrap();
    assert!(matches!(read_and_edit(&fixture, "café", "茶").await, Err(ToolError::Rejected(_))));
    read_and_edit(&fixture, "café", "thé").await.unwrap();
    assert_eq!(fs::read(fixture.path("a.txt")).unwrap(), b"th\xE9\n");
}

#[tokio::test]
async fn a_changed_file_is_edited_only_if_unambiguous() {
    for (new_content, expected) in
        [("new\nold line\n", Ok("new\n2 line\n")), ("gone\n", Err("changed since"))]
    {
        let fixture = TestWorkspace::new(&[("a.txt", "old line\n")]);
        fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
        fs::write(fixture.path("a.txt"), new_content).unwrap();
        let output = fixture
            .run_tool("Edit", json!({"file_path": "a.txt", "old_string": "old", "new_string": "2"}))
            .await;
        match (output, expected) {
            (Ok(_), Ok(text)) => assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), text),
            (Err(error), Err(words)) => assert!(error.reason().contains(words), "{error:?}"),
            (output, _) => panic!("{output:?}"),
        }
    }
}

#[tokio::test]
async fn invalid_targets_are_rejected_with_a_reason() {
    let fixture = TestWorkspace::new(&[("full.txt", "x"), ("empty.txt", ""), ("n.ipynb", "{}"), ("d/x", "")]);
    let edit = |path: &str, old: &str| json!({"file_path": path, "old_string": old, "new_string": "new"});
    fixture.run_tool("Read", json!({"file_path": "n.ipynb"})).await.unwrap();
    for (path, old, expected) in [
        ("full.txt", "", "not empty"),
        ("full.txt", "new", "identical"),
        ("none.txt", "x", "does not exist"),
        ("n.ipynb", "{", "NotebookEdit"),
        ("d", "x", "EISDIR"),
    ] {
        let error = fixture.run_tool("Edit", edit(path, old)).await.unwrap_err();
        assert!(error.reason().contains(expected), "{path}: {error:?}");
    }
    fixture.run_tool("Edit", edit("empty.txt", "")).await.unwrap();
    assert_eq!(fs::read_to_string(fixture.path("empty.txt")).unwrap(), "new");
}

#[tokio::test]
async fn a_large_original_is_not_sent_to_the_host() {
    let fixture = TestWorkspace::new(&[]);
    fs::write(fixture.path("a.txt"), "line\n".repeat(100_000) + "last\n").unwrap();
    fixture.run_tool("Read", json!({"file_path": "a.txt", "limit": 1})).await.unwrap();
    let input = json!({"file_path": "a.txt", "old_string": "last", "new_string": "end"});
    let output = fixture.run_tool("Edit", input).await.unwrap();
    assert_eq!(output.meta["originalFile"], Value::Null);
    assert_eq!(output.meta["structuredPatch"][0]["oldStart"], 99_998);
}

#[tokio::test]
async fn the_host_gets_one_patch_of_several_edits() {
    let fixture = TestWorkspace::new(&[("a.txt", "one\r\ntwo\r\nthree\r\n")]);
    fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
    let edits = json!([
        {"old_string": "two", "new_string": "2\n2", "replace_all": false},
        {"old_string": "2\n2\nth", "new_string": "th", "replace_all": true},
    ]);
    let output = fixture.run_tool("Edit", json!({"file_path": "a.txt", "edits": edits})).await.unwrap();
    let expected = json!({
        "filePath": fixture.path("a.txt"),
        "oldString": "two\n2\n2\nth",
        "newString": "2\n2\nth",
        "originalFile": "one\r\ntwo\r\nthree\r\n",
        "structuredPatch": [{
            "oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 2, "lines": [" one", "-two", " three"],
        }],
        "userModified": false,
        "replaceAll": false,
        "edits": edits,
    });
    assert_eq!(output.meta, expected);
    assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), "one\r\nthree\r\n");
}

#[tokio::test]
async fn invalid_lists_of_edits_are_rejected() {
    let fixture = TestWorkspace::new(&[("a.txt", "one\n")]);
    fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap();
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let rows = [
        ("empty list", json!({"edits": []}), "edits is empty"),
        ("both forms", json!({"old_string": "a", "edits": [edit("b", "c")]}), "use either edits, or"),
        ("missing field", json!({"edits": [{"old_string": "a"}]}), "`edits[0].new_string` is missing"),
        (
            "identical",
            json!({"edits": [edit("one", "1"), edit("b", "b")]}),
            "Edit 2: old_string and new_string",
        ),
        ("empty text", json!({"edits": [edit("one", "1"), edit("", "b")]}), "Edit 2: old_string is empty"),
    ];
    for (name, mut input, expected) in rows {
        input["file_path"] = "a.txt".into();
        let error = fixture.run_tool("Edit", input).await.unwrap_err();
        assert!(error.reason().contains(expected), "{name}: {error:?}");
        assert_eq!(fs::read_to_string(fixture.path("a.txt")).unwrap(), "one\n", "{name}");
    }
    let unused_list = json!({"file_path": "a.txt", "old_string": "one", "new_string": "1", "edits": []});
    fixture.run_tool("Edit", unused_list).await.unwrap();
}

#[test]
fn the_schema_names_the_three_fields_only() {
    let schema = crate::api::AnyTool::spec(&EditTool).input_schema;
    let properties = r#""file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean","description":"Replace every match"}"#;
    let expected = format!(
        r#"{{"type":"object","properties":{{{properties}}},"required":["file_path","old_string","new_string"]}}"#
    );
    assert_eq!(schema.as_str(), expected);
}
