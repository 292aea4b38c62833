//! Parses command files: front matter and body.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use whimbrel_config::front_matter::{self, MarkdownFile};
use whimbrel_models::Effort;

use super::file::{CommandCallers, CommandDescription};
use super::rules::CommandRules;
use crate::runtime_settings::parse_effort;

/// Maximum length of a description taken from the body.
const MAX_DESCRIPTION_CHARS: usize = 100;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CommandFrontMatter {
    /// Alternative name of a skill.
    pub name: Option<String>,
    pub description: Option<String>,
    /// Appended to the description.
    #[serde(alias = "when_to_use")]
    pub when_to_use: Option<String>,
    pub argument_hint: Option<String>,
    /// Allow rules for the turn.
    pub allowed_tools: RuleList,
    /// Deny rules for the turn.
    pub disallowed_tools: RuleList,
    pub model: Option<String>,
    pub disable_model_invocation: bool,
    pub user_invocable: bool,
    pub effort: Option<String>,
    /// `fork` runs it in a subagent.
    pub context: Option<String>,
    /// Agent definition of that subagent.
    pub agent: Option<String>,
    pub hooks: Option<Value>,
}

impl Default for CommandFrontMatter {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            when_to_use: None,
            argument_hint: None,
            allowed_tools: RuleList::default(),
            disallowed_tools: RuleList::default(),
            model: None,
            disable_model_invocation: false,
            user_invocable: true,
            effort: None,
            context: None,
            agent: None,
            hooks: None,
        }
    }
}

impl CommandFrontMatter {
    pub fn callers(&self) -> CommandCallers {
        match (self.disable_model_invocation, self.user_invocable) {
            (false, true) => CommandCallers::All,
            (true, true) => CommandCallers::User,
            (false, false) => CommandCallers::Model,
            (true, false) => CommandCallers::SubagentsOnly,
        }
    }

    /// Returns true if a subagent runs it.
    pub fn is_fork(&self) -> bool {
        self.context.as_deref().is_some_and(|context| context.trim() == "fork")
    }

    /// Model override, if one is named.
    pub fn model(&self) -> Option<&str> {
        let name = self.model.as_deref().map(str::trim);
        name.filter(|name| !matches!(*name, "" | "inherit" | "default"))
    }

    /// Effort override; unknown values are ignored.
    pub fn effort(&self) -> Option<Effort> {
        self.effort.as_deref().map(str::trim).and_then(parse_effort)
    }

    pub fn rules(&self) -> CommandRules {
        CommandRules { allow: self.allowed_tools.to_list(), deny: self.disallowed_tools.to_list() }
    }

    /// Returns true if it has allow rules or hooks.
    pub fn grants_permissions(&self) -> bool {
        self.hooks.is_some() || !self.allowed_tools.to_list().is_empty()
    }
}

/// Rules as a list or as one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RuleList {
    /// Separated by commas or whitespace.
    Text(String),
    List(Vec<String>),
    #[default]
    Nothing,
}

impl RuleList {
    pub fn to_list(&self) -> Vec<String> {
        match self {
            Self::Text(text) => split_rules(text),
            Self::List(rules) => rules.iter().flat_map(|rule| split_rules(rule)).collect(),
            Self::Nothing => Vec::new(),
        }
    }
}

/// Splits rules at commas and whitespace outside parentheses.
fn split_rules(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut rules = vec![String::new()];
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match rules.last_mut() {
            Some(rule) if depth > 0 || (c != ',' && !c.is_whitespace()) => rule.push(c),
            _ => rules.push(String::new()),
        }
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCommand {
    pub front_matter: CommandFrontMatter,
    pub body: String,
    /// Warning about invalid front matter, with file and line.
    pub warning: Option<String>,
}

/// Keys whose values are taken literally.
const PLAIN_KEYS: &[&str] = &["name", "description", "when_to_use", "when-to-use", "argument-hint"];

/// Key without which a file must not be used.
const DENY_KEY: &str = "disallowed-tools";

/// Reads and parses a command file. Invalid front matter is ignored with a warning, unless it contains deny rules: then
/// the file is rejected. The error names the file.
pub(super) fn parse_file(path: &Path) -> Result<ParsedCommand, String> {
    let file_error =
        |reason: String| format!("The command file {} cannot be read: {reason}.", path.display());
    let text = front_matter::read_text(path).map_err(file_error)?;
    let MarkdownFile { head, body, error } = front_matter::parse::<CommandFrontMatter>(&text, PLAIN_KEYS);
    if let Some(error) = &error
        && text[..text.len() - body.len()].contains(DENY_KEY)
    {
        // Its deny rules are unknown.
        return Err(file_error(format!(
            "line {}: {}, so its {DENY_KEY} would be ignored",
            error.line, error.cause
        )));
    }
    let error = error.map(|error| {
        format!(
            "{}, line {}: the front matter of the command is ignored: {}.",
            path.display(),
            error.line,
            error.cause
        )
    });
    Ok(ParsedCommand { front_matter: head, body: body.trim().to_owned(), warning: error })
}

impl ParsedCommand {
    /// Description from the front matter, else the first line of the body.
    pub(super) fn description(&self) -> CommandDescription {
        let CommandFrontMatter { description, when_to_use, .. } = &self.front_matter;
        let texts: Vec<&str> = description.iter().chain(when_to_use).map(|text| text.trim()).collect();
        if texts.iter().any(|text| !text.is_empty()) {
            return CommandDescription::Given(texts.join(" "));
        }
        let mut lines = self.body.lines().map(|line| line.trim_start_matches('#').trim());
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        CommandDescription::FirstLine(first.chars().take(MAX_DESCRIPTION_CHARS).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_split_outside_parentheses() {
        let rows: [(&str, &[&str]); 4] = [
            ("Read, Bash(git add:*), Edit", &["Read", "Bash(git add:*)", "Edit"]),
            ("Bash(a, b) Bash(echo (x))", &["Bash(a, b)", "Bash(echo (x))"]),
            (" , ", &[]),
            ("Bash(open", &["Bash(open"]),
        ];
        for (text, expected) in rows {
            assert_eq!(RuleList::Text(text.into()).to_list(), expected, "{text}");
        }
        assert_eq!(RuleList::List(vec!["Read".into(), "Bash(x y)".into()]).to_list(), ["Read", "Bash(x y)"]);
    }

    #[test]
    fn a_file_is_parsed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.md");
        let head = "---\ndescription: Fix it: now\nargument-hint: [issue] [how]\nallowed-tools: Bash(git *), Read\nmodel: haiku\ndisable-model-invocation: true\n---\n\nDo $1.\n";
        std::fs::write(&path, head).unwrap();
        let parsed = parse_file(&path).unwrap();
        assert_eq!(parsed.front_matter.allowed_tools.to_list(), ["Bash(git *)", "Read"]);
        assert_eq!(
            (
                parsed.description(),
                parsed.front_matter.argument_hint.as_deref(),
                parsed.front_matter.model.as_deref()
            ),
            (CommandDescription::Given("Fix it: now".into()), Some("[issue] [how]"), Some("haiku"))
        );
        assert_eq!(
            (
                parsed.front_matter.callers(),
                parsed.front_matter.is_fork(),
                parsed.front_matter.grants_permissions()
            ),
            (CommandCallers::User, false, true)
        );
        assert_eq!((parsed.body.as_str(), parsed.warning), ("Do $1.", None));
        std::fs::write(&path, "\n## Review the code\nand more").unwrap();
        assert_eq!(
            parse_file(&path).unwrap().description(),
            CommandDescription::FirstLine("Review the code".into())
        );
    }

    #[test]
    fn front_matter_sets_callers_and_fork() {
        let head = |text: &str| {
            front_matter::parse::<CommandFrontMatter>(&format!("---\n{text}\n---\n"), PLAIN_KEYS).head
        };
        let rows = [
            ("name: x", CommandCallers::All),
            ("disable-model-invocation: true", CommandCallers::User),
            ("user-invocable: false", CommandCallers::Model),
            ("user-invocable: false\ndisable-model-invocation: true", CommandCallers::SubagentsOnly),
        ];
        for (text, expected) in rows {
            assert_eq!(head(text).callers(), expected, "{text}");
        }
        let both = head("description: Does it.\nwhen_to_use: When asked: always");
        let parsed = ParsedCommand { front_matter: both, body: "Body".into(), warning: None };
        assert_eq!(parsed.description(), CommandDescription::Given("Does it. When asked: always".into()));
        let fork = head("context: fork\nagent: Explore\nmodel: inherit\neffort: high");
        assert!(fork.is_fork() && fork.agent.as_deref() == Some("Explore"));
        assert_eq!((fork.model(), fork.effort()), (None, Some(Effort::High)));
        assert!(!head("context: inline").is_fork() && !fork.grants_permissions());
        assert!(head("hooks:\n  Stop: []").grants_permissions());
    }

    #[test]
    fn unreadable_files_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("bad.md"), "---\nallowed-tools: {a: b}\n---\nbody").unwrap();
        let parsed = parse_file(&at("bad.md")).unwrap();
        let warning = parsed.warning.unwrap();
        assert!(warning.contains("bad.md, line 2"), "{warning}");
        assert_eq!((parsed.front_matter, parsed.body.as_str()), (CommandFrontMatter::default(), "body"));
        std::fs::write(at("denies.md"), "---\ndisallowed-tools: {a: b}\n---\nbody").unwrap();
        std::fs::write(at("latin.md"), b"caf\xe9").unwrap();
        nix::unistd::mkfifo(&at("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let rows =
            [("denies.md", "line 2"), ("latin.md", "UTF-8"), ("pipe.md", "regular"), ("gone.md", "exist")];
        for (name, reason) in rows {
            let error = parse_file(&at(name)).unwrap_err();
            assert!(error.contains(name) && error.contains(reason), "{error}");
        }
    }
}
