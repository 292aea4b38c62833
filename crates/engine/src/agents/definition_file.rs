//! Parses agent definition files: Markdown with front matter; the body is the prompt.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use whimbrel_config::front_matter::{self, MarkdownFile};

use super::definition::{DefinitionSource, ResolvedDefinition, explicit_model};
use super::mcp_servers::ServerSpecs;
use crate::commands::parse_file::RuleList;
use crate::runtime_settings::parse_effort;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AgentFrontMatter {
    name: Option<String>,
    description: Option<String>,
    tools: Option<RuleList>,
    disallowed_tools: RuleList,
    model: Option<String>,
    effort: Option<String>,
    max_turns: Option<u32>,
    permission_mode: Option<String>,
    background: bool,
    initial_prompt: Option<String>,
    omit_claude_md: bool,
    memory: Option<String>,
    isolation: Option<String>,
    skills: RuleList,
    mcp_servers: Option<Value>,
    hooks: Option<Value>,
}

#[derive(Debug, PartialEq)]
pub(super) struct ParsedDefinition {
    pub(super) definition: ResolvedDefinition,
    /// Warnings for the host.
    pub(super) warnings: Vec<String>,
}

/// Loads a definition file. The error names the file and the problem.
pub(super) fn load(path: &Path, origin: DefinitionSource) -> Result<ParsedDefinition, String> {
    let file_error = |reason: &str| format!("The agent in {} is not used: {reason}.", path.display());
    let text = front_matter::read_text(path).map_err(|reason| file_error(&reason))?;
    let MarkdownFile { head, body, error } = front_matter::parse::<AgentFrontMatter>(&text, &["description"]);
    if let Some(error) = error {
        return Err(file_error(&format!("line {}: {}", error.line, error.cause)));
    }
    build_definition(head, body, origin).map_err(|reason| file_error(&reason)).map(|mut parsed| {
        for warning in &mut parsed.warnings {
            *warning = format!("{}: {warning}", path.display());
        }
        parsed
    })
}

/// Builds the definition from front matter and body.
fn build_definition(
    head: AgentFrontMatter,
    body: &str,
    origin: DefinitionSource,
) -> Result<ParsedDefinition, String> {
    let mut warnings = Vec::new();
    let effort = head.effort.as_deref().and_then(|name| {
        let known = parse_effort(name);
        if known.is_none() {
            warnings.push(format!("unknown effort \"{name}\"; it is ignored."));
        }
        known
    });
    let mode = head
        .permission_mode
        .as_deref()
        .map(|name| name.parse().map_err(|_| format!("unknown permissionMode \"{name}\"")));
    let definition = ResolvedDefinition {
        name: head.name.unwrap_or_default().trim().to_owned(),
        description: head.description.unwrap_or_default().trim().to_owned(),
        prompt: body.trim().to_owned(),
        tools: head.tools.map(|tools| tools.to_list()),
        disallowed_tools: head.disallowed_tools.to_list(),
        model: explicit_model(head.model),
        effort,
        max_turns: head.max_turns,
        permission_mode: mode.transpose()?,
        background: head.background,
        initial_prompt: head.initial_prompt,
        reminder: None,
        omit_instructions: head.omit_claude_md,
        auto_compact_window: None,
        memory: head.memory,
        isolation: head.isolation,
        skills: head.skills.to_list(),
        mcp_servers: ServerSpecs::parse(match head.mcp_servers {
            None => Vec::new(),
            Some(Value::Array(servers)) => servers,
            Some(other) => vec![other],
        }),
        hooks: head.hooks,
        parse_warnings: Vec::new(),
        source: origin,
    };
    Ok(ParsedDefinition { definition: definition.validate()?, warnings })
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::permission::PermissionMode;

    use super::*;

    fn load_text(text: &str) -> Result<ParsedDefinition, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.md");
        std::fs::write(&path, text).unwrap();
        load(&path, DefinitionSource::User)
    }

    #[test]
    fn file_is_parsed_into_definition() {
        let text = "---\nname: reviewer\ndescription: Reviews: carefully\ntools: Read, Agent(Explore, Plan)\ndisallowedTools: [Bash]\nmodel: inherit\nmaxTurns: 5\npermissionMode: plan\nbackground: true\neffort: low\nisolation: worktree\ncolor: red\n---\n\nYou review.\n";
        let ParsedDefinition { definition, warnings } = load_text(text).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let expected = ResolvedDefinition {
            name: "reviewer".into(),
            description: "Reviews: carefully".into(),
            prompt: "You review.".into(),
            tools: Some(vec!["Read".into(), "Agent(Explore, Plan)".into()]),
            disallowed_tools: vec!["Bash".into()],
            effort: Some(whimbrel_models::Effort::Low),
            max_turns: Some(5),
            permission_mode: Some(PermissionMode::Plan),
            background: true,
            isolation: Some("worktree".into()),
            source: DefinitionSource::User,
            ..ResolvedDefinition::default()
        };
        assert_eq!(definition, expected);
    }

    #[test]
    fn invalid_file_is_rejected_with_reason() {
        let rows = [
            ("just a prompt", "no name"),
            ("---\nname: x\n---\nPrompt.", "no description"),
            ("---\nname: x\ndescription: d\n---\n", "no prompt"),
            ("---\nname: x\ndescription: d\npermissionMode: mighty\n---\nPrompt.", "mighty"),
            ("---\nname: x\ntools: {a: b}\n---\nPrompt.", "line 3"),
        ];
        for (text, part) in rows {
            let error = load_text(text).unwrap_err();
            assert!(error.contains("x.md") && error.contains(part), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let error = load(dir.path(), DefinitionSource::User).unwrap_err();
        assert!(error.contains("regular file"), "{error}");
    }

    #[test]
    fn unknown_values_are_ignored_with_warning() {
        let text = "---\nname: x\ndescription: d\neffort: enormous\nhooks: {Stop: []}\n---\nPrompt.";
        let ParsedDefinition { definition, warnings } = load_text(text).unwrap();
        assert!(warnings.len() == 1 && warnings[0].contains("enormous"), "{warnings:?}");
        assert_eq!(definition.hooks, Some(serde_json::json!({"Stop": []})));
    }
}
