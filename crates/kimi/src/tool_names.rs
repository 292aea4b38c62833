//! Names of tools of MCP servers and of the host: the engine's `mcp__SERVER__TOOL` is `TOOL` on this wire.

use std::collections::HashMap;

use crate::tools;

/// Name of the server that the host's own tools have in the engine.
pub(crate) const HOST_SERVER: &str = "tools-of-the-host";

/// The short names of the tools that the model is offered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolNames {
    short: HashMap<String, String>,
    full: HashMap<String, String>,
}

impl ToolNames {
    /// Gives each tool its short name. A name that is taken, by a built-in tool or an earlier one, stays as it is.
    pub(crate) fn new<'a>(engine_names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for full in engine_names {
            let Some((_, short)) = tools::split_mcp_name(full) else { continue };
            if !tools::is_builtin(short) && !names.full.contains_key(short) {
                names.full.insert(short.to_owned(), full.to_owned());
                names.short.insert(full.to_owned(), short.to_owned());
            }
        }
        names
    }

    pub(crate) fn to_short<'a>(&'a self, full: &'a str) -> &'a str {
        self.short.get(full).map_or(full, String::as_str)
    }

    pub(crate) fn to_full(&self, short: &str) -> Option<&str> {
        self.full.get(short).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_names_stay_as_they_are() {
        let names = ToolNames::new([
            "Bash",
            "mcp__tools-of-the-host__lookup",
            "mcp__demo__lookup",
            "mcp__demo__Shell",
            "mcp__demo__greet",
        ]);
        let rows = [
            ("mcp__tools-of-the-host__lookup", "lookup"),
            ("mcp__demo__lookup", "mcp__demo__lookup"),
            ("mcp__demo__Shell", "mcp__demo__Shell"),
            ("mcp__demo__greet", "greet"),
            ("Bash", "Bash"),
        ];
        for (full, short) in rows {
            assert_eq!(names.to_short(full), short);
        }
        assert_eq!(names.to_full("greet"), Some("mcp__demo__greet"));
        assert_eq!(names.to_full("Shell"), None);
    }
}
