//! Reading settings: a file to a text, a text to values that know their lines.
//!
//! Only regular files of reasonable size are read, and only strict JSON is taken: a comment, a key that stands twice or
//! a broken link is an error rather than a guess, because a rule that forbids something could get lost in it. A link is
//! followed when reading, as people keep their configuration elsewhere; what it leads to must be a regular file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::error::{SettingsError, shown};
use crate::files::{self, Kind};

/// How many bytes a settings file may have.
pub const LARGEST: u64 = 2 * 1024 * 1024;

/// Settings as they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// The values.
    pub values: Map<String, Value>,
    lines: BTreeMap<String, u32>,
}

impl Document {
    /// Settings that came as a value: they have no lines.
    pub fn of(values: Map<String, Value>) -> Self {
        Self { values, lines: BTreeMap::new() }
    }

    /// The line of a value, named by its JSON pointer.
    pub fn line(&self, pointer: &str) -> Option<u32> {
        self.lines.get(pointer).copied()
    }
}

/// Reads a settings file. None if there is no such file.
pub fn file(path: &Path) -> Result<Option<Document>, SettingsError> {
    match text(path)? {
        Some(text) => document(&text, &shown(path)).map(Some),
        None => Ok(None),
    }
}

/// The text of a settings file, without a byte order mark. None if there is no such file.
pub(super) fn text(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |cause: &str, remedy: &str| Err(SettingsError::unreadable(path, cause, remedy));
    match files::kind(path) {
        Ok(Kind::File(_)) => {}
        Ok(Kind::Missing) if is_broken_link(path) => {
            return unreadable("it is a link that leads nowhere", "Mend the link, or remove it.");
        }
        Ok(Kind::Missing) => return Ok(None),
        Ok(kind) => {
            return unreadable(
                &format!("it is {}", name_of(kind)),
                "Put a regular file in its place, or remove it.",
            );
        }
        Err(error) => return unreadable(&error.to_string(), "Make it readable, or remove it."),
    }
    let bytes = match files::read(path, LARGEST) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return unreadable("it has more than 2 MiB", "Make it smaller.");
        }
        Err(error) => return unreadable(&error.to_string(), "Make it readable, or remove it."),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').map(String::from).unwrap_or(text))),
        Err(error) => {
            let (line, column) = place_of(error.as_bytes(), error.utf8_error().valid_up_to());
            let cause = format!("line {line}, column {column} is not UTF-8");
            unreadable(&cause, "Save it as UTF-8.")
        }
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Missing => "missing",
        Kind::File(_) => "a file",
        Kind::Folder => "a folder",
        Kind::Pipe => "a named pipe",
        Kind::Socket => "a socket",
        Kind::Device => "a device",
    }
}

/// Whether the file, or the folder it should be in, is a link to something that is not there.
fn is_broken_link(path: &Path) -> bool {
    path.ancestors()
        .take(2)
        .any(|part| files::link_target(part).is_some() && files::real_path(part).is_none())
}

/// Reads settings from a text. `name` is what an error calls it.
pub fn document(text: &str, name: &str) -> Result<Document, SettingsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let malformed = |line: u32, column: u32, cause: String, remedy: &str| SettingsError::Malformed {
        name: name.into(),
        line,
        column,
        cause,
        remedy: remedy.into(),
    };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (number(error.line()), number(error.column()));
        let said = error.to_string();
        let cause = said.split(" at line ").next().unwrap_or(&said).to_owned();
        malformed(line, column, cause, remedy_for(text))
    })?;
    let Value::Object(values) = value else {
        let cause = "this is not an object".to_owned();
        return Err(malformed(1, 1, cause, "Settings are written {\"key\": value, ...}."));
    };
    let lines = lines(text).map_err(|twice| {
        let (line, column) = place_of(text.as_bytes(), twice.at);
        let cause = format!("the key \"{}\" stands here a second time", twice.key);
        malformed(line, column, cause, "Merge the two: otherwise one of them would be lost.")
    })?;
    Ok(Document { values, lines })
}

fn remedy_for(text: &str) -> &'static str {
    if text.trim().is_empty() {
        "Write {} into it, or remove it."
    } else {
        "Settings are plain JSON: no comments, no comma after the last entry, names in double quotes."
    }
}

/// A key that an object has twice.
struct Twice {
    key: String,
    at: usize,
}

/// The line of each value, by its JSON pointer. What is no strict JSON has no lines: it was refused before.
fn lines(text: &str) -> Result<BTreeMap<String, u32>, Twice> {
    let mut lines = BTreeMap::new();
    if let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &STRICT)
        && let Some(value) = &parsed.value
    {
        let starts: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        let line_of = |at: usize| number(starts.partition_point(|end| *end < at) + 1);
        walk(value, &mut String::new(), &line_of, &mut lines)?;
    }
    Ok(lines)
}

/// JSON without any of the extensions that the parser knows.
pub(super) const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn walk(
    value: &ast::Value<'_>,
    pointer: &mut String,
    line_of: &impl Fn(usize) -> u32,
    lines: &mut BTreeMap<String, u32>,
) -> Result<(), Twice> {
    let here = pointer.len();
    match value {
        ast::Value::Object(object) => {
            let mut keys = BTreeSet::new();
            for property in &object.properties {
                let key = property.name.as_str();
                if !keys.insert(key) {
                    return Err(Twice { key: key.into(), at: property.range().start });
                }
                pointer.push_str(&step(key));
                lines.insert(pointer.clone(), line_of(property.range().start));
                walk(&property.value, pointer, line_of, lines)?;
                pointer.truncate(here);
            }
        }
        ast::Value::Array(array) => {
            for (index, element) in array.elements.iter().enumerate() {
                pointer.push_str(&step(&index.to_string()));
                lines.insert(pointer.clone(), line_of(element.range().start));
                walk(element, pointer, line_of, lines)?;
                pointer.truncate(here);
            }
        }
        ast::Value::StringLit(_)
        | ast::Value::NumberLit(_)
        | ast::Value::BooleanLit(_)
        | ast::Value::NullKeyword(_) => {}
    }
    Ok(())
}

/// One step of a JSON pointer.
pub(super) fn step(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Line and column of a byte, both from 1; the column counts characters.
fn place_of(bytes: &[u8], at: usize) -> (u32, u32) {
    let before = &bytes[..at.min(bytes.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    (number(line), number(String::from_utf8_lossy(&before[line_start..]).chars().count() + 1))
}

fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let text = "{\n  \"permissions\": {\n    \"deny\": [\"A\",\n      \"B\"]},\n  \"a/b~c\": 1}";
        let document = document(text, "s").unwrap();
        let rows = [
            ("/permissions", 2),
            ("/permissions/deny", 3),
            ("/permissions/deny/0", 3),
            ("/permissions/deny/1", 4),
            ("/a~1b~0c", 5),
        ];
        for (pointer, line) in rows {
            assert_eq!(document.line(pointer), Some(line), "{pointer}");
        }
        assert_eq!(document.line("/none"), None);
        assert_eq!(document.values["permissions"]["deny"], json!(["A", "B"]));
    }

    #[test]
    fn what_is_not_strict_json_is_refused_with_its_place_and_a_remedy() {
        let rows = [
            ("nothing at all", "", "line 1, column 0", "Write {} into it"),
            ("a comment", "{\n  // no\n}", "line 2, column 3", "no comments"),
            ("a comma too many", "{\"a\": 1,}", "line 1, column 9", "no comma"),
            ("a text that ends early", "{\"a\": [", "line 1, column 7", "plain JSON"),
            ("something after the end", "{} x", "line 1, column 4", "plain JSON"),
            ("a list", "[1]", "line 1, column 1", "Settings are written"),
            ("a key that stands twice", "{\"a\":{\"b\":1,\n \"b\":2}}", "line 2, column 2", "Merge the two"),
        ];
        for (name, text, place, remedy) in rows {
            let error = document(text, "the file").unwrap_err().to_string();
            assert!(
                error.contains("the file") && error.contains(place) && error.contains(remedy),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        assert!(matches!(document(&deep, "s"), Err(SettingsError::Malformed { .. })));
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(document("\u{feff}{\"a\":1}", "s").unwrap().values["a"], 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(file(&folder.path().join("none.json")).unwrap(), None);
        fs::write(folder.path().join("f"), "").unwrap();
        assert_eq!(file(&folder.path().join("f/settings.json")).unwrap(), None);
    }

    #[test]
    fn what_is_not_a_readable_regular_file_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("pipe", at("to-a-pipe")).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        symlink("round", at("round")).unwrap();
        symlink("gone", at("broken-folder")).unwrap();
        fs::write(at("latin"), b"{\"a\":\n \"\xe9\"}").unwrap();
        fs::write(at("large"), vec![b' '; 2 * 1024 * 1024 + 1]).unwrap();
        let rows = [
            ("folder", "a folder"),
            ("pipe", "a named pipe"),
            ("to-a-pipe", "a named pipe"),
            ("broken", "leads nowhere"),
            ("round", "symbolic links"),
            ("broken-folder/settings.json", "leads nowhere"),
            ("latin", "line 2, column 3 is not UTF-8"),
            ("large", "2 MiB"),
        ];
        for (name, cause) in rows {
            let error = file(&at(name)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(cause), "{name}: {error}");
        }
        assert!(file(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
    }

    #[test]
    fn a_link_to_a_regular_file_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("real.json"), "{\"model\":\"m\"}").unwrap();
        symlink("real.json", folder.path().join("link.json")).unwrap();
        assert_eq!(file(&folder.path().join("link.json")).unwrap().unwrap().values["model"], "m");
    }
}
