//! `/context`: shows what fills the context.

use whimbrel_wire::control::ContextUsage;

use crate::commands::{BuiltinAction, BuiltinCommand};

pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "context",
    description: "Show what fills the context",
    argument_hint: "",
    action: BuiltinAction::Context,
};

/// Renders the usage as Markdown.
pub fn render(usage: &ContextUsage) -> String {
    let mut text = match usage.max_tokens {
        0 => {
            format!("{}: {} tokens (the size of its window is not known)\n", usage.model, usage.total_tokens)
        }
        window => {
            format!("{}: {} of {window} tokens ({}%)\n", usage.model, usage.total_tokens, usage.percentage)
        }
    };
    text += "\n| Part | Tokens |\n|---|---|\n";
    for part in &usage.categories {
        text += &format!("| {} | {} |\n", part.name, part.tokens);
    }
    if !usage.memory_files.is_empty() {
        text += "\n| Memory file | Tokens |\n|---|---|\n";
        for file in &usage.memory_files {
            text += &format!("| {} | {} |\n", file["path"].as_str().unwrap_or_default(), file["tokens"]);
        }
    }
    text += "\nThe provider counts requests as a whole; the parts are estimates.";
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_wire::control::ContextCategory;

    use super::*;

    #[test]
    fn the_parts_are_listed_in_a_table() {
        let part = ContextCategory { name: "Messages".into(), tokens: 40, ..ContextCategory::default() };
        let usage = ContextUsage {
            model: "m".into(),
            total_tokens: 40,
            max_tokens: 200,
            percentage: 20.0,
            categories: vec![part],
            memory_files: vec![json!({"path": "/w/CLAUDE.md", "tokens": 3})],
            ..ContextUsage::default()
        };
        let shown = render(&usage);
        for part in ["m: 40 of 200 tokens (20%)", "| Messages | 40 |", "| /w/CLAUDE.md | 3 |"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(render(&ContextUsage::default()).contains("not known"));
    }
}
