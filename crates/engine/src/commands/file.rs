//! A command that a person or a project wrote: a Markdown file whose head says how it is used, and whose body is a
//! prompt.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;
use whimbrel_wire::options::SettingSource;

use crate::files::{self, Kind};
use crate::front_matter::{self, Parted};
use crate::settings::Scope;

/// How large such a file may be.
const LARGEST: u64 = 256 * 1024;

/// How long a description may be that is taken from the body.
const LONGEST_DESCRIPTION: usize = 100;

/// A command in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFile {
    /// Its name, without the slash. Folders are parted by colons.
    pub name: String,
    /// The file, links followed.
    pub path: PathBuf,
    /// Who wrote it.
    pub source: SettingSource,
    /// Whose word it is.
    pub scope: Scope,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub argument_hint: String,
}

/// What the head of a file can say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Head {
    /// What the command does.
    pub description: Option<String>,
    /// What may follow it.
    pub argument_hint: Option<String>,
    /// Rules that allow tools while it runs.
    pub allowed_tools: Rules,
    /// The model that answers it.
    pub model: Option<String>,
    /// Whether only a person may call it. No model can call commands yet, so it is as it wishes.
    pub disable_model_invocation: bool,
}

/// Rules, as a list or as one text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Rules {
    /// One text; rules are parted by commas or blanks.
    Text(String),
    /// A list.
    List(Vec<String>),
}

impl Default for Rules {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Rules {
    /// The single rules.
    pub fn each(&self) -> Vec<String> {
        match self {
            Self::Text(text) => split(text),
            Self::List(rules) => rules.iter().flat_map(|rule| split(rule)).collect(),
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// Reads a command file. The error names it.
pub(super) fn read(path: &std::path::Path) -> Result<Recipe, String> {
    let wrong = |why: &str| format!("The command file {} cannot be read: {why}.", path.display());
    match files::kind(path) {
        Ok(Kind::File(_)) => {}
        Ok(Kind::Missing) => return Err(wrong("it does not exist any more")),
        Ok(_) => return Err(wrong("it is not a regular file")),
        Err(error) => return Err(wrong(&error.to_string())),
    }
    let (bytes, _) = files::read(path, LARGEST).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => wrong(&format!("it has more than {LARGEST} bytes")),
        _ => wrong(&error.to_string()),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text"))?;
    let Parted { head, body, flaw } = front_matter::part::<Head>(&text, &["description", "argument-hint"]);
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
    pub(super) fn description(&self) -> String {
        match &self.head.description {
            Some(text) => text.trim().to_owned(),
            None => {
                let first = self.body.lines().map(|line| line.trim_start_matches('#').trim());
                let first = first.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
                first.chars().take(LONGEST_DESCRIPTION).collect()
            }
        }
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
            ("Fix it: now".into(), Some("[issue] [how]"), Some("haiku"))
        );
        assert!(recipe.head.disable_model_invocation);
        assert_eq!((recipe.body.as_str(), recipe.flaw), ("Do $1.", None));
        std::fs::write(&path, "\n## Review the code\nand more").unwrap();
        assert_eq!(read(&path).unwrap().description(), "Review the code");
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
