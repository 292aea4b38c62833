//! Edits the text of a settings file. Pure. Only the changed list or value is rewritten; formatting elsewhere is kept.

use std::path::Path;

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::{Rule, RuleSet, RuleSource};
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue};

use crate::settings::document::STRICT_JSON;

/// A change to a settings file.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingsChange {
    /// Changes a permission list.
    List { list: PermissionList, action: ListAction, entries: Vec<String> },
    /// Sets the default permission mode.
    Mode(PermissionMode),
    /// Sets a top-level key.
    Value { key: String, value: Value },
    /// Sets one entry of a nested object. Missing objects on the way are created.
    Entry {
        /// The keys that lead to it.
        path: Vec<String>,
        /// The entry; `None` removes it.
        value: Option<Value>,
    },
}

/// A list under `permissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionList {
    /// Rules with this behavior.
    Rules(PermissionBehavior),
    /// Additional directories.
    Directories,
}

impl PermissionList {
    /// Key of the list under `permissions`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Rules(behavior) => behavior.as_str(),
            Self::Directories => "additionalDirectories",
        }
    }

    fn is_same_entry(self, one: &str, other: &str) -> bool {
        match self {
            Self::Rules(behavior) => one == other || is_same_rule(one, other, behavior),
            Self::Directories => one == other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListAction {
    /// Adds entries that are missing.
    Add,
    /// Removes entries that exist.
    Remove,
    /// Replaces the whole list.
    Replace,
}

impl SettingsChange {
    /// Converts a permission update; also returns the rules that cannot be written because they are invalid. Relative
    /// directories are dropped.
    pub fn from_update(update: &PermissionUpdate) -> (Self, Vec<RuleValue>) {
        let rules = |action, behavior, rules: &[RuleValue]| {
            let (mut entries, mut invalid) = (Vec::new(), Vec::new());
            for rule in rules {
                match render_rule(rule, behavior, action) {
                    Some(text) => entries.push(text),
                    None => invalid.push(rule.clone()),
                }
            }
            (Self::List { list: PermissionList::Rules(behavior), action, entries }, invalid)
        };
        let directories = |action, entries: &[String]| {
            let entries = entries.iter().filter(|path| Path::new(path).is_absolute()).cloned().collect();
            (Self::List { list: PermissionList::Directories, action, entries }, Vec::new())
        };
        match update {
            PermissionUpdate::AddRules { rules: given, behavior, .. } => {
                rules(ListAction::Add, *behavior, given)
            }
            PermissionUpdate::RemoveRules { rules: given, behavior, .. } => {
                rules(ListAction::Remove, *behavior, given)
            }
            PermissionUpdate::ReplaceRules { rules: given, behavior, .. } => {
                rules(ListAction::Replace, *behavior, given)
            }
            PermissionUpdate::SetMode { mode, .. } => (Self::Mode(*mode), Vec::new()),
            PermissionUpdate::AddDirectories { directories: given, .. } => {
                directories(ListAction::Add, given)
            }
            PermissionUpdate::RemoveDirectories { directories: given, .. } => {
                directories(ListAction::Remove, given)
            }
        }
    }
}

/// The text of a rule; `None` if it would be invalid in a file.
fn render_rule(value: &RuleValue, behavior: PermissionBehavior, action: ListAction) -> Option<String> {
    let mut rule = Rule::from_value(value).ok()?;
    if action != ListAction::Remove {
        let mut rules = RuleSet::new(Path::new("/"), Path::new("/"));
        rules.add_rule(rule.clone(), behavior, RuleSource::UserSettings, &RealFs).ok()?;
    }
    if behavior != PermissionBehavior::Allow {
        // Empty brackets mean the whole tool.
        rule.content = rule.content.filter(|content| !content.is_empty());
    }
    Some(rule.to_string())
}

/// Compares rules by meaning.
fn is_same_rule(one: &str, other: &str, behavior: PermissionBehavior) -> bool {
    matches!((Rule::parse(one), Rule::parse(other)), (Ok(one), Ok(other)) if one.is_equivalent(&other, behavior))
}

/// Applies a change to strict JSON. `None` if nothing changes; an error if a key on the way has another type.
pub(crate) fn apply_change(text: &str, change: &SettingsChange) -> Result<Option<String>, String> {
    let root = CstRootNode::parse(text, &STRICT_JSON).map_err(|error| error.to_string())?;
    let object = root.object_value().ok_or("it does not contain an object")?;
    let changed = match change {
        SettingsChange::List { list, action, entries } => edit_list(&object, *list, *action, entries)?,
        SettingsChange::Mode(mode) => {
            let permissions =
                object.object_value_or_create("permissions").ok_or("\"permissions\" is not an object")?;
            set_value(&permissions, "defaultMode", &mode.as_str().into())
        }
        SettingsChange::Value { key, value } => set_value(&object, key, value),
        SettingsChange::Entry { path, value } => edit_entry(object, path, value.as_ref())?,
    };
    Ok(changed.then(|| root.to_string()))
}

fn edit_entry(mut object: CstObject, path: &[String], value: Option<&Value>) -> Result<bool, String> {
    let (last, parents) = path.split_last().ok_or("no key is given")?;
    for key in parents {
        let below = match object.get(key) {
            None if value.is_none() => return Ok(false),
            None => object.object_value_or_create(key),
            Some(property) => property.object_value(),
        };
        object = below.ok_or_else(|| format!("\"{key}\" is not an object"))?;
    }
    match (value, object.get(last)) {
        (Some(value), _) => Ok(set_value(&object, last, value)),
        (None, Some(property)) => {
            property.remove();
            Ok(true)
        }
        (None, None) => Ok(false),
    }
}

fn set_value(object: &CstObject, key: &str, value: &Value) -> bool {
    match object.get(key) {
        Some(property) => {
            let old = property.value().and_then(|node| serde_json::from_str::<Value>(&node.to_string()).ok());
            if old.as_ref() == Some(value) {
                return false;
            }
            property.set_value(to_cst_value(value));
        }
        None => {
            object.append(key, to_cst_value(value));
        }
    }
    true
}

fn to_cst_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(switch) => CstInputValue::Bool(*switch),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_cst_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), to_cst_value(value))).collect(),
        ),
    }
}

fn edit_list(
    object: &CstObject,
    list: PermissionList,
    action: ListAction,
    entries: &[String],
) -> Result<bool, String> {
    let not_a_list = format!("\"permissions.{}\" is not a list", list.key());
    let there = match object.get("permissions") {
        None => None,
        Some(permissions) => {
            let permissions = permissions.object_value().ok_or("\"permissions\" is not an object")?;
            match permissions.get(list.key()) {
                Some(property) => Some(property.array_value().ok_or_else(|| not_a_list.clone())?),
                None => None,
            }
        }
    };
    let adds = action != ListAction::Remove && !entries.is_empty();
    let array = match there {
        Some(array) => array,
        None if !adds => return Ok(false),
        None => {
            let permissions =
                object.object_value_or_create("permissions").ok_or("\"permissions\" is not an object")?;
            let array = permissions.array_value_or_create(list.key()).ok_or(not_a_list)?;
            array.ensure_multiline();
            array
        }
    };
    let is_named = |node: &CstNode| {
        string_value(node).is_some_and(|text| entries.iter().any(|entry| list.is_same_entry(entry, &text)))
    };
    let mut changed = false;
    for node in array.elements() {
        let is_removed = match action {
            ListAction::Add => false,
            ListAction::Remove => is_named(&node),
            ListAction::Replace => !is_named(&node),
        };
        if is_removed {
            node.remove();
            changed = true;
        }
    }
    if adds {
        changed |= add_entries(&array, list, entries);
    }
    Ok(changed)
}

fn add_entries(array: &CstArray, list: PermissionList, entries: &[String]) -> bool {
    let mut there: Vec<String> = array.elements().iter().filter_map(string_value).collect();
    let mut changed = false;
    for entry in entries {
        if !there.iter().any(|old| list.is_same_entry(old, entry)) {
            array.append(CstInputValue::String(entry.clone()));
            there.push(entry.clone());
            changed = true;
        }
    }
    changed
}

fn string_value(node: &CstNode) -> Option<String> {
    node.as_string_lit().and_then(|text| text.decoded_value().ok())
}

#[cfg(test)]
mod tests;
