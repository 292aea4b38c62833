//! Texts of commands: the page about models, the exported conversation, and pasted paths of pictures.

use std::fmt::Write;
use std::path::PathBuf;

use crate::transcript::{Item, ShellExit};

/// How to set up a model.
pub(crate) const SETUP_PAGE: &str = "\
**Ways to set up a model**

Set the variables in the shell, then start `whimbrel` again:

- an Anthropic key: `export ANTHROPIC_API_KEY=sk-ant-...`
- a gateway: `export ANTHROPIC_AUTH_TOKEN=... ANTHROPIC_BASE_URL=https://...`
- a Chat Completions server: `export OPENAI_API_KEY=... OPENAI_BASE_URL=https://.../v1`, then `whimbrel --model openai:NAME`
- a local server: `export OPENAI_BASE_URL=http://localhost:11434/v1`, then `whimbrel --model openai:qwen3`
";

/// The conversation as a Markdown page.
pub(crate) fn export_markdown(items: &[Item]) -> String {
    let mut page = String::new();
    for item in items {
        let _ = match item {
            Item::User { text, .. } => {
                let quoted: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
                write!(page, "{}\n\n", quoted.join("\n"))
            }
            Item::Answer(text) | Item::Page(text) => write!(page, "{}\n\n", text.trim_end()),
            Item::Thinking(_) => Ok(()),
            Item::Plan(text) => write!(page, "## Plan\n\n{}\n\n", text.trim_end()),
            Item::Call(call) => {
                let fence = fence(&call.text);
                let input = serde_json::to_string(&call.input).unwrap_or_default();
                write!(page, "**{}** `{input}`\n\n{fence}\n{}\n{fence}\n\n", call.name, call.text.trim_end())
            }
            Item::Shell { command, output, exit } => {
                let fence = fence(output);
                let end = match exit {
                    ShellExit::Code(0) => String::new(),
                    ShellExit::Code(code) => format!(" (exit {code})"),
                    ShellExit::Signal(signal) => format!(" (signal {signal})"),
                    ShellExit::Stopped => " (stopped)".into(),
                };
                write!(page, "**$ {command}**{end}\n\n{fence}\n{}\n{fence}\n\n", output.trim_end())
            }
            Item::Note(_, text) | Item::Mark(text) => write!(page, "*{}*\n\n", text.replace('\n', " ")),
        };
    }
    page
}

/// A fence that does not occur in a text.
fn fence(text: &str) -> String {
    let longest = text.lines().map(|line| line.chars().take_while(|mark| *mark == '`').count()).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

/// The path of a picture, if a pasted text is nothing else: terminals paste the path of a dropped file.
pub(crate) fn picture_path(pasted: &str) -> Option<PathBuf> {
    let text = pasted.trim();
    let text = text.strip_prefix("file://").unwrap_or(text);
    let text = text.trim_matches(['\'', '"']).replace("\\ ", " ");
    let lower = text.to_lowercase();
    let is_picture = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|ending| lower.ends_with(ending));
    let is_path = text.starts_with(['/', '~', '.']) && !text.contains('\n');
    (is_picture && is_path).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_paths_of_pictures_are_recognized() {
        let rows = [
            ("/home/ann/shot.png", Some("/home/ann/shot.png")),
            ("'/home/ann/my shot.PNG' ", Some("/home/ann/my shot.PNG")),
            ("/home/ann/my\\ shot.jpg", Some("/home/ann/my shot.jpg")),
            ("file:///tmp/a.webp", Some("/tmp/a.webp")),
            ("look at shot.png", None),
            ("/tmp/a.txt", None),
            ("/tmp/a.png\n/tmp/b.png", None),
        ];
        for (pasted, expected) in rows {
            assert_eq!(picture_path(pasted), expected.map(PathBuf::from), "{pasted}");
        }
    }

    #[test]
    fn fence_is_longer_than_those_in_the_text() {
        assert_eq!(fence("a\n```\nb"), "````");
        assert_eq!(fence("a"), "```");
    }
}
