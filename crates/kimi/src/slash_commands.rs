//! Prompts that begin with a slash: commands of this wire, commands of the engine, and unknown ones.

use serde_json::{Value, json};
use whimbrel::wire::control::SlashCommand as EngineCommand;

/// What becomes of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptKind {
    /// The model answers this text; a command of the engine has its form of the name.
    Text(String),
    /// `/yolo`: calls need no approval any more, or they do again.
    ToggleYolo,
    /// `/plan`, `/plan on`, `/plan off`.
    SetPlanMode(Option<bool>),
    /// There is no such command.
    Unknown(String),
}

/// Prefix of skills in the names of commands.
const SKILL_PREFIX: &str = "skill:";

/// Commands of this wire that the engine does not have.
const OWN: [(&str, &str); 2] =
    [("yolo", "Approve all tool calls without asking, or ask again"), ("plan", "Switch plan mode on or off")];

/// Decides what a prompt is.
pub(crate) fn classify(text: &str, engine: &[EngineCommand]) -> PromptKind {
    let Some(command) = text.strip_prefix('/') else { return PromptKind::Text(text.to_owned()) };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    // A path or a comment is not a command.
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return PromptKind::Text(text.to_owned());
    }
    match (name, rest.trim()) {
        ("yolo", _) => return PromptKind::ToggleYolo,
        ("plan", "on") => return PromptKind::SetPlanMode(Some(true)),
        ("plan", "off") => return PromptKind::SetPlanMode(Some(false)),
        ("plan", "") => return PromptKind::SetPlanMode(None),
        _ => {}
    }
    let name = name.strip_prefix(SKILL_PREFIX).unwrap_or(name);
    match engine.iter().any(|known| known.name == name) {
        true => PromptKind::Text(format!("/{name} {rest}").trim_end().to_owned()),
        false => PromptKind::Unknown(name.to_owned()),
    }
}

/// The commands as `initialize` lists them.
pub(crate) fn list(engine: &[EngineCommand]) -> Vec<Value> {
    let own = OWN.iter().map(|(name, description)| (*name, *description));
    let engine = engine.iter().map(|command| (command.name.as_str(), command.description.as_str()));
    own.chain(engine)
        .map(|(name, description)| json!({"name": name, "description": description, "aliases": []}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_classified() {
        let compact = EngineCommand { name: "compact".into(), ..EngineCommand::default() };
        let rows = [
            ("hello", PromptKind::Text("hello".into())),
            ("/compact", PromptKind::Text("/compact".into())),
            ("/compact keep names", PromptKind::Text("/compact keep names".into())),
            ("/skill:compact", PromptKind::Text("/compact".into())),
            ("/yolo", PromptKind::ToggleYolo),
            ("/plan off", PromptKind::SetPlanMode(Some(false))),
            ("/nosuch x", PromptKind::Unknown("nosuch".into())),
            ("/usr/bin is full", PromptKind::Text("/usr/bin is full".into())),
            ("/* a comment */", PromptKind::Text("/* a comment */".into())),
            ("/ alone", PromptKind::Text("/ alone".into())),
        ];
        for (text, expected) in rows {
            assert_eq!(classify(text, std::slice::from_ref(&compact)), expected, "{text}");
        }
        assert_eq!(list(&[compact]).len(), 3);
    }
}
