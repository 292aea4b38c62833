//! Table of the known keys and their types. Unknown keys are kept unchanged.
//!
//! A value of the wrong type is dropped. If a restriction could be lost by that (deny rules, hooks, sandbox), the start
//! fails; otherwise there is a warning.

use serde_json::{Map, Value};
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::settings::hooks::{self, HookConfig, ValidationError};
use crate::settings::read::pointer_token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Text,
    Bool,
    /// Not negative.
    Number,
    TextList,
    /// An object of texts; numbers and booleans are converted.
    Variables,
    Object,
    /// An object or a boolean.
    ObjectOrSwitch,
    Mode,
    /// The text `disable`; `true` is accepted as well.
    Disable,
    Hooks,
}

/// Consequence of an invalid value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// A restriction may be lost: the start fails.
    Critical,
    /// A warning.
    Preference,
}

use Severity::{Critical, Preference};

/// The known keys; parents come before their children.
const KEYS: &[(&[&str], ValueType, Severity)] = &[
    (&["$schema"], ValueType::Text, Preference),
    (&["permissions"], ValueType::Object, Critical),
    (&["permissions", "allow"], ValueType::TextList, Preference),
    (&["permissions", "ask"], ValueType::TextList, Critical),
    (&["permissions", "deny"], ValueType::TextList, Critical),
    (&["permissions", "additionalDirectories"], ValueType::TextList, Preference),
    (&["permissions", "defaultMode"], ValueType::Mode, Critical),
    (&["permissions", "disableBypassPermissionsMode"], ValueType::Disable, Critical),
    (&["permissions", "disableAutoMode"], ValueType::Disable, Critical),
    (&["permissions", "allowManagedPermissionRulesOnly"], ValueType::Bool, Critical),
    (&["allowManagedPermissionRulesOnly"], ValueType::Bool, Critical),
    (&["allowManagedHooksOnly"], ValueType::Bool, Critical),
    (&["hooks"], ValueType::Hooks, Critical),
    (&["disableAllHooks"], ValueType::Bool, Preference),
    (&["allowedHttpHookUrls"], ValueType::TextList, Critical),
    (&["httpHookAllowedEnvVars"], ValueType::TextList, Critical),
    (&["sandbox"], ValueType::Object, Critical),
    (&["sandbox", "enabled"], ValueType::Bool, Critical),
    (&["sandbox", "failIfUnavailable"], ValueType::Bool, Critical),
    (&["sandbox", "allowUnsandboxedCommands"], ValueType::Bool, Critical),
    (&["sandbox", "autoAllowBashIfSandboxed"], ValueType::Bool, Critical),
    (&["sandbox", "excludedCommands"], ValueType::TextList, Preference),
    (&["sandbox", "network"], ValueType::Object, Critical),
    (&["sandbox", "network", "allowedDomains"], ValueType::TextList, Preference),
    (&["sandbox", "network", "deniedDomains"], ValueType::TextList, Critical),
    (&["sandbox", "filesystem"], ValueType::Object, Critical),
    (&["sandbox", "filesystem", "allowWrite"], ValueType::TextList, Preference),
    (&["sandbox", "filesystem", "denyWrite"], ValueType::TextList, Critical),
    (&["sandbox", "filesystem", "allowRead"], ValueType::TextList, Preference),
    (&["sandbox", "filesystem", "denyRead"], ValueType::TextList, Critical),
    (&["env"], ValueType::Variables, Preference),
    (&["model"], ValueType::Text, Preference),
    (&["fallbackModel"], ValueType::TextList, Preference),
    (&["effortLevel"], ValueType::Text, Preference),
    (&["alwaysThinkingEnabled"], ValueType::Bool, Preference),
    (&["agent"], ValueType::Text, Preference),
    (&["outputStyle"], ValueType::Text, Preference),
    (&["language"], ValueType::Text, Preference),
    (&["apiKeyHelper"], ValueType::Text, Preference),
    (&["statusLine"], ValueType::Object, Preference),
    (&["fileSuggestion"], ValueType::Object, Preference),
    (&["enableAllProjectMcpServers"], ValueType::Bool, Preference),
    (&["enabledMcpjsonServers"], ValueType::TextList, Preference),
    (&["disabledMcpjsonServers"], ValueType::TextList, Critical),
    (&["includeCoAuthoredBy"], ValueType::Bool, Preference),
    (&["attribution"], ValueType::ObjectOrSwitch, Preference),
    (&["includeGitInstructions"], ValueType::Bool, Preference),
    (&["respectGitignore"], ValueType::Bool, Preference),
    (&["cleanupPeriodDays"], ValueType::Number, Preference),
    (&["autoCompactEnabled"], ValueType::Bool, Preference),
    (&["fileCheckpointingEnabled"], ValueType::Bool, Preference),
    (&["skipWebFetchPreflight"], ValueType::Bool, Preference),
    (&["claudeMdExcludes"], ValueType::TextList, Preference),
];

/// A permission rule as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    pub behavior: PermissionBehavior,
    pub text: String,
    /// JSON pointer to the rule.
    pub pointer: String,
}

/// Validated settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedValues {
    /// The valid values.
    pub values: Map<String, Value>,
    pub rules: Vec<WrittenRule>,
    pub hooks: Vec<HookConfig>,
    pub errors: Vec<ValidationError>,
}

/// Whether a key of the object at this path is known.
pub(super) fn is_known_key(place: &[&str], key: &str) -> bool {
    KEYS.iter()
        .any(|(path, ..)| path.split_last().is_some_and(|(last, above)| above == place && *last == key))
}

/// Keys of the object at this path that may restrict something; under `permissions` and `sandbox` all known keys.
pub(super) fn critical_keys(place: &[&str]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |(path, _, loss)| {
        let (key, above) = path.split_last()?;
        (above == place && (*loss == Critical || !place.is_empty())).then_some(*key)
    })
}

/// Validates the values of one layer. Null counts as absent, except for restrictive keys, where it is an error.
pub fn check_values(mut values: Map<String, Value>) -> CheckedValues {
    let rules = collect_rules(&values);
    let mut flaws = Vec::new();
    let mut entries = Vec::new();
    for (path, shape, loss) in KEYS {
        let Some((holder, key)) = parent_object(&mut values, path) else { continue };
        let Some(value) = holder.get_mut(key) else { continue };
        let pointer: String = path.iter().map(|key| pointer_token(key)).collect();
        if value.is_null() && *loss == Critical {
            let cause = format!("must be {}, but is null", describe_type(*shape));
            flaws.push(ValidationError { pointer, cause, is_critical: true });
        } else if *shape == ValueType::Hooks && !value.is_null() {
            let (read, wrong) = hooks::parse_hooks(value);
            entries.extend(read);
            flaws.extend(wrong);
        } else if let Err(wrong) = coerce(value, *shape) {
            flaws.extend(wrong.into_iter().map(|(at, cause)| ValidationError {
                pointer: format!("{pointer}{at}"),
                cause,
                is_critical: *loss == Critical,
            }));
        }
        if value.is_null() {
            holder.remove(key);
        }
    }
    CheckedValues { values, rules, hooks: entries, errors: flaws }
}

fn collect_rules(values: &Map<String, Value>) -> Vec<WrittenRule> {
    let mut rules = Vec::new();
    for behavior in [PermissionBehavior::Deny, PermissionBehavior::Ask, PermissionBehavior::Allow] {
        let list = values.get("permissions").and_then(|permissions| permissions.get(behavior.as_str()));
        for (index, rule) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if let Value::String(text) = rule {
                let pointer = format!("/permissions/{behavior}/{index}");
                rules.push(WrittenRule { behavior, text: text.clone(), pointer });
            }
        }
    }
    rules
}

/// The object that contains the last key of a path, and that key.
fn parent_object<'a, 'k>(
    values: &'a mut Map<String, Value>,
    path: &[&'k str],
) -> Option<(&'a mut Map<String, Value>, &'k str)> {
    let (key, folders) = path.split_last()?;
    let mut holder = values;
    for folder in folders {
        holder = holder.get_mut(*folder)?.as_object_mut()?;
    }
    Some((holder, key))
}

/// Pointer below the key, and the cause.
type ValueErrors = Vec<(String, String)>;

/// Fits a value to its type: invalid parts are removed and reported. A wholly invalid value becomes null.
fn coerce(value: &mut Value, shape: ValueType) -> Result<(), ValueErrors> {
    let fits = match shape {
        _ if value.is_null() => true,
        ValueType::TextList => return coerce_texts(value),
        ValueType::Variables => return coerce_variables(value),
        ValueType::Text => value.is_string(),
        ValueType::Bool => value.is_boolean(),
        ValueType::Number => value.as_f64().is_some_and(|number| number >= 0.0),
        ValueType::Object | ValueType::Hooks => value.is_object(),
        ValueType::ObjectOrSwitch => value.is_object() || value.is_boolean(),
        ValueType::Disable if *value == Value::Bool(true) => {
            *value = "disable".into();
            true
        }
        ValueType::Disable => value == "disable",
        ValueType::Mode => value.as_str().is_some_and(|name| name.parse::<PermissionMode>().is_ok()),
    };
    if fits { Ok(()) } else { Err(reject_value(value, shape)) }
}

fn reject_value(value: &mut Value, shape: ValueType) -> ValueErrors {
    let given = match (shape, value.take()) {
        (ValueType::Mode | ValueType::Disable, Value::String(word)) => format!("\"{word}\""),
        (_, value) => json_type_name(&value).to_owned(),
    };
    vec![(String::new(), format!("must be {}, but is {given}", describe_type(shape)))]
}

fn describe_type(shape: ValueType) -> String {
    match shape {
        ValueType::Text => "a text".into(),
        ValueType::Bool => "true or false".into(),
        ValueType::Number => "a number of at least 0".into(),
        ValueType::TextList => "a list of texts".into(),
        ValueType::Variables => "an object of texts".into(),
        ValueType::Object | ValueType::Hooks => "an object".into(),
        ValueType::ObjectOrSwitch => "an object, true or false".into(),
        ValueType::Disable => "\"disable\"".into(),
        ValueType::Mode => {
            let modes: Vec<&str> = PermissionMode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!("one of {}", modes.join(", "))
        }
    }
}

fn coerce_texts(value: &mut Value) -> Result<(), ValueErrors> {
    let Some(items) = value.as_array_mut() else { return Err(reject_value(value, ValueType::TextList)) };
    let wrong: ValueErrors = items
        .iter()
        .enumerate()
        .filter(|(_, item)| !item.is_string())
        .map(|(index, item)| {
            (format!("/{index}"), format!("must be a text, but is {}", json_type_name(item)))
        })
        .collect();
    items.retain(Value::is_string);
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn coerce_variables(value: &mut Value) -> Result<(), ValueErrors> {
    let Some(variables) = value.as_object_mut() else {
        return Err(reject_value(value, ValueType::Variables));
    };
    let mut wrong = Vec::new();
    variables.retain(|name, value| {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = value.to_string().into();
        }
        let cause = if !is_variable_name(name) {
            "is not a name that a variable can have".to_owned()
        } else if value.as_str().is_some_and(|text| !text.contains('\0')) {
            return true;
        } else {
            format!("must be a text, but is {}", json_type_name(value))
        };
        wrong.push((pointer_token(name), cause));
        false
    });
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn is_variable_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Type of a value for messages. The value itself may be secret.
fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Converts a JSON pointer to a dotted path.
pub fn dotted_key(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
