//! Selects the models, thinking and effort.

use std::collections::BTreeMap;

use whimbrel_config::settings::TypedSettings;
use whimbrel_models::{Thinking, ThinkingDisplay};
use whimbrel_wire::options::{self, Options};

use crate::engine::Engine;
use crate::runtime_settings::{parse_effort, to_model_effort};

pub(super) fn default_model(
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

pub(super) fn thinking(options: &Options, settings: &TypedSettings) -> Option<Thinking> {
    match (options.max_thinking_tokens, &options.thinking) {
        (Some(0), _) | (None, Some(options::Thinking::Disabled)) => Some(Thinking::Disabled),
        (Some(budget), _) => Some(Thinking::Enabled { budget }),
        (None, Some(options::Thinking::Adaptive { .. })) => Some(Thinking::Adaptive),
        (None, Some(options::Thinking::Enabled { budget_tokens, .. })) => {
            Some(budget_tokens.map_or(Thinking::Adaptive, |budget| Thinking::Enabled { budget }))
        }
        (None, None) if settings.always_thinking_enabled == Some(false) => Some(Thinking::Disabled),
        (None, None) => None,
    }
}

pub(super) fn thinking_display(options: &Options) -> Option<ThinkingDisplay> {
    match options.thinking? {
        options::Thinking::Adaptive { display } | options::Thinking::Enabled { display, .. } => display,
        options::Thinking::Disabled => None,
    }
}

pub(super) fn effort(options: &Options, settings: &TypedSettings) -> Option<whimbrel_models::Effort> {
    let by_settings = || settings.effort_level.as_deref().and_then(parse_effort);
    options.effort.map(to_model_effort).or_else(by_settings)
}

#[cfg(test)]
mod tests {
    use whimbrel_models::providers::Providers;

    use super::*;

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
