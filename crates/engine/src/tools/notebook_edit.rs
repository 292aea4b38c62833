//! NotebookEdit: replaces, inserts or deletes one cell of a notebook. Only the text of that cell changes; the rest of
//! the file stays byte for byte as it was.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::encoding::encode;
use super::read::notebook::{Lines, cell_name, language};
use super::target::{Site, Target};
use super::{Call, Done, Example, Output, Tool, Touches, Trouble, fault, patch};
use crate::on_demand::Offer;
use crate::{files, ids};

/// The tool.
pub(super) struct NotebookEdit;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    notebook_path: String,
    /// As shown by Read. insert puts the new cell after it, or first without it
    #[serde(default)]
    cell_id: Option<String>,
    #[serde(default)]
    new_source: Option<String>,
    #[serde(default)]
    #[schemars(with = "CellType")]
    cell_type: Option<CellType>,
    /// Default replace
    #[serde(default)]
    #[schemars(with = "EditMode")]
    edit_mode: Option<EditMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

impl Tool for NotebookEdit {
    type Input = Input;

    const NAME: &'static str = "NotebookEdit";

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str =
        "Replaces, inserts or deletes a cell of a Jupyter notebook that you have read.";

    fn touches(input: &Input) -> Touches {
        Touches::Writes(vec![input.notebook_path.clone()])
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let work = files::aside(move || edit(&input, &call)).await;
        work.unwrap_or_else(|error| Err(Trouble::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let files = &[("n.ipynb", NOTEBOOK)];
        let read = || ("Read", json!({"file_path": "n.ipynb"}));
        vec![
            Example::new(
                "replaces a source and drops the outputs",
                json!({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "print(2)\nprint(3)"}),
            )
            .files(files)
            .after(read().0, read().1)
            .says(&["c1"])
            .leaves(&[("n.ipynb", REPLACED)]),
            Example::new(
                "deletes a cell by its place",
                json!({"notebook_path": "n.ipynb", "cell_id": "cell-1", "edit_mode": "delete"}),
            )
            .files(files)
            .after(read().0, read().1)
            .leaves(&[("n.ipynb", DELETED)]),
            Example::new(
                "needs a notebook that was read",
                json!({"notebook_path": "n.ipynb", "cell_id": "c1"}),
            )
            .files(files)
            .fails(&["not been read"])
            .leaves(files),
            Example::new("names the cells there are", json!({"notebook_path": "n.ipynb", "cell_id": "c9"}))
                .files(files)
                .after(read().0, read().1)
                .fails(&["c9", "c1, c2"]),
        ]
    }
}

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "c1",
   "outputs": [{"output_type": "stream", "text": "1"}],
   "source": [
    "print(1)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "c2",
   "source": "# t"
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;

const REPLACED: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c1",
   "outputs": [],
   "source": [
    "print(2)\n",
    "print(3)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "c2",
   "source": "# t"
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;

const DELETED: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "c1",
   "outputs": [{"output_type": "stream", "text": "1"}],
   "source": [
    "print(1)"
   ]
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;

/// A notebook whose cells are kept as they are written.
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: Vec<&'a RawValue>,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

/// A change of a notebook's text.
#[derive(Debug, PartialEq)]
struct Change {
    text: String,
    cell_id: String,
    cell_type: String,
    old_source: Option<String>,
}

fn edit(input: &Input, call: &Call) -> Output {
    let site = Site::of(call, &input.notebook_path)?;
    let path = site.path.as_path();
    let Target::File(existing) = site.open(&call.workspace)? else {
        let why = fault::nothing_at(path, &call.workspace.cwd());
        return Err(Trouble::Refused(format!("{why} A new notebook is made with Write.")));
    };
    existing.must_be_known(path)?;
    let old = existing.editable(path)?;
    let notebook: Notebook<'_> = serde_json::from_str(&old.text)
        .map_err(|error| Trouble::Refused(format!("{} is not a notebook: {error}", path.display())))?;
    let change = change(&old.text, &notebook, input).map_err(Trouble::Refused)?;
    let bytes = encode(&change.text, old.encoding).unwrap_or_else(|| change.text.clone().into_bytes());
    let stamp = site.replace(&bytes)?;
    site.note(&call.workspace, stamp, Some(&change.text));
    Ok(done(input, path, &old.text, language(&notebook.metadata), &change))
}

fn done(input: &Input, path: &Path, old: &str, language: &str, change: &Change) -> Done {
    let says = match input.mode() {
        EditMode::Replace => "replaced",
        EditMode::Insert => "inserted",
        EditMode::Delete => "deleted",
    };
    let meta = json!({
        "new_source": input.new_source.as_deref().unwrap_or_default(),
        "old_source": change.old_source,
        "cell_id": change.cell_id,
        "cell_type": change.cell_type,
        "language": language,
        "edit_mode": input.mode(),
        "notebook_path": path.to_string_lossy(),
        "original_file": patch::for_host(old).as_str().unwrap_or_default(),
        "updated_file": patch::for_host(&change.text).as_str().unwrap_or_default(),
    });
    Done::text(format!("Cell {} {says} in {}", change.cell_id, path.display()), meta)
}

impl Input {
    fn mode(&self) -> EditMode {
        self.edit_mode.unwrap_or(EditMode::Replace)
    }

    fn source(&self, in_lines: bool) -> Result<Value, String> {
        self.new_source
            .as_deref()
            .map(|text| source(text, in_lines))
            .ok_or_else(|| "new_source is missing.".into())
    }
}

/// The text of the notebook after the change, or why there is none.
fn change(text: &str, notebook: &Notebook<'_>, input: &Input) -> Result<Change, String> {
    let at = input.cell_id.as_deref().map(|id| position(notebook, id)).transpose()?;
    match (input.mode(), at) {
        (EditMode::Insert, at) => insert(text, notebook, input, at),
        (EditMode::Replace | EditMode::Delete, None) => Err("cell_id is missing.".into()),
        (EditMode::Replace, Some(at)) => replace(text, notebook, input, at),
        (EditMode::Delete, Some(at)) => delete(text, notebook, at),
    }
}

/// Where a cell stands, by its id or as `cell-N`.
fn position(notebook: &Notebook<'_>, id: &str) -> Result<usize, String> {
    let ids: Vec<Option<String>> = notebook.cells.iter().map(|cell| id_of(&parse(cell))).collect();
    if let Some(at) = ids.iter().position(|known| known.as_deref() == Some(id)) {
        return Ok(at);
    }
    let place =
        id.strip_prefix("cell-").and_then(|place| place.parse().ok()).filter(|place| *place < ids.len());
    place.ok_or_else(|| {
        let names: Vec<String> =
            ids.iter().enumerate().map(|(index, id)| cell_name(id.as_deref(), index)).collect();
        format!("There is no cell {id}. The cells are: {}", patch::shorten(&names.join(", "), 1000))
    })
}

fn parse(cell: &RawValue) -> Map<String, Value> {
    serde_json::from_str(cell.get()).unwrap_or_default()
}

fn id_of(cell: &Map<String, Value>) -> Option<String> {
    cell.get("id").and_then(Value::as_str).map(str::to_owned)
}

fn type_of(cell: &Map<String, Value>) -> String {
    cell.get("cell_type").and_then(Value::as_str).unwrap_or("code").to_owned()
}

fn source_of(cell: &Map<String, Value>) -> Option<String> {
    cell.get("source").and_then(|source| Lines::deserialize(source).ok()).map(|source| source.join())
}

fn replace(text: &str, notebook: &Notebook<'_>, input: &Input, at: usize) -> Result<Change, String> {
    let raw = notebook.cells[at];
    let mut cell = parse(raw);
    let old_source = source_of(&cell);
    let in_lines = cell.get("source").is_none_or(Value::is_array);
    cell.insert("source".into(), input.source(in_lines)?);
    if let Some(kind) = input.cell_type {
        cell.insert("cell_type".into(), json!(kind));
    }
    let cell_type = type_of(&cell);
    if cell_type == "code" {
        // The outputs belonged to the old source.
        cell.insert("execution_count".into(), Value::Null);
        cell.insert("outputs".into(), json!([]));
    } else {
        cell.shift_remove("execution_count");
        cell.shift_remove("outputs");
    }
    let place = place_of(text, raw);
    let written = Style::of(text, &place).write(&cell)?;
    let cell_id = cell_name(id_of(&cell).as_deref(), at);
    Ok(Change { text: splice(text, place, &written), cell_id, cell_type, old_source })
}

fn insert(
    text: &str,
    notebook: &Notebook<'_>,
    input: &Input,
    after: Option<usize>,
) -> Result<Change, String> {
    let in_lines =
        notebook.cells.first().is_none_or(|cell| parse(cell).get("source").is_none_or(Value::is_array));
    let kind = input.cell_type.unwrap_or(CellType::Code);
    let id = ((notebook.nbformat, notebook.nbformat_minor) >= (4, 5)).then(|| ids::uuid()[..8].to_owned());
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
    cell.insert("source".into(), input.source(in_lines)?);
    let index = after.map_or(0, |after| after + 1);
    let text = insert_at(text, notebook, index, &cell)?;
    Ok(Change { text, cell_id: cell_name(id.as_deref(), index), cell_type: type_of(&cell), old_source: None })
}

/// Writes a cell before or after its neighbour, with the same gap between them as elsewhere.
fn insert_at(
    text: &str,
    notebook: &Notebook<'_>,
    index: usize,
    cell: &Map<String, Value>,
) -> Result<String, String> {
    if let Some(next) = notebook.cells.first().filter(|_| index == 0) {
        let place = place_of(text, next);
        let style = Style::of(text, &place);
        let written = format!("{},{}", style.write(cell)?, style.gap());
        return Ok(splice(text, place.start..place.start, &written));
    }
    if let Some(before) = index.checked_sub(1).and_then(|before| notebook.cells.get(before)) {
        let place = place_of(text, before);
        let style = Style::of(text, &place);
        let written = format!(",{}{}", style.gap(), style.write(cell)?);
        return Ok(splice(text, place.end..place.end, &written));
    }
    let mut whole: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    whole.insert("cells".into(), json!([cell]));
    let indent = if text.contains('\n') { Some(String::new()) } else { None };
    let ending = if text.ends_with('\n') { "\n" } else { "" };
    Ok(Style { indent, unit: unit(text) }.write(&whole)? + ending)
}

fn delete(text: &str, notebook: &Notebook<'_>, at: usize) -> Result<Change, String> {
    let raw = notebook.cells[at];
    let cell = parse(raw);
    let mut place = place_of(text, raw);
    if let Some(next) = notebook.cells.get(at + 1) {
        place.end = place_of(text, next).start;
    } else if let Some(before) = at.checked_sub(1).and_then(|before| notebook.cells.get(before)) {
        place.start = place_of(text, before).end;
    }
    let cell_id = cell_name(id_of(&cell).as_deref(), at);
    Ok(Change {
        text: splice(text, place, ""),
        cell_id,
        cell_type: type_of(&cell),
        old_source: source_of(&cell),
    })
}

/// Where in the text a value that was read from it stands.
fn place_of(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + value.get().len()
}

fn splice(text: &str, place: Range<usize>, new: &str) -> String {
    [&text[..place.start], new, &text[place.end..]].concat()
}

/// A source as notebooks keep it: in one piece, or line by line.
fn source(text: &str, in_lines: bool) -> Value {
    if in_lines { text.split_inclusive('\n').collect() } else { text.into() }
}

/// How JSON is written around a cell.
struct Style {
    /// The white space before a line of the cell; none if all stands on one line.
    indent: Option<String>,
    /// One step further in.
    unit: String,
}

impl Style {
    /// The style around a cell that stands at `place`.
    fn of(text: &str, place: &Range<usize>) -> Self {
        let line = text[..place.start].rfind('\n').map(|newline| &text[newline + 1..place.start]);
        let indent = line.filter(|line| line.trim().is_empty()).map(str::to_owned);
        Self { indent, unit: unit(text) }
    }

    /// What stands between two cells after the comma.
    fn gap(&self) -> String {
        self.indent.as_ref().map_or_else(|| " ".into(), |indent| format!("\n{indent}"))
    }

    fn write(&self, value: &Map<String, Value>) -> Result<String, String> {
        let Some(indent) = &self.indent else {
            return serde_json::to_string(value).map_err(|error| error.to_string());
        };
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        value.serialize(&mut serializer).map_err(|error| error.to_string())?;
        let written = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Ok(written.replace('\n', &format!("\n{indent}")))
    }
}

/// One step of indentation: how far the first line inside the notebook is set in.
fn unit(text: &str) -> String {
    let line = text.lines().nth(1).unwrap_or(" ");
    let unit = &line[..line.len() - line.trim_start().len()];
    if unit.is_empty() { " ".into() } else { unit.into() }
}

#[cfg(test)]
mod tests;
