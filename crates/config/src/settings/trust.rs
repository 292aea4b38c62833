//! Filters the settings of a project by trust. Pure. Users who clone a repository have not read its settings.
//!
//! Deny and ask rules always apply. Whatever grants or runs something applies if the project is trusted. Some settings
//! never apply from a project: modes that do not ask, API keys and their helpers, variables that control the engine
//! (see [`project_env`](super::project_env)), and everything that weakens the sandbox.

use serde_json::{Map, Value};
use whimbrel_wire::permission::PermissionMode;

use crate::settings::error::{escape_text, join_first};
use crate::settings::project_env::may_project_set;
use crate::settings::sources::LayerScope;

/// Trust in a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Not trusted.
    #[default]
    Untrusted,
    /// Like the official engine without a terminal: hooks run and the project may choose `acceptEdits`; its allow
    /// rules, directories, variables and servers do not apply.
    Limited,
    /// The host named the project source, or the user trusts the directory.
    Full,
}

/// A value that does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Name of the key, with some of its entries.
    pub what: String,
    pub reason: WithholdReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithholdReason {
    /// The project is not trusted.
    Untrusted,
    /// No project may set it.
    Never,
}

/// Keys that an untrusted project may set: preferences and restrictions, no grants.
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

/// Keys that no project may set: they concern credentials, providers, the administrator, or files outside the project.
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

/// Removes values that do not apply; returns the rest and what was withheld.
pub fn filter_values(
    values: Map<String, Value>,
    scope: LayerScope,
    trust: Trust,
) -> (Map<String, Value>, Vec<Withheld>) {
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

/// With limited trust, hooks of a project run, except those that answer for the user.
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

/// A project may choose a model, but not a provider, which is the prefix of the name.
fn filter_model(value: &Value, trust: Trust, held: &mut Vec<Withheld>) -> bool {
    match value.as_str().and_then(|model| model.split_once(':')) {
        Some(("scripted", _)) => withhold("model", WithholdReason::Never, held),
        Some(_) if trust != Trust::Full => withhold("model", WithholdReason::Untrusted, held),
        Some(_) | None => true,
    }
}

/// Records a withheld value. Returns false for use in `retain`.
fn withhold(what: &str, reason: WithholdReason, held: &mut Vec<Withheld>) -> bool {
    held.push(Withheld { what: escape_text(what), reason });
    false
}

fn withhold_names(what: &str, value: &Value, held: &mut Vec<Withheld>) -> bool {
    let names = value.as_object().map(|map| map.keys().map(String::as_str).collect::<Vec<_>>());
    match names {
        Some(names) if names.is_empty() => true,
        Some(names) => {
            held.push(Withheld {
                what: format!("{what} ({})", render_names(&names)),
                reason: WithholdReason::Untrusted,
            });
            false
        }
        None => withhold(what, WithholdReason::Untrusted, held),
    }
}

fn filter_permissions(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) {
    // Validation rejects other types later, with their position.
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
        held.push(Withheld {
            what: format!("env ({})", render_names(&names)),
            reason: WithholdReason::Never,
        });
    }
    true
}

/// Effect of a sandbox key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxEffect {
    /// Restricts more, or changes nothing.
    Tightens,
    /// Permits something specific.
    Opens,
    /// Removes a protection.
    Weakens,
}

fn filter_sandbox(value: &mut Value, trust: Trust, held: &mut Vec<Withheld>) {
    let Some(sandbox) = value.as_object_mut() else { return };
    let mut judge =
        |prefix: &str, key: &str, value: &Value| match sandbox_effect(&format!("{prefix}{key}"), value) {
            SandboxEffect::Tightens => true,
            SandboxEffect::Opens if trust == Trust::Full => true,
            SandboxEffect::Opens => {
                withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Untrusted, held)
            }
            SandboxEffect::Weakens => {
                withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Never, held)
            }
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
    let tightens_if = |tight: bool| {
        if *value == Value::Bool(tight) { SandboxEffect::Tightens } else { SandboxEffect::Weakens }
    };
    match key {
        // Validation rejects other types later, with their position.
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

/// Joins the first names and the number of the others.
fn render_names(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let mut text = names.iter().take(SHOWN).map(|name| escape_text(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// One warning about all values withheld from a layer.
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
