//! Tests of NotebookEdit.

use serde_json::Value;

use super::cells::{parse_cell, read_source};
use super::*;

fn apply(text: &str, input: Value) -> Result<NotebookChange, String> {
    let input: NotebookEditInput = serde_json::from_value(input).unwrap();
    apply_change(text, &serde_json::from_str(text).unwrap(), &input)
}

fn input(mode: &str, id: Option<&str>) -> Value {
    json!({"notebook_path": "n", "cell_id": id, "edit_mode": mode, "new_source": "new()", "cell_type": "code"})
}

/// Sources of all cells. New ids are random, so tests compare sources.
fn cell_sources(text: &str) -> Vec<String> {
    let notebook: Notebook<'_> = serde_json::from_str(text).unwrap();
    notebook.cells.iter().filter_map(|cell| read_source(&parse_cell(cell))).collect()
}

#[test]
fn a_cell_is_inserted_in_the_style_of_the_file() {
    for (after, expected) in [
        (None, ["new()", "print(1)", "# t"]),
        (Some("c1"), ["print(1)", "new()", "# t"]),
        (Some("cell-1"), ["print(1)", "# t", "new()"]),
    ] {
        let change = apply(NOTEBOOK, input("insert", after)).unwrap();
        assert_eq!(cell_sources(&change.text), expected, "{after:?}");
        let cell = format!(
            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{}\",\n   \"metadata\": {{}},\n   \
             \"outputs\": [],\n   \"source\": [\n    \"new()\"\n   ]\n  }}",
            change.cell_id
        );
        assert!(change.text.contains(&cell), "{}", change.text);
        assert!(NOTEBOOK.lines().all(|line| {
            change.text.lines().any(|new| new.trim_end_matches(',') == line.trim_end_matches(','))
        }));
    }
}

#[test]
fn a_single_line_notebook_stays_on_one_line() {
    let text = r##"{"cells": [{"cell_type": "code", "source": "a"}], "nbformat": 4}"##;
    let after = apply(text, input("insert", Some("cell-0"))).unwrap();
    assert_eq!(cell_sources(&after.text), ["a", "new()"]);
    assert!(
        !after.text.contains('\n')
            && after.text.ends_with(r#"], "nbformat": 4}"#)
            && after.cell_id == "cell-1"
    );
    let emptied = apply(text, input("delete", Some("cell-0"))).unwrap();
    assert_eq!(emptied.text, r#"{"cells": [], "nbformat": 4}"#);
    let filled = apply(&emptied.text, input("insert", None)).unwrap();
    assert_eq!(cell_sources(&filled.text), ["new()"]);
}

#[test]
fn each_cell_can_be_deleted() {
    for (id, expected) in [("c1", "# t"), ("c2", "print(1)")] {
        let change = apply(NOTEBOOK, input("delete", Some(id))).unwrap();
        assert_eq!(cell_sources(&change.text), [expected]);
    }
}

#[test]
fn changing_the_cell_type_adds_and_removes_outputs() {
    let change_to = |text: &str, id: &str, kind: &str| {
        apply(text, json!({"notebook_path": "n", "cell_id": id, "new_source": "x", "cell_type": kind}))
            .unwrap()
            .text
    };
    let code = change_to(NOTEBOOK, "c2", "code");
    assert_eq!(code.matches("\"outputs\"").count(), 2);
    assert_eq!(change_to(&code, "c2", "markdown").matches("\"outputs\"").count(), 1);
}

#[test]
fn invalid_changes_are_rejected_with_a_reason() {
    for (input, expected) in [
        (input("replace", None), "cell_id is missing"),
        (json!({"notebook_path": "n", "cell_id": "c1", "new_source": null}), "new_source is missing"),
        (input("delete", Some("cell-2")), "Cells: c1, c2"),
        (input("insert", Some("nope")), "No cell has the id nope"),
    ] {
        let error = apply(NOTEBOOK, input).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_host_gets_both_versions() {
    let fixture = crate::test_support::TestWorkspace::new(&[("n.ipynb", NOTEBOOK)]);
    fixture.run_tool("Read", json!({"file_path": "n.ipynb"})).await.unwrap();
    let input = json!({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "print(2)\nprint(3)"});
    let output = fixture.run_tool("NotebookEdit", input).await.unwrap();
    let expected = json!({
        "new_source": "print(2)\nprint(3)",
        "old_source": "print(1)",
        "cell_id": "c1",
        "cell_type": "code",
        "language": "python",
        "edit_mode": "replace",
        "notebook_path": fixture.path("n.ipynb"),
        "original_file": NOTEBOOK,
        "updated_file": REPLACED,
    });
    assert_eq!(output.meta, expected);
}
