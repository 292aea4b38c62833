//! `env -S TEXT`: splits the text into words, which take its place among the arguments.

use crate::shell::{Word, WordValue};

/// Splits a text after `-S`.
pub(crate) fn split_env_text(text: &str) -> Vec<Word> {
    let mut splitter = Splitter::default();
    splitter.run(text);
    splitter.end_word();
    splitter.words
}

#[derive(Debug, Default)]
struct Splitter {
    words: Vec<Word>,
    /// Literal text of the current word, up to an unknown part.
    before: String,
    /// Text after the last unknown part, if there is one.
    after: Option<String>,
    /// True if a word has started.
    has_begun: bool,
}

impl Splitter {
    fn run(&mut self, text: &str) {
        let mut quote = None;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            match (character, quote) {
                ('\'' | '"', None) => {
                    quote = Some(character);
                    self.has_begun = true;
                }
                (_, Some(open)) if open == character => quote = None,
                ('\\', Some('\'')) if !matches!(rest.peek(), Some('\\' | '\'')) => self.push('\\'),
                ('\\', _) => match rest.next() {
                    Some('_') if quote.is_none() => self.end_word(),
                    Some('_') => self.push(' '),
                    // `\c` discards the rest.
                    Some('c') | None => return,
                    Some(escaped) => self.push(decode_escape(escaped)),
                },
                ('$', None | Some('"')) => {
                    for _ in rest.by_ref().take_while(|character| *character != '}') {}
                    self.has_begun = true;
                    self.after = Some(String::new());
                }
                ('#', None) if !self.has_begun => return,
                (' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r', None) => self.end_word(),
                _ => self.push(character),
            }
        }
    }

    fn push(&mut self, character: char) {
        self.has_begun = true;
        self.after.as_mut().unwrap_or(&mut self.before).push(character);
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.has_begun) {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let value = match self.after.take() {
            Some(after) => WordValue::Unknown { before, after, nonempty: false },
            None => WordValue::Literal(before),
        };
        self.words.push(Word { raw: crate::shell::words::expand::render_value(&value), value });
    }
}

/// Decodes a backslash sequence.
fn decode_escape(letter: char) -> char {
    match letter {
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::split_env_text;

    #[test]
    fn text_is_split_as_by_env() {
        let rows: &[(&str, &[&str])] = &[
            ("zap x", &["zap", "x"]),
            (r"zap\_x", &["zap", "x"]),
            ("  -- zap  x ", &["--", "zap", "x"]),
            (r#""FOO=a b" zap"#, &["FOO=a b", "zap"]),
            (r#"z''ap "x\_y""#, &["zap", "x y"]),
            (r"zap\cfoo", &["zap"]),
            ("zap #x", &["zap"]),
            ("zap#x", &["zap#x"]),
            (r"'a\b' 'it\'s'", &[r"a\b", "it's"]),
            ("''", &[""]),
            ("a${B}c", &["?"]),
            ("", &[]),
        ];
        for (text, expected) in rows {
            let found = split_env_text(text);
            let found: Vec<&str> = found.iter().map(|word| word.value.as_literal().unwrap_or("?")).collect();
            assert_eq!(found, *expected, "{text}");
        }
    }
}
