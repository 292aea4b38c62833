//! Properties of models: aliases, context windows, output limits, prices. Nothing is guessed about unknown models.

use whimbrel_wire::Usage;

use crate::request::Thinking;

/// Output limit for unknown models.
const UNKNOWN_OUTPUT_LIMIT: u64 = 32_000;

/// Price of one web search in USD.
const WEB_SEARCH_PRICE: f64 = 0.01;

/// Suffix of a model name that requests the long context window. Not part of the name that a provider knows.
pub(crate) const LONG_CONTEXT_SUFFIX: &str = "[1m]";

/// The long context window in tokens.
const LONG_CONTEXT_WINDOW: u64 = 1_000_000;

/// Properties of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// Name without a date.
    pub name: &'static str,
    /// Name shown to the user.
    pub display_name: &'static str,
    /// Purpose in one line.
    pub description: &'static str,
    /// Context window in tokens.
    pub context_window: u64,
    /// Default output limit in tokens.
    pub max_output_tokens: u64,
    /// Supported kind of thinking.
    pub thinking_support: ThinkingSupport,
    /// Whether the model supports reasoning effort.
    pub supports_effort: bool,
    /// Prices.
    pub prices: TokenPrices,
}

/// Prices in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenPrices {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Read from the prompt cache.
    pub cache_read: f64,
    /// Written to the prompt cache for five minutes.
    pub cache_write_5m: f64,
    /// Written to the prompt cache for one hour.
    pub cache_write_1h: f64,
}

/// Kind of thinking that a model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingSupport {
    /// No thinking.
    Unsupported,
    /// Thinking with an explicit token limit.
    Budgeted,
    /// Adaptive thinking: the model decides how much.
    Adaptive,
}

impl ModelInfo {
    /// Returns the cost of a usage in USD.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let hour = usage.cache_creation.ephemeral_1h_input_tokens;
        let minutes = usage.cache_creation.ephemeral_5m_input_tokens;
        let minutes = usage.cache_creation_input_tokens.saturating_sub(hour).max(minutes);
        let TokenPrices { input, output, cache_read, cache_write_5m, cache_write_1h } = self.prices;
        let tokens = [
            (usage.input_tokens, input),
            (usage.output_tokens, output),
            (usage.cache_read_input_tokens, cache_read),
            (minutes, cache_write_5m),
            (hour, cache_write_1h),
        ];
        let tokens: f64 = tokens.iter().map(|(count, price)| *count as f64 * price).sum();
        tokens / 1e6 + usage.server_tool_use.web_search_requests as f64 * WEB_SEARCH_PRICE
    }

    /// Thinking configuration used when none is requested.
    pub fn default_thinking(&self, max_tokens: u64) -> Thinking {
        match self.thinking_support {
            ThinkingSupport::Unsupported => Thinking::Disabled,
            ThinkingSupport::Budgeted => Thinking::Enabled { budget: max_tokens.saturating_sub(1) },
            ThinkingSupport::Adaptive => Thinking::Adaptive,
        }
    }

    const fn with_effort(mut self) -> Self {
        self.supports_effort = true;
        self
    }

    /// Restricts a requested thinking configuration to what the model supports.
    fn supported_thinking(&self, wanted: Thinking, max_tokens: u64) -> Thinking {
        match (self.thinking_support, wanted) {
            (ThinkingSupport::Unsupported, _) => Thinking::Disabled,
            (ThinkingSupport::Budgeted, Thinking::Adaptive) => self.default_thinking(max_tokens),
            _ => wanted,
        }
    }
}

/// All known models.
#[derive(Debug, Clone)]
pub struct Catalog {
    models: &'static [ModelInfo],
    aliases: &'static [(&'static str, &'static str)],
    default_model: &'static str,
    small_model: &'static str,
}

impl Default for Catalog {
    fn default() -> Self {
        Self { models: MODELS, aliases: ALIASES, default_model: DEFAULT_MODEL, small_model: SMALL_MODEL }
    }
}

impl Catalog {
    /// Looks a model up by its name, its dated name or an alias.
    pub fn lookup(&self, model: &str) -> Option<ModelInfo> {
        let name = self.resolve_alias(model);
        let short = name.trim_end_matches(LONG_CONTEXT_SUFFIX);
        let known = |name: &str| self.models.iter().find(|info| info.name == name);
        let mut info = known(short).or_else(|| known(strip_date(short)))?.clone();
        if short.len() < name.len() {
            info.context_window = info.context_window.max(LONG_CONTEXT_WINDOW);
        }
        Some(info)
    }

    /// Resolves an alias to the full model name. A suffix like `[1m]` is kept.
    pub fn resolve_alias(&self, name: &str) -> String {
        let name = name.trim();
        let short = name.trim_end_matches(LONG_CONTEXT_SUFFIX);
        match self.aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(short)) {
            Some((_, full)) => format!("{full}{}", &name[short.len()..]),
            None => name.to_owned(),
        }
    }

    /// The model to use when none is named.
    pub fn default_model(&self) -> &str {
        self.default_model
    }

    /// The small model for auxiliary calls.
    pub fn small_fast_model(&self) -> &str {
        self.small_model
    }

    /// The output limit to request.
    pub fn max_output_tokens(&self, model: &str) -> u64 {
        self.lookup(model).map_or(UNKNOWN_OUTPUT_LIMIT, |info| info.max_output_tokens)
    }

    /// Thinking configuration used when none is requested; disabled for unknown models.
    pub fn default_thinking(&self, model: &str, max_tokens: u64) -> Thinking {
        self.lookup(model).map_or(Thinking::Disabled, |info| info.default_thinking(max_tokens))
    }

    /// Restricts a requested thinking configuration to what the model supports. Unknown models get it unchanged.
    pub fn supported_thinking(&self, model: &str, wanted: Thinking, max_tokens: u64) -> Thinking {
        self.lookup(model).map_or(wanted, |info| info.supported_thinking(wanted, max_tokens))
    }

    /// Returns whether a model supports reasoning effort; assumed for unknown models.
    pub fn supports_effort(&self, model: &str) -> bool {
        self.lookup(model).is_none_or(|info| info.supports_effort)
    }

    /// All models, each with its alias if it has one.
    pub fn models_with_aliases(&self) -> impl Iterator<Item = (Option<&str>, &ModelInfo)> {
        self.models.iter().map(|info| {
            let alias = self.aliases.iter().find(|(_, name)| *name == info.name);
            (alias.map(|(alias, _)| *alias), info)
        })
    }
}

/// Removes a date or `-latest` from a name, as in `claude-opus-4-5-20251101`.
fn strip_date(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((base, "latest")) => base,
        Some((base, date)) if date.len() == 8 && date.bytes().all(|digit| digit.is_ascii_digit()) => base,
        _ => name,
    }
}

const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
const SMALL_MODEL: &str = "claude-haiku-5-5";

const ALIASES: &[(&str, &str)] = &[
    ("opus", "claude-opus-5-5"),
    ("sonnet", "claude-sonnet-5-5"),
    ("haiku", "claude-haiku-5-5"),
    ("fable", "claude-fable-5-2"),
];

/// Columns: name, display name, description; context window, output limit, thinking; prices as in [`TokenPrices`].
/// Models with adaptive thinking support effort; others only with `with_effort`.
const MODELS: &[ModelInfo] = &[
    model_info(
        ["claude-sonnet-5-5", "Sonnet 5.5", "Everyday work, fast and able"],
        (1_000_000, 128_000, ThinkingSupport::Adaptive),
        [2.0, 10.0, 0.1, 2.5, 4.0],
    ),
    model_info(
        ["claude-opus-5-5", "Opus 5.5", "Hard problems and long tasks"],
        (1_000_000, 128_000, ThinkingSupport::Adaptive),
        [4.0, 20.0, 0.2, 5.0, 8.0],
    ),
    model_info(
        ["claude-haiku-5-5", "Haiku 5.5", "Quick answers at the lowest price"],
        (1_000_000, 128_000, ThinkingSupport::Adaptive),
        [0.1, 0.5, 0.01, 0.125, 0.2],
    ),
    model_info(
        ["claude-fable-5-2", "Fable 5.2", "The hardest problems, at the highest price"],
        (1_000_000, 128_000, ThinkingSupport::Adaptive),
        [8.0, 40.0, 0.2, 10.0, 16.0],
    ),
    model_info(
        ["claude-sonnet-5", "Sonnet 5", "Everyday work (previous release)"],
        (1_000_000, 64_000, ThinkingSupport::Adaptive),
        [2.0, 10.0, 0.2, 2.5, 4.0],
    ),
    model_info(
        ["claude-opus-4-6", "Opus 4.6", "Hard problems (older release)"],
        (200_000, 64_000, ThinkingSupport::Adaptive),
        [5.0, 25.0, 0.5, 6.25, 10.0],
    ),
    model_info(
        ["claude-opus-4-5", "Opus 4.5", "Hard problems (older release)"],
        (200_000, 32_000, ThinkingSupport::Budgeted),
        [5.0, 25.0, 0.5, 6.25, 10.0],
    )
    .with_effort(),
    model_info(
        ["claude-sonnet-4-6", "Sonnet 4.6", "Everyday work (older release)"],
        (200_000, 32_000, ThinkingSupport::Adaptive),
        [3.0, 15.0, 0.3, 3.75, 6.0],
    ),
    model_info(
        ["claude-sonnet-4-5", "Sonnet 4.5", "Everyday work (older release)"],
        (200_000, 32_000, ThinkingSupport::Budgeted),
        [3.0, 15.0, 0.3, 3.75, 6.0],
    ),
    model_info(
        ["claude-haiku-4-5", "Haiku 4.5", "Quick answers (older release)"],
        (200_000, 32_000, ThinkingSupport::Budgeted),
        [1.0, 5.0, 0.1, 1.25, 2.0],
    ),
    model_info(
        ["claude-3-5-haiku", "Haiku 3.5", "Quick answers (legacy)"],
        (200_000, 8192, ThinkingSupport::Unsupported),
        [0.8, 4.0, 0.08, 1.0, 1.6],
    ),
];

const fn model_info(
    names: [&'static str; 3],
    limits: (u64, u64, ThinkingSupport),
    prices: [f64; 5],
) -> ModelInfo {
    let [name, display_name, description] = names;
    let [input, output, cache_read, cache_write_5m, cache_write_1h] = prices;
    ModelInfo {
        name,
        display_name,
        description,
        context_window: limits.0,
        max_output_tokens: limits.1,
        thinking_support: limits.2,
        supports_effort: matches!(limits.2, ThinkingSupport::Adaptive),
        prices: TokenPrices { input, output, cache_read, cache_write_5m, cache_write_1h },
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::content::{CacheCreation, ServerToolUse};

    use super::*;

    #[test]
    fn model_is_found_by_every_name() {
        let catalog = Catalog::default();
        let table = [
            ("opus", Some("claude-opus-5-5"), 1_000_000),
            ("Opus", Some("claude-opus-5-5"), 1_000_000),
            ("sonnet[1m]", Some("claude-sonnet-5-5"), 1_000_000),
            ("claude-opus-4-5-20251101", Some("claude-opus-4-5"), 200_000),
            ("claude-sonnet-4-5-20250929[1m]", Some("claude-sonnet-4-5"), 1_000_000),
            ("claude-3-5-haiku-latest", Some("claude-3-5-haiku"), 200_000),
            ("claude-3-5-haiku-20241022", Some("claude-3-5-haiku"), 200_000),
            ("claude-opus-9", None, 0),
            ("gpt-7", None, 0),
            ("", None, 0),
        ];
        for (name, expected, window) in table {
            let found = catalog.lookup(name);
            assert_eq!(found.as_ref().map(|info| info.name), expected, "{name}");
            assert_eq!(found.map_or(0, |info| info.context_window), window, "{name}");
        }
        assert_eq!(catalog.resolve_alias("haiku[1m]"), "claude-haiku-5-5[1m]");
        assert_eq!(catalog.resolve_alias("openai:gpt-7"), "openai:gpt-7");
    }

    #[test]
    fn default_models_and_aliases_are_in_the_table() {
        let catalog = Catalog::default();
        for name in [catalog.default_model(), catalog.small_fast_model(), "opus", "sonnet", "haiku", "fable"]
        {
            assert!(catalog.lookup(name).is_some(), "{name}");
        }
        assert_eq!(catalog.models_with_aliases().filter(|(alias, _)| alias.is_some()).count(), 4);
    }

    #[test]
    fn tokens_are_priced_by_kind() {
        let million = 1_000_000;
        let table = [
            ("read", Usage { input_tokens: million, ..Usage::default() }, 5.0),
            ("written", Usage { output_tokens: million, ..Usage::default() }, 25.0),
            ("from the cache", Usage { cache_read_input_tokens: million, ..Usage::default() }, 0.5),
            ("to the cache", Usage { cache_creation_input_tokens: million, ..Usage::default() }, 6.25),
            (
                "to the cache, half of it for an hour",
                Usage {
                    cache_creation_input_tokens: million,
                    cache_creation: CacheCreation {
                        ephemeral_1h_input_tokens: million / 2,
                        ephemeral_5m_input_tokens: million / 2,
                    },
                    ..Usage::default()
                },
                8.125,
            ),
            (
                "searches",
                Usage {
                    server_tool_use: ServerToolUse { web_search_requests: 3, ..ServerToolUse::default() },
                    ..Usage::default()
                },
                0.03,
            ),
        ];
        let opus = Catalog::default().lookup("claude-opus-4-5-20251101").unwrap();
        for (name, usage, dollars) in table {
            assert!((opus.cost(&usage) - dollars).abs() < 1e-9, "{name}: {}", opus.cost(&usage));
        }
        let absurd =
            Usage { input_tokens: u64::MAX, cache_creation_input_tokens: u64::MAX, ..Usage::default() };
        assert!(opus.cost(&absurd).is_finite());
    }

    #[test]
    fn older_models_get_a_thinking_limit() {
        let catalog = Catalog::default();
        let table = [
            ("claude-opus-4-5", Thinking::Enabled { budget: 31_999 }),
            ("claude-haiku-4-5-20251001", Thinking::Enabled { budget: 31_999 }),
            ("claude-opus-4-6", Thinking::Adaptive),
            ("claude-sonnet-5-5", Thinking::Adaptive),
            ("claude-3-5-haiku", Thinking::Disabled),
            ("unheard-of", Thinking::Disabled),
        ];
        for (model, expected) in table {
            assert_eq!(catalog.default_thinking(model, 32_000), expected, "{model}");
        }
        assert_eq!(catalog.max_output_tokens("claude-3-5-haiku-latest"), 8192);
        assert_eq!(catalog.max_output_tokens("unheard-of"), 32_000);
    }

    #[test]
    fn thinking_and_effort_are_limited_to_model_support() {
        use Thinking::{Adaptive, Disabled, Enabled};
        let catalog = Catalog::default();
        let some = Enabled { budget: 5000 };
        let table = [
            ("claude-sonnet-5-5", [Adaptive, some, Disabled], true),
            ("claude-opus-4-5", [Enabled { budget: 31_999 }, some, Disabled], true),
            ("claude-sonnet-4-5-20250929", [Enabled { budget: 31_999 }, some, Disabled], false),
            ("claude-3-5-haiku", [Disabled, Disabled, Disabled], false),
            ("unheard-of", [Adaptive, some, Disabled], true),
        ];
        for (model, expected, effort) in table {
            let supported =
                [Adaptive, some, Disabled].map(|wanted| catalog.supported_thinking(model, wanted, 32_000));
            assert_eq!((supported, catalog.supports_effort(model)), (expected, effort), "{model}");
        }
    }
}
