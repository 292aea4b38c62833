//! Selects the models, thinking and effort.

use std::collections::BTreeMap;

use whimbrel_config::settings::TypedSettings;
use whimbrel_models::{Effort, Thinking, ThinkingDisplay};
use whimbrel_wire::options::{self, Options};

use super::SetupError;
use super::env::{Env, is_env_set, parse_number};
use crate::engine::Engine;
use crate::runtime_settings::{parse_effort, to_model_effort};

/// Variable with the effort; it goes before the options.
const EFFORT_VARIABLE: &str = "CLAUDE_CODE_EFFORT_LEVEL";

/// Model of a session: that of the options, the environment or the settings, otherwise the default.
pub fn default_model(
    engine: &Engine,
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &TypedSettings,
) -> String {
    let by_env = env.get("ANTHROPIC_MODEL").map(String::as_str).filter(|name| !name.is_empty());
    let requested = options.model.as_deref().or(by_env).or(settings.model.as_deref());
    match requested {
        None | Some("" | "default") => engine.catalog().default_model().to_owned(),
        Some(name) => engine.catalog().resolve_alias(name),
    }
}

/// Fallback models: the comma-separated option, or those of the settings.
pub(super) fn fallback_models(engine: &Engine, options: &Options, settings: &TypedSettings) -> Vec<String> {
    let named = options.fallback_model.as_ref().map(std::slice::from_ref).unwrap_or(&settings.fallback_model);
    let names = named.iter().flat_map(|names| names.split(',')).map(str::trim);
    let resolve = |name| match name {
        "default" => engine.catalog().default_model().to_owned(),
        name => engine.catalog().resolve_alias(name),
    };
    names.filter(|name| !name.is_empty()).map(resolve).collect()
}

/// The small model: the one from the environment, or the provider's default.
pub(super) fn small_model(engine: &Engine, main: &str, env: &BTreeMap<String, String>) -> String {
    match env.get("ANTHROPIC_SMALL_FAST_MODEL") {
        Some(name) if !name.is_empty() => engine.catalog().resolve_alias(name),
        // No small model is known for other providers.
        _ if main.contains(':') => main.to_owned(),
        _ => engine.catalog().small_fast_model().to_owned(),
    }
}

/// Thinking: the variable that disables it, else the options, else the variable with a budget, else the settings.
pub(super) fn thinking(
    options: &Options,
    env: &Env,
    settings: &TypedSettings,
) -> Result<Option<Thinking>, SetupError> {
    let by_env = parse_number(env, "MAX_THINKING_TOKENS")?;
    if is_env_set(env, "CLAUDE_CODE_DISABLE_THINKING") {
        return Ok(Some(Thinking::Disabled));
    }
    let with_budget = |budget| if budget == 0 { Thinking::Disabled } else { Thinking::Enabled { budget } };
    let by_options = match (options.max_thinking_tokens, &options.thinking) {
        (Some(budget), _) => Some(with_budget(budget)),
        (None, Some(options::Thinking::Disabled)) => Some(Thinking::Disabled),
        (None, Some(options::Thinking::Adaptive { .. })) => Some(Thinking::Adaptive),
        (None, Some(options::Thinking::Enabled { budget_tokens, .. })) => {
            Some(budget_tokens.map_or(Thinking::Adaptive, |budget| Thinking::Enabled { budget }))
        }
        (None, None) => None,
    };
    let by_settings = || (settings.always_thinking_enabled == Some(false)).then_some(Thinking::Disabled);
    Ok(by_options.or(by_env.map(with_budget)).or_else(by_settings))
}

pub(super) fn thinking_display(options: &Options) -> Option<ThinkingDisplay> {
    match options.thinking? {
        options::Thinking::Adaptive { display } | options::Thinking::Enabled { display, .. } => display,
        options::Thinking::Disabled => None,
    }
}

/// Effort: the variable, else the options, else the settings.
pub(super) fn effort(
    options: &Options,
    env: &Env,
    settings: &TypedSettings,
) -> Result<Option<Effort>, SetupError> {
    let by_settings = || settings.effort_level.as_deref().and_then(parse_effort);
    match env.get(EFFORT_VARIABLE).map(|name| name.trim()).filter(|name| !name.is_empty()) {
        None => Ok(options.effort.map(to_model_effort).or_else(by_settings)),
        Some("auto") => Ok(None),
        Some(name) => parse_effort(name).map(Some).ok_or_else(|| {
            SetupError::Invalid(format!(
                "{EFFORT_VARIABLE} must be low, medium, high, xhigh, max or auto, but is {name:?}."
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_models::providers::Providers;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn thinking_follows_variables_options_and_settings() {
        let (budget, off) = (Some(Thinking::Enabled { budget: 5 }), Some(Thinking::Disabled));
        type Row<'a> = (&'a str, Option<u64>, &'a [(&'a str, &'a str)], Option<bool>, Option<Thinking>);
        let rows: [Row<'_>; 8] = [
            ("nothing", None, &[], None, None),
            ("the settings", None, &[], Some(false), off),
            ("a budget", None, &[("MAX_THINKING_TOKENS", "5")], Some(false), budget),
            ("no budget", None, &[("MAX_THINKING_TOKENS", "0")], None, off),
            ("blank", None, &[("MAX_THINKING_TOKENS", " ")], None, None),
            ("the options go first", Some(5), &[("MAX_THINKING_TOKENS", "9")], None, budget),
            ("disabled", Some(5), &[("CLAUDE_CODE_DISABLE_THINKING", "1")], None, off),
            ("not disabled", Some(5), &[("CLAUDE_CODE_DISABLE_THINKING", "0")], None, budget),
        ];
        for (name, option, variables, setting, expected) in rows {
            let options = Options { max_thinking_tokens: option, ..Options::default() };
            let settings = TypedSettings { always_thinking_enabled: setting, ..TypedSettings::default() };
            assert_eq!(thinking(&options, &env(variables), &settings), Ok(expected), "{name}");
        }
        let invalid = env(&[("MAX_THINKING_TOKENS", "many")]);
        assert!(thinking(&Options::default(), &invalid, &TypedSettings::default()).is_err());
    }

    #[test]
    fn effort_variable_goes_before_the_options() {
        let options = Options { effort: Some(options::Effort::Low), ..Options::default() };
        let settings = TypedSettings::default();
        let rows = [
            (None, Some(Some(Effort::Low))),
            (Some(""), Some(Some(Effort::Low))),
            (Some("high"), Some(Some(Effort::High))),
            (Some("auto"), Some(None)),
            (Some("much"), None),
        ];
        for (value, expected) in rows {
            let env = value.map(|value| (EFFORT_VARIABLE.to_owned(), value.to_owned())).into_iter().collect();
            assert_eq!(effort(&options, &env, &settings).ok(), expected, "{value:?}");
        }
    }

    #[test]
    fn small_model_follows_variable_then_provider() {
        let engine = Engine::new(Providers::offline());
        let table = [
            ("default of the provider", "claude-opus-4-5", None, "claude-haiku-5-5"),
            ("a name", "claude-opus-4-5", Some("claude-haiku-4-5"), "claude-haiku-4-5"),
            ("an alias", "claude-opus-4-5", Some("sonnet"), "claude-sonnet-5-5"),
            ("empty", "claude-opus-4-5", Some(""), "claude-haiku-5-5"),
            ("another provider", "openai:big", None, "openai:big"),
            ("another provider with a name", "openai:big", Some("openai:small"), "openai:small"),
        ];
        for (name, main, named, expected) in table {
            let named = named.map(|named| ("ANTHROPIC_SMALL_FAST_MODEL".to_owned(), named.to_owned()));
            let env = named.into_iter().collect();
            assert_eq!(small_model(&engine, main, &env), expected, "{name}");
        }
    }
}
