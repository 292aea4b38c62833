//! What the model is offered: names, descriptions and schemas of the engine's tools in Kimi's vocabulary.

use std::sync::LazyLock;

use serde_json::{Value, json};
use whimbrel::wire::RawJson;

use super::names::kimi_name;

/// What becomes of a tool of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Offer {
    /// Offered with these words.
    Renamed(&'static KimiTool),
    /// Offered as it is.
    Same,
    /// Not offered: Kimi has no such tool.
    Hidden,
}

/// A tool as the model of Kimi knows it.
#[derive(Debug)]
pub(crate) struct KimiTool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON Schema of the input.
    pub(crate) input_schema: RawJson,
}

/// The engine's tools that hosts of Kimi do not know. Its `TaskList` is another one than Kimi's.
const HIDDEN: [&str; 18] = [
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterWorktree",
    "ExitWorktree",
    "ListAgents",
    "ListMcpResourcesTool",
    "Monitor",
    "NotebookEdit",
    "ReadMcpResourceTool",
    "ScheduleWakeup",
    "SendMessage",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
];

/// What becomes of a tool of the engine. Tools of MCP servers are offered as they are.
pub(crate) fn offer(engine_name: &str) -> Offer {
    static TOOLS: LazyLock<Vec<KimiTool>> = LazyLock::new(kimi_tools);
    if HIDDEN.contains(&engine_name) {
        return Offer::Hidden;
    }
    let name = kimi_name(engine_name);
    TOOLS.iter().find(|tool| tool.name == name).map_or(Offer::Same, Offer::Renamed)
}

fn kimi_tools() -> Vec<KimiTool> {
    [command_tools(), file_tools(), search_tools(), web_tools(), other_tools()]
        .into_iter()
        .flatten()
        .collect()
}

fn command_tools() -> Vec<KimiTool> {
    vec![
        tool(
            "Shell",
            "Runs a bash command and returns stdout and stderr combined. Each call starts a new shell: `cd` within the \
             workspace persists, variables do not. There is no terminal and no stdin: avoid interactive programs. Use \
             run_in_background for servers and long jobs. For files, prefer ReadFile, StrReplaceFile, WriteFile, Grep \
             and Glob.",
            &["command"],
            &json!({
                "command": {"type": "string"},
                "timeout": {"type": "integer", "description": "Seconds; default 120, maximum 600"},
                "description": {"type": "string", "description": "What the command does, in 5-10 words"},
                "run_in_background": {
                    "type": "boolean", "description": "Return immediately; you are notified when it ends",
                },
            }),
        ),
        tool(
            "TaskOutput",
            "Waits for a background task and returns the end of its output.",
            &["task_id"],
            &json!({
                "task_id": {"type": "string"},
                "block": {"type": "boolean", "description": "Wait until it ends; default true"},
                "timeout": {"type": "integer", "description": "Maximum wait in seconds; default 30"},
            }),
        ),
    ]
}

fn file_tools() -> Vec<KimiTool> {
    let edit = json!({
        "type": "object",
        "properties": {
            "old": {"type": "string"},
            "new": {"type": "string"},
            "replace_all": {"type": "boolean", "description": "Replace every match"},
        },
        "required": ["old", "new"],
    });
    vec![
        tool(
            "ReadFile",
            "Reads a file: text with line numbers, an image, a PDF or a notebook. For large files, use line_offset and \
             n_lines.",
            &["path"],
            &json!({
                "path": {"type": "string"},
                "line_offset": {
                    "type": "integer", "description": "First line, from 1; negative numbers count from the end",
                },
                "n_lines": {"type": "integer", "description": "Number of lines"},
            }),
        ),
        tool(
            "WriteFile",
            "Creates a file and its directories, overwrites a file that you have read, or appends to a file. To change \
             parts of a file, use StrReplaceFile.",
            &["path", "content"],
            &json!({
                "path": {"type": "string"},
                "content": {"type": "string"},
                "mode": {"type": "string", "enum": ["overwrite", "append"], "description": "Default overwrite"},
            }),
        ),
        tool(
            "StrReplaceFile",
            "Replaces text in a file that you have read. `old` must match exactly, including whitespace but without \
             the line numbers of ReadFile, and must be unique: include enough surrounding lines. Several edits of one \
             call are applied in order, all or none.",
            &["path", "edit"],
            &json!({
                "path": {"type": "string"},
                "edit": {"anyOf": [edit, {"type": "array", "items": edit}]},
            }),
        ),
    ]
}

fn search_tools() -> Vec<KimiTool> {
    vec![
        tool(
            "Glob",
            "Finds files by name pattern, newest first, at most 100. Skips gitignored files, and hidden ones unless \
             named.",
            &["pattern"],
            &json!({
                "pattern": {
                    "type": "string",
                    "description": "e.g. `src/**/*.{ts,tsx}`; `*.py` matches in one directory only",
                },
                "directory": {"type": "string", "description": "Default: current directory"},
            }),
        ),
        tool(
            "Grep",
            "Searches file contents like ripgrep and takes its flags. Skips hidden, gitignored and binary files. Use \
             it instead of grep or rg in Shell.",
            &["pattern"],
            &json!({
                "pattern": {"type": "string", "description": "Rust regex"},
                "path": {"type": "string", "description": "File or directory; default: current directory"},
                "glob": {"type": "string", "description": "Filters files, e.g. `*.{ts,tsx}`, `!*.md`"},
                "output_mode": {
                    "type": "string",
                    "enum": ["content", "files_with_matches", "count_matches"],
                    "description": "Default files_with_matches",
                },
                "-B": {"type": "integer"},
                "-A": {"type": "integer"},
                "-C": {"type": "integer"},
                "-n": {"type": "boolean", "description": "Default true"},
                "-i": {"type": "boolean"},
                "type": {"type": "string", "description": "As in rg: rust, py, js, ..."},
                "head_limit": {
                    "type": "integer", "description": "Maximum lines or files; default 250; 0: all",
                },
                "multiline": {"type": "boolean", "description": "Let matches span lines"},
            }),
        ),
    ]
}

fn web_tools() -> Vec<KimiTool> {
    vec![
        tool(
            "FetchURL",
            "Fetches a public web page or text file and returns its main content. No logins.",
            &["url"],
            &json!({"url": {"type": "string"}}),
        ),
        tool(
            "SearchWeb",
            "Searches the web and returns titles, URLs and excerpts. Cite the sources you use.",
            &["query"],
            &json!({"query": {"type": "string"}}),
        ),
    ]
}

fn other_tools() -> Vec<KimiTool> {
    let list = |item: Value| json!({"type": "array", "items": item});
    let object = |required: &[&str], properties: Value| json!({"type": "object", "properties": properties, "required": required});
    let todo = object(
        &["title", "status"],
        json!({
            "title": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
        }),
    );
    let choice = object(
        &["label", "description"],
        json!({
            "label": {"type": "string", "description": "1-5 words"},
            "description": {"type": "string", "description": "What the choice means"},
        }),
    );
    let question = object(
        &["question", "header", "options"],
        json!({
            "question": {"type": "string"},
            "header": {"type": "string", "description": "Label of at most 12 characters"},
            "options": {"type": "array", "items": choice, "minItems": 2, "maxItems": 4},
            "multi_select": {"type": "boolean", "description": "Allow several answers"},
        }),
    );
    vec![
        tool(
            "SetTodoList",
            "Replaces your list of steps, which the user sees. Use it for work of three or more steps. Mark each step \
             done once it is.",
            &["todos"],
            &json!({"todos": list(todo)}),
        ),
        tool(
            "AskUserQuestion",
            "Asks the user questions and waits for the answers. Use it only for what you cannot find out and should \
             not decide yourself. Put the recommended option first. The user can always answer in their own words; do \
             not add an \"other\" option.",
            &["questions"],
            &json!({"questions": {"type": "array", "items": question, "minItems": 1, "maxItems": 4}}),
        ),
        tool(
            "Agent",
            "Starts a subagent with a fresh context and returns its report. Use it for broad searches and for work \
             whose details you do not need. Calls in the same reply run in parallel. Types: coder (default), explore \
             (read-only), plan.",
            &["description", "prompt"],
            &json!({
                "description": {"type": "string", "description": "The task in 3-5 words"},
                "prompt": {"type": "string", "description": "The complete task; the subagent sees nothing else"},
                "subagent_type": {"type": "string"},
                "model": {"type": "string", "description": "Overrides the agent's model"},
                "resume": {"type": "string", "description": "The agentId of an earlier agent, to continue it"},
                "run_in_background": {"type": "boolean"},
            }),
        ),
    ]
}

fn tool(name: &'static str, description: &'static str, required: &[&str], properties: &Value) -> KimiTool {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let input_schema = RawJson::from_value(&schema).unwrap_or_else(|_| unreachable!("a value is JSON"));
    KimiTool { name, description, input_schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_of_the_engine_has_its_offer() {
        let rows = [
            ("Bash", Some("Shell")),
            ("Read", Some("ReadFile")),
            ("Write", Some("WriteFile")),
            ("Edit", Some("StrReplaceFile")),
            ("Glob", Some("Glob")),
            ("Grep", Some("Grep")),
            ("TodoWrite", Some("SetTodoList")),
            ("WebFetch", Some("FetchURL")),
            ("WebSearch", Some("SearchWeb")),
            ("Agent", Some("Agent")),
            ("AskUserQuestion", Some("AskUserQuestion")),
            ("TaskOutput", Some("TaskOutput")),
            ("TaskStop", None),
            ("EnterPlanMode", None),
            ("ExitPlanMode", None),
            ("Skill", None),
            ("ToolSearch", None),
            ("StructuredOutput", None),
            ("mcp__a__Bash", None),
        ];
        for (engine, expected) in rows {
            let name = match offer(engine) {
                Offer::Renamed(tool) => Some(tool.name),
                Offer::Same => None,
                Offer::Hidden => panic!("{engine} is hidden"),
            };
            assert_eq!(name, expected, "{engine}");
        }
        assert!(HIDDEN.iter().all(|name| matches!(offer(name), Offer::Hidden)));
        assert_eq!(kimi_tools().len(), rows.iter().filter(|(_, name)| name.is_some()).count());
    }

    #[test]
    fn descriptions_name_no_tool_of_the_engine() {
        let other = ["Bash", "Read", "Write", "Edit", "TodoWrite", "WebFetch", "WebSearch"];
        for tool in kimi_tools() {
            let text = format!("{} {}", tool.description, tool.input_schema.as_str());
            let mut words = text.split(|character: char| !character.is_alphanumeric());
            assert!(!words.any(|word| other.contains(&word)), "{}", tool.name);
        }
    }

    #[test]
    fn the_specifications_are_small() {
        let size =
            |tool: &KimiTool| tool.name.len() + tool.description.len() + tool.input_schema.as_str().len();
        let total: usize = kimi_tools().iter().map(size).sum();
        assert!(total <= 7_000, "{total}");
    }
}
