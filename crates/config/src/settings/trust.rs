//! Filters the settings of a project by trust. Pure. Users who clone a repository have not read its settings.
//!
//! Deny and ask rules always apply. Whatever grants or runs something applies if the project is trusted. Some settings
//! never apply from a project: modes that do not ask, API keys and their helpers, variables that control the engine
//! (see `project_env`), and everything that weakens the sandbox.
//!
//! [`project_trust`] determines the trust in a project, by [`trusted_dirs`] (directories that the user trusts) among
//! others. `local_settings` determines whether a local settings file belongs to the user, and [`git_index`] finds the
//! files that git tracks.

pub mod git_index;
pub(super) mod local_settings;
mod project_env;
pub mod project_trust;
pub mod trusted_dirs;

use serde_json::{Map, Value};
use whimbrel_wire::permission::PermissionMode;

use crate::settings::error::{escape_text, join_first};
use crate::settings::sources::LayerScope;
use crate::settings::trust::project_env::may_project_set;

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
pub(crate) struct Withheld {
    /// Name of the key, with some of its entries.
    pub what: String,
    pub reason: WithholdReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithholdReason {
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
    "passEnv",
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
pub(crate) fn filter_values(
    values: Map<String, Value>,
    scope: LayerScope,
    trust: Trust,
) -> (Map<String, Value>, Vec<Withheld>) {
    let mut withheld = Vec::new();
    if scope == LayerScope::User {
        return (values, withheld);
    }
    let mut filtered = Map::new();
    for (key, mut value) in values {
        let is_kept = match key.as_str() {
            "permissions" => {
                filter_permissions(&mut value, trust, &mut withheld);
                true
            }
            "sandbox" => {
                filter_sandbox(&mut value, trust, &mut withheld);
                true
            }
            "env" => filter_environment(&mut value, trust, &mut withheld),
            "hooks" if trust == Trust::Untrusted => withhold_names("hooks", &value, &mut withheld),
            "hooks" => {
                filter_hooks(&mut value, trust, &mut withheld);
                true
            }
            "model" => filter_model(&value, trust, &mut withheld),
            key if NEVER_ALLOWED_KEYS.contains(&key) => withhold(key, WithholdReason::Never, &mut withheld),
            key if ALWAYS_ALLOWED_KEYS.contains(&key) || trust == Trust::Full => true,
            key => withhold(key, WithholdReason::Untrusted, &mut withheld),
        };
        if is_kept {
            filtered.insert(key, value);
        }
    }
    (filtered, withheld)
}

/// With limited trust, hooks of a project run, except those that answer for the user.
fn filter_hooks(value: &mut Value, trust: Trust, withheld: &mut Vec<Withheld>) {
    if trust != Trust::Full
        && let Some(events) = value.as_object_mut()
    {
        for event in ["PermissionRequest", "Elicitation", "ElicitationResult"] {
            if events.remove(event).is_some() {
                withhold(&format!("hooks ({event})"), WithholdReason::Untrusted, withheld);
            }
        }
    }
}

/// A project may choose a model, but not a provider, which is the prefix of the name.
fn filter_model(value: &Value, trust: Trust, withheld: &mut Vec<Withheld>) -> bool {
    match value.as_str().and_then(|model| model.split_once(':')) {
        Some(("scripted", _)) => withhold("model", WithholdReason::Never, withheld),
        Some(_) if trust != Trust::Full => withhold("model", WithholdReason::Untrusted, withheld),
        Some(_) | None => true,
    }
}

/// Records a withheld value. Returns false for use in `retain`.
fn withhold(what: &str, reason: WithholdReason, withheld: &mut Vec<Withheld>) -> bool {
    withheld.push(Withheld { what: escape_text(what), reason });
    false
}

fn withhold_names(what: &str, value: &Value, withheld: &mut Vec<Withheld>) -> bool {
    let names = value.as_object().map(|map| map.keys().map(String::as_str).collect::<Vec<_>>());
    match names {
        Some(names) if names.is_empty() => true,
        Some(names) => {
            withheld.push(Withheld {
                what: format!("{what} ({})", render_names(&names)),
                reason: WithholdReason::Untrusted,
            });
            false
        }
        None => withhold(what, WithholdReason::Untrusted, withheld),
    }
}

fn filter_permissions(value: &mut Value, trust: Trust, withheld: &mut Vec<Withheld>) {
    // Validation rejects other types later, with their position.
    let Some(permissions) = value.as_object_mut() else { return };
    permissions.retain(|key, value| match key.as_str() {
        "deny" | "ask" => true,
        "disableBypassPermissionsMode" | "disableAutoMode" | "denyInsteadOfPrompting" => true,
        "blockReadsOutsideWorkingDirectories" | "blockWritesOutsideWorkingDirectories" => true,
        "allowManagedPermissionRulesOnly" => {
            withhold("permissions.allowManagedPermissionRulesOnly", WithholdReason::Never, withheld)
        }
        "defaultMode" => filter_mode(value, trust, withheld),
        _ if trust == Trust::Full => true,
        key => withhold_entries(&format!("permissions.{key}"), value, withheld),
    });
}

fn withhold_entries(what: &str, value: &Value, withheld: &mut Vec<Withheld>) -> bool {
    let entries: Option<Vec<&str>> =
        value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
    match entries {
        Some(entries) if entries.is_empty() => true,
        Some(entries) => {
            let what = format!("{} ({})", escape_text(what), render_names(&entries));
            withheld.push(Withheld { what, reason: WithholdReason::Untrusted });
            false
        }
        None => withhold(what, WithholdReason::Untrusted, withheld),
    }
}

fn filter_mode(value: &Value, trust: Trust, withheld: &mut Vec<Withheld>) -> bool {
    let Some(mode) = value.as_str().and_then(|name| name.parse::<PermissionMode>().ok()) else { return true };
    let what = format!("permissions.defaultMode {mode}");
    match mode {
        PermissionMode::Default | PermissionMode::Plan | PermissionMode::DontAsk => true,
        PermissionMode::AcceptEdits if trust >= Trust::Limited => true,
        PermissionMode::AcceptEdits => withhold(&what, WithholdReason::Untrusted, withheld),
        PermissionMode::BypassPermissions | PermissionMode::Auto | PermissionMode::Delegate => {
            withhold(&what, WithholdReason::Never, withheld)
        }
    }
}

fn filter_environment(value: &mut Value, trust: Trust, withheld: &mut Vec<Withheld>) -> bool {
    if trust != Trust::Full {
        return withhold_names("env", value, withheld);
    }
    let Some(variables) = value.as_object_mut() else { return true };
    let (allowed, never): (Map<_, _>, Map<_, _>) =
        std::mem::take(variables).into_iter().partition(|(name, _)| may_project_set(name));
    *variables = allowed;
    if !never.is_empty() {
        let names: Vec<&str> = never.keys().map(String::as_str).collect();
        withheld.push(Withheld {
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

fn filter_sandbox(value: &mut Value, trust: Trust, withheld: &mut Vec<Withheld>) {
    let Some(sandbox) = value.as_object_mut() else { return };
    let mut is_allowed =
        |prefix: &str, key: &str, value: &Value| match sandbox_effect(&format!("{prefix}{key}"), value) {
            SandboxEffect::Tightens => true,
            SandboxEffect::Opens if trust == Trust::Full => true,
            SandboxEffect::Opens => {
                withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Untrusted, withheld)
            }
            SandboxEffect::Weakens => {
                withhold(&format!("sandbox.{prefix}{key}"), WithholdReason::Never, withheld)
            }
        };
    sandbox.retain(|key, value| match (key.as_str(), value) {
        ("network" | "filesystem", Value::Object(inner)) => {
            inner.retain(|inner_key, value| is_allowed(&format!("{key}."), inner_key, value));
            true
        }
        (_, value) => is_allowed("", key, value),
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
        "network" | "filesystem" | "credentials" | "confine" | "ignoreViolations" => SandboxEffect::Tightens,
        "enabled" | "failIfUnavailable" | "network.strictAllowlist" => tightens_if(true),
        "allowUnsandboxedCommands"
        | "network.allowAllUnixSockets"
        | "filesystem.disabled"
        | "enableWeakerNestedSandbox"
        | "allowNestedUserNamespaces" => tightens_if(false),
        "network.deniedDomains" | "filesystem.denyRead" | "filesystem.denyWrite" => SandboxEffect::Tightens,
        "autoAllowBashIfSandboxed" | "network.allowLocalBinding" if *value == Value::Bool(false) => {
            SandboxEffect::Tightens
        }
        "autoAllowBashIfSandboxed" | "network.allowLocalBinding" => SandboxEffect::Opens,
        // Lists of what is open, other proxies, other programs.
        _ => SandboxEffect::Weakens,
    }
}

/// Joins the first names and the number of the others.
fn render_names(names: &[&str]) -> String {
    const MAX_SHOWN: usize = 5;
    let mut text = names.iter().take(MAX_SHOWN).map(|name| escape_text(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_SHOWN {
        text.push_str(&format!(" and {} more", names.len() - MAX_SHOWN));
    }
    text
}

/// One warning about all values withheld from a layer.
pub(crate) fn render_warning(name: &str, withheld: &[Withheld]) -> Option<String> {
    let names_withheld_for = |reason| {
        let what: Vec<&str> = withheld
            .iter()
            .filter(|withheld| withheld.reason == reason)
            .map(|withheld| withheld.what.as_str())
            .collect();
        (!what.is_empty()).then(|| join_first(&what, ", "))
    };
    let untrusted = names_withheld_for(WithholdReason::Untrusted).map(|what| {
        format!(
            "The project is not trusted, so these settings are ignored: {what}. Trust the directory, or name \
             this setting source explicitly."
        )
    });
    let never = names_withheld_for(WithholdReason::Never).map(|what| {
        format!(
            "These are ignored because a project may not set them: {what}. Put them into your user settings if you \
             want them."
        )
    });
    let parts: Vec<String> = untrusted.into_iter().chain(never).collect();
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(" ")))
}

#[cfg(test)]
mod tests;
