//! A command that a person, a project or a plugin wrote: a Markdown file whose head says how it is used, and whose body
//! is a prompt. A skill is one that has a folder of its own, with files that its body can point to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::front_matter::{self, Parted};
use crate::plugins::Plugin;
use crate::settings::{Scope, Trust};

/// How long a description may be that is taken from the body.
const LONGEST_DESCRIPTION: usize = 100;

/// A command in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandFile {
    /// Its name, without the slash. Folders are parted by colons; a plugin's name comes first.
    pub name: String,
    /// Another name that people may call it by.
    pub alias: Option<String>,
    /// The file, links followed.
    pub path: PathBuf,
    /// The folder of a skill; none for a command.
    pub folder: Option<PathBuf>,
    /// Who wrote it.
    pub owner: Owner,
    /// Whose word it is.
    pub scope: Scope,
    /// What it does.
    pub description: Description,
    /// What may follow it.
    pub argument_hint: String,
    /// Who may call it.
    pub callers: Callers,
    /// Whether it would allow tools while it runs.
    pub grants: bool,
    /// What was wrong with its head when it was found; the host has been told.
    pub flaw: Option<String>,
}

/// Who wrote a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Owner {
    /// The person.
    User,
    /// The project.
    Project,
    /// A plugin.
    Plugin(Arc<Plugin>),
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// Its head says so.
    Given(String),
    /// This is its first line.
    Guessed(String),
}

impl Description {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::Guessed(text) => text,
        }
    }
}

/// Who may call a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The person and the model.
    All,
    /// The person only.
    Person,
    /// The model only.
    Model,
    /// Nobody: it is there for subagents whose kind names it.
    Nobody,
}

impl Callers {
    /// Whether the person may.
    pub fn has_person(self) -> bool {
        matches!(self, Self::All | Self::Person)
    }

    /// Whether the model may.
    pub fn has_model(self) -> bool {
        matches!(self, Self::All | Self::Model)
    }
}

/// What the head of a file can say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Head {
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
    pub allowed_tools: Rules,
    /// Rules that deny tools while it runs.
    pub disallowed_tools: Rules,
    /// The model that answers it when the person calls it.
    pub model: Option<String>,
    /// Whether the model may not call it.
    pub disable_model_invocation: bool,
    /// Whether the person may call it.
    pub user_invocable: bool,
    /// `fork` if a subagent should do it.
    pub context: Option<String>,
    /// Hooks while it runs.
    pub hooks: Option<Value>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            when_to_use: None,
            argument_hint: None,
            allowed_tools: Rules::default(),
            disallowed_tools: Rules::default(),
            model: None,
            disable_model_invocation: false,
            user_invocable: true,
            context: None,
            hooks: None,
        }
    }
}

impl Head {
    /// Who may call it.
    pub fn callers(&self) -> Callers {
        match (self.disable_model_invocation, self.user_invocable) {
            (false, true) => Callers::All,
            (true, true) => Callers::Person,
            (false, false) => Callers::Model,
            (true, false) => Callers::Nobody,
        }
    }

    /// What it asks for that this version does not have.
    pub fn absent(&self) -> Option<&'static str> {
        if self.context.as_deref().is_some_and(|context| context.trim() == "fork") {
            return Some("`context: fork` is not there yet: it is read into the conversation instead");
        }
        self.hooks.as_ref().map(|_| "its hooks do not run: hooks in a head are not there yet")
    }
}

/// Rules, as a list or as one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Rules {
    /// One text; rules are parted by commas or blanks.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// None.
    #[default]
    Nothing,
}

impl Rules {
    /// The single rules.
    pub fn each(&self) -> Vec<String> {
        match self {
            Self::Text(text) => split(text),
            Self::List(rules) => rules.iter().flat_map(|rule| split(rule)).collect(),
            Self::Nothing => Vec::new(),
        }
    }
}

/// Parts rules at commas and blanks that are not between parentheses.
fn split(text: &str) -> Vec<String> {
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
pub struct Recipe {
    /// What its head says.
    pub head: Head,
    /// Its body.
    pub body: String,
    /// What is wrong with its head, with file and line.
    pub flaw: Option<String>,
}

impl CommandFile {
    /// Reads the file as it is now.
    pub fn read(&self) -> Result<Recipe, String> {
        read(&self.path)
    }

    /// Whether it is a skill.
    pub fn is_skill(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether it answers to a name.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.alias.as_deref() == Some(name)
    }

    /// Whether what it grants counts. What came with a project grants nothing unless the project is trusted.
    pub fn may_grant(&self, trust: Trust) -> bool {
        self.scope == Scope::Person || trust == Trust::Full
    }

    /// A text of it with the folders filled in that it can name.
    pub fn fill_in(&self, text: &str) -> String {
        let text = match &self.owner {
            Owner::Plugin(plugin) => plugin.fill_in(text),
            Owner::User | Owner::Project => text.to_owned(),
        };
        match &self.folder {
            Some(folder) => text.replace("${CLAUDE_SKILL_DIR}", &folder.display().to_string()),
            None => text,
        }
    }
}

/// What people write as they would say it.
const PLAIN: &[&str] = &["name", "description", "when_to_use", "when-to-use", "argument-hint"];

/// Reads a command file. The error names it.
pub(super) fn read(path: &Path) -> Result<Recipe, String> {
    let wrong = |why: String| format!("The command file {} cannot be read: {why}.", path.display());
    let text = front_matter::text_of(path).map_err(wrong)?;
    let Parted { head, body, flaw } = front_matter::part::<Head>(&text, PLAIN);
    let flaw = flaw.map(|flaw| {
        format!(
            "{}, line {}: the head of the command does not count: {}.",
            path.display(),
            flaw.line,
            flaw.cause
        )
    });
    Ok(Recipe { head, body: body.trim().to_owned(), flaw })
}

impl Recipe {
    /// What the command does, by its head or else by its first line.
    pub(super) fn description(&self) -> Description {
        let Head { description, when_to_use, .. } = &self.head;
        let said: Vec<&str> = description.iter().chain(when_to_use).map(|text| text.trim()).collect();
        if said.iter().any(|text| !text.is_empty()) {
            return Description::Given(said.join(" "));
        }
        let mut lines = self.body.lines().map(|line| line.trim_start_matches('#').trim());
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        Description::Guessed(first.chars().take(LONGEST_DESCRIPTION).collect())
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
            assert_eq!(Rules::Text(text.into()).each(), expected, "{text}");
        }
        assert_eq!(Rules::List(vec!["Read".into(), "Bash(x y)".into()]).each(), ["Read", "Bash(x y)"]);
    }

    #[test]
    fn a_file_says_how_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.md");
        let head = "---\ndescription: Fix it: now\nargument-hint: [issue] [how]\nallowed-tools: Bash(git *), Read\nmodel: haiku\ndisable-model-invocation: true\n---\n\nDo $1.\n";
        std::fs::write(&path, head).unwrap();
        let recipe = read(&path).unwrap();
        assert_eq!(recipe.head.allowed_tools.each(), ["Bash(git *)", "Read"]);
        assert_eq!(
            (recipe.description(), recipe.head.argument_hint.as_deref(), recipe.head.model.as_deref()),
            (Description::Given("Fix it: now".into()), Some("[issue] [how]"), Some("haiku"))
        );
        assert_eq!((recipe.head.callers(), recipe.head.absent()), (Callers::Person, None));
        assert_eq!((recipe.body.as_str(), recipe.flaw), ("Do $1.", None));
        std::fs::write(&path, "\n## Review the code\nand more").unwrap();
        assert_eq!(read(&path).unwrap().description(), Description::Guessed("Review the code".into()));
    }

    #[test]
    fn a_head_says_who_may_call_and_what_is_not_there_yet() {
        let head = |text: &str| front_matter::part::<Head>(&format!("---\n{text}\n---\n"), PLAIN).head;
        let rows = [
            ("name: x", Callers::All),
            ("disable-model-invocation: true", Callers::Person),
            ("user-invocable: false", Callers::Model),
            ("user-invocable: false\ndisable-model-invocation: true", Callers::Nobody),
        ];
        for (text, expected) in rows {
            assert_eq!(head(text).callers(), expected, "{text}");
        }
        let both = head("description: Does it.\nwhen_to_use: When asked: always");
        let recipe = Recipe { head: both, body: "Body".into(), flaw: None };
        assert_eq!(recipe.description(), Description::Given("Does it. When asked: always".into()));
        assert!(head("context: fork").absent().unwrap().contains("fork"));
        assert!(head("hooks:\n  Stop: []").absent().unwrap().contains("hooks"));
        assert_eq!(head("context: inline").absent(), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("bad.md"), "---\nallowed-tools: {a: b}\n---\nbody").unwrap();
        let recipe = read(&at("bad.md")).unwrap();
        let flaw = recipe.flaw.unwrap();
        assert!(flaw.contains("bad.md, line 2"), "{flaw}");
        assert_eq!((recipe.head, recipe.body.as_str()), (Head::default(), "body"));
        std::fs::write(at("latin.md"), b"caf\xe9").unwrap();
        nix::unistd::mkfifo(&at("pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (name, why) in [("latin.md", "UTF-8"), ("pipe.md", "regular"), ("gone.md", "exist")] {
            let error = read(&at(name)).unwrap_err();
            assert!(error.contains(name) && error.contains(why), "{error}");
        }
    }
}
