//! Patterns of Bash rules: text with `*`, matched against one simple command at a time.
//!
//! `*` matches any run of characters and `\*` a literal star. A final `:*` means a final ` *`, and a final ` *` also
//! matches nothing. All else is literal and anchored at both ends. The texts to match are chosen in `command`.

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    /// Literal text between the stars; one more than there are stars.
    literals: Vec<String>,
    /// The same in lower case, for command words that are compared case-insensitively.
    lowercase_literals: Vec<String>,
    /// True if the pattern ends in ` *`, so that it also matches without the blank and what follows.
    optional_tail: bool,
}

impl CommandPattern {
    /// Compiles the specifier of a rule.
    pub fn new(content: &str) -> Self {
        let content = content.trim();
        let content = match content.strip_suffix(":*") {
            Some(prefix) => format!("{prefix} *"),
            None => content.to_owned(),
        };
        let literals = split_at_stars(&normalize_blanks(&content));
        let optional_tail = match literals.as_slice() {
            [.., before, last] => last.is_empty() && before.ends_with(' '),
            _ => false,
        };
        let lowercase_literals = literals.iter().map(|literal| literal.to_lowercase()).collect();
        Self { literals, lowercase_literals, optional_tail }
    }

    /// Returns true if the pattern has no star and so matches one command only.
    pub fn is_exact(&self) -> bool {
        self.literals.len() == 1
    }

    /// First byte, in lower case, of every text that can match; `None` if any byte is possible.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        let first = self.literals.first()?.bytes().next()?;
        // `P *` also matches `P`, and letters beyond ASCII may have other lower-case forms.
        (first.is_ascii() && first != b' ').then(|| first.to_ascii_lowercase())
    }

    /// Returns true if the pattern starts with this whole word before its first star.
    pub fn starts_with_word(&self, word: &str) -> bool {
        let rest = self.literals.first().and_then(|literal| literal.strip_prefix(word));
        rest.is_some_and(|rest| rest.starts_with(' ') || rest.is_empty() && self.is_exact())
    }

    /// Returns true if the pattern matches from some word of the text on, whatever follows.
    pub fn matches_at_any_word(&self, text: &str) -> bool {
        let first = self.literals.first().map_or("", String::as_str);
        let whole = first.strip_suffix(' ').filter(|_| self.optional_tail && self.literals.len() == 2);
        let first = whole.unwrap_or(first);
        let rest = self.literals.get(1..).unwrap_or_default();
        let starts_at_boundary = |at: &usize| {
            let before = text.get(..*at).and_then(|before| before.chars().next_back());
            before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '_' | '-' | '.'))
        };
        // With an optional tail, the last literal word must end at a word boundary.
        let ends_at_boundary = |at: &usize| {
            let after = text.get(at + first.len()..).and_then(|after| after.chars().next());
            whole.is_none() || after.is_none_or(|after| !after.is_alphanumeric())
        };
        // The first start suffices: what follows a later start also follows the first.
        let mut starts = text.match_indices(first).map(|(at, _)| at);
        starts.find(|at| starts_at_boundary(at) && ends_at_boundary(at)).is_some_and(|at| {
            let mut after = text.get(at + first.len()..).unwrap_or_default();
            rest.iter().all(|literal| match after.find(literal.as_str()) {
                Some(at) => {
                    after = after.get(at + literal.len()..).unwrap_or_default();
                    true
                }
                None => false,
            })
        })
    }

    /// Returns true if the whole text matches. Its blanks must be normalized.
    pub fn matches(&self, text: &str) -> bool {
        matches(&self.literals, self.optional_tail, text)
    }

    /// Like `matches`, ignoring case. The text must be in lower case.
    pub fn matches_lowercase(&self, text: &str) -> bool {
        matches(&self.lowercase_literals, self.optional_tail, text)
    }
}

/// Matches the literals in order, the first at the start and the last at the end, with any text between them.
fn matches(literals: &[String], optional_tail: bool, text: &str) -> bool {
    let [first, rest @ ..] = literals else { return false };
    let (between, last) = match rest {
        [] => return text == first,
        // `P *` also matches `P`: the blank and what follows are optional.
        [_] if optional_tail => {
            let rest = text.strip_prefix(first.strip_suffix(' ').unwrap_or(first));
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        }
        [between @ .., last] => (between, last),
    };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    let (between, before) = match between {
        [between @ .., before] if optional_tail => (between, Some(before)),
        between => (between, None),
    };
    for literal in between {
        match text.find(literal.as_str()) {
            Some(at) => text = text.get(at + literal.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    match before {
        Some(before) => {
            text.contains(before.as_str()) || text.ends_with(before.strip_suffix(' ').unwrap_or(before))
        }
        None => text.ends_with(last.as_str()),
    }
}

fn split_at_stars(content: &str) -> Vec<String> {
    let mut literals = vec![String::new()];
    let mut characters = content.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, literals.last_mut()) {
            ('*', _) => literals.push(String::new()),
            ('\\', Some(literal)) if characters.next_if_eq(&'*').is_some() => literal.push('*'),
            (other, Some(literal)) => literal.push(other),
            (_, None) => {}
        }
    }
    literals
}

/// Removes outer blanks and collapses each run of blanks outside quotes to one.
pub fn normalize_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut escaped = false;
    let mut after_blank = false;
    for character in text.trim_matches([' ', '\t', '\n']).chars() {
        let blank = matches!(character, ' ' | '\t') && quote.is_none() && !escaped;
        if blank {
            if !after_blank {
                out.push(' ');
            }
            after_blank = true;
            continue;
        }
        after_blank = false;
        match (character, quote) {
            ('\'' | '"', None) if !escaped => quote = Some(character),
            (_, Some(open)) if open == character && !escaped => quote = None,
            _ => {}
        }
        escaped = character == '\\' && !escaped && quote != Some('\'');
        out.push(character);
    }
    out
}

/// Escapes a text so that a rule with it matches exactly this text.
pub fn escape(text: &str) -> String {
    text.replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_search_respects_word_boundaries() {
        for (pattern, text, expected) in [
            ("rm *", "x 1e rm -f y", true),
            ("rm *", "s/rm -f/x/", true),
            ("rm *", "x rm", true),
            ("rm *", "x rmdir y", false),
            ("rm *", "farm rmdir \"rm\"", true),
            ("rm *", "farm y", false),
            ("git * --force", "git x; git push --force", true),
            ("git * --force", "--force; git push", false),
        ] {
            assert_eq!(CommandPattern::new(pattern).matches_at_any_word(text), expected, "{pattern}: {text}");
        }
    }

    #[test]
    fn pattern_matches() {
        let rows = [
            ("npm run build", "npm run build", true),
            ("npm  run   build", "npm run build", true),
            ("npm run build", "npm run build --watch", false),
            ("npm run test:*", "npm run test", true),
            ("npm run test:*", "npm run test -u", true),
            ("npm run test:*", "npm run test:unit", false),
            ("npm run test:*", "npm run testevil", false),
            ("npm run test *", "npm run test", true),
            ("mytool*", "mytool", true),
            ("mytool*", "mytoolbox run", true),
            ("mytool*", "my tool", false),
            ("git * main", "git rebase -i main", true),
            ("git * main", "git merge main", true),
            ("git * main", "git push origin main --force", false),
            ("git * main", "git main", false),
            ("git:* push", "git:x push", true),
            ("git:* push", "gitx push", false),
            ("k\\*", "k*", true),
            ("k\\*", "kx", false),
            ("* --version", "mytool --version", true),
            ("* install", "mytool install", true),
            ("a * *", "a b", true),
            ("a * c *", "a b c", true),
            ("a * c *", "a b c d", true),
            ("*", "anything at all", true),
            (":*", "x", true),
            ("a\\b", "a\\b", true),
            ("Git *", "git status", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(CommandPattern::new(pattern).matches(text), expected, "{pattern} / {text}");
        }
    }

    #[test]
    fn escaped_text_matches_itself() {
        for text in ["ls *", "a:*", "echo * x", "plain", "a\\*"] {
            let pattern = CommandPattern::new(&escape(text));
            assert!(pattern.is_exact() && pattern.matches(text), "{text}");
        }
    }

    #[test]
    fn blanks_outside_quotes_are_collapsed() {
        assert_eq!(normalize_blanks("  a \t b  'c  d' \"e  f\" g\\  h "), "a b 'c  d' \"e  f\" g\\  h");
    }

    #[test]
    fn pattern_is_searched_at_every_word() {
        let rows = [
            ("rm *", "echo 'x; rm -rf y", true),
            ("rm", "(rm", true),
            ("rm *", "farm x", false),
            ("git * main", "x; git push main", true),
            ("git * main", "x; git push", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(
                CommandPattern::new(pattern).matches_at_any_word(text),
                expected,
                "{pattern} / {text}"
            );
        }
    }

    #[test]
    fn starts_with_whole_word() {
        for (pattern, expected) in [("git *", true), ("git", true), ("git* x", false), ("* git", false)] {
            assert_eq!(CommandPattern::new(pattern).starts_with_word("git"), expected, "{pattern}");
        }
    }

    #[test]
    fn case_can_be_ignored() {
        assert!(CommandPattern::new("Curl *").matches_lowercase("curl x"));
    }
}
