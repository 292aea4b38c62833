//! A tool as its server lists it.

use whimbrel_wire::RawJson;
use whimbrel_wire::control::{McpToolAnnotations, McpToolInfo};

/// Tool as listed by a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Name at the server.
    pub name: String,
    pub description: String,
    pub schema: RawJson,
    /// Read-only according to its annotations.
    pub read_only: bool,
    /// Requires an answer of the user (`anthropic/requiresUserInteraction`).
    pub interactive: bool,
    /// `anthropic/alwaysLoad`: true shows the tool to the model from the start.
    pub always_load: Option<bool>,
    pub annotations: Option<McpToolAnnotations>,
}

impl ListedTool {
    /// Tool info for the host.
    pub(super) fn info(&self) -> McpToolInfo {
        let description = Some(self.description.clone()).filter(|text| !text.is_empty());
        McpToolInfo { name: self.name.clone(), description, annotations: self.annotations.clone() }
    }
}
