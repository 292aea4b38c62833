//! Hooks as settings and plugins write them, as the hook room takes them; and which of them cannot be had.

use std::collections::BTreeMap;

use whimbrel_wire::hook::HookEvent;

use super::SetupError;
use crate::hooks::{self, HookError, HookSet, HttpHook};
use crate::settings::hooks::{CommandHookConfig, HookActionConfig};
use crate::settings::http_hooks::{ALLOWED_URLS_KEY, HttpHookLimits, Authority};
use crate::settings::{EffectiveSettings, ConfiguredHook};

/// A hook that is to be added.
pub(super) struct HookSpec<'a> {
    pub(super) event: HookEvent,
    pub(super) matcher: Option<&'a str>,
    pub(super) action: &'a HookActionConfig,
    /// Where it stands, for people.
    pub(super) origin: &'a str,
    pub(super) authority: Authority,
    /// Variables that a command has besides.
    pub(super) environment: BTreeMap<String, String>,
}

/// The hooks that the settings bring, and what cannot be had of them.
pub(super) fn from_settings(effective: &EffectiveSettings) -> Result<(HookSet, Vec<String>), SetupError> {
    let mut set = HookSet::default();
    let mut warnings = Vec::new();
    for hook in &effective.hooks {
        let entry = HookSpec {
            event: hook.event,
            matcher: hook.matcher.as_deref(),
            action: &hook.action,
            origin: &render_origin(hook),
            authority: hook.authority,
            environment: BTreeMap::new(),
        };
        let added = add_hook(&mut set, entry, &effective.http_limits);
        warnings.extend(added.map_err(|error| SetupError::Invalid(format!("Hooks: {error}.")))?);
    }
    warnings.extend(set.warnings().iter().cloned());
    Ok((set, warnings))
}

/// Adds a hook to a set. The answer is why it does not run, if it does not; where it must agree, nothing goes on without
/// it.
pub(super) fn add_hook(
    set: &mut HookSet,
    entry: HookSpec<'_>,
    limits: &HttpHookLimits,
) -> Result<Option<String>, HookError> {
    let HookSpec { event, matcher, action: handler, origin, authority: rank, environment } = entry;
    let found = match handler {
        HookActionConfig::Command(hook) => to_command_hook(hook, environment)
            .map(|command| set.add_commands(event.as_str(), matcher, vec![command], origin)),
        HookActionConfig::Http(hook) => {
            restrict_http_hook(hook, rank, limits).map(|hook| set.add_http(event.as_str(), matcher, &hook, origin))
        }
        HookActionConfig::Other { kind, .. } => Err(format!("hooks of the type \"{kind}\" are not there yet")),
    };
    let why = match found {
        Ok(added) => return added.map(|()| None),
        Err(why) => why,
    };
    let means = if handler.blocks_on_failure() {
        set.add_unavailable(event.as_str(), matcher, &why, origin)?;
        ". As it must agree, what it is asked about is blocked"
    } else {
        ""
    };
    Ok(Some(format!("{origin}: a {event} hook does not run: {why}{means}.")))
}

fn render_origin(hook: &ConfiguredHook) -> String {
    match (&hook.file, hook.line) {
        (Some(file), Some(line)) => format!("{}, line {line}", file.display()),
        (Some(file), None) => file.display().to_string(),
        (None, _) => "the host's settings".into(),
    }
}

/// A web address within its limits, or why it may not be told.
fn restrict_http_hook(hook: &HttpHook, rank: Authority, limits: &HttpHookLimits) -> Result<HttpHook, String> {
    if !limits.allows_url(rank, &hook.url) {
        return Err(format!("its address is not among those that {ALLOWED_URLS_KEY} allows; add it there"));
    }
    let allowed_env_vars = limits.allowed_variables(rank, &hook.allowed_env_vars);
    Ok(HttpHook { allowed_env_vars, ..hook.clone() })
}

/// The command of a hook, or why there is none in this version.
pub(crate) fn to_command_hook(
    hook: &CommandHookConfig,
    environment: BTreeMap<String, String>,
) -> Result<hooks::CommandHook, String> {
    if hook.shell.as_deref().is_some_and(|shell| shell != "bash") {
        return Err("only bash runs hooks".into());
    }
    if hook.is_async_rewake {
        return Err("\"asyncRewake\" is not there yet".into());
    }
    Ok(hooks::CommandHook {
        command: shell_command(hook),
        timeout: hook.timeout,
        background: hook.is_async,
        on_failure: hook.on_failure.clone(),
        condition: hook.condition.clone(),
        once: hook.once,
        environment,
    })
}

/// The command as a shell reads it. With arguments, each word is taken as it is.
fn shell_command(hook: &CommandHookConfig) -> String {
    let Some(args) = &hook.args else { return hook.command.clone() };
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    std::iter::once(&hook.command).chain(args).map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::layer::check_layer;
    use crate::settings::merge::merge;
    use crate::settings::read::SettingsDocument;
    use crate::settings::sources::{LayerOrigin, LayerScope, LayerSource};
    use crate::settings::trust::Trust;

    fn hooks_from(hook: &Value, mut more: Value) -> Result<(HookSet, Vec<String>), SetupError> {
        more["hooks"] = json!({"PreToolUse": [{"hooks": [hook]}]});
        let origin =
            LayerOrigin { source: LayerSource::User, scope: LayerScope::User, file: Some("/s".into()), base: "/".into() };
        let layer = check_layer(origin, SettingsDocument::from_values(more.as_object().unwrap().clone()), Trust::Full).layer;
        from_settings(&merge(&[layer]))
    }

    #[test]
    fn what_cannot_run_is_told_and_blocks_if_it_must_agree() {
        let address = json!({"type": "http", "url": "http://here.example/hook"});
        let prompt = json!({"type": "prompt", "prompt": "Is this wise?"});
        let rows = [
            ("without a limit", &address, json!({}), None),
            ("listed", &address, json!({ALLOWED_URLS_KEY: ["http://here.example/*"]}), None),
            ("not listed", &address, json!({ALLOWED_URLS_KEY: []}), Some(ALLOWED_URLS_KEY)),
            ("of a type that is not there", &prompt, json!({}), Some("prompt")),
        ];
        for (name, hook, settings, lost) in rows {
            let (set, warnings) = hooks_from(hook, settings.clone()).unwrap();
            assert_eq!((set.is_empty(), warnings.len()), (lost.is_some(), lost.iter().count()), "{name}");
            assert!(warnings.iter().all(|warning| warning.contains(lost.unwrap())), "{warnings:?}");
            let mut strict = hook.clone();
            strict["onFailure"] = "block".into();
            let (set, warnings) = hooks_from(&strict, settings).unwrap();
            assert!(!set.is_empty() && warnings.len() == lost.iter().count(), "{name}: {warnings:?}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_asked_stops_the_start() {
        let error = hooks_from(&json!({"type": "http", "url": "file:///etc/passwd"}), json!({})).unwrap_err();
        assert!(error.to_string().contains("/s") && error.to_string().contains("http://"), "{error}");
    }
}
