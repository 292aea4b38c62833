//! Agent definitions, scripted replies and input files of the example.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use whimbrel::wire::options::AgentDefinition;
use whimbrel::{Engine, Scripted};

/// The leader's model.
pub(crate) const LEADER: &str = "claude-opus-5-5";

/// Name, description, prompt, tools and model of each subagent.
const ROLES: [(&str, &str, &str, &[&str], &str); 3] = [
    (
        "field-researcher",
        "Knows its way around field notes",
        "You find facts in field notes and report them with the file and the line.",
        &["Grep", "Read"],
        "claude-haiku-5-5",
    ),
    (
        "archive-researcher",
        "Knows its way around old books",
        "You find what has been written before and report it with its source.",
        &["Glob", "Read"],
        "claude-sonnet-5-5",
    ),
    (
        "writer",
        "Turns facts into a text",
        "You write short, clear paragraphs and invent nothing.",
        &["Write", "Read"],
        "claude-fable-5-2",
    ),
];

const ARTICLE: &str = "# The whimbrel\n\nIn May the mudflat fills: forty-one whimbrels were counted in one morning, waiting for the tide. Their call of seven\nnotes earned them the name of seven whistlers long ago.\n";

/// Agent definitions that the leader may use.
pub(crate) fn agent_definitions() -> BTreeMap<String, AgentDefinition> {
    let role = |(name, description, prompt, tools, model): (&str, &str, &str, &[&str], &str)| {
        let definition = AgentDefinition {
            description: description.into(),
            prompt: prompt.into(),
            tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
            model: Some(model.into()),
            ..AgentDefinition::default()
        };
        (name.to_owned(), definition)
    };
    ROLES.into_iter().map(role).collect()
}

/// Adds one scripted model per role.
pub(crate) fn add_scripted_models(engine: &Engine) -> anyhow::Result<()> {
    let [field, archive, writer] = ROLES.map(|(.., model)| model);
    for (model, replies) in [
        (LEADER, leader_script()),
        (field, field_script()),
        (archive, archive_script()),
        (writer, writer_script()),
    ] {
        engine.providers().add_model(model, Arc::new(Scripted::replies(replies)?));
    }
    Ok(())
}

/// Writes the notes that the researchers read.
pub(crate) fn write_notes(folder: &Path) -> std::io::Result<()> {
    let notes = [
        (
            "notes/may.txt",
            "3 May: fog, nothing seen.\n9 May: 41 whimbrels on the mudflat, waiting for the tide.\n",
        ),
        ("notes/june.txt", "2 June: two curlews. The whimbrels have gone north.\n"),
        ("books/birds-1889.txt", "WHIMBREL. Called the seven whistler, from its call of seven notes.\n"),
    ];
    for (path, text) in notes {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn leader_script() -> Value {
    json!([
        {"delay_ms": 600, "content": [
            "Two things at once: what we saw, and what has been written.",
            agent_call("field-researcher", "Count the birds", "How many whimbrels were seen, when and where? Look in notes/."),
            agent_call("archive-researcher", "Look up the name", "What do the old books say about its name? Look in books/."),
        ]},
        {"delay_ms": 700, "content": [
            "Both are back; now for the text.",
            agent_call("writer", "Write the paragraph", "Write whimbrel.md: 41 birds on the mudflat on 9 May; called seven whistler for its call."),
        ]},
        {"delay_ms": 500, "content": ["The paragraph is in whimbrel.md."]},
    ])
}

fn field_script() -> Value {
    json!([
        {"delay_ms": 500, "content": [tool_call("Grep", &json!({"pattern": "whimbrel", "path": "notes", "output_mode": "content"}))]},
        {"delay_ms": 900, "content": [tool_call("Read", &json!({"file_path": "notes/may.txt"}))]},
        {"delay_ms": 800, "content": [tool_call("Read", &json!({"file_path": "notes/june.txt"}))]},
        {"delay_ms": 600, "content": ["41 on the mudflat on 9 May (notes/may.txt:2); gone by 2 June (notes/june.txt:1)."]},
    ])
}

fn archive_script() -> Value {
    json!([
        {"delay_ms": 900, "content": [tool_call("Glob", &json!({"pattern": "books/*"}))]},
        {"delay_ms": 1000, "content": [tool_call("Read", &json!({"file_path": "books/birds-1889.txt"}))]},
        {"delay_ms": 500, "content": ["Seven whistler, for its call of seven notes (books/birds-1889.txt:1)."]},
    ])
}

fn writer_script() -> Value {
    json!([
        {"delay_ms": 1200, "content": [tool_call("Write", &json!({"file_path": "whimbrel.md", "content": ARTICLE}))]},
        {"delay_ms": 700, "content": ["Written to whimbrel.md."]},
    ])
}

fn tool_call(tool: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "name": tool, "input": input})
}

/// A call of the `Agent` tool. It names its id, so that the calls of different scripts do not collide.
fn agent_call(role: &str, description: &str, prompt: &str) -> Value {
    let input = json!({"subagent_type": role, "description": description, "prompt": prompt});
    json!({"type": "tool_use", "id": format!("call_{role}"), "name": "Agent", "input": input})
}
