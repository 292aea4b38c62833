//! Reads settings files and parses them with the line number of each value.
//!
//! Only regular files up to a size limit and strict JSON are accepted: a comment, a duplicate key or a broken symlink
//! is an error, because a deny rule could be lost by guessing. Symlinks are followed when reading, because users keep
//! their configuration elsewhere; the target must be a regular file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};
use whimbrel_os::files::{self, FileKind};

use crate::settings::error::{SettingsError, display_path, escape_text};

pub const MAX_FILE_SIZE: u64 = 2 * 1024 * 1024;

/// Parsed settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsDocument {
    pub values: Map<String, Value>,
    lines: BTreeMap<String, u32>,
}

impl SettingsDocument {
    /// Settings passed as a value, without line numbers.
    pub fn from_values(values: Map<String, Value>) -> Self {
        Self { values, lines: BTreeMap::new() }
    }

    /// Line of the value at a JSON pointer.
    pub fn line(&self, pointer: &str) -> Option<u32> {
        self.lines.get(pointer).copied()
    }
}

/// Reads a settings file; `None` if it does not exist.
pub fn read_file(path: &Path) -> Result<Option<SettingsDocument>, SettingsError> {
    match read_text(path)? {
        Some(text) => parse_document(&text, &display_path(path)).map(Some),
        None => Ok(None),
    }
}

/// Reads the text of a settings file without its byte order mark; `None` if it does not exist.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |cause: &str, remedy: &str| Err(SettingsError::unreadable(path, cause, remedy));
    match files::file_kind(path) {
        Ok(FileKind::File(_)) => {}
        Ok(FileKind::Missing) if is_broken_link(path) => {
            return unreadable("it is a broken link", "Repair or remove the link.");
        }
        Ok(FileKind::Missing) => return Ok(None),
        Ok(kind) => {
            return unreadable(
                &format!("it is {}", kind_name(kind)),
                "Put a regular file in its place, or remove it.",
            );
        }
        Err(error) => return unreadable(&error.to_string(), "Make it readable, or remove it."),
    }
    let bytes = match files::read(path, MAX_FILE_SIZE) {
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
            let (line, column) = line_and_column(error.as_bytes(), error.utf8_error().valid_up_to());
            let cause = format!("line {line}, column {column} is not UTF-8");
            unreadable(&cause, "Save it as UTF-8.")
        }
    }
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Missing => "missing",
        FileKind::File(_) => "a file",
        FileKind::Directory => "a directory",
        FileKind::Pipe => "a named pipe",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
    }
}

/// Whether the file or its directory is a symlink to nothing.
fn is_broken_link(path: &Path) -> bool {
    path.ancestors()
        .take(2)
        .any(|part| files::link_target(part).is_some() && files::real_path(part).is_none())
}

/// Parses settings. `name` identifies the text in errors.
pub fn parse_document(text: &str, name: &str) -> Result<SettingsDocument, SettingsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let malformed = |line: u32, column: u32, cause: String, remedy: &str| SettingsError::Malformed {
        name: name.into(),
        line,
        column,
        cause,
        remedy: remedy.into(),
    };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (to_u32(error.line()), to_u32(error.column()));
        let message = error.to_string();
        let cause = message.split(" at line ").next().unwrap_or(&message).to_owned();
        malformed(line, column, cause, remedy_for(text))
    })?;
    let Value::Object(values) = value else {
        let cause = "this is not an object".to_owned();
        return Err(malformed(1, 1, cause, "Settings are written {\"key\": value, ...}."));
    };
    let tree = parse_to_ast(text, &CollectOptions::default(), &STRICT_JSON).map_err(|error| {
        let position = (to_u32(error.line_display()), to_u32(error.column_display()));
        malformed(position.0, position.1, error.kind().to_string(), remedy_for(text))
    })?;
    let lines = tree.value.as_ref().map_or(Ok(BTreeMap::new()), |value| line_numbers(text, value)).map_err(
        |duplicate| {
            let (line, column) = line_and_column(text.as_bytes(), duplicate.offset);
            let cause = format!("duplicate key \"{}\"", escape_text(&duplicate.key));
            malformed(line, column, cause, "Merge the two: otherwise one of them would be ignored.")
        },
    )?;
    Ok(SettingsDocument { values, lines })
}

fn remedy_for(text: &str) -> &'static str {
    if text.trim().is_empty() {
        "Write {} into it, or remove it."
    } else {
        "Settings are plain JSON: no comments, no comma after the last entry, names in double quotes."
    }
}

/// A key that occurs twice in an object.
struct DuplicateKey {
    key: String,
    offset: usize,
}

/// The line of each value by its JSON pointer.
fn line_numbers(text: &str, value: &ast::Value<'_>) -> Result<BTreeMap<String, u32>, DuplicateKey> {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
    let line_of = |at: usize| to_u32(ends.partition_point(|end| *end < at) + 1);
    let mut lines = BTreeMap::new();
    collect_lines(value, &mut String::new(), &line_of, &mut lines)?;
    Ok(lines)
}

/// JSON without any of the parser's extensions.
pub(super) const STRICT_JSON: ParseOptions = ParseOptions {
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

fn collect_lines(
    value: &ast::Value<'_>,
    pointer: &mut String,
    line_of: &impl Fn(usize) -> u32,
    lines: &mut BTreeMap<String, u32>,
) -> Result<(), DuplicateKey> {
    let here = pointer.len();
    match value {
        ast::Value::Object(object) => {
            let mut keys = BTreeSet::new();
            for property in &object.properties {
                let key = property.name.as_str();
                if !keys.insert(key) {
                    return Err(DuplicateKey { key: key.into(), offset: property.range().start });
                }
                pointer.push_str(&pointer_token(key));
                lines.insert(pointer.clone(), line_of(property.range().start));
                collect_lines(&property.value, pointer, line_of, lines)?;
                pointer.truncate(here);
            }
        }
        ast::Value::Array(array) => {
            for (index, element) in array.elements.iter().enumerate() {
                pointer.push_str(&pointer_token(&index.to_string()));
                lines.insert(pointer.clone(), line_of(element.range().start));
                collect_lines(element, pointer, line_of, lines)?;
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

/// Escapes a key as one component of a JSON pointer.
pub(super) fn pointer_token(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Line and column of a byte offset, both starting at 1; the column counts characters.
fn line_and_column(bytes: &[u8], at: usize) -> (u32, u32) {
    let before = &bytes[..at.min(bytes.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    (to_u32(line), to_u32(String::from_utf8_lossy(&before[line_start..]).chars().count() + 1))
}

fn to_u32(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
