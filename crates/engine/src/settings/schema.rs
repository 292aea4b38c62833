//! The keys that are known, and what they may hold. One row per key; keys that are not listed are kept as they are.
//!
//! A value of the wrong shape never counts. Whether that is worth a warning or stops the start depends on what could get
//! lost: a list of rules that forbid, a hook or the sandbox may guard something, a preferred model does not.

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
    (&["permissions", "defaultMode"], Shape::Mode, Guard),
    (&["permissions", "disableBypassPermissionsMode"], Shape::Disable, Guard),
    (&["permissions", "disableAutoMode"], Shape::Disable, Guard),
    (&["permissions", "allowManagedPermissionRulesOnly"], Shape::Switch, Guard),
    (&["allowManagedPermissionRulesOnly"], Shape::Switch, Guard),
    (&["allowManagedHooksOnly"], Shape::Switch, Guard),
    (&["hooks"], Shape::Hooks, Guard),
    (&["disableAllHooks"], Shape::Switch, Wish),
    (&["allowedHttpHookUrls"], Shape::Texts, Guard),
    (&["httpHookAllowedEnvVars"], Shape::Texts, Guard),
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

/// Whether a key is one of ours, at this place.
pub(super) fn is_known(place: &[&str], key: &str) -> bool {
    KEYS.iter()
        .any(|(path, ..)| path.split_last().is_some_and(|(last, above)| above == place && *last == key))
}

/// The keys at this place that may guard something. Under `permissions` and `sandbox` that is all of them.
pub(super) fn guards(place: &[&str]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |(path, _, loss)| {
        let (key, above) = path.split_last()?;
        (above == place && (*loss == Guard || !place.is_empty())).then_some(*key)
    })
}

/// Checks the values of one layer. A null counts as nothing, except where a guard should stand.
pub fn check(mut values: Map<String, Value>) -> Checked {
    let rules = rules(&values);
    let mut flaws = Vec::new();
    let mut entries = Vec::new();
    for (path, shape, loss) in KEYS {
        let Some((holder, key)) = holder_of(&mut values, path) else { continue };
        let Some(value) = holder.get_mut(key) else { continue };
        let pointer: String = path.iter().map(|key| step(key)).collect();
        if value.is_null() && *loss == Guard {
            let cause = format!("must be {}, but is null", expected(*shape));
            flaws.push(Flaw { pointer, cause, grave: true });
        } else if *shape == Shape::Hooks && !value.is_null() {
            let (read, wrong) = hooks::read(value);
            entries.extend(read);
            flaws.extend(wrong);
        } else if let Err(wrong) = fit(value, *shape) {
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
mod tests;
