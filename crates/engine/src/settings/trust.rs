//! What a project may bring along, pure. Whoever clones a repository has not read its settings.
//!
//! Rules that forbid or ask always count. What grants something or runs something counts when the project is trusted.
//! A few things never come from a project, trusted or not: modes that ask nobody, keys and helpers that fetch them,
//! variables that steer the engine (see [`environment`](super::environment)), and whatever takes down the sandbox.

use serde_json::{Map, Value};
use whimbrel_wire::permission::PermissionMode;

use super::project_env::may_project_set;
use super::error::{join_first, escape_text};
use super::sources::LayerScope;

/// How far a project is trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Nobody vouched for it.
    #[default]
    Untrusted,
    /// Nobody vouched for it, but it is treated as the official engine treats a folder when nobody sits at a terminal:
    /// its hooks run and it may choose `acceptEdits`; its allow rules, directories, variables and servers do not count.
    Limited,
    /// The host asked for the project's settings, or the person trusts the folder.
    Full,
}

/// Something that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// What, in words.
    pub what: String,
    /// Why not.
    pub reason: WithholdReason,
}

/// Why something of a project does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithholdReason {
    /// The project is not trusted.
    Untrusted,
    /// It is nothing that a project may decide.
    Never,
}

/// Keys that an untrusted project may set: they please or restrict, and grant nothing.
const ALWAYS_ALLOWED_KEYS: &[&str] = &[
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
const NEVER_ALLOWED_KEYS: &[&str] = &[
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
pub fn filter_values(values: Map<String, Value>, scope: LayerScope, trust: Trust) -> (Map<String, Value>, Vec<Withheld>) {
    let mut held = Vec::new();
    if scope == LayerScope::User {
        return (values, held);
    }
    let mut kept = Map::new();
    for (key, mut value) in values {
        let stays = match key.as_str() {
            "permissions" => {
                filter_permissions(&mut value, trust, &mut held);
                true
            }
            "sandbox" => {
                filter_sandbox(&mut value, trust, &mut held);
                true
            }
            "env" => filter_environment(&mut value, trust, &mut held),
            "hooks" if trust == Trust::Untrusted => withhold_names("hooks", &value, &mut held),
            "hooks" => {
                filter_hooks(&mut value, trust, &mut held);
                true
            }
            "model" => filter_model(&value, trust, &mut held),
            key if NEVER_ALLOWED_KEYS.contains(&key) => withhold(key, WithholdReason::Never, &mut held),
            key if ALWAYS_ALLOWED_KEYS.contains(&key) || trust == Trust::Full => true,
            key => withhold(key, WithholdReason::Untrusted, &mut held),
        };
        if stays {
            kept.insert(key, value);
        }
    }
    (kept, held)
}

/// On a disposable machine a project's hooks run, but they do not answer in the person's place.
fn filter_hooks(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) {
    if trust != Trust::Full
        && let Some(events) = value.as_object_mut()
    {
        for event in ["PermissionRequest", "Elicitation", "ElicitationResult"] {
            if events.remove(event).is_some() {
                withhold(&format!("hooks ({event})"), WithholdReason::Untrusted, held);
            }
        }
    }
}

/// A project may prefer a model, but not choose who is talked to: that is what a prefix does.
fn filter_model(value: &Value, trust: Trust, held: &mut Vec<Withheld>) -> bool {
    match value.as_str().and_then(|model| model.split_once(':')) {
        Some(("scripted", _)) => withhold("model", WithholdReason::Never, held),
        Some(_) if trust != Trust::Full => withhold("model", WithholdReason::Untrusted, held),
        Some(_) | None => true,
    }
}

/// Notes what is held back. False, as it does not stay.
fn withhold(what: &str, reason: WithholdReason, held: &mut Vec<Withheld>) -> bool {
    held.push(Withheld { what: escape_text(what), reason });
    false
}

fn withhold_names(what: &str, value: &Value, held: &mut Vec<Withheld>) -> bool {
    let names = value.as_object().map(|map| map.keys().map(String::as_str).collect::<Vec<_>>());
    match names {
        Some(names) if names.is_empty() => true,
        Some(names) => {
            held.push(Withheld { what: format!("{what} ({})", render_names(&names)), reason: WithholdReason::Untrusted });
            false
        }
        None => withhold(what, WithholdReason::Untrusted, held),
    }
}

fn filter_permissions(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) {
    // What is not an object is refused later, with its place.
    let Some(permissions) = value.as_object_mut() else { return };
    permissions.retain(|key, value| match key.as_str() {
        "deny" | "ask" => true,
        "disableBypassPermissionsMode" | "disableAutoMode" | "denyInsteadOfPrompting" => true,
        "blockReadsOutsideWorkingDirectories" | "blockWritesOutsideWorkingDirectories" => true,
        "allowManagedPermissionRulesOnly" => {
            withhold("permissions.allowManagedPermissionRulesOnly", WithholdReason::Never, held)
        }
        "defaultMode" => filter_mode(value, trust, held),
        _ if trust == Trust::Full => true,
        key => withhold_entries(&format!("permissions.{key}"), value, held),
    });
}

fn withhold_entries(what: &str, value: &Value, held: &mut Vec<Withheld>) -> bool {
    let entries: Option<Vec<&str>> =
        value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
    match entries {
        Some(entries) if entries.is_empty() => true,
        Some(entries) => {
            let what = format!("{} ({})", escape_text(what), render_names(&entries));
            held.push(Withheld { what, reason: WithholdReason::Untrusted });
            false
        }
        None => withhold(what, WithholdReason::Untrusted, held),
    }
}

fn filter_mode(value: &Value, trust: Trust, held: &mut Vec<Withheld>) -> bool {
    let Some(mode) = value.as_str().and_then(|name| name.parse::<PermissionMode>().ok()) else { return true };
    let what = format!("permissions.defaultMode {mode}");
    match mode {
        PermissionMode::Default | PermissionMode::Plan | PermissionMode::DontAsk => true,
        PermissionMode::AcceptEdits if trust >= Trust::Limited => true,
        PermissionMode::AcceptEdits => withhold(&what, WithholdReason::Untrusted, held),
        PermissionMode::BypassPermissions | PermissionMode::Auto | PermissionMode::Delegate => {
            withhold(&what, WithholdReason::Never, held)
        }
    }
}

fn filter_environment(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) -> bool {
    if trust != Trust::Full {
        return withhold_names("env", value, held);
    }
    let Some(variables) = value.as_object_mut() else { return true };
    let (allowed, never): (Map<_, _>, Map<_, _>) =
        std::mem::take(variables).into_iter().partition(|(name, _)| may_project_set(name));
    *variables = allowed;
    if !never.is_empty() {
        let names: Vec<&str> = never.keys().map(String::as_str).collect();
        held.push(Withheld { what: format!("env ({})", render_names(&names)), reason: WithholdReason::Never });
    }
    true
}

/// What a key of the sandbox does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxEffect {
    /// It makes the walls higher, or leaves them.
    Tightens,
    /// It opens a door that it names.
    Opens,
    /// It takes a wall away.
    Weakens,
}

fn filter_sandbox(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) {
    let Some(sandbox) = value.as_object_mut() else { return };
    let mut judge = |prefix: &str, key: &str, value: &Value| match sandbox_effect(&format!("{prefix}{key}"), value) {
        SandboxEffect::Tightens => true,
        SandboxEffect::Opens if trust == Trust::Full => true,
        SandboxEffect::Opens => withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Untrusted, held),
        SandboxEffect::Weakens => withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Never, held),
    };
    sandbox.retain(|key, value| match (key.as_str(), value) {
        ("network" | "filesystem", Value::Object(inner)) => {
            inner.retain(|inner_key, value| judge(&format!("{key}."), inner_key, value));
            true
        }
        (_, value) => judge("", key, value),
    });
}

fn sandbox_effect(key: &str, value: &Value) -> SandboxEffect {
    let tightens_if =
        |tight: bool| if *value == Value::Bool(tight) { SandboxEffect::Tightens } else { SandboxEffect::Weakens };
    match key {
        // A value of the wrong shape is refused later, with its place.
        "enabled" | "failIfUnavailable" | "allowUnsandboxedCommands" if !value.is_boolean() => {
            SandboxEffect::Tightens
        }
        "network" | "filesystem" => SandboxEffect::Tightens,
        "enabled" | "failIfUnavailable" | "network.strictAllowlist" => tightens_if(true),
        "allowUnsandboxedCommands" | "network.allowLocalBinding" => tightens_if(false),
        "network.deniedDomains" | "filesystem.denyRead" | "filesystem.denyWrite" => SandboxEffect::Tightens,
        "autoAllowBashIfSandboxed" if *value == Value::Bool(false) => SandboxEffect::Tightens,
        "autoAllowBashIfSandboxed" => SandboxEffect::Opens,
        "network.allowedDomains" | "filesystem.allowRead" | "filesystem.allowWrite" => SandboxEffect::Opens,
        _ => SandboxEffect::Weakens,
    }
}

/// Some names for a sentence: the first few, and how many more there are.
fn render_names(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let mut text = names.iter().take(SHOWN).map(|name| escape_text(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// The one warning about all that is held back from a layer.
pub fn render_warning(name: &str, held: &[Withheld]) -> Option<String> {
    let of = |reason| {
        let what: Vec<&str> =
            held.iter().filter(|held| held.reason == reason).map(|held| held.what.as_str()).collect();
        (!what.is_empty()).then(|| join_first(&what, ", "))
    };
    let untrusted = of(WithholdReason::Untrusted).map(|what| {
        format!("The project is not trusted, so these of its settings do not count: {what}. Trust the folder, or ask for this setting source by name.")
    });
    let never = of(WithholdReason::Never).map(|what| {
        format!("These do not count because a project may not decide them: {what}. Put them into your own settings if you want them.")
    });
    let parts: Vec<String> = untrusted.into_iter().chain(never).collect();
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(" ")))
}

#[cfg(test)]
mod tests;
