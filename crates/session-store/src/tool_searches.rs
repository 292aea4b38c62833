//! Entries that record the loading of deferred tools: results of ToolSearch, and compaction boundaries, which carry
//! over the tools loaded before.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use whimbrel_wire::content::Block;
use whimbrel_wire::tool_names::TOOL_SEARCH;

/// Records ToolSearch calls of a message in `searches`; returns true if the message contains a result of one.
pub(crate) fn track_tool_search(blocks: &[Block], searches: &mut HashSet<String>) -> bool {
    let mut answers = false;
    for block in blocks {
        match block {
            Block::ToolUse { id, name, .. } if name == TOOL_SEARCH => {
                searches.insert(id.clone());
            }
            Block::ToolResult { tool_use_id, .. } => answers |= searches.contains(tool_use_id),
            _ => {}
        }
    }
    answers
}

/// Tool names in the result of a search or in the metadata of a boundary. Invalid data yields none.
pub(crate) fn loaded_tool_names(result: Option<&RawValue>, boundary: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Search {
        #[serde(default)]
        matches: Vec<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Boundary {
        #[serde(default)]
        pre_compact_discovered_tools: Vec<String>,
    }
    let found = result.and_then(|json| serde_json::from_str::<Search>(json.get()).ok()).unwrap_or_default();
    let kept =
        boundary.and_then(|json| serde_json::from_str::<Boundary>(json.get()).ok()).unwrap_or_default();
    found.matches.into_iter().chain(kept.pre_compact_discovered_tools).collect()
}
