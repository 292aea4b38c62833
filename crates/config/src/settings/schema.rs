//! Table of the known keys and their types. Unknown keys are kept unchanged.
//!
//! A value of the wrong type is dropped. If a restriction could be lost by that (deny rules, hooks, sandbox), the start
//! fails; otherwise there is a warning.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use crate::settings::document::pointer_token;
use crate::settings::hooks::{self, HookConfig, ValidationError};

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
    /// A number of a TCP port.
    Port,
    /// A list of paths: texts, or objects with `path` and `literal`.
    PathList,
    /// A list of objects with this key, and `mode`: `deny` or `mask`.
    Credentials(&'static str),
    /// An object of lists of texts.
    TextLists,
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
    (&["sandbox", "excludedCommands"], ValueType::TextList, Critical),
    (&["sandbox", "network"], ValueType::Object, Critical),
    (&["sandbox", "network", "allowedDomains"], ValueType::TextList, Critical),
    (&["sandbox", "network", "deniedDomains"], ValueType::TextList, Critical),
    (&["sandbox", "network", "strictAllowlist"], ValueType::Bool, Critical),
    (&["sandbox", "network", "allowManagedDomainsOnly"], ValueType::Bool, Critical),
    (&["sandbox", "network", "allowUnixSockets"], ValueType::PathList, Critical),
    (&["sandbox", "network", "allowAllUnixSockets"], ValueType::Bool, Critical),
    (&["sandbox", "network", "allowLocalBinding"], ValueType::Bool, Critical),
    (&["sandbox", "network", "httpProxyPort"], ValueType::Port, Critical),
    (&["sandbox", "network", "socksProxyPort"], ValueType::Port, Critical),
    (&["sandbox", "network", "allowMachLookup"], ValueType::TextList, Preference),
    (&["sandbox", "filesystem"], ValueType::Object, Critical),
    (&["sandbox", "filesystem", "allowWrite"], ValueType::PathList, Critical),
    (&["sandbox", "filesystem", "denyWrite"], ValueType::PathList, Critical),
    (&["sandbox", "filesystem", "allowRead"], ValueType::PathList, Critical),
    (&["sandbox", "filesystem", "denyRead"], ValueType::PathList, Critical),
    (&["sandbox", "filesystem", "allowManagedReadPathsOnly"], ValueType::Bool, Critical),
    (&["sandbox", "filesystem", "disabled"], ValueType::Bool, Critical),
    (&["sandbox", "credentials"], ValueType::Object, Critical),
    (&["sandbox", "credentials", "files"], ValueType::Credentials("path"), Critical),
    (&["sandbox", "credentials", "envVars"], ValueType::Credentials("name"), Critical),
    (&["sandbox", "ignoreViolations"], ValueType::TextLists, Critical),
    (&["sandbox", "enableWeakerNestedSandbox"], ValueType::Bool, Critical),
    (&["sandbox", "allowNestedUserNamespaces"], ValueType::Bool, Critical),
    (&["sandbox", "enableWeakerNetworkIsolation"], ValueType::Bool, Preference),
    (&["sandbox", "allowAppleEvents"], ValueType::Bool, Preference),
    (&["sandbox", "allowPty"], ValueType::Bool, Preference),
    (&["sandbox", "bwrapPath"], ValueType::Text, Critical),
    (&["sandbox", "socatPath"], ValueType::Text, Preference),
    (&["sandbox", "confine"], ValueType::TextList, Critical),
    (&["env"], ValueType::Variables, Preference),
    (&["passEnv"], ValueType::TextList, Preference),
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
    (&["enabledPlugins"], ValueType::Object, Preference),
    (&["extraKnownMarketplaces"], ValueType::Object, Preference),
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
pub(crate) struct RuleText {
    pub behavior: PermissionBehavior,
    pub text: String,
    /// JSON pointer to the rule.
    pub pointer: String,
}

/// Validated settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CheckedValues {
    /// The valid values.
    pub values: Map<String, Value>,
    pub rules: Vec<RuleText>,
    pub hooks: Vec<HookConfig>,
    pub errors: Vec<ValidationError>,
}

/// Whether a key of the object at this path is known.
pub(super) fn is_known_key(parent: &[&str], key: &str) -> bool {
    KEYS.iter()
        .any(|(path, ..)| path.split_last().is_some_and(|(last, parents)| parents == parent && *last == key))
}

/// Keys of the object at this path that may restrict something; under `permissions` and `sandbox` all known keys.
pub(super) fn critical_keys(parent: &[&str]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |(path, _, severity)| {
        let (key, parents) = path.split_last()?;
        (parents == parent && (*severity == Critical || !parent.is_empty())).then_some(*key)
    })
}

/// Validates the values of one layer. Null counts as absent, except for restrictive keys, where it is an error.
pub(crate) fn check_values(mut values: Map<String, Value>) -> CheckedValues {
    let rules = collect_rules(&values);
    let mut errors = Vec::new();
    let mut entries = Vec::new();
    for (path, value_type, severity) in KEYS {
        let Some((object, key)) = parent_object(&mut values, path) else { continue };
        let Some(value) = object.get_mut(key) else { continue };
        let pointer: String = path.iter().map(|key| pointer_token(key)).collect();
        if value.is_null() && *severity == Critical {
            let cause = format!("must be {}, but is null", describe_type(*value_type));
            errors.push(ValidationError { pointer, cause, is_critical: true });
        } else if *value_type == ValueType::Hooks && !value.is_null() {
            let (parsed, hook_errors) = hooks::parse_hooks(value);
            entries.extend(parsed);
            errors.extend(hook_errors);
        } else if let Err(value_errors) = coerce(value, *value_type) {
            errors.extend(value_errors.into_iter().map(|(at, cause)| ValidationError {
                pointer: format!("{pointer}{at}"),
                cause,
                is_critical: *severity == Critical,
            }));
        }
        if value.is_null() {
            object.remove(key);
        }
    }
    CheckedValues { values, rules, hooks: entries, errors }
}

fn collect_rules(values: &Map<String, Value>) -> Vec<RuleText> {
    let mut rules = Vec::new();
    for behavior in [PermissionBehavior::Deny, PermissionBehavior::Ask, PermissionBehavior::Allow] {
        let list = values.get("permissions").and_then(|permissions| permissions.get(behavior.as_str()));
        for (index, rule) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if let Value::String(text) = rule {
                let pointer = format!("/permissions/{behavior}/{index}");
                rules.push(RuleText { behavior, text: text.clone(), pointer });
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
    let (key, dirs) = path.split_last()?;
    let mut object = values;
    for dir in dirs {
        object = object.get_mut(*dir)?.as_object_mut()?;
    }
    Some((object, key))
}

/// Pointer below the key, and the cause.
type ValueErrors = Vec<(String, String)>;

/// Fits a value to its type: invalid parts are removed and reported. A wholly invalid value becomes null.
fn coerce(value: &mut Value, value_type: ValueType) -> Result<(), ValueErrors> {
    let fits = match value_type {
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
        ValueType::Port => value.as_u64().is_some_and(|port| (1..=65_535).contains(&port)),
        ValueType::PathList => is_list_of(value, |item| {
            let is_named = item.get("path").is_some_and(Value::is_string)
                && item.get("literal").is_none_or(Value::is_boolean);
            item.is_string() || is_named
        }),
        ValueType::Credentials(key) => is_list_of(value, |item| {
            item.get(key).is_some_and(Value::is_string)
                && item.get("mode").is_none_or(|mode| mode == "deny" || mode == "mask")
        }),
        ValueType::TextLists => value
            .as_object()
            .is_some_and(|lists| lists.values().all(|list| is_list_of(list, Value::is_string))),
    };
    if fits { Ok(()) } else { Err(reject_value(value, value_type)) }
}

fn is_list_of(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

fn reject_value(value: &mut Value, value_type: ValueType) -> ValueErrors {
    let type_name = match (value_type, value.take()) {
        (ValueType::Mode | ValueType::Disable, Value::String(word)) => format!("\"{word}\""),
        (_, value) => json_type_name(&value).to_owned(),
    };
    vec![(String::new(), format!("must be {}, but is {type_name}", describe_type(value_type)))]
}

fn describe_type(value_type: ValueType) -> String {
    match value_type {
        ValueType::Text => "a string".into(),
        ValueType::Bool => "true or false".into(),
        ValueType::Number => "a number of at least 0".into(),
        ValueType::TextList => "a list of strings".into(),
        ValueType::Variables => "an object of strings".into(),
        ValueType::Object | ValueType::Hooks => "an object".into(),
        ValueType::ObjectOrSwitch => "an object, true or false".into(),
        ValueType::Disable => "\"disable\"".into(),
        ValueType::Port => "a port number".into(),
        ValueType::PathList => "a list of paths".into(),
        ValueType::Credentials(key) => format!("a list of objects with \"{key}\" and \"mode\": \"deny\""),
        ValueType::TextLists => "an object of lists of strings".into(),
        ValueType::Mode => {
            let modes: Vec<&str> = PermissionMode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!("one of {}", modes.join(", "))
        }
    }
}

fn coerce_texts(value: &mut Value) -> Result<(), ValueErrors> {
    let Some(items) = value.as_array_mut() else { return Err(reject_value(value, ValueType::TextList)) };
    let errors: ValueErrors = items
        .iter()
        .enumerate()
        .filter(|(_, item)| !item.is_string())
        .map(|(index, item)| {
            (format!("/{index}"), format!("must be a string, but is {}", json_type_name(item)))
        })
        .collect();
    items.retain(Value::is_string);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn coerce_variables(value: &mut Value) -> Result<(), ValueErrors> {
    let Some(variables) = value.as_object_mut() else {
        return Err(reject_value(value, ValueType::Variables));
    };
    let mut errors = Vec::new();
    variables.retain(|name, value| {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = value.to_string().into();
        }
        let cause = if !is_variable_name(name) {
            "is not a valid variable name".to_owned()
        } else if value.as_str().is_some_and(|text| !text.contains('\0')) {
            return true;
        } else {
            format!("must be a string, but is {}", json_type_name(value))
        };
        errors.push((pointer_token(name), cause));
        false
    });
    if errors.is_empty() { Ok(()) } else { Err(errors) }
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
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Converts a JSON pointer to a dotted path.
pub(crate) fn dotted_key(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
}

/// Typed values of the keys that the engine uses, merged over all layers. Rules, mode, directories, variables and hooks
/// are elsewhere, because their source matters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypedSettings {
    pub model: Option<String>,
    /// Models to use when the first is not available, in order.
    pub fallback_model: Vec<String>,
    pub effort_level: Option<String>,
    pub always_thinking_enabled: Option<bool>,
    /// Name of the agent definition of the main session.
    pub agent: Option<String>,
    pub output_style: Option<String>,
    /// Language of replies.
    pub language: Option<String>,
    /// Command that prints the API key.
    pub api_key_helper: Option<String>,
    /// Key variables that commands, hooks and MCP servers get.
    pub pass_env: Vec<String>,
    /// Command of the status line.
    pub status_line: Option<Map<String, Value>>,
    /// Command that suggests files.
    pub file_suggestion: Option<Map<String, Value>>,
    pub sandbox: Map<String, Value>,
    /// Approves all MCP servers of the project.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Approved MCP servers of the project.
    pub enabled_mcpjson_servers: Vec<String>,
    /// Rejected MCP servers of the project.
    pub disabled_mcpjson_servers: Vec<String>,
    /// Commits name the agent as co-author.
    pub include_co_authored_by: Option<bool>,
    /// The system prompt contains instructions for git.
    pub include_git_instructions: Option<bool>,
    /// File lists omit files ignored by git.
    pub respect_gitignore: Option<bool>,
    /// Days until transcripts are deleted.
    pub cleanup_period_days: Option<f64>,
    /// Automatic compaction.
    pub auto_compact_enabled: Option<bool>,
    /// File checkpoints.
    pub file_checkpointing_enabled: Option<bool>,
    /// Instruction files to skip.
    pub claude_md_excludes: Vec<String>,
}

#[cfg(test)]
mod tests;
