//! Notebooks for the model: cells with sources and outputs, images included.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whimbrel_wire::content::{Block, ResultContent};

use super::text::LineRequest;
use crate::api::ToolOutput;
use crate::builtin::patch::truncate_chars;
use whimbrel_models::images::{EncodedImage, ImageFormat, fit_to_limit};

/// The displayed parts of a notebook.
#[derive(Debug, Deserialize)]
pub(in crate::builtin) struct ParsedNotebook {
    cells: Vec<NotebookCell>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Debug, Deserialize)]
pub(in crate::builtin) struct NotebookCell {
    /// The id; old notebooks have none.
    #[serde(default)]
    id: Option<String>,
    /// `code`, `markdown` or `raw`.
    #[serde(default)]
    cell_type: String,
    #[serde(default)]
    source: CellText,
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<CellOutput>,
}

#[derive(Debug, Deserialize)]
struct CellOutput {
    #[serde(default)]
    output_type: String,
    #[serde(default)]
    text: CellText,
    #[serde(default)]
    data: Map<String, Value>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
}

/// Text in either form of the notebook format.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::builtin) enum CellText {
    /// As one string.
    Whole(String),
    /// As lines with their newlines.
    Split(Vec<String>),
}

impl Default for CellText {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl CellText {
    pub(in crate::builtin) fn join(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Split(lines) => lines.concat(),
        }
    }
}

/// Maximum characters of one source or output.
const MAX_PIECE_CHARS: usize = 10_000;
/// Maximum text per call.
const MAX_SHOWN_BYTES: usize = 100_000;
const MAX_IMAGES: usize = 5;
/// Maximum base64 size of an image.
const MAX_IMAGE_BASE64_BYTES: usize = 120_000;

/// Renders the cells; `lines` counts cells. `None` if the text is not a notebook.
pub(super) fn render_notebook(path: &Path, text: &str, lines: LineRequest) -> Option<ToolOutput> {
    let notebook: ParsedNotebook = serde_json::from_str(text).ok()?;
    let span = lines.span_within(notebook.cells.len());
    let language = language(&notebook.metadata);
    let mut text_shown = String::new();
    let mut cells = Vec::new();
    let mut images = Vec::new();
    let selected =
        notebook.cells.iter().enumerate().skip(span.first - 1).take(span.count.unwrap_or(usize::MAX));
    for (index, cell) in selected {
        let cell_text = cell.render(index);
        if !cells.is_empty() && text_shown.len() + cell_text.len() > MAX_SHOWN_BYTES {
            let total = notebook.cells.len();
            text_shown += &format!(
                "[{total} cells in total. Continue with offset {} (counted in cells).]\n",
                index + 1
            );
            break;
        }
        text_shown += &cell_text;
        cells.push(cell.to_host_json(index, language));
        images
            .extend(cell.outputs.iter().filter_map(CellOutput::image_block).take(MAX_IMAGES - images.len()));
    }
    if cells.is_empty() {
        text_shown =
            format!("{} has {} cells, none of them in this range.", path.display(), notebook.cells.len());
    }
    let meta = json!({"type": "notebook", "file": {"filePath": path.to_string_lossy(), "cells": cells}});
    if images.is_empty() {
        return Some(ToolOutput::text(text_shown.trim_end(), meta));
    }
    let blocks = std::iter::once(Block::text(text_shown.trim_end())).chain(images).collect();
    Some(ToolOutput { content: ResultContent::Blocks(blocks), meta })
}

/// Name of a cell for the model: its id, or `cell-N` counted from 0.
pub(in crate::builtin) fn cell_name(id: Option<&str>, index: usize) -> String {
    id.map_or_else(|| format!("cell-{index}"), str::to_owned)
}

pub(in crate::builtin) fn language(metadata: &Value) -> &str {
    let declared = ["/language_info/name", "/kernelspec/language"]
        .iter()
        .find_map(|path| metadata.pointer(path)?.as_str());
    declared.unwrap_or("python")
}

impl NotebookCell {
    fn render(&self, index: usize) -> String {
        let name = cell_name(self.id.as_deref(), index);
        let source = truncate_chars(&self.source.join(), MAX_PIECE_CHARS);
        let mut text =
            format!("<cell id=\"{name}\" type=\"{}\">\n{}\n</cell>\n", self.cell_type, source.trim_end());
        for output in &self.outputs {
            let output_text = truncate_chars(&output.output_text(), MAX_PIECE_CHARS);
            text += &format!("<output>\n{}\n</output>\n", output_text.trim_end());
        }
        text
    }

    fn to_host_json(&self, index: usize, language: &str) -> Value {
        let mut cell = json!({
            "cellType": self.cell_type,
            "source": truncate_chars(&self.source.join(), MAX_PIECE_CHARS),
            "cell_id": cell_name(self.id.as_deref(), index),
        });
        if self.cell_type == "code" {
            let outputs = self.outputs.iter();
            let outputs =
                outputs.map(|output| json!({"output_type": output.output_type, "text": truncate_chars(&output.output_text(), MAX_PIECE_CHARS)}));
            cell["language"] = language.into();
            cell["execution_count"] = self.execution_count.into();
            cell["outputs"] = outputs.collect();
        }
        cell
    }
}

impl CellOutput {
    fn output_text(&self) -> String {
        if !self.ename.is_empty() || !self.evalue.is_empty() {
            return format!("{}: {}", self.ename, self.evalue);
        }
        let plain = self.data.get("text/plain").and_then(|text| CellText::deserialize(text).ok());
        plain.as_ref().unwrap_or(&self.text).join()
    }

    fn image_block(&self) -> Option<Block> {
        let kinds = [("image/png", ImageFormat::Png), ("image/jpeg", ImageFormat::Jpeg)];
        let (data, format) =
            kinds.iter().find_map(|(name, format)| Some((self.data.get(*name)?, *format)))?;
        let base64 = CellText::deserialize(data).ok()?.join();
        let bytes = BASE64_STANDARD.decode(base64.split_whitespace().collect::<String>()).ok()?;
        fit_to_limit(&bytes, format, MAX_IMAGE_BASE64_BYTES).ok().map(EncodedImage::into_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LineRequest = LineRequest { start: 1, count: None };
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn notebook(outputs: &Value) -> String {
        json!({"cells": [
            {"cell_type": "code", "id": "c1", "source": ["print(1)\n", "plot()"], "execution_count": 3, "outputs": outputs},
            {"cell_type": "markdown", "source": "# t"},
        ]})
        .to_string()
    }

    #[test]
    fn cells_are_shown_with_outputs() {
        let outputs = json!([
            {"output_type": "stream", "text": ["1\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "2"}},
            {"output_type": "error", "ename": "E", "evalue": "bad"},
        ]);
        let output = render_notebook(Path::new("/n"), &notebook(&outputs), ALL).unwrap();
        let expected = "<cell id=\"c1\" type=\"code\">\nprint(1)\nplot()\n</cell>\n<output>\n1\n</output>\n<output>\n2\n</output>\n\
            <output>\nE: bad\n</output>\n<cell id=\"cell-1\" type=\"markdown\">\n# t\n</cell>";
        assert_eq!(output.content, ResultContent::Text(expected.into()));
        let outputs = json!([
            {"output_type": "stream", "text": "1\n"},
            {"output_type": "execute_result", "text": "2"},
            {"output_type": "error", "text": "E: bad"},
        ]);
        let cells = json!([
            {"cellType": "code", "source": "print(1)\nplot()", "cell_id": "c1", "language": "python", "execution_count": 3,
                "outputs": outputs},
            {"cellType": "markdown", "source": "# t", "cell_id": "cell-1"},
        ]);
        assert_eq!(output.meta, json!({"type": "notebook", "file": {"filePath": "/n", "cells": cells}}));
    }

    #[test]
    fn images_are_included_unless_damaged() {
        let outputs = json!([
            {"output_type": "display_data", "data": {"image/png": DOT}},
            {"output_type": "display_data", "data": {"image/png": "AAAA"}},
        ]);
        let output = render_notebook(Path::new("/n"), &notebook(&outputs), ALL).unwrap();
        let ResultContent::Blocks(blocks) = output.content else { panic!("no blocks") };
        assert!(matches!(&blocks[..], [Block::Text { .. }, Block::Image { .. }]), "{blocks:?}");
    }

    #[test]
    fn a_long_notebook_is_shown_in_parts() {
        let cells: Vec<_> =
            (0..30).map(|_| json!({"cell_type": "code", "source": "x".repeat(9_000)})).collect();
        let text = json!({"cells": cells}).to_string();
        let output = render_notebook(Path::new("/n"), &text, ALL).unwrap();
        let ResultContent::Text(text_shown) = output.content else { panic!("no text") };
        assert!(
            text_shown.len() < MAX_SHOWN_BYTES + 100
                && text_shown.ends_with("Continue with offset 12 (counted in cells).]")
        );
        let output =
            render_notebook(Path::new("/n"), &text, LineRequest { start: 12, count: Some(1) }).unwrap();
        assert_eq!(output.meta["file"]["cells"][0]["cell_id"], "cell-11");
    }

    #[test]
    fn other_json_is_not_a_notebook() {
        assert_eq!(render_notebook(Path::new("/n"), "{\"a\": 1}", ALL), None);
    }
}
