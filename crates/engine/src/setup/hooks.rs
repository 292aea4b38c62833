//! Converts hooks of settings and plugins for the hook executor, and reports those that cannot run.

use std::collections::BTreeMap;

use whimbrel_config::settings::hooks::HookActionConfig;
use whimbrel_config::settings::hooks::HttpHookConfig;
use whimbrel_config::settings::http_hooks::{ALLOWED_URLS_KEY, Authority, HttpHookLimits};
use whimbrel_config::settings::{EffectiveSettings, HookSetting};
use whimbrel_tools::hooks::front_matter::to_command_hook;
use whimbrel_tools::hooks::{HookError, HookOrigin, HookSet, HookSource};
use whimbrel_wire::hook::HookEvent;

use super::SetupError;

/// A hook to add.
pub(super) struct HookToAdd<'a> {
    pub(super) event: HookEvent,
    pub(super) matcher: Option<&'a str>,
    pub(super) action: &'a HookActionConfig,
    pub(super) origin: &'a HookOrigin,
    pub(super) authority: Authority,
    /// Additional environment variables of a command.
    pub(super) environment: BTreeMap<String, String>,
}

/// The hooks of the settings, and warnings about those that cannot run.
pub(super) fn from_settings(effective: &EffectiveSettings) -> Result<(HookSet, Vec<String>), SetupError> {
    let mut set = HookSet::default();
    let mut warnings = Vec::new();
    for hook in &effective.hooks {
        let entry = HookToAdd {
            event: hook.event,
            matcher: hook.matcher.as_deref(),
            action: &hook.action,
            origin: &HookOrigin::new(HookSource::Settings(hook.source), render_origin(hook)),
            authority: hook.authority,
            environment: BTreeMap::new(),
        };
        let added = add_hook(&mut set, entry, &effective.http_limits);
        warnings.extend(added.map_err(|error| SetupError::Invalid(format!("Hooks: {error}.")))?);
    }
    warnings.extend(set.warnings().iter().cloned());
    Ok((set, warnings))
}

/// Adds a hook to a set. Returns a warning if it cannot run; if it blocks on failure, a hook that always fails is added
/// instead.
pub(super) fn add_hook(
    set: &mut HookSet,
    entry: HookToAdd<'_>,
    limits: &HttpHookLimits,
) -> Result<Option<String>, HookError> {
    let HookToAdd { event, matcher, action, origin, authority, environment } = entry;
    let added = match action {
        HookActionConfig::Command(hook) => to_command_hook(hook, environment)
            .map(|command| set.add_commands(event.as_str(), matcher, vec![command], origin)),
        HookActionConfig::Http(hook) => restrict_http_hook(hook, authority, limits)
            .map(|hook| set.add_http(event.as_str(), matcher, &hook, origin)),
        HookActionConfig::Other { kind, .. } => {
            Err(format!("hooks of type \"{kind}\" are not supported yet"))
        }
    };
    let reason = match added {
        Ok(added) => return added.map(|()| None),
        Err(reason) => reason,
    };
    let consequence = if action.blocks_on_failure() {
        set.add_unavailable(event.as_str(), matcher, &reason, origin)?;
        ". Because it blocks on failure, the actions it would check are blocked"
    } else {
        ""
    };
    Ok(Some(format!("{}: a {event} hook does not run: {reason}{consequence}.", origin.text)))
}

fn render_origin(hook: &HookSetting) -> String {
    match (&hook.file, hook.line) {
        (Some(file), Some(line)) => format!("{}, line {line}", file.display()),
        (Some(file), None) => file.display().to_string(),
        (None, _) => "the host's settings".into(),
    }
}

/// Applies the URL and variable limits to an HTTP hook; the error is the reason why it may not run.
fn restrict_http_hook(
    hook: &HttpHookConfig,
    authority: Authority,
    limits: &HttpHookLimits,
) -> Result<HttpHookConfig, String> {
    if !limits.allows_url(authority, &hook.url) {
        return Err(format!("its URL is not allowed by {ALLOWED_URLS_KEY}; add it there"));
    }
    let allowed_env_vars = limits.allowed_variables(authority, &hook.allowed_env_vars);
    Ok(HttpHookConfig { allowed_env_vars, ..hook.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use whimbrel_config::settings::document::SettingsDocument;
    use whimbrel_config::settings::layer::check_layer;
    use whimbrel_config::settings::merge::merge;
    use whimbrel_config::settings::sources::{LayerOrigin, LayerScope, LayerSource};
    use whimbrel_config::settings::trust::Trust;

    use super::*;

    fn hooks_from(hook: &Value, mut more: Value) -> Result<(HookSet, Vec<String>), SetupError> {
        more["hooks"] = json!({"PreToolUse": [{"hooks": [hook]}]});
        let origin = LayerOrigin {
            source: LayerSource::User,
            scope: LayerScope::User,
            file: Some("/s".into()),
            base: "/".into(),
        };
        let layer = check_layer(
            origin,
            SettingsDocument::from_values(more.as_object().unwrap().clone()),
            Trust::Full,
        )
        .layer;
        from_settings(&merge(&[layer]))
    }

    #[test]
    fn unavailable_hooks_are_reported_and_block_if_required() {
        let http_hook = json!({"type": "http", "url": "http://here.example/hook"});
        let prompt = json!({"type": "prompt", "prompt": "Is this safe?"});
        let rows = [
            ("without a limit", &http_hook, json!({}), None),
            ("listed", &http_hook, json!({ALLOWED_URLS_KEY: ["http://here.example/*"]}), None),
            ("not listed", &http_hook, json!({ALLOWED_URLS_KEY: []}), Some(ALLOWED_URLS_KEY)),
            ("unsupported type", &prompt, json!({}), Some("prompt")),
        ];
        for (name, hook, settings, expected) in rows {
            let (set, warnings) = hooks_from(hook, settings.clone()).unwrap();
            assert_eq!(
                (set.is_empty(), warnings.len()),
                (expected.is_some(), expected.iter().count()),
                "{name}"
            );
            assert!(warnings.iter().all(|warning| warning.contains(expected.unwrap())), "{warnings:?}");
            let mut strict = hook.clone();
            strict["onFailure"] = "block".into();
            let (set, warnings) = hooks_from(&strict, settings).unwrap();
            assert!(!set.is_empty() && warnings.len() == expected.iter().count(), "{name}: {warnings:?}");
        }
    }

    #[test]
    fn invalid_url_is_a_setup_error() {
        let error = hooks_from(&json!({"type": "http", "url": "file:///etc/passwd"}), json!({})).unwrap_err();
        assert!(error.to_string().contains("/s") && error.to_string().contains("http://"), "{error}");
    }
}
