//! Parses hooks of settings: `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", ...}]}]}`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::HookEvent;

use crate::settings::document::pointer_token;

/// One hook of a settings file.
#[derive(Debug, Clone, PartialEq)]
pub struct HookConfig {
    pub event: HookEvent,
    /// Matcher text; `None` matches everything.
    pub matcher: Option<String>,
    pub action: HookActionConfig,
    /// JSON pointer to the hook.
    pub pointer: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookActionConfig {
    /// Runs a command.
    Command(CommandHookConfig),
    /// Sends the event to a URL.
    Http(HttpHookConfig),
    /// An action that this version does not support.
    Other {
        /// `prompt`, `agent` or `mcp_tool`.
        kind: String,
        /// Fields as written.
        fields: Map<String, Value>,
    },
}

impl HookActionConfig {
    /// Whether `onFailure` is `block`: a failure of the hook blocks what it is asked about.
    pub fn blocks_on_failure(&self) -> bool {
        match self {
            Self::Command(hook) => hook.on_failure == Some(OnFailure::Block),
            Self::Http(hook) => hook.on_failure == Some(OnFailure::Block),
            Self::Other { fields, .. } => fields.get("onFailure").is_some_and(|word| word == "block"),
        }
    }
}

/// HTTP hook as configured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHookConfig {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Variables that headers may use.
    #[serde(default)]
    pub allowed_env_vars: Vec<String>,
    /// Timeout in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Effect of a failure; by default the event goes on.
    #[serde(default)]
    pub on_failure: Option<OnFailure>,
    /// Permission rule that the call must match.
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    /// Runs only once in a session.
    #[serde(default)]
    pub once: bool,
}

/// A command hook.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandHookConfig {
    /// Shell command; with `args`, the program.
    pub command: String,
    /// Arguments of the program, which is then run without a shell.
    #[serde(default)]
    pub args: Option<Vec<String>>,
    /// `bash` or `powershell`.
    #[serde(default)]
    pub shell: Option<String>,
    /// Permission rule that the tool call must match.
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    /// Timeout in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// The engine does not wait for the hook.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    /// The engine does not wait for the hook, but the model is notified of exit code 2.
    #[serde(default, rename = "asyncRewake")]
    pub is_async_rewake: bool,
    #[serde(default)]
    pub on_failure: Option<OnFailure>,
    /// The hook runs only once.
    #[serde(default)]
    pub once: bool,
    /// Text to show while the hook runs.
    #[serde(default)]
    pub status_message: Option<String>,
}

/// An invalid or unknown part of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// JSON pointer to it.
    pub pointer: String,
    pub cause: String,
    /// A restriction, such as a blocking hook or a deny rule, may be lost by it.
    pub is_critical: bool,
}

/// Parses the value of `hooks`. Returns the valid hooks and the errors.
pub fn parse_hooks(value: &Value) -> (Vec<HookConfig>, Vec<ValidationError>) {
    let mut entries = Vec::new();
    let mut errors = Vec::new();
    let Some(events) = value.as_object() else {
        return (entries, vec![critical_error("/hooks", "must be an object with a list for each event")]);
    };
    for (name, groups) in events {
        let pointer = format!("/hooks{}", pointer_token(name));
        let Ok(event) = name.parse::<HookEvent>() else {
            let cause = "is not a known event; its hooks never run".into();
            errors.push(ValidationError { pointer, cause, is_critical: false });
            continue;
        };
        match groups.as_array() {
            Some(groups) => {
                for (index, group) in groups.iter().enumerate() {
                    parse_group(event, group, &format!("{pointer}/{index}"), &mut entries, &mut errors);
                }
            }
            None => errors.push(critical_error(&pointer, "must be a list")),
        }
    }
    (entries, errors)
}

fn parse_group(
    event: HookEvent,
    group: &Value,
    pointer: &str,
    entries: &mut Vec<HookConfig>,
    errors: &mut Vec<ValidationError>,
) {
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => None,
        Some(Value::String(matcher)) => Some(matcher.clone()),
        Some(_) => return errors.push(critical_error(&format!("{pointer}/matcher"), "must be a string")),
    };
    let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
        return errors.push(critical_error(pointer, "must be an object with a list \"hooks\""));
    };
    for (index, hook) in hooks.iter().enumerate() {
        let pointer = format!("{pointer}/hooks/{index}");
        errors.extend(unknown_fields(hook, &pointer));
        match parse_action(hook) {
            Ok(action) => {
                entries.push(HookConfig { event, matcher: matcher.clone(), action, pointer });
            }
            Err(cause) => errors.push(critical_error(&pointer, &cause)),
        }
    }
}

fn parse_action(hook: &Value) -> Result<HookActionConfig, String> {
    let fields = hook.as_object().ok_or("must be an object")?;
    if let Some(word) = fields.get("onFailure").filter(|word| !word.is_null() && *word != "block") {
        return Err(format!("has onFailure {word}; the only valid value is \"block\""));
    }
    let in_background =
        ["async", "asyncRewake"].iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)));
    if in_background && fields.get("onFailure").is_some_and(|word| word == "block") {
        return Err(
            "has \"async\" and onFailure \"block\"; an async hook is not awaited, so it cannot block".into(),
        );
    }
    match fields.get("type").and_then(Value::as_str) {
        Some(kind @ "command") => deserialize_hook(hook, kind).map(HookActionConfig::Command),
        Some(kind @ "http") => deserialize_hook(hook, kind).map(HookActionConfig::Http),
        Some(kind @ ("prompt" | "agent" | "mcp_tool")) => {
            Ok(HookActionConfig::Other { kind: kind.into(), fields: fields.clone() })
        }
        Some(kind) => Err(format!(
            "has the unknown type \"{kind}\"; valid are command, prompt, agent, http and mcp_tool"
        )),
        None => Err("must have a \"type\", for example \"command\"".into()),
    }
}

fn deserialize_hook<T: DeserializeOwned>(hook: &Value, kind: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(hook)
        .map_err(|error| format!("is not a hook of the type {kind}: {}: {}", error.path(), error.inner()))
}

/// Fields of all hook types.
const COMMON_FIELDS: &[&str] = &["type", "if", "timeout", "onFailure", "once", "statusMessage"];

/// Reports unknown fields of a hook: a typo, or a field of a newer version.
fn unknown_fields(hook: &Value, pointer: &str) -> Vec<ValidationError> {
    let own: &[&str] = match hook.get("type").and_then(Value::as_str) {
        Some("command") => &["command", "args", "shell", "async", "asyncRewake"],
        Some("http") => &["url", "headers", "allowedEnvVars"],
        // Fields of unsupported types are not checked.
        Some(_) | None => return Vec::new(),
    };
    let is_known = |name: &str| COMMON_FIELDS.contains(&name) || own.contains(&name);
    let names = hook.as_object().into_iter().flat_map(|fields| fields.keys());
    let unknown = names.filter(|name| !is_known(name));
    let cause = || "is not a known field; it is ignored".into();
    unknown
        .map(|name| ValidationError {
            pointer: format!("{pointer}{}", pointer_token(name)),
            cause: cause(),
            is_critical: false,
        })
        .collect()
}

fn critical_error(pointer: &str, cause: &str) -> ValidationError {
    ValidationError { pointer: pointer.into(), cause: cause.into(), is_critical: true }
}

#[cfg(test)]
mod tests;
