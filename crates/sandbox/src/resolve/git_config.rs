//! Facts of a git configuration that decide what git executes. Pure.

/// A path in a git configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfiguredPath {
    /// `core.hooksPath`, relative to the working tree.
    Hooks(String),
    /// `include.path` and `includeIf.*.path`, relative to the configuration. Conditions count as met.
    Include(String),
}

/// Facts about a git configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigFacts {
    pub(crate) paths: Vec<ConfiguredPath>,
    /// Whether `config.worktree` is read.
    pub(crate) worktree_config: bool,
    /// `core.worktree`, relative to the git folder.
    pub(crate) working_tree: Option<String>,
}

/// Reads what matters here. Where a line is unclear, more is protected rather than less.
pub(crate) fn read_config(text: &str) -> ConfigFacts {
    let mut facts = ConfigFacts::default();
    let mut section = String::new();
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((header, rest)) = split_header(rest) else { continue };
            section = header.split([' ', '\t', '.', '"']).next().unwrap_or_default().to_lowercase();
            line = rest.trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = read_value(value);
        match (section.as_str(), key.trim().to_lowercase().as_str()) {
            ("core", "hookspath") => facts.paths.push(ConfiguredPath::Hooks(value)),
            ("core", "worktree") => facts.working_tree = Some(value),
            ("include" | "includeif", "path") => facts.paths.push(ConfiguredPath::Include(value)),
            ("extensions", "worktreeconfig") => facts.worktree_config = true,
            _ => {}
        }
    }
    facts
}

/// Splits at the bracket that ends a header; brackets in quotes belong to the name.
fn split_header(text: &str) -> Option<(&str, &str)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|c| {
        let ends = c == ']' && !is_quoted;
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && !is_escaped;
        ends
    })?;
    Some((&text[..end], &text[end + 1..]))
}

/// Reads a value as git does: quotes are removed, escapes replaced, and a comment ends it.
fn read_value(text: &str) -> String {
    let (mut value, mut is_quoted, mut kept) = (String::new(), false, 0);
    let mut characters = text.trim_start().chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                other => value.extend(other),
            },
            other => value.push(other),
        }
        if is_quoted || !c.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_their_sections() {
        let text = "[core]\n\tbare = false\n\thooksPath = .githooks\n[remote \"path\"]\n\tpath = no\n\
                    [includeIf \"gitdir:[x]\"] path = \"../extra\"\n[extensions]\nworktreeConfig\n";
        assert_eq!(
            read_config(text),
            ConfigFacts {
                paths: vec![
                    ConfiguredPath::Hooks(".githooks".into()),
                    ConfiguredPath::Include("../extra".into())
                ],
                worktree_config: true,
                working_tree: None,
            }
        );
        assert_eq!(read_config("hooksPath = x\n[user]\nname = [core]\n"), ConfigFacts::default());
    }

    #[test]
    fn values_are_read_as_git_does() {
        let rows = [
            (".githooks # note", ".githooks"),
            (".githooks;note", ".githooks"),
            ("\"a # b\" # note", "a # b"),
            ("a\\\\b\\\"c", "a\\b\"c"),
            ("a \" b \"  ", "a  b "),
            ("  a b  ", "a b"),
            ("a\\\n b", "a b"),
        ];
        for (text, expected) in rows {
            let facts = read_config(&format!("[core]\nhooksPath ={text}\n"));
            assert_eq!(facts.paths, [ConfiguredPath::Hooks(expected.into())], "{text}");
        }
    }
}
