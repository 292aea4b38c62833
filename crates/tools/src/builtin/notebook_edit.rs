//! NotebookEdit: replaces, inserts or deletes one cell of a notebook. The rest of the file stays byte for byte the
//! same.

mod cells;
mod json_style;
mod samples;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use whimbrel_os::files;

use self::cells::{Notebook, NotebookChange, apply_change};
use self::samples::{DELETED, NOTEBOOK, REPLACED};
use super::encoding::encode;
use super::file_target::{FileTarget, TargetState};
use super::read::notebook::language;
use super::{file_errors, patch};
use crate::api::ToolLoading;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct NotebookEditTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct NotebookEditInput {
    notebook_path: String,
    /// Cell id as shown by Read. With edit_mode insert, the new cell follows this cell, or comes first if omitted
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

impl Tool for NotebookEditTool {
    type Input = NotebookEditInput;

    const NAME: &'static str = "NotebookEdit";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str =
        "Replaces, inserts or deletes a cell of a Jupyter notebook that you have read.";

    fn effects(input: &NotebookEditInput) -> Effects {
        Effects::Writes(vec![input.notebook_path.clone()])
    }

    async fn run(&self, input: NotebookEditInput, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || edit_notebook(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let files = &[("n.ipynb", NOTEBOOK)];
        let read = || ("Read", json!({"file_path": "n.ipynb"}));
        vec![
            Example::new(
                "replaces a source and drops the outputs",
                json!({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "print(2)\nprint(3)"}),
            )
            .with_files(files)
            .after_call(read().0, read().1)
            .expect_output(&["c1"])
            .expect_files(&[("n.ipynb", REPLACED)]),
            Example::new(
                "deletes a cell by index",
                json!({"notebook_path": "n.ipynb", "cell_id": "cell-1", "edit_mode": "delete"}),
            )
            .with_files(files)
            .after_call(read().0, read().1)
            .expect_files(&[("n.ipynb", DELETED)]),
            Example::new("rejects an unread notebook", json!({"notebook_path": "n.ipynb", "cell_id": "c1"}))
                .with_files(files)
                .expect_error(&["not been read"])
                .expect_files(files),
            Example::new(
                "lists the cells for an unknown id",
                json!({"notebook_path": "n.ipynb", "cell_id": "c9"}),
            )
            .with_files(files)
            .after_call(read().0, read().1)
            .expect_error(&["c9", "c1, c2"]),
        ]
    }
}

impl NotebookEditInput {
    fn mode(&self) -> EditMode {
        self.edit_mode.unwrap_or(EditMode::Replace)
    }
}

fn edit_notebook(input: &NotebookEditInput, call: &ToolContext) -> ToolResult {
    let target = FileTarget::resolve(call, &input.notebook_path)?;
    let path = target.path.as_path();
    let TargetState::File(existing) = target.load(&call.workspace)? else {
        let message = file_errors::missing_file_message(path, &call.workspace.cwd());
        return Err(ToolError::Rejected(format!("{message} Create a new notebook with Write.")));
    };
    existing.require_fresh_read(path)?;
    let old = existing.require_editable(path)?;
    let notebook: Notebook<'_> = serde_json::from_str(&old.text)
        .map_err(|error| ToolError::Rejected(format!("{} is not a notebook: {error}", path.display())))?;
    let change = apply_change(&old.text, &notebook, input).map_err(ToolError::Rejected)?;
    let bytes = encode(&change.text, old.encoding).unwrap_or_else(|| change.text.clone().into_bytes());
    let stamp = target.replace(&bytes)?;
    target.record_seen(&call.workspace, stamp, Some(&change.text));
    Ok(edit_result(input, path, &old.text, language(&notebook.metadata), &change))
}

fn edit_result(
    input: &NotebookEditInput,
    path: &Path,
    old: &str,
    language: &str,
    change: &NotebookChange,
) -> ToolOutput {
    let action = match input.mode() {
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
        "original_file": patch::text_for_host(old).as_str().unwrap_or_default(),
        "updated_file": patch::text_for_host(&change.text).as_str().unwrap_or_default(),
    });
    ToolOutput::text(format!("Cell {} {action} in {}", change.cell_id, path.display()), meta)
}

#[cfg(test)]
mod tests;
