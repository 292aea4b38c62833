//! Front matter: the YAML between two lines of dashes at the head of a Markdown file. The only module that depends on
//! the YAML library.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use whimbrel_os::files::{self, FileKind};

const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Markdown file, split into front matter and body.
#[derive(Debug, PartialEq)]
pub struct MarkdownFile<'a, T> {
    /// Parsed front matter; the default if it is missing or invalid.
    pub head: T,
    pub body: &'a str,
    /// Error of invalid front matter.
    pub error: Option<FrontMatterError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatterError {
    /// Line in the file, from 1.
    pub line: u64,
    pub cause: String,
}

/// Reads a Markdown file. Reads the disk.
pub fn read_text(path: &Path) -> Result<String, String> {
    match files::file_kind(path).map_err(|error| error.to_string())? {
        FileKind::File(_) => {}
        FileKind::Missing => return Err("it no longer exists".into()),
        _ => return Err("it is not a regular file".into()),
    }
    let (bytes, _) = files::read(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => format!("it has more than {MAX_FILE_BYTES} bytes"),
        _ => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
}

/// Parses front matter. Values of the `plain` keys are taken literally, because users write them with brackets and
/// colons that mean something else in YAML.
pub fn parse<'a, T: DeserializeOwned + Default>(text: &'a str, plain: &[&str]) -> MarkdownFile<'a, T> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((head, body)) = split_head(text) else {
        return MarkdownFile { head: T::default(), body: text, error: None };
    };
    let lines = quote_plain_values(head, plain);
    if lines.iter().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return MarkdownFile { head: T::default(), body, error: None };
    }
    match serde_saphyr::from_str(&lines.join("\n")) {
        Ok(head) => MarkdownFile { head, body, error: None },
        Err(error) => {
            // The first line of the file is the line of dashes.
            let line = error.location().map_or(1, |location| location.line()) + 1;
            let cause = error.without_snippet().to_string();
            let cause = cause.lines().next().unwrap_or_default().to_owned();
            MarkdownFile { head: T::default(), body, error: Some(FrontMatterError { line, cause }) }
        }
    }
}

/// Splits a text that begins with a line of dashes and has another one.
fn split_head(text: &str) -> Option<(&str, &str)> {
    let is_dashes = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_dashes(line))?;
    let mut at = first.len();
    for line in lines {
        if is_dashes(line) {
            return Some((&text[first.len()..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// Lines of the front matter with the plain keys' values quoted; the number of lines stays the same.
fn quote_plain_values(head: &str, keys: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = head.lines().peekable();
    while let Some(line) = rest.next() {
        let Some((key, value)) = plain_value(line, keys) else {
            lines.push(line.to_owned());
            continue;
        };
        // Indented lines below belong to the value.
        let mut value = value.to_owned();
        let mut below = 0;
        while let Some(more) = rest.next_if(|more| more.starts_with([' ', '\t']) && !more.trim().is_empty()) {
            value = format!("{value} {}", more.trim());
            below += 1;
        }
        lines.push(format!("{key}: '{}'", value.replace('\'', "''")));
        lines.extend(std::iter::repeat_n(String::new(), below));
    }
    lines
}

/// Key and value of a line, if the key is plain and the value is neither quoted nor a block.
fn plain_value<'a>(line: &'a str, keys: &[&str]) -> Option<(&'a str, &'a str)> {
    let (key, value) = line.split_once(':')?;
    let value = value.trim();
    let is_plain = keys.contains(&key) && !value.is_empty() && !value.starts_with(['"', '\'', '|', '>']);
    is_plain.then_some((key, value))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case", default)]
    struct Head {
        description: Option<String>,
        argument_hint: Option<String>,
        tools: Vec<String>,
    }

    fn parse_head(text: &str) -> MarkdownFile<'_, Head> {
        parse(text, &["description", "argument-hint"])
    }

    #[test]
    fn front_matter_is_separated_from_the_body() {
        let rows = [
            ("no head", "Just text\n---\nmore", Head::default(), "Just text\n---\nmore"),
            ("a line of dashes alone", "---\nno end", Head::default(), "---\nno end"),
            ("an empty head", "---\n---\nbody", Head::default(), "body"),
            ("a head of remarks", "---\n# x\n\n---\nbody", Head::default(), "body"),
            (
                "values as people write them",
                "\u{feff}---\r\ndescription: Fix: don't ask\r\nargument-hint: [issue] [how hard]\r\ntools: [a, b]\r\nother: 1\r\n---\r\nbody",
                Head {
                    description: Some("Fix: don't ask".into()),
                    argument_hint: Some("[issue] [how hard]".into()),
                    tools: vec!["a".into(), "b".into()],
                },
                "body",
            ),
            (
                "values over several lines",
                "---\ndescription: First: one\n  and [two]\n\targument-hint: no key\ntools: [a]\n---\nbody",
                Head {
                    description: Some("First: one and [two] argument-hint: no key".into()),
                    argument_hint: None,
                    tools: vec!["a".into()],
                },
                "body",
            ),
            (
                "quotes and blocks are YAML's",
                "---\ndescription: \"a \\\"b\\\"\"\nargument-hint: >\n  two\n  lines\n---\n",
                Head {
                    description: Some("a \"b\"".into()),
                    argument_hint: Some("two lines\n".into()),
                    tools: vec![],
                },
                "",
            ),
        ];
        for (name, text, head, body) in rows {
            assert_eq!(parse_head(text), MarkdownFile { head, body, error: None }, "{name}");
        }
    }

    #[test]
    fn an_error_names_its_line_and_keeps_the_body() {
        for (text, line) in [
            ("---\ndescription: x\ntools: [a, b\n---\nbody", 3..=5),
            ("---\ndescription: x\ntools: {a: b}\n---\nbody", 3..=3),
            ("---\ndescription: x\n  more\ntools: {a: b}\n---\nbody", 4..=4),
            ("---\n- not a map\n---\nbody", 2..=2),
        ] {
            let found = parse_head(text);
            let error = found.error.unwrap();
            assert!(line.contains(&error.line) && !error.cause.is_empty(), "{text:?}: {error:?}");
            assert_eq!((found.head, found.body), (Head::default(), "body"), "{text:?}");
        }
    }
}
