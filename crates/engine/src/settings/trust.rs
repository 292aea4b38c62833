//! What a project may bring along, pure. Whoever clones a repository has not read its settings.
//!
//! Rules that forbid or ask always count. What grants something or runs something counts when the project is trusted.
//! A few things never come from a project, trusted or not: modes that ask nobody, keys and helpers that fetch them,
//! variables that steer the engine (see [`environment`](super::environment)), and whatever takes down the sandbox.

use serde_json::{Map, Value};
use whimbrel_wire::permission::PermissionMode;

use super::environment::may_come_from_a_project;
use super::error::{few, plain};
use super::sources::Scope;

/// How far a project is trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Nobody vouched for it.
    #[default]
    Unknown,
    /// Nobody vouched for it, but it is treated as the official engine treats a folder when nobody sits at a terminal:
    /// its hooks run and it may choose `acceptEdits`; its allow rules, directories, variables and servers do not count.
    Customary,
    /// The host asked for the project's settings, or the person trusts the folder.
    Full,
}

/// Something that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What, in words.
    pub what: String,
    /// Why not.
    pub reason: Reason,
}

/// Why something of a project does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The project is not trusted.
    Untrusted,
    /// It is nothing that a project may decide.
    Never,
}

/// Keys that an untrusted project may set: they please or restrict, and grant nothing.
const HARMLESS: &[&str] = &[
    "$schema",
    "effortLevel",
    "alwaysThinkingEnabled",
    "outputStyle",
    "language",
    "includeCoAuthoredBy",
    "attribution",
    "includeGitInstructions",
    "respectGitignore",
    "disabledMcpjsonServers",
    "deniedMcpServers",
    "deniedModels",
    "disableAllHooks",
    "allowedHttpHookUrls",
    "httpHookAllowedEnvVars",
    "autoCompactEnabled",
];

/// Keys that no project may set: they fetch keys, name who is talked to, are an administrator's, or reach beyond the
/// project.
const PERSONAL: &[&str] = &[
    "apiKeyHelper",
    "proxyAuthHelper",
    "otelHeadersHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "processWrapper",
    "policyHelper",
    "cleanupPeriodDays",
    "skipDangerousModePermissionPrompt",
    "skipAutoPermissionPrompt",
    "useAutoModeDuringPlan",
    "autoMode",
    "autoMemoryDirectory",
    "autoUploadSessions",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "forceLoginGatewayUrl",
    "allowedProviders",
    "managedMcpServers",
    "allowManagedHooksOnly",
    "allowManagedPermissionRulesOnly",
    "allowManagedMcpServersOnly",
    "strictPluginOnlyCustomization",
    "parentSettingsBehavior",
    "managedSourcesBehavior",
];

/// Takes out of a layer what does not count, and says what that was.
pub fn filter(values: Map<String, Value>, scope: Scope, trust: Trust) -> (Map<String, Value>, Vec<Held>) {
    let mut held = Vec::new();
    if scope == Scope::Person {
        return (values, held);
    }
    let mut kept = Map::new();
    for (key, mut value) in values {
        let stays = match key.as_str() {
            "permissions" => {
                permissions(&mut value, trust, &mut held);
                true
            }
            "sandbox" => {
                sandbox(&mut value, trust, &mut held);
                true
            }
            "env" => environment(&mut value, trust, &mut held),
            "hooks" if trust == Trust::Unknown => hold_names("hooks", &value, &mut held),
            "hooks" => {
                hooks(&mut value, trust, &mut held);
                true
            }
            "model" => may_name_model(&value, trust, &mut held),
            key if PERSONAL.contains(&key) => hold(key, Reason::Never, &mut held),
            key if HARMLESS.contains(&key) || trust == Trust::Full => true,
            key => hold(key, Reason::Untrusted, &mut held),
        };
        if stays {
            kept.insert(key, value);
        }
    }
    (kept, held)
}

/// On a disposable machine a project's hooks run, but they do not answer in the person's place.
fn hooks(value: &mut Value, trust: Trust, held: &mut Vec<Held>) {
    if trust != Trust::Full
        && let Some(events) = value.as_object_mut()
    {
        for event in ["PermissionRequest", "Elicitation", "ElicitationResult"] {
            if events.remove(event).is_some() {
                hold(&format!("hooks ({event})"), Reason::Untrusted, held);
            }
        }
    }
}

/// A project may prefer a model, but not choose who is talked to: that is what a prefix does.
fn may_name_model(value: &Value, trust: Trust, held: &mut Vec<Held>) -> bool {
    match value.as_str().and_then(|model| model.split_once(':')) {
        Some(("scripted", _)) => hold("model", Reason::Never, held),
        Some(_) if trust != Trust::Full => hold("model", Reason::Untrusted, held),
        Some(_) | None => true,
    }
}

/// Notes what is held back. False, as it does not stay.
fn hold(what: &str, reason: Reason, held: &mut Vec<Held>) -> bool {
    held.push(Held { what: plain(what), reason });
    false
}

fn hold_names(what: &str, value: &Value, held: &mut Vec<Held>) -> bool {
    let names = value.as_object().map(|map| map.keys().map(String::as_str).collect::<Vec<_>>());
    match names {
        Some(names) if names.is_empty() => true,
        Some(names) => {
            held.push(Held { what: format!("{what} ({})", list(&names)), reason: Reason::Untrusted });
            false
        }
        None => hold(what, Reason::Untrusted, held),
    }
}

fn permissions(value: &mut Value, trust: Trust, held: &mut Vec<Held>) {
    // What is not an object is refused later, with its place.
    let Some(permissions) = value.as_object_mut() else { return };
    permissions.retain(|key, value| match key.as_str() {
        "deny" | "ask" => true,
        "disableBypassPermissionsMode" | "disableAutoMode" | "denyInsteadOfPrompting" => true,
        "blockReadsOutsideWorkingDirectories" | "blockWritesOutsideWorkingDirectories" => true,
        "allowManagedPermissionRulesOnly" => {
            hold("permissions.allowManagedPermissionRulesOnly", Reason::Never, held)
        }
        "defaultMode" => may_set_mode(value, trust, held),
        _ if trust == Trust::Full => true,
        key => hold_entries(&format!("permissions.{key}"), value, held),
    });
}

fn hold_entries(what: &str, value: &Value, held: &mut Vec<Held>) -> bool {
    let entries: Option<Vec<&str>> =
        value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
    match entries {
        Some(entries) if entries.is_empty() => true,
        Some(entries) => {
            let what = format!("{} ({})", plain(what), list(&entries));
            held.push(Held { what, reason: Reason::Untrusted });
            false
        }
        None => hold(what, Reason::Untrusted, held),
    }
}

fn may_set_mode(value: &Value, trust: Trust, held: &mut Vec<Held>) -> bool {
    let Some(mode) = value.as_str().and_then(|name| name.parse::<PermissionMode>().ok()) else { return true };
    let what = format!("permissions.defaultMode {mode}");
    match mode {
        PermissionMode::Default | PermissionMode::Plan | PermissionMode::DontAsk => true,
        PermissionMode::AcceptEdits if trust >= Trust::Customary => true,
        PermissionMode::AcceptEdits => hold(&what, Reason::Untrusted, held),
        PermissionMode::BypassPermissions | PermissionMode::Auto | PermissionMode::Delegate => {
            hold(&what, Reason::Never, held)
        }
    }
}

fn environment(value: &mut Value, trust: Trust, held: &mut Vec<Held>) -> bool {
    if trust != Trust::Full {
        return hold_names("env", value, held);
    }
    let Some(variables) = value.as_object_mut() else { return true };
    let (allowed, never): (Map<_, _>, Map<_, _>) =
        std::mem::take(variables).into_iter().partition(|(name, _)| may_come_from_a_project(name));
    *variables = allowed;
    if !never.is_empty() {
        let names: Vec<&str> = never.keys().map(String::as_str).collect();
        held.push(Held { what: format!("env ({})", list(&names)), reason: Reason::Never });
    }
    true
}

/// What a key of the sandbox does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It makes the walls higher, or leaves them.
    Tightens,
    /// It opens a door that it names.
    Opens,
    /// It takes a wall away.
    Weakens,
}

fn sandbox(value: &mut Value, trust: Trust, held: &mut Vec<Held>) {
    let Some(sandbox) = value.as_object_mut() else { return };
    let mut judge = |prefix: &str, key: &str, value: &Value| match effect(&format!("{prefix}{key}"), value) {
        Effect::Tightens => true,
        Effect::Opens if trust == Trust::Full => true,
        Effect::Opens => hold(&format!("sandbox.{prefix}{key}"), Reason::Untrusted, held),
        Effect::Weakens => hold(&format!("sandbox.{prefix}{key}"), Reason::Never, held),
    };
    sandbox.retain(|key, value| match (key.as_str(), value) {
        ("network" | "filesystem", Value::Object(inner)) => {
            inner.retain(|inner_key, value| judge(&format!("{key}."), inner_key, value));
            true
        }
        (_, value) => judge("", key, value),
    });
}

fn effect(key: &str, value: &Value) -> Effect {
    let tightens_if =
        |tight: bool| if *value == Value::Bool(tight) { Effect::Tightens } else { Effect::Weakens };
    match key {
        // A value of the wrong shape is refused later, with its place.
        "enabled" | "failIfUnavailable" | "allowUnsandboxedCommands" if !value.is_boolean() => {
            Effect::Tightens
        }
        "network" | "filesystem" => Effect::Tightens,
        "enabled" | "failIfUnavailable" | "network.strictAllowlist" => tightens_if(true),
        "allowUnsandboxedCommands" | "network.allowLocalBinding" => tightens_if(false),
        "network.deniedDomains" | "filesystem.denyRead" | "filesystem.denyWrite" => Effect::Tightens,
        "autoAllowBashIfSandboxed" if *value == Value::Bool(false) => Effect::Tightens,
        "autoAllowBashIfSandboxed" => Effect::Opens,
        "network.allowedDomains" | "filesystem.allowRead" | "filesystem.allowWrite" => Effect::Opens,
        _ => Effect::Weakens,
    }
}

/// Some names for a sentence: the first few, and how many more there are.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let mut text = names.iter().take(SHOWN).map(|name| plain(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// The one warning about all that is held back from a layer.
pub fn warning(name: &str, held: &[Held]) -> Option<String> {
    let of = |reason| {
        let what: Vec<&str> =
            held.iter().filter(|held| held.reason == reason).map(|held| held.what.as_str()).collect();
        (!what.is_empty()).then(|| few(&what, ", "))
    };
    let untrusted = of(Reason::Untrusted).map(|what| {
        format!("The project is not trusted, so these of its settings do not count: {what}. Trust the folder, or ask for this setting source by name.")
    });
    let never = of(Reason::Never).map(|what| {
        format!("These do not count because a project may not decide them: {what}. Put them into your own settings if you want them.")
    });
    let parts: Vec<String> = untrusted.into_iter().chain(never).collect();
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(" ")))
}

#[cfg(test)]
mod tests;
