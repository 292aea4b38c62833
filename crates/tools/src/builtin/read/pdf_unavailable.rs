//! PDF files in a build without the feature `pdf`: they are recognized and rejected.

use std::path::Path;

use crate::api::{ToolError, ToolOutput};

/// Returns whether the bytes begin like a PDF file.
pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

pub(super) fn render_pdf(path: &Path, _: &[u8], _: Option<&str>) -> Result<ToolOutput, ToolError> {
    let path = path.display();
    Err(ToolError::Rejected(format!(
        "{path} is a PDF file, which this build of the program cannot read. Use another program to extract its text."
    )))
}
