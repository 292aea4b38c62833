//! The keys that are known, and what they may hold. One row per key; keys that are not listed are kept as they are.
//!
//! A value of the wrong shape never counts. Whether that is worth a warning or stops the start depends on what could get
//! lost: a list of rules that forbid, a hook or the sandbox may guard something, a preferred model does not.

use serde::Deserialize;
use serde_json::{Map, Value};
use whimbrel_wire::permission::{PermissionBehavior, PermissionMode};

use super::hooks::{self, Flaw, HookEntry};
use super::read::step;

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Switch,
    /// A number of at least zero.
    Number,
    Texts,
    /// A map of texts; numbers and switches are taken as texts.
    Variables,
    Object,
    /// An object, or a switch.
    ObjectOrSwitch,
    Mode,
    /// The word `disable`. `true` is taken for it, as it can only mean the same.
    Disable,
    Hooks,
}

/// What is lost with a value that does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Perhaps a guard: the start stops.
    Guard,
    /// A wish: there is a warning.
    Wish,
}

use Loss::{Guard, Wish};

/// The known keys. What contains others comes before them.
const KEYS: &[(&[&str], Shape, Loss)] = &[
    (&["$schema"], Shape::Text, Wish),
    (&["permissions"], Shape::Object, Guard),
    (&["permissions", "allow"], Shape::Texts, Wish),
    (&["permissions", "ask"], Shape::Texts, Guard),
    (&["permissions", "deny"], Shape::Texts, Guard),
    (&["permissions", "additionalDirectories"], Shape::Texts, Wish),
    (&["permissions", "defaultMode"], Shape::Mode, Wish),
    (&["permissions", "disableBypassPermissionsMode"], Shape::Disable, Guard),
    (&["permissions", "disableAutoMode"], Shape::Disable, Guard),
    (&["permissions", "allowManagedPermissionRulesOnly"], Shape::Switch, Guard),
    (&["allowManagedPermissionRulesOnly"], Shape::Switch, Guard),
    (&["allowManagedHooksOnly"], Shape::Switch, Guard),
    (&["hooks"], Shape::Hooks, Guard),
    (&["disableAllHooks"], Shape::Switch, Wish),
    (&["sandbox"], Shape::Object, Guard),
    (&["sandbox", "enabled"], Shape::Switch, Guard),
    (&["sandbox", "failIfUnavailable"], Shape::Switch, Guard),
    (&["sandbox", "allowUnsandboxedCommands"], Shape::Switch, Guard),
    (&["sandbox", "autoAllowBashIfSandboxed"], Shape::Switch, Guard),
    (&["sandbox", "excludedCommands"], Shape::Texts, Wish),
    (&["sandbox", "network"], Shape::Object, Guard),
    (&["sandbox", "network", "allowedDomains"], Shape::Texts, Wish),
    (&["sandbox", "network", "deniedDomains"], Shape::Texts, Guard),
    (&["sandbox", "filesystem"], Shape::Object, Guard),
    (&["sandbox", "filesystem", "allowWrite"], Shape::Texts, Wish),
    (&["sandbox", "filesystem", "denyWrite"], Shape::Texts, Guard),
    (&["sandbox", "filesystem", "allowRead"], Shape::Texts, Wish),
    (&["sandbox", "filesystem", "denyRead"], Shape::Texts, Guard),
    (&["env"], Shape::Variables, Wish),
    (&["model"], Shape::Text, Wish),
    (&["fallbackModel"], Shape::Texts, Wish),
    (&["effortLevel"], Shape::Text, Wish),
    (&["alwaysThinkingEnabled"], Shape::Switch, Wish),
    (&["agent"], Shape::Text, Wish),
    (&["outputStyle"], Shape::Text, Wish),
    (&["language"], Shape::Text, Wish),
    (&["apiKeyHelper"], Shape::Text, Wish),
    (&["statusLine"], Shape::Object, Wish),
    (&["fileSuggestion"], Shape::Object, Wish),
    (&["enableAllProjectMcpServers"], Shape::Switch, Wish),
    (&["enabledMcpjsonServers"], Shape::Texts, Wish),
    (&["disabledMcpjsonServers"], Shape::Texts, Guard),
    (&["includeCoAuthoredBy"], Shape::Switch, Wish),
    (&["attribution"], Shape::ObjectOrSwitch, Wish),
    (&["includeGitInstructions"], Shape::Switch, Wish),
    (&["respectGitignore"], Shape::Switch, Wish),
    (&["cleanupPeriodDays"], Shape::Number, Wish),
    (&["autoCompactEnabled"], Shape::Switch, Wish),
    (&["fileCheckpointingEnabled"], Shape::Switch, Wish),
    (&["skipWebFetchPreflight"], Shape::Switch, Wish),
    (&["claudeMdExcludes"], Shape::Texts, Wish),
];

/// The known keys that the engine acts on, in types.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Known {
    /// The model to use.
    pub model: Option<String>,
    /// The models to use when it is not to be had, in this order.
    pub fallback_model: Vec<String>,
    /// How hard the model tries.
    pub effort_level: Option<String>,
    /// Whether the model thinks before it answers.
    pub always_thinking_enabled: Option<bool>,
    /// The kind of agent that the session itself is.
    pub agent: Option<String>,
    /// How answers are styled.
    pub output_style: Option<String>,
    /// The language of answers.
    pub language: Option<String>,
    /// A command that prints the key for the model's provider.
    pub api_key_helper: Option<String>,
    /// The command of the status line.
    pub status_line: Option<Map<String, Value>>,
    /// A command that suggests files.
    pub file_suggestion: Option<Map<String, Value>>,
    /// The sandbox.
    pub sandbox: Map<String, Value>,
    /// Whether all MCP servers of the project are approved.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// The project's MCP servers that are approved.
    pub enabled_mcpjson_servers: Vec<String>,
    /// The project's MCP servers that are refused.
    pub disabled_mcpjson_servers: Vec<String>,
    /// Whether commits name the agent as an author.
    pub include_co_authored_by: Option<bool>,
    /// Whether the prompt says how to use git.
    pub include_git_instructions: Option<bool>,
    /// Whether ignored files are left out where files are listed.
    pub respect_gitignore: Option<bool>,
    /// How many days transcripts are kept.
    pub cleanup_period_days: Option<f64>,
    /// Whether the engine makes room in the context by itself.
    pub auto_compact_enabled: Option<bool>,
    /// Whether files can be put back to where they were at a prompt.
    pub file_checkpointing_enabled: Option<bool>,
    /// Instruction files that are not read.
    pub claude_md_excludes: Vec<String>,
}

/// A rule as it is written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    /// What it says.
    pub behavior: PermissionBehavior,
    /// Its text.
    pub text: String,
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
}

/// Settings whose known keys hold what they may hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// The values that count.
    pub values: Map<String, Value>,
    /// The permission rules.
    pub rules: Vec<WrittenRule>,
    /// The hooks.
    pub hooks: Vec<HookEntry>,
    /// What did not count, and why.
    pub flaws: Vec<Flaw>,
}

/// Checks the values of one layer. A null counts as nothing.
pub fn check(mut values: Map<String, Value>) -> Checked {
    let rules = rules(&values);
    let mut flaws = Vec::new();
    let mut entries = Vec::new();
    for (path, shape, loss) in KEYS {
        let Some((holder, key)) = holder_of(&mut values, path) else { continue };
        let Some(value) = holder.get_mut(key) else { continue };
        if *shape == Shape::Hooks && !value.is_null() {
            let (read, wrong) = hooks::read(value);
            entries.extend(read);
            flaws.extend(wrong);
        } else if let Err(wrong) = fit(value, *shape) {
            let pointer: String = path.iter().map(|key| step(key)).collect();
            flaws.extend(wrong.into_iter().map(|(at, cause)| Flaw {
                pointer: format!("{pointer}{at}"),
                cause,
                grave: *loss == Guard,
            }));
        }
        if value.is_null() {
            holder.remove(key);
        }
    }
    Checked { values, rules, hooks: entries, flaws }
}

fn rules(values: &Map<String, Value>) -> Vec<WrittenRule> {
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

/// The object that holds the last key of a path, and that key.
fn holder_of<'a, 'k>(
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

/// Where below the key, and what is wrong there.
type Wrong = Vec<(String, String)>;

/// Makes a value fit its shape: what does not fit is taken out, and told. A value that is all wrong becomes null.
fn fit(value: &mut Value, shape: Shape) -> Result<(), Wrong> {
    let fits = match shape {
        _ if value.is_null() => true,
        Shape::Texts => return fit_texts(value),
        Shape::Variables => return fit_variables(value),
        Shape::Text => value.is_string(),
        Shape::Switch => value.is_boolean(),
        Shape::Number => value.as_f64().is_some_and(|number| number >= 0.0),
        Shape::Object | Shape::Hooks => value.is_object(),
        Shape::ObjectOrSwitch => value.is_object() || value.is_boolean(),
        Shape::Disable if *value == Value::Bool(true) => {
            *value = "disable".into();
            true
        }
        Shape::Disable => value == "disable",
        Shape::Mode => value.as_str().is_some_and(|name| name.parse::<PermissionMode>().is_ok()),
    };
    if fits { Ok(()) } else { Err(all_wrong(value, shape)) }
}

fn all_wrong(value: &mut Value, shape: Shape) -> Wrong {
    let given = match (shape, value.take()) {
        (Shape::Mode | Shape::Disable, Value::String(word)) => format!("\"{word}\""),
        (_, value) => brief(&value).to_owned(),
    };
    vec![(String::new(), format!("must be {}, but is {given}", expected(shape)))]
}

fn expected(shape: Shape) -> String {
    match shape {
        Shape::Text => "a text".into(),
        Shape::Switch => "true or false".into(),
        Shape::Number => "a number of at least 0".into(),
        Shape::Texts => "a list of texts".into(),
        Shape::Variables => "an object of texts".into(),
        Shape::Object | Shape::Hooks => "an object".into(),
        Shape::ObjectOrSwitch => "an object, true or false".into(),
        Shape::Disable => "\"disable\"".into(),
        Shape::Mode => {
            let modes: Vec<&str> = PermissionMode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!("one of {}", modes.join(", "))
        }
    }
}

fn fit_texts(value: &mut Value) -> Result<(), Wrong> {
    let Some(items) = value.as_array_mut() else { return Err(all_wrong(value, Shape::Texts)) };
    let wrong: Wrong = items
        .iter()
        .enumerate()
        .filter(|(_, item)| !item.is_string())
        .map(|(index, item)| (format!("/{index}"), format!("must be a text, but is {}", brief(item))))
        .collect();
    items.retain(Value::is_string);
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn fit_variables(value: &mut Value) -> Result<(), Wrong> {
    let Some(variables) = value.as_object_mut() else {
        return Err(all_wrong(value, Shape::Variables));
    };
    let mut wrong = Vec::new();
    variables.retain(|name, value| {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = value.to_string().into();
        }
        let cause = if !is_name(name) {
            "is not a name that a variable can have".to_owned()
        } else if value.as_str().is_some_and(|text| !text.contains('\0')) {
            return true;
        } else {
            format!("must be a text, but is {}", brief(value))
        };
        wrong.push((step(name), cause));
        false
    });
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// What a value is, for a sentence. What it holds is left out: it may be a secret.
fn brief(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A JSON pointer as people write keys: with dots.
pub fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(value: Value) -> Checked {
        match value {
            Value::Object(values) => check(values),
            other => panic!("{other} is not an object"),
        }
    }

    #[test]
    fn what_is_right_or_unknown_stays_as_it_is() {
        let value = json!({
            "permissions": {
                "allow": ["A"], "ask": [], "deny": ["D"], "additionalDirectories": ["/x"],
                "defaultMode": "manual", "disableBypassPermissionsMode": "disable", "later": {"x": 1},
            },
            "env": {"A": "1"}, "model": "m", "cleanupPeriodDays": 30, "statusLine": {"type": "command", "command": "x"},
            "sandbox": {"enabled": true, "network": {"allowedDomains": ["x"]}}, "enabledMcpjsonServers": ["s"],
            "somethingNew": [1, {"a": null}],
        });
        let checked = checked(value.clone());
        assert_eq!((Value::Object(checked.values), checked.flaws), (value, vec![]));
    }

    #[test]
    fn a_wrong_shape_is_named_and_does_not_count() {
        let rows = [
            ("deny that is a text", json!({"permissions": {"deny": "Bash"}}), "/permissions/deny", true),
            (
                "ask that holds a number",
                json!({"permissions": {"ask": ["A", 5]}}),
                "/permissions/ask/1",
                true,
            ),
            ("permissions that are a list", json!({"permissions": []}), "/permissions", true),
            ("allow that is an object", json!({"permissions": {"allow": {}}}), "/permissions/allow", false),
            (
                "an unknown mode",
                json!({"permissions": {"defaultMode": "yolo"}}),
                "/permissions/defaultMode",
                false,
            ),
            ("a sandbox that is a text", json!({"sandbox": {"enabled": "yes"}}), "/sandbox/enabled", true),
            ("hooks that are a list", json!({"hooks": []}), "/hooks", true),
            ("a model that is a number", json!({"model": 5}), "/model", false),
            ("a negative number of days", json!({"cleanupPeriodDays": -1}), "/cleanupPeriodDays", false),
            ("a variable that is a list", json!({"env": {"A": []}}), "/env/A", false),
            ("a variable with an impossible name", json!({"env": {"A=B": "x"}}), "/env/A=B", false),
            ("a variable with a NUL", json!({"env": {"A": "x\u{0}"}}), "/env/A", false),
        ];
        for (name, value, pointer, grave) in rows {
            let flaws = checked(value).flaws;
            let told: Vec<(&str, bool)> =
                flaws.iter().map(|flaw| (flaw.pointer.as_str(), flaw.grave)).collect();
            assert_eq!(told, [(pointer, grave)], "{name}");
        }
        assert!(!checked(json!({"model": 5})).values.contains_key("model"));
        assert_eq!(
            checked(json!({"permissions": {"allow": ["A", 1]}})).values["permissions"]["allow"],
            json!(["A"])
        );
    }

    #[test]
    fn rules_keep_their_place_though_a_wrong_one_stands_before_them() {
        let rules = checked(json!({"permissions": {"allow": [1, "A"], "deny": ["D"]}})).rules;
        let row = |behavior, text: &str, pointer: &str| WrittenRule {
            behavior,
            text: text.into(),
            pointer: pointer.into(),
        };
        assert_eq!(
            rules,
            [
                row(PermissionBehavior::Deny, "D", "/permissions/deny/0"),
                row(PermissionBehavior::Allow, "A", "/permissions/allow/1"),
            ]
        );
    }

    #[test]
    fn what_can_mean_only_one_thing_is_taken_for_it() {
        let value = json!({
            "permissions": {"disableBypassPermissionsMode": true}, "env": {"N": 5, "B": false}, "model": null,
        });
        let checked = checked(value);
        let expected = json!({
            "permissions": {"disableBypassPermissionsMode": "disable"}, "env": {"N": "5", "B": "false"},
        });
        assert_eq!((Value::Object(checked.values), checked.flaws), (expected, vec![]));
    }

    #[test]
    fn checked_values_always_fit_the_types() {
        let one_of_each: Map<String, Value> = KEYS
            .iter()
            .filter(|(path, shape, _)| path.len() == 1 && *shape != Shape::Hooks)
            .map(|(path, shape, _)| {
                let value = match shape {
                    Shape::Text => json!("x"),
                    Shape::Switch => json!(true),
                    Shape::Number => json!(2.5),
                    Shape::Texts => json!(["x"]),
                    Shape::Variables | Shape::Object | Shape::ObjectOrSwitch | Shape::Hooks => {
                        json!({"a": "x"})
                    }
                    Shape::Mode | Shape::Disable => json!("plan"),
                };
                (path[0].to_owned(), value)
            })
            .collect();
        let checked = check(one_of_each.clone());
        assert_eq!((&checked.values, checked.flaws), (&one_of_each, vec![]));
        let known: Known = serde_json::from_value(Value::Object(checked.values)).unwrap();
        assert_eq!((known.cleanup_period_days, known.claude_md_excludes), (Some(2.5), vec!["x".to_owned()]));
    }
}
