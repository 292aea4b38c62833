//! Names of tools in both vocabularies.

/// Kimi's name and the engine's, where they differ.
const RENAMED: [(&str, &str); 7] = [
    ("Shell", "Bash"),
    ("ReadFile", "Read"),
    ("WriteFile", "Write"),
    ("StrReplaceFile", "Edit"),
    ("SetTodoList", "TodoWrite"),
    ("FetchURL", "WebFetch"),
    ("SearchWeb", "WebSearch"),
];

/// Names that the model is not offered and may use nevertheless, because a conversation or an agent file has them.
const ALIASES: [(&str, &str); 2] = [("ReadMediaFile", "Read"), ("Task", "Agent")];

/// Names that mean the same in both vocabularies.
const SAME: [&str; 10] = [
    "Agent",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "Skill",
    "TaskOutput",
    "TaskStop",
    "ToolSearch",
];

/// A tool of Kimi for which the engine has none: its tool of this name is a different one.
const WITHOUT_COUNTERPART: &str = "TaskList";

/// The engine's name of a tool. Names that are not Kimi's stay as they are.
pub(crate) fn engine_name(kimi_name: &str) -> &str {
    let mut pairs = RENAMED.iter().chain(&ALIASES);
    pairs.find(|(kimi, _)| *kimi == kimi_name).map_or(kimi_name, |(_, engine)| engine)
}

/// Kimi's name of a tool. Names that are not the engine's stay as they are.
pub(crate) fn kimi_name(engine_name: &str) -> &str {
    if engine_name == "Task" {
        return "Agent";
    }
    RENAMED.iter().find(|(_, engine)| *engine == engine_name).map_or(engine_name, |(kimi, _)| kimi)
}

/// The name that the host sees: Kimi's, and for a tool of an MCP server the name without the server.
pub(crate) fn shown_name(engine_name: &str) -> &str {
    split_mcp_name(engine_name).map_or_else(|| kimi_name(engine_name), |(_, tool)| tool)
}

/// Server and tool of the engine's name for an MCP tool.
pub(crate) fn split_mcp_name(engine_name: &str) -> Option<(&str, &str)> {
    engine_name.strip_prefix("mcp__")?.split_once("__")
}

/// Whether a tool of the host may not have this name: Kimi's names, and those by which the engine's own tools can be
/// called directly.
pub(crate) fn is_builtin(name: &str) -> bool {
    let pairs = RENAMED.iter().chain(&ALIASES);
    pairs.flat_map(|(kimi, engine)| [*kimi, *engine]).chain(SAME).any(|known| known == name)
        || name == WITHOUT_COUNTERPART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_translated_both_ways() {
        for (kimi, engine) in RENAMED {
            assert_eq!((engine_name(kimi), kimi_name(engine)), (engine, kimi));
            assert_eq!((engine_name(engine), kimi_name(kimi)), (engine, kimi), "{engine} stays");
        }
        for name in SAME.into_iter().chain(["mcp__a__b", "lookup"]) {
            assert_eq!((engine_name(name), kimi_name(name)), (name, name));
        }
        assert_eq!(
            (engine_name("ReadMediaFile"), engine_name("Task"), kimi_name("Task")),
            ("Read", "Agent", "Agent")
        );
    }

    #[test]
    fn the_host_sees_no_servers() {
        let rows =
            [("Bash", "Shell"), ("Grep", "Grep"), ("mcp__demo__greet_all", "greet_all"), ("mcp__", "mcp__")];
        for (engine, shown) in rows {
            assert_eq!(shown_name(engine), shown);
        }
    }

    #[test]
    fn names_of_tools_are_reserved() {
        let rows = [
            ("Shell", true),
            ("Bash", true),
            ("TaskList", true),
            ("ReadMediaFile", true),
            ("Agent", true),
            ("shell", false),
            ("open_in_ide", false),
            ("Monitor", false),
        ];
        for (name, reserved) in rows {
            assert_eq!(is_builtin(name), reserved, "{name}");
        }
    }
}
