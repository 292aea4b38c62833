//! Tests of Grep.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::GrepTool;
use crate::api::{AnyTool, ToolOutput};
use crate::test_support::TestWorkspace;

const TREE: &[(&str, &str)] = &[
    ("c.py", "foo=2\nbar\nFOO\n"),
    ("d/b.py", "import os\ndef foo():\n  return 1\nfoo()\n"),
    ("n.md", "nothing\n"),
];

fn names(output: &ToolOutput) -> Vec<String> {
    let mut names: Vec<String> = serde_json::from_value(output.meta["filenames"].clone()).unwrap();
    names.sort();
    names
}

#[test]
fn the_specification_is_small() {
    let spec = serde_json::to_string(&GrepTool.spec()).unwrap();
    assert!(spec.len() <= 1100, "{} bytes: {spec}", spec.len());
}

#[tokio::test]
async fn files_are_listed_newest_first() {
    let fixture = TestWorkspace::new(TREE);
    for (name, second) in [("c.py", 1), ("d/b.py", 2)] {
        let file = fs::File::options().write(true).open(fixture.root().join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    }
    let output = fixture.run_tool("Grep", json!({"pattern": "foo"})).await.unwrap();
    let meta = json!({"mode": "files_with_matches", "numFiles": 2, "filenames": ["d/b.py", "c.py"]});
    assert_eq!(output, ToolOutput::text("Found 2 files\nd/b.py\nc.py", meta));
    let none = fixture.run_tool("Grep", json!({"pattern": "qqq"})).await.unwrap();
    let meta = json!({"mode": "files_with_matches", "numFiles": 0, "filenames": []});
    assert_eq!(none, ToolOutput::text("No files found", meta));
}

#[tokio::test]
async fn lines_are_ordered_by_path() {
    let rows: [(&str, Value, &str); 12] = [
        ("numbers", json!({"pattern": "foo"}), "c.py:1:foo=2\nd/b.py:2:def foo():\nd/b.py:4:foo()"),
        ("no numbers", json!({"pattern": "foo=", "-n": false}), "c.py:foo=2"),
        ("after", json!({"pattern": "return", "-A": 1}), "d/b.py:3:  return 1\nd/b.py-4-foo()"),
        ("before", json!({"pattern": "return", "-B": 1}), "d/b.py-2-def foo():\nd/b.py:3:  return 1"),
        (
            "around, two files",
            json!({"pattern": "=2|import", "context": 1}),
            "c.py:1:foo=2\nc.py-2-bar\n--\nd/b.py:1:import os\nd/b.py-2-def foo():",
        ),
        ("around, two groups", json!({"pattern": "^(foo=|FOO)", "-C": 0}), "c.py:1:foo=2\nc.py:3:FOO"),
        ("case", json!({"pattern": "FOO=", "-i": true}), "c.py:1:foo=2"),
        ("parts", json!({"pattern": "o+", "-o": true, "path": "c.py"}), "c.py:1:oo"),
        (
            "several parts",
            json!({"pattern": "[a-z]o", "-o": true, "glob": "b.py"}),
            "d/b.py:1:po\nd/b.py:2:fo\nd/b.py:4:fo",
        ),
        (
            "several lines",
            json!({"pattern": "def.*return", "multiline": true}),
            "d/b.py:2:def foo():\nd/b.py:3:  return 1",
        ),
        ("a line end in the pattern", json!({"pattern": r"bar\nF"}), "c.py:2:bar\nc.py:3:FOO"),
        ("nothing", json!({"pattern": "qqq"}), "No matches found"),
    ];
    let fixture = TestWorkspace::new(TREE);
    for (name, mut input, expected) in rows {
        input["output_mode"] = "content".into();
        assert_eq!(fixture.run_to_text("Grep", input).await, expected, "{name}");
    }
}

#[tokio::test]
async fn groups_of_lines_are_separated() {
    let fixture = TestWorkspace::new(&[("a", "x\n1\n2\n3\nx\n")]);
    let text = fixture.run_to_text("Grep", json!({"pattern": "x", "output_mode": "content", "-A": 1})).await;
    assert_eq!(text, "a:1:x\na-2-1\n--\na:5:x");
}

#[tokio::test]
async fn the_host_gets_the_lines() {
    let output = TestWorkspace::new(TREE)
        .run_tool("Grep", json!({"pattern": "bar", "output_mode": "content"}))
        .await
        .unwrap();
    let expected = json!({
        "mode": "content", "numFiles": 1, "filenames": [], "content": "c.py:2:bar", "numLines": 1,
    });
    assert_eq!(output.meta, expected);
}

#[tokio::test]
async fn counts_have_a_total() {
    let fixture = TestWorkspace::new(&[("a", "xx\nx\ny\n"), ("b", "x\n")]);
    let output = fixture.run_tool("Grep", json!({"pattern": "x", "output_mode": "count"})).await.unwrap();
    let meta =
        json!({"mode": "count", "numFiles": 2, "filenames": [], "content": "a:2\nb:1", "numMatches": 3});
    assert_eq!(output, ToolOutput::text("a:2\nb:1\n\n3 matching lines in 2 files", meta));
    let parts =
        fixture.run_tool("Grep", json!({"pattern": "x", "output_mode": "count", "-o": true})).await.unwrap();
    assert_eq!(parts.meta["numMatches"], 4);
}

#[tokio::test]
async fn multi_line_matches_are_counted_individually() {
    let fixture = TestWorkspace::new(&[("a", "start\nmid\nend\nstart x\nend\n"), ("b", "foo foo\nfoo\n")]);
    for (pattern, path, expected) in [("start.*?end", "a", 2), ("foo", "b", 2)] {
        let input = json!({"pattern": pattern, "path": path, "multiline": true, "output_mode": "count"});
        assert_eq!(fixture.run_tool("Grep", input).await.unwrap().meta["numMatches"], expected, "{pattern}");
    }
}

#[tokio::test]
async fn the_home_directory_can_be_searched() {
    let fixture = TestWorkspace::new(&[("home/a.txt", "x")]);
    let home = fixture.path("home").display().to_string();
    fixture.workspace().set_variables([("HOME".to_owned(), home)].into());
    for path in ["~", "~/"] {
        let found = fixture.run_tool("Grep", json!({"pattern": "x", "path": path})).await.unwrap();
        assert_eq!(found.meta["filenames"], json!(["home/a.txt"]), "{path}");
        let listed = fixture.run_tool("Glob", json!({"pattern": "*.txt", "path": path})).await.unwrap();
        assert_eq!(listed.meta["filenames"], json!(["home/a.txt"]), "{path}");
    }
}

#[tokio::test]
async fn filters_select_the_searched_files() {
    let fixture = TestWorkspace::new(&[
        (".gitignore", "out\n"),
        (".hidden/a.py", "x"),
        ("a.py", "x"),
        ("b.rs", "x"),
        ("out/c.py", "x"),
        ("s/d.py", "x"),
        ("s/bin.py", "x\0x"),
        ("s/late.py", &format!("x\n{}\0", "y\n".repeat(100_000))),
    ]);
    let rows: [(&str, Value, &[&str]); 9] = [
        ("not ignored, hidden, binary", json!({}), &["a.py", "b.rs", "s/d.py", "s/late.py"]),
        ("a type", json!({"type": "rust"}), &["b.rs"]),
        ("a glob at any depth", json!({"glob": "*.py"}), &["a.py", "s/d.py", "s/late.py"]),
        ("all but a glob", json!({"glob": "!*.py"}), &["b.rs"]),
        ("a glob from the current directory", json!({"glob": "s/d*", "path": "s"}), &["s/d.py"]),
        ("one file", json!({"path": "s/d.py"}), &["s/d.py"]),
        ("one ignored file", json!({"path": "out/c.py"}), &["out/c.py"]),
        ("a hidden directory", json!({"path": ".hidden"}), &[".hidden/a.py"]),
        ("a hidden directory by glob", json!({"glob": ".hidden/**"}), &[".hidden/a.py"]),
    ];
    for (name, mut input, expected) in rows {
        input["pattern"] = "x".into();
        assert_eq!(names(&fixture.run_tool("Grep", input).await.unwrap()), expected, "{name}");
    }
    let lines =
        fixture.run_to_text("Grep", json!({"pattern": "x", "path": "s", "output_mode": "content"})).await;
    assert_eq!(lines, "s/d.py:1:x", "a file that turns out to be binary is skipped");
}

#[tokio::test]
async fn a_single_binary_file_is_reported() {
    let fixture = TestWorkspace::new(&[("a.bin", "x\0")]);
    let text = fixture.run_to_text("Grep", json!({"pattern": "x", "path": "a.bin"})).await;
    assert_eq!(text, "No files found\n(The file is binary.)");
}

#[tokio::test]
async fn numbers_and_flags_may_be_quoted() {
    let fixture = TestWorkspace::new(TREE);
    let input =
        json!({"pattern": "FOO=", "-i": "true", "-A": "1", "output_mode": "content", "head_limit": "9"});
    assert_eq!(fixture.run_to_text("Grep", input).await, "c.py:1:foo=2\nc.py-2-bar");
}

#[tokio::test]
async fn pages_follow_each_other() {
    let fixture = TestWorkspace::new(&[("a", "x1\nx2\n"), ("b", "x3\nx4\n"), ("c", "x5\n")]);
    let rows = [
        (
            "the first lines",
            "content",
            2,
            0,
            "a:1:x1\na:2:x2\n(Lines 1 to 2; there are more. Continue with offset 2, or narrow the search.)",
        ),
        (
            "over a file's end",
            "content",
            2,
            1,
            "a:2:x2\nb:1:x3\n(Lines 2 to 3; there are more. Continue with offset 3, or narrow the search.)",
        ),
        ("the last lines", "content", 2, 3, "b:2:x4\nc:1:x5\n(Lines 4 to 5; there are no more.)"),
        ("past the end", "content", 2, 9, "(No more results: there are only 5 lines.)"),
        ("exactly all", "content", 5, 0, "a:1:x1\na:2:x2\nb:1:x3\nb:2:x4\nc:1:x5"),
        ("no limit", "content", 0, 0, "a:1:x1\na:2:x2\nb:1:x3\nb:2:x4\nc:1:x5"),
        (
            "counts",
            "count",
            1,
            1,
            "b:2\n\n5 matching lines in 3 files\n(Files 2 to 2; there are more. Continue with offset 2, or narrow the \
             search.)",
        ),
    ];
    for (name, mode, limit, offset, expected) in rows {
        let input = json!({"pattern": "x", "output_mode": mode, "head_limit": limit, "offset": offset});
        assert_eq!(fixture.run_to_text("Grep", input).await, expected, "{name}");
    }
    let output =
        fixture.run_tool("Grep", json!({"pattern": "x", "head_limit": 1, "offset": 1})).await.unwrap();
    assert_eq!(output.meta["numFiles"], 1);
    assert_eq!((&output.meta["appliedLimit"], &output.meta["appliedOffset"]), (&json!(1), &json!(1)));
    assert_eq!(output.meta["totalFiles"], 3);
}

#[tokio::test]
async fn a_result_has_a_maximum_size() {
    let fixture = TestWorkspace::new(&[]);
    for number in 0..50 {
        fs::write(fixture.root().join(format!("{number:02}")), "some text\n".repeat(1000)).unwrap();
    }
    let input = json!({"pattern": "text", "output_mode": "content", "head_limit": 0});
    let text = fixture.run_to_text("Grep", input).await;
    assert!(text.starts_with("00:1:some text\n00:2:"));
    assert!((29_000..30_200).contains(&text.len()), "{}", text.len());
    assert!(text.ends_with("or narrow the search.)"));
}

#[tokio::test]
async fn crlf_is_a_line_ending() {
    let fixture = TestWorkspace::new(&[("a", "one\r\ntwo\r\n")]);
    assert_eq!(
        fixture.run_to_text("Grep", json!({"pattern": "e$", "output_mode": "content"})).await,
        "a:1:one"
    );
}
