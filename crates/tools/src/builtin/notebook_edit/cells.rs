//! Finds, replaces, inserts and deletes cells in the text of a notebook.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use whimbrel_os::ids;

use super::json_style::{JsonStyle, byte_range, splice};
use super::{CellType, EditMode, NotebookEditInput};
use crate::builtin::patch;
use crate::builtin::read::notebook::{CellText, cell_name};

/// A notebook with its cells as raw JSON.
#[derive(Deserialize)]
pub(super) struct Notebook<'a> {
    #[serde(borrow)]
    pub(super) cells: Vec<&'a RawValue>,
    #[serde(default)]
    pub(super) metadata: Value,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

/// A changed notebook.
#[derive(Debug, PartialEq)]
pub(super) struct NotebookChange {
    pub(super) text: String,
    pub(super) cell_id: String,
    pub(super) cell_type: String,
    pub(super) old_source: Option<String>,
}

/// Applies the requested change to the text of the notebook.
pub(super) fn apply_change(
    text: &str,
    notebook: &Notebook<'_>,
    input: &NotebookEditInput,
) -> Result<NotebookChange, String> {
    let index = input.cell_id.as_deref().map(|id| find_cell(notebook, id)).transpose()?;
    match (input.mode(), index) {
        (EditMode::Insert, index) => insert_cell(text, notebook, input, index),
        (EditMode::Replace | EditMode::Delete, None) => Err("cell_id is missing.".into()),
        (EditMode::Replace, Some(index)) => replace_cell(text, notebook, input, index),
        (EditMode::Delete, Some(index)) => delete_cell(text, notebook, index),
    }
}

/// Index of a cell, by its id or as `cell-N`.
fn find_cell(notebook: &Notebook<'_>, id: &str) -> Result<usize, String> {
    let ids: Vec<Option<String>> = notebook.cells.iter().map(|cell| read_id(&parse_cell(cell))).collect();
    if let Some(index) = ids.iter().position(|known| known.as_deref() == Some(id)) {
        return Ok(index);
    }
    let position = id
        .strip_prefix("cell-")
        .and_then(|position| position.parse().ok())
        .filter(|position| *position < ids.len());
    position.ok_or_else(|| {
        let names: Vec<String> =
            ids.iter().enumerate().map(|(index, id)| cell_name(id.as_deref(), index)).collect();
        format!("No cell has the id {id}. Cells: {}", patch::truncate_chars(&names.join(", "), 1000))
    })
}

pub(super) fn parse_cell(cell: &RawValue) -> Map<String, Value> {
    serde_json::from_str(cell.get()).unwrap_or_default()
}

fn read_id(cell: &Map<String, Value>) -> Option<String> {
    cell.get("id").and_then(Value::as_str).map(str::to_owned)
}

fn read_type(cell: &Map<String, Value>) -> String {
    cell.get("cell_type").and_then(Value::as_str).unwrap_or("code").to_owned()
}

pub(super) fn read_source(cell: &Map<String, Value>) -> Option<String> {
    cell.get("source").and_then(|source| CellText::deserialize(source).ok()).map(|source| source.join())
}

/// The new source in the notebook's form: one string, or a list of lines.
fn source_value(input: &NotebookEditInput, in_lines: bool) -> Result<Value, String> {
    let text = input.new_source.as_deref().ok_or("new_source is missing.")?;
    Ok(if in_lines { text.split_inclusive('\n').collect() } else { text.into() })
}

fn replace_cell(
    text: &str,
    notebook: &Notebook<'_>,
    input: &NotebookEditInput,
    index: usize,
) -> Result<NotebookChange, String> {
    let raw = notebook.cells[index];
    let mut cell = parse_cell(raw);
    let old_source = read_source(&cell);
    let in_lines = cell.get("source").is_none_or(Value::is_array);
    cell.insert("source".into(), source_value(input, in_lines)?);
    if let Some(kind) = input.cell_type {
        cell.insert("cell_type".into(), json!(kind));
    }
    let cell_type = read_type(&cell);
    if cell_type == "code" {
        // The outputs belong to the old source.
        cell.insert("execution_count".into(), Value::Null);
        cell.insert("outputs".into(), json!([]));
    } else {
        cell.shift_remove("execution_count");
        cell.shift_remove("outputs");
    }
    let position = byte_range(text, raw);
    let cell_text = JsonStyle::for_cell(text, &position).format(&cell)?;
    let cell_id = cell_name(read_id(&cell).as_deref(), index);
    Ok(NotebookChange { text: splice(text, position, &cell_text), cell_id, cell_type, old_source })
}

fn insert_cell(
    text: &str,
    notebook: &Notebook<'_>,
    input: &NotebookEditInput,
    after: Option<usize>,
) -> Result<NotebookChange, String> {
    let in_lines =
        notebook.cells.first().is_none_or(|cell| parse_cell(cell).get("source").is_none_or(Value::is_array));
    let kind = input.cell_type.unwrap_or(CellType::Code);
    let id =
        ((notebook.nbformat, notebook.nbformat_minor) >= (4, 5)).then(|| ids::new_uuid()[..8].to_owned());
    let mut cell = Map::new();
    cell.insert("cell_type".into(), json!(kind));
    if kind == CellType::Code {
        cell.insert("execution_count".into(), Value::Null);
    }
    if let Some(id) = &id {
        cell.insert("id".into(), json!(id));
    }
    cell.insert("metadata".into(), json!({}));
    if kind == CellType::Code {
        cell.insert("outputs".into(), json!([]));
    }
    cell.insert("source".into(), source_value(input, in_lines)?);
    let index = after.map_or(0, |after| after + 1);
    let text = insert_cell_at(text, notebook, index, &cell)?;
    Ok(NotebookChange {
        text,
        cell_id: cell_name(id.as_deref(), index),
        cell_type: read_type(&cell),
        old_source: None,
    })
}

/// Inserts a cell before or after its neighbor, with the separator used elsewhere.
fn insert_cell_at(
    text: &str,
    notebook: &Notebook<'_>,
    index: usize,
    cell: &Map<String, Value>,
) -> Result<String, String> {
    if let Some(next) = notebook.cells.first().filter(|_| index == 0) {
        let position = byte_range(text, next);
        let style = JsonStyle::for_cell(text, &position);
        let cell_text = format!("{},{}", style.format(cell)?, style.separator());
        return Ok(splice(text, position.start..position.start, &cell_text));
    }
    if let Some(before) = index.checked_sub(1).and_then(|before| notebook.cells.get(before)) {
        let position = byte_range(text, before);
        let style = JsonStyle::for_cell(text, &position);
        let cell_text = format!(",{}{}", style.separator(), style.format(cell)?);
        return Ok(splice(text, position.end..position.end, &cell_text));
    }
    let mut document: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    document.insert("cells".into(), json!([cell]));
    let trailing_newline = if text.ends_with('\n') { "\n" } else { "" };
    Ok(JsonStyle::for_document(text).format(&document)? + trailing_newline)
}

fn delete_cell(text: &str, notebook: &Notebook<'_>, index: usize) -> Result<NotebookChange, String> {
    let raw = notebook.cells[index];
    let cell = parse_cell(raw);
    let mut position = byte_range(text, raw);
    if let Some(next) = notebook.cells.get(index + 1) {
        position.end = byte_range(text, next).start;
    } else if let Some(before) = index.checked_sub(1).and_then(|before| notebook.cells.get(before)) {
        position.start = byte_range(text, before).end;
    }
    let cell_id = cell_name(read_id(&cell).as_deref(), index);
    Ok(NotebookChange {
        text: splice(text, position, ""),
        cell_id,
        cell_type: read_type(&cell),
        old_source: read_source(&cell),
    })
}
