//! Hooks as settings write them: `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", ...}]}]}`.

use serde::Deserialize;
use serde_json::{Map, Value};
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::HookEvent;

use super::read::step;

/// One hook: when it runs, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEntry {
    /// The event.
    pub event: HookEvent,
    /// Which of these events, as it is written; none means all.
    pub matcher: Option<String>,
    /// What is done.
    pub handler: Handler,
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq)]
pub enum Handler {
    /// Runs a command.
    Command(CommandHook),
    /// Something else that hooks can do: asks a model, an agent, a web address or an MCP server.
    Other {
        /// What: `prompt`, `agent`, `http` or `mcp_tool`.
        kind: String,
        /// How, as it is written.
        fields: Map<String, Value>,
    },
}

/// A hook that runs a command.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandHook {
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
    pub in_background: bool,
    /// Whether nobody waits for it, but the model hears of exit code 2.
    #[serde(default, rename = "asyncRewake")]
    pub wakes_the_model: bool,
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
pub struct Flaw {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What.
    pub cause: String,
    /// Whether a hook that should guard something may be lost by it.
    pub grave: bool,
}

/// Reads the value of `hooks`, and what is wrong with it. What is right is read all the same.
pub fn read(value: &Value) -> (Vec<HookEntry>, Vec<Flaw>) {
    let mut entries = Vec::new();
    let mut flaws = Vec::new();
    let Some(events) = value.as_object() else {
        return (entries, vec![grave("/hooks", "must be an object with a list for each event")]);
    };
    for (name, groups) in events {
        let pointer = format!("/hooks{}", step(name));
        let Ok(event) = name.parse::<HookEvent>() else {
            let cause = "is an event that this version does not know; its hooks never run".into();
            flaws.push(Flaw { pointer, cause, grave: false });
            continue;
        };
        match groups.as_array() {
            Some(groups) => {
                for (index, group) in groups.iter().enumerate() {
                    group_of(event, group, &format!("{pointer}/{index}"), &mut entries, &mut flaws);
                }
            }
            None => flaws.push(grave(&pointer, "must be a list")),
        }
    }
    (entries, flaws)
}

fn group_of(
    event: HookEvent,
    group: &Value,
    pointer: &str,
    entries: &mut Vec<HookEntry>,
    flaws: &mut Vec<Flaw>,
) {
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => None,
        Some(Value::String(matcher)) => Some(matcher.clone()),
        Some(_) => return flaws.push(grave(&format!("{pointer}/matcher"), "must be a text")),
    };
    let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
        return flaws.push(grave(pointer, "must be an object with a list \"hooks\""));
    };
    for (index, hook) in hooks.iter().enumerate() {
        let pointer = format!("{pointer}/hooks/{index}");
        match handler(hook) {
            Ok(handler) => entries.push(HookEntry { event, matcher: matcher.clone(), handler, pointer }),
            Err(cause) => flaws.push(grave(&pointer, &cause)),
        }
    }
}

fn handler(hook: &Value) -> Result<Handler, String> {
    let fields = hook.as_object().ok_or("must be an object")?;
    match fields.get("type").and_then(Value::as_str) {
        Some("command") => serde_path_to_error::deserialize(hook)
            .map(Handler::Command)
            .map_err(|error| format!("is not a command hook: {}: {}", error.path(), error.inner())),
        Some(kind @ ("prompt" | "agent" | "http" | "mcp_tool")) => {
            Ok(Handler::Other { kind: kind.into(), fields: fields.clone() })
        }
        Some(kind) => {
            Err(format!("has the type \"{kind}\"; known are command, prompt, agent, http and mcp_tool"))
        }
        None => Err("must have a \"type\", for example \"command\"".into()),
    }
}

fn grave(pointer: &str, cause: &str) -> Flaw {
    Flaw { pointer: pointer.into(), cause: cause.into(), grave: true }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_read_in_the_order_in_which_they_stand() {
        let (entries, flaws) = read(&json!({
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [
                    {"type": "command", "command": "check", "timeout": 5, "onFailure": "block", "new": 1},
                    {"type": "http", "url": "https://example.invalid"},
                ]},
                {"hooks": [{"type": "command", "command": "log", "async": true, "args": ["-a"]}]},
            ],
        }));
        let entry = |matcher: Option<&str>, handler, pointer: &str| HookEntry {
            event: HookEvent::PreToolUse,
            matcher: matcher.map(String::from),
            handler,
            pointer: pointer.into(),
        };
        let check = CommandHook {
            command: "check".into(),
            timeout: Some(5.0),
            on_failure: Some(OnFailure::Block),
            ..CommandHook::default()
        };
        let log = CommandHook {
            command: "log".into(),
            in_background: true,
            args: Some(vec!["-a".into()]),
            ..CommandHook::default()
        };
        let http = json!({"type": "http", "url": "https://example.invalid"}).as_object().unwrap().clone();
        assert_eq!(flaws, []);
        assert_eq!(
            entries,
            [
                entry(Some("Bash"), Handler::Command(check), "/hooks/PreToolUse/0/hooks/0"),
                entry(
                    Some("Bash"),
                    Handler::Other { kind: "http".into(), fields: http },
                    "/hooks/PreToolUse/0/hooks/1"
                ),
                entry(None, Handler::Command(log), "/hooks/PreToolUse/1/hooks/0"),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_and_what_is_right_still_counts() {
        let right = json!({"type": "command", "command": "x"});
        let rows = [
            ("no object", json!([]), "/hooks", true, 0),
            ("an unknown event", json!({"Later": [{"hooks": [right]}]}), "/hooks/Later", false, 0),
            ("no list", json!({"Stop": {}}), "/hooks/Stop", true, 0),
            ("no hooks", json!({"Stop": [{"matcher": "x"}]}), "/hooks/Stop/0", true, 0),
            (
                "a matcher that is a list",
                json!({"Stop": [{"matcher": [], "hooks": []}]}),
                "/hooks/Stop/0/matcher",
                true,
                0,
            ),
            (
                "no type",
                json!({"Stop": [{"hooks": [{"command": "x"}, right]}]}),
                "/hooks/Stop/0/hooks/0",
                true,
                1,
            ),
            (
                "no command",
                json!({"Stop": [{"hooks": [right, {"type": "command"}]}]}),
                "/hooks/Stop/0/hooks/1",
                true,
                1,
            ),
            (
                "an unknown type",
                json!({"Stop": [{"hooks": [{"type": "magic"}]}]}),
                "/hooks/Stop/0/hooks/0",
                true,
                0,
            ),
        ];
        for (name, value, pointer, grave, count) in rows {
            let (entries, flaws) = read(&value);
            let told: Vec<(&str, bool)> =
                flaws.iter().map(|flaw| (flaw.pointer.as_str(), flaw.grave)).collect();
            assert_eq!((told, entries.len()), (vec![(pointer, grave)], count), "{name}");
        }
    }
}
