//! Merges repeated `--settings` and `--managed-settings`. Pure.

use serde_json::{Map, Value};
use whimbrel_wire::options::Options;

/// Merges two settings objects: lists are concatenated, so that no deny rule is lost; of two single values the later
/// one wins.
pub(super) fn merge_settings(before: &mut Value, more: Value) {
    match (before, more) {
        (Value::Object(before), Value::Object(more)) => {
            for (key, value) in more {
                match before.get_mut(&key) {
                    Some(before) => merge_settings(before, value),
                    None => drop(before.insert(key, value)),
                }
            }
        }
        (Value::Array(before), Value::Array(more)) => {
            for value in more {
                if !before.contains(&value) {
                    before.push(value);
                }
            }
        }
        (before, more) => *before = more,
    }
}

/// Merges repeated `--settings`. JSON objects are merged. Next to a file only a sandbox can be given, because it has an
/// option of its own; anything else is an error, because it would be lost.
pub(super) fn merge_settings_flags(given: Vec<String>, options: &mut Options) -> Result<(), String> {
    for text in given {
        let merged = match &options.settings {
            None => text,
            Some(before) => match (parse_object(before), parse_object(&text)) {
                (Some(before), Some(more)) => {
                    let mut joined = Value::Object(before);
                    merge_settings(&mut joined, Value::Object(more));
                    joined.to_string()
                }
                (None, Some(mut more)) if more.len() == 1 => match more.remove("sandbox") {
                    Some(Value::Object(sandbox)) => {
                        options.sandbox = Some(sandbox);
                        continue;
                    }
                    _ => return Err(SETTINGS_CONFLICT.into()),
                },
                _ => return Err(SETTINGS_CONFLICT.into()),
            },
        };
        options.settings = Some(merged);
    }
    Ok(())
}

const SETTINGS_CONFLICT: &str =
    "--settings was given twice, and a file cannot be merged. Put all settings into one file.";

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}
