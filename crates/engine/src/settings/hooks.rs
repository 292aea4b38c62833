//! Hooks as settings write them: `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", ...}]}]}`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::HookEvent;

use super::read::pointer_token;
use crate::hooks::HttpHook;

/// One hook: when it runs, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct HookConfig {
    /// The event.
    pub event: HookEvent,
    /// Which of these events, as it is written; none means all.
    pub matcher: Option<String>,
    /// What is done.
    pub action: HookActionConfig,
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq)]
pub enum HookActionConfig {
    /// Runs a command.
    Command(CommandHookConfig),
    /// Tells a web address.
    Http(HttpHook),
    /// Something else that hooks can do: asks a model, an agent or an MCP server.
    Other {
        /// What: `prompt`, `agent` or `mcp_tool`.
        kind: String,
        /// How, as it is written.
        fields: Map<String, Value>,
    },
}

impl HookActionConfig {
    /// Whether nothing goes on without it.
    pub fn blocks_on_failure(&self) -> bool {
        match self {
            Self::Command(hook) => hook.on_failure == Some(OnFailure::Block),
            Self::Http(hook) => hook.on_failure == Some(OnFailure::Block),
            Self::Other { fields, .. } => fields.get("onFailure").is_some_and(|word| word == "block"),
        }
    }
}

/// A hook that runs a command.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandHookConfig {
    /// The command, for a shell; with `args`, the program.
    pub command: String,
    /// Arguments for the program. With them, no shell is involved.
    #[serde(default)]
    pub args: Option<Vec<String>>,
    /// The shell: `bash` or `powershell`.
    #[serde(default)]
    pub shell: Option<String>,
    /// A permission rule that the call must match.
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    /// How long it may take, in seconds.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Whether nobody waits for it.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    /// Whether nobody waits for it, but the model hears of exit code 2.
    #[serde(default, rename = "asyncRewake")]
    pub is_async_rewake: bool,
    /// What its failure means.
    #[serde(default)]
    pub on_failure: Option<OnFailure>,
    /// Whether it runs only once.
    #[serde(default)]
    pub once: bool,
    /// What to show while it runs.
    #[serde(default)]
    pub status_message: Option<String>,
}

/// Something about a hook that is wrong or unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What.
    pub cause: String,
    /// Whether a hook that should guard something may be lost by it.
    pub is_critical: bool,
}

/// Reads the value of `hooks`, and what is wrong with it. What is right is read all the same.
pub fn parse_hooks(value: &Value) -> (Vec<HookConfig>, Vec<ValidationError>) {
    let mut entries = Vec::new();
    let mut flaws = Vec::new();
    let Some(events) = value.as_object() else {
        return (entries, vec![critical_error("/hooks", "must be an object with a list for each event")]);
    };
    for (name, groups) in events {
        let pointer = format!("/hooks{}", pointer_token(name));
        let Ok(event) = name.parse::<HookEvent>() else {
            let cause = "is an event that this version does not know; its hooks never run".into();
            flaws.push(ValidationError { pointer, cause, is_critical: false });
            continue;
        };
        match groups.as_array() {
            Some(groups) => {
                for (index, group) in groups.iter().enumerate() {
                    parse_group(event, group, &format!("{pointer}/{index}"), &mut entries, &mut flaws);
                }
            }
            None => flaws.push(critical_error(&pointer, "must be a list")),
        }
    }
    (entries, flaws)
}

fn parse_group(
    event: HookEvent,
    group: &Value,
    pointer: &str,
    entries: &mut Vec<HookConfig>,
    flaws: &mut Vec<ValidationError>,
) {
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => None,
        Some(Value::String(matcher)) => Some(matcher.clone()),
        Some(_) => return flaws.push(critical_error(&format!("{pointer}/matcher"), "must be a text")),
    };
    let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
        return flaws.push(critical_error(pointer, "must be an object with a list \"hooks\""));
    };
    for (index, hook) in hooks.iter().enumerate() {
        let pointer = format!("{pointer}/hooks/{index}");
        flaws.extend(unknown_fields(hook, &pointer));
        match parse_action(hook) {
            Ok(handler) => entries.push(HookConfig { event, matcher: matcher.clone(), action: handler, pointer }),
            Err(cause) => flaws.push(critical_error(&pointer, &cause)),
        }
    }
}

fn parse_action(hook: &Value) -> Result<HookActionConfig, String> {
    let fields = hook.as_object().ok_or("must be an object")?;
    if let Some(word) = fields.get("onFailure").filter(|word| !word.is_null() && *word != "block") {
        return Err(format!("has onFailure {word}; the only choice is \"block\""));
    }
    let in_background =
        ["async", "asyncRewake"].iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)));
    if in_background && fields.get("onFailure").is_some_and(|word| word == "block") {
        return Err(
            "has \"async\" and onFailure \"block\"; nobody waits for it, so that it cannot block".into()
        );
    }
    match fields.get("type").and_then(Value::as_str) {
        Some(kind @ "command") => deserialize_hook(hook, kind).map(HookActionConfig::Command),
        Some(kind @ "http") => deserialize_hook(hook, kind).map(HookActionConfig::Http),
        Some(kind @ ("prompt" | "agent" | "mcp_tool")) => {
            Ok(HookActionConfig::Other { kind: kind.into(), fields: fields.clone() })
        }
        Some(kind) => {
            Err(format!("has the type \"{kind}\"; known are command, prompt, agent, http and mcp_tool"))
        }
        None => Err("must have a \"type\", for example \"command\"".into()),
    }
}

fn deserialize_hook<T: DeserializeOwned>(hook: &Value, kind: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(hook)
        .map_err(|error| format!("is not a hook of the type {kind}: {}: {}", error.path(), error.inner()))
}

/// What every hook may say.
const COMMON_FIELDS: &[&str] = &["type", "if", "timeout", "onFailure", "once", "statusMessage"];

/// Fields of a hook that nobody reads. A newer version may; a slip of the pen should be seen.
fn unknown_fields(hook: &Value, pointer: &str) -> Vec<ValidationError> {
    let own: &[&str] = match hook.get("type").and_then(Value::as_str) {
        Some("command") => &["command", "args", "shell", "async", "asyncRewake"],
        Some("http") => &["url", "headers", "allowedEnvVars"],
        // Nobody reads them, whatever they say.
        Some(_) | None => return Vec::new(),
    };
    let is_known = |name: &str| COMMON_FIELDS.contains(&name) || own.contains(&name);
    let names = hook.as_object().into_iter().flat_map(|fields| fields.keys());
    let unknown = names.filter(|name| !is_known(name));
    let cause = || "is a field that this version does not know; it says nothing".into();
    unknown
        .map(|name| ValidationError { pointer: format!("{pointer}{}", pointer_token(name)), cause: cause(), is_critical: false })
        .collect()
}

fn critical_error(pointer: &str, cause: &str) -> ValidationError {
    ValidationError { pointer: pointer.into(), cause: cause.into(), is_critical: true }
}

#[cfg(test)]
mod tests;
