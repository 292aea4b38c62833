//! Which tools `whimbrel mcp serve` offers, and what each may access.

/// Tools that make sense without a conversation.
pub(super) const TOOLS: [(&str, ToolAccess); 10] = [
    ("Read", ToolAccess::ReadOnly),
    ("Glob", ToolAccess::ReadOnly),
    ("Grep", ToolAccess::ReadOnly),
    ("Write", ToolAccess::Writes),
    ("Edit", ToolAccess::Writes),
    ("NotebookEdit", ToolAccess::Writes),
    ("Bash", ToolAccess::Unrestricted),
    ("TaskOutput", ToolAccess::ReadOnly),
    ("TaskStop", ToolAccess::Writes),
    ("WebFetch", ToolAccess::ReadOnlyNetwork),
];

/// Access of a tool, for its MCP annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAccess {
    ReadOnly,
    /// Changes nothing here, but sends requests to the network.
    ReadOnlyNetwork,
    /// Changes local files or processes.
    Writes,
    Unrestricted,
}

pub(super) fn tool_names() -> Vec<String> {
    TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect()
}
