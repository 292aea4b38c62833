//! Completion of the input line: `/` lists commands, `@` lists files. What triggers it and what is inserted is decided
//! here; the files come from the engine.

use std::ops::Range;

use crate::commands::ListedCommand;

/// Rows of the list.
pub(crate) const MAX_SHOWN_SUGGESTIONS: usize = 8;

/// What can be completed at the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A command; the range is its name without the slash.
    Command { typed: String, range: Range<usize> },
    /// A file; the range includes the `@`.
    File { query: String, range: Range<usize> },
}

/// Finds what can be completed at a caret.
pub(crate) fn find_trigger(text: &str, caret: usize) -> Option<Trigger> {
    let before = &text[..caret];
    if let Some(typed) = before.strip_prefix('/')
        && !typed.contains(|character: char| character.is_whitespace() || character == '/')
    {
        let end = text[caret..].find(char::is_whitespace).map_or(text.len(), |blank| caret + blank);
        return Some(Trigger::Command { typed: typed.to_owned(), range: 1..end });
    }
    let start = before.rfind('@')?;
    let starts_word = before[..start].chars().next_back().is_none_or(|character| {
        character.is_whitespace() || matches!(character, '(' | '[' | '{' | '"' | '\'')
    });
    let query = &before[start + 1..];
    let (query, is_open) = match query.strip_prefix('"') {
        Some(quoted) => (quoted, !quoted.contains(['"', '\n'])),
        None => (query, !query.contains(char::is_whitespace)),
    };
    (starts_word && is_open).then(|| Trigger::File { query: query.to_owned(), range: start..caret })
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suggestion {
    pub(crate) label: String,
    pub(crate) detail: String,
    /// What is inserted in place of the range.
    insert: String,
}

/// Whether taking an entry only inserts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    Command,
    File,
}

/// An open list.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    pub(crate) kind: CompletionKind,
    range: Range<usize>,
    suggestions: Vec<Suggestion>,
    selected: usize,
}

impl Completion {
    /// A list of commands; `None` if there are none.
    pub(crate) fn commands(range: Range<usize>, matching: Vec<ListedCommand>) -> Option<Self> {
        let suggestions: Vec<Suggestion> = matching
            .into_iter()
            .map(|command| Suggestion {
                label: format!("/{} {}", command.name, command.argument).trim_end().to_owned(),
                detail: command.description,
                insert: format!("{} ", command.name),
            })
            .collect();
        let list = Self { kind: CompletionKind::Command, range, suggestions, selected: 0 };
        (!list.suggestions.is_empty()).then_some(list)
    }

    /// A list of files; `None` if there are none.
    pub(crate) fn files(range: Range<usize>, paths: Vec<String>) -> Option<Self> {
        let suggestions: Vec<Suggestion> = paths
            .into_iter()
            .map(|path| Suggestion { insert: mention(&path), label: path, detail: String::new() })
            .collect();
        let list = Self { kind: CompletionKind::File, range, suggestions, selected: 0 };
        (!list.suggestions.is_empty()).then_some(list)
    }

    /// What taking the selected entry replaces and inserts.
    pub(crate) fn edit(&self) -> Option<(Range<usize>, &str)> {
        let suggestion = self.suggestions.get(self.selected)?;
        Some((self.range.clone(), &suggestion.insert))
    }

    /// Returns whether the selected entry is a directory, below which one may go on.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == CompletionKind::File
            && self.suggestions.get(self.selected).is_some_and(|suggestion| suggestion.label.ends_with('/'))
    }

    /// Returns whether the selected command takes an argument.
    pub(crate) fn takes_argument(&self) -> bool {
        self.suggestions.get(self.selected).is_some_and(|suggestion| suggestion.label.contains(' '))
    }

    pub(crate) fn select_previous(&mut self) {
        let count = self.suggestions.len();
        self.selected = (self.selected + count - 1) % count;
    }

    pub(crate) fn select_next(&mut self) {
        self.selected = (self.selected + 1) % self.suggestions.len();
    }

    /// The entries around the selected one, with a mark for it.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (bool, &Suggestion)> {
        let first = (self.selected + 1).saturating_sub(MAX_SHOWN_SUGGESTIONS);
        let rows = self.suggestions.iter().enumerate().skip(first).take(MAX_SHOWN_SUGGESTIONS);
        rows.map(|(index, suggestion)| (index == self.selected, suggestion))
    }
}

/// A file as it is mentioned in a prompt. A path with blanks is quoted; below a directory one may go on typing.
fn mention(path: &str) -> String {
    let is_quoted = path.contains(char::is_whitespace);
    match (is_quoted, path.ends_with('/')) {
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_is_found_at_the_caret() {
        let command = |typed: &str, range| Some(Trigger::Command { typed: typed.into(), range });
        let file = |query: &str, range| Some(Trigger::File { query: query.into(), range });
        let rows = [
            ("/|", command("", 1..1)),
            ("/mo|", command("mo", 1..3)),
            ("/m|o x", command("m", 1..3)),
            ("/model |", None),
            ("/tmp/x|", None),
            ("a /mo|", None),
            ("@|", file("", 0..1)),
            ("see @src/m|", file("src/m", 4..10)),
            ("see @src/m |", None),
            ("mail@home|", None),
            ("see @\"my fi|", file("my fi", 4..11)),
            ("see @\"my file\"|", None),
            ("(@a|", file("a", 1..3)),
        ];
        for (marked, expected) in rows {
            let caret = marked.find('|').unwrap();
            assert_eq!(find_trigger(&marked.replace('|', ""), caret), expected, "{marked}");
        }
    }

    #[test]
    fn paths_with_blanks_are_quoted() {
        assert_eq!(mention("src/main.rs"), "@src/main.rs ");
        assert_eq!(mention("my notes.md"), "@\"my notes.md\" ");
        assert_eq!(mention("src/"), "@src/");
    }

    #[test]
    fn selection_goes_around() {
        let paths = (0..20).map(|number| format!("f{number}")).collect();
        let mut list = Completion::files(0..2, paths).unwrap();
        list.select_previous();
        assert_eq!(list.edit(), Some((0..2, "@f19 ")));
        assert_eq!(list.shown().count(), MAX_SHOWN_SUGGESTIONS);
        list.select_next();
        assert_eq!(list.edit(), Some((0..2, "@f0 ")));
    }
}
