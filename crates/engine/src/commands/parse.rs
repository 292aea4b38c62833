//! The head of a command file, and the file as it is read: how it is used, and what it says.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use whimbrel_models::Effort;

use super::file::{CommandCallers, CommandDescription};
use super::overrides::CommandRules;
use crate::front_matter::{self, MarkdownFile};
use crate::setup::model::parse_effort;

/// How long a description may be that is taken from the body.
const MAX_DESCRIPTION_CHARS: usize = 100;

/// What the head of a file can say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CommandFrontMatter {
    /// What a skill is called, besides by its folder.
    pub name: Option<String>,
    /// What the command does.
    pub description: Option<String>,
    /// When the model should use it, besides.
    #[serde(alias = "when_to_use")]
    pub when_to_use: Option<String>,
    /// What may follow it.
    pub argument_hint: Option<String>,
    /// Rules that allow tools while it runs.
    pub allowed_tools: RuleList,
    /// Rules that deny tools while it runs.
    pub disallowed_tools: RuleList,
    /// The model that does it.
    pub model: Option<String>,
    /// Whether the model may not call it.
    pub disable_model_invocation: bool,
    /// Whether the person may call it.
    pub user_invocable: bool,
    /// How hard the model tries at it.
    pub effort: Option<String>,
    /// `fork` if a subagent should do it.
    pub context: Option<String>,
    /// The kind of that subagent.
    pub agent: Option<String>,
    /// Hooks while it runs.
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
    /// Who may call it.
    pub fn callers(&self) -> CommandCallers {
        match (self.disable_model_invocation, self.user_invocable) {
            (false, true) => CommandCallers::All,
            (true, true) => CommandCallers::User,
            (false, false) => CommandCallers::Model,
            (true, false) => CommandCallers::SubagentsOnly,
        }
    }

    /// Whether a subagent does it, apart from the conversation.
    pub fn is_fork(&self) -> bool {
        self.context.as_deref().is_some_and(|context| context.trim() == "fork")
    }

    /// The model that does it, if it names one.
    pub fn model(&self) -> Option<&str> {
        let name = self.model.as_deref().map(str::trim);
        name.filter(|name| !matches!(*name, "" | "inherit" | "default"))
    }

    /// How hard the model tries, if it says so in a word that is known.
    pub fn effort(&self) -> Option<Effort> {
        self.effort.as_deref().map(str::trim).and_then(parse_effort)
    }

    /// Its rules.
    pub fn rules(&self) -> CommandRules {
        CommandRules { allow: self.allowed_tools.to_list(), deny: self.disallowed_tools.to_list() }
    }

    /// Whether it would have something done that nobody was asked about: by its rules, or by its hooks.
    pub fn grants_permissions(&self) -> bool {
        self.hooks.is_some() || !self.allowed_tools.to_list().is_empty()
    }
}

/// Rules, as a list or as one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RuleList {
    /// One text; rules are parted by commas or blanks.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// None.
    #[default]
    Nothing,
}

impl RuleList {
    /// The single rules.
    pub fn to_list(&self) -> Vec<String> {
        match self {
            Self::Text(text) => split_rules(text),
            Self::List(rules) => rules.iter().flat_map(|rule| split_rules(rule)).collect(),
            Self::Nothing => Vec::new(),
        }
    }
}

/// Parts rules at commas and blanks that are not between parentheses.
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

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCommand {
    /// What its head says.
    pub front_matter: CommandFrontMatter,
    /// Its body.
    pub body: String,
    /// What is wrong with its head, with file and line.
    pub warning: Option<String>,
}

/// What people write as they would say it.
const PLAIN_KEYS: &[&str] = &["name", "description", "when_to_use", "when-to-use", "argument-hint"];

/// What a head must not lose.
const DENY_KEY: &str = "disallowed-tools";

/// Reads a command file. The error names it. A head that cannot be read does not count, unless it says what is denied: then
/// nothing of the file does.
pub(super) fn parse_file(path: &Path) -> Result<ParsedCommand, String> {
    let wrong = |why: String| format!("The command file {} cannot be read: {why}.", path.display());
    let text = front_matter::read_text(path).map_err(wrong)?;
    let MarkdownFile { head, body, error: flaw } = front_matter::parse::<CommandFrontMatter>(&text, PLAIN_KEYS);
    if let Some(flaw) = &flaw
        && text[..text.len() - body.len()].contains(DENY_KEY)
    {
        // What it must not do is unknown.
        return Err(wrong(format!("line {}: {}, so its {DENY_KEY} would not count", flaw.line, flaw.cause)));
    }
    let flaw = flaw.map(|flaw| {
        format!(
            "{}, line {}: the head of the command does not count: {}.",
            path.display(),
            flaw.line,
            flaw.cause
        )
    });
    Ok(ParsedCommand { front_matter: head, body: body.trim().to_owned(), warning: flaw })
}

impl ParsedCommand {
    /// What the command does, by its head or else by its first line.
    pub(super) fn description(&self) -> CommandDescription {
        let CommandFrontMatter { description, when_to_use, .. } = &self.front_matter;
        let said: Vec<&str> = description.iter().chain(when_to_use).map(|text| text.trim()).collect();
        if said.iter().any(|text| !text.is_empty()) {
            return CommandDescription::Given(said.join(" "));
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
    fn rules_are_parted_outside_parentheses() {
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
    fn a_file_says_how_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.md");
        let head = "---\ndescription: Fix it: now\nargument-hint: [issue] [how]\nallowed-tools: Bash(git *), Read\nmodel: haiku\ndisable-model-invocation: true\n---\n\nDo $1.\n";
        std::fs::write(&path, head).unwrap();
        let recipe = parse_file(&path).unwrap();
        assert_eq!(recipe.front_matter.allowed_tools.to_list(), ["Bash(git *)", "Read"]);
        assert_eq!(
            (recipe.description(), recipe.front_matter.argument_hint.as_deref(), recipe.front_matter.model.as_deref()),
            (CommandDescription::Given("Fix it: now".into()), Some("[issue] [how]"), Some("haiku"))
        );
        assert_eq!(
            (recipe.front_matter.callers(), recipe.front_matter.is_fork(), recipe.front_matter.grants_permissions()),
            (CommandCallers::User, false, true)
        );
        assert_eq!((recipe.body.as_str(), recipe.warning), ("Do $1.", None));
        std::fs::write(&path, "\n## Review the code\nand more").unwrap();
        assert_eq!(parse_file(&path).unwrap().description(), CommandDescription::FirstLine("Review the code".into()));
    }

    #[test]
    fn a_head_says_who_may_call_and_who_does_it() {
        let head = |text: &str| front_matter::parse::<CommandFrontMatter>(&format!("---\n{text}\n---\n"), PLAIN_KEYS).head;
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
        let recipe = ParsedCommand { front_matter: both, body: "Body".into(), warning: None };
        assert_eq!(recipe.description(), CommandDescription::Given("Does it. When asked: always".into()));
        let fork = head("context: fork\nagent: Explore\nmodel: inherit\neffort: high");
        assert!(fork.is_fork() && fork.agent.as_deref() == Some("Explore"));
        assert_eq!((fork.model(), fork.effort()), (None, Some(Effort::High)));
        assert!(!head("context: inline").is_fork() && !fork.grants_permissions());
        assert!(head("hooks:\n  Stop: []").grants_permissions());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("bad.md"), "---\nallowed-tools: {a: b}\n---\nbody").unwrap();
        let recipe = parse_file(&at("bad.md")).unwrap();
        let flaw = recipe.warning.unwrap();
        assert!(flaw.contains("bad.md, line 2"), "{flaw}");
        assert_eq!((recipe.front_matter, recipe.body.as_str()), (CommandFrontMatter::default(), "body"));
        std::fs::write(at("denies.md"), "---\ndisallowed-tools: {a: b}\n---\nbody").unwrap();
        std::fs::write(at("latin.md"), b"caf\xe9").unwrap();
        nix::unistd::mkfifo(&at("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let rows =
            [("denies.md", "line 2"), ("latin.md", "UTF-8"), ("pipe.md", "regular"), ("gone.md", "exist")];
        for (name, why) in rows {
            let error = parse_file(&at(name)).unwrap_err();
            assert!(error.contains(name) && error.contains(why), "{error}");
        }
    }
}
