//! When to compact: the threshold, and the limit on attempts without progress. Pure.

use std::collections::BTreeMap;

/// Limit on the tokens reserved for the summary.
const SUMMARY_RESERVE_TOKENS: u64 = 20_000;

/// Tokens between the threshold and the last point at which a summary still fits.
const MARGIN_TOKENS: u64 = 13_000;

/// Limit on compactions in a row without progress.
const MAX_CONSECUTIVE: u32 = 3;

/// Number of replies that count as progress.
const MIN_PROGRESS_REPLIES: u32 = 3;

/// Settings of auto-compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompactionConfig {
    /// Disables automatic compaction.
    pub auto_disabled: bool,
    /// Disables manual `/compact` too.
    pub fully_disabled: bool,
    /// Threshold in percent of the window; can only lower the default.
    pub percent: Option<f64>,
    /// A window smaller than the model's, in tokens; for a model that the catalog does not know, its window.
    pub window: Option<u64>,
}

impl CompactionConfig {
    /// Reads the settings from the environment. The error names an invalid variable.
    pub fn from_env(env: &BTreeMap<String, String>) -> Result<Self, String> {
        let is_set = |name: &str| {
            env.get(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false" | "no"))
        };
        let number = |name: &str, limit: f64| match env
            .get(name)
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
        {
            None => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number >= 1.0 && number <= limit => Ok(Some(number)),
                _ => Err(format!("{name} must be a number from 1 to {limit}, but is {text:?}.")),
            },
        };
        Ok(Self {
            auto_disabled: is_set("DISABLE_AUTO_COMPACT") || is_set("DISABLE_COMPACT"),
            fully_disabled: is_set("DISABLE_COMPACT"),
            percent: number("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", 100.0)?,
            window: number("CLAUDE_CODE_AUTO_COMPACT_WINDOW", 1e9)?.map(|tokens| tokens as u64),
        })
    }

    /// The threshold in tokens, for a context window and an output limit.
    pub fn threshold(&self, window: u64, max_output: u64) -> u64 {
        let window = self.window.map_or(window, |limit| limit.min(window));
        let usable = window - SUMMARY_RESERVE_TOKENS.min(max_output).min(window / 4);
        let default = usable - MARGIN_TOKENS.min(window / 10);
        match self.percent {
            Some(percent) => default.min((usable as f64 * percent / 100.0) as u64),
            None => default,
        }
    }
}

/// Compaction attempts of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompactionState {
    /// Attempts without progress in between.
    consecutive: u32,
    /// Replies since the last attempt; `None` before the first.
    replies_since: Option<u32>,
}

impl CompactionState {
    /// Records an attempt, successful or not.
    pub fn record_attempt(&mut self) {
        self.consecutive += 1;
        self.replies_since = Some(0);
    }

    pub fn record_reply(&mut self) {
        if let Some(replies) = &mut self.replies_since {
            *replies += 1;
            if *replies >= MIN_PROGRESS_REPLIES {
                *self = Self::default();
            }
        }
    }

    /// Returns whether to try: not directly after an attempt, and not without progress.
    pub fn should_try(&self) -> bool {
        self.replies_since != Some(0) && self.consecutive < MAX_CONSECUTIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_below_window() {
        let config = |percent, window| CompactionConfig { percent, window, ..CompactionConfig::default() };
        let table = [
            ("default", config(None, None), 200_000, 32_000, 167_000),
            ("a large window", config(None, None), 1_000_000, 128_000, 967_000),
            ("little output", config(None, None), 200_000, 8_192, 178_808),
            ("a small window", config(None, None), 8_000, 32_000, 5_200),
            ("no window at all", config(None, None), 0, 32_000, 0),
            ("lower percentage", config(Some(50.0), None), 200_000, 32_000, 90_000),
            ("percentage cannot raise it", config(Some(100.0), None), 200_000, 32_000, 167_000),
            ("smaller configured window", config(None, Some(100_000)), 1_000_000, 128_000, 70_000),
            (
                "configured window larger than the model's",
                config(None, Some(500_000)),
                200_000,
                32_000,
                167_000,
            ),
        ];
        for (name, config, window, output, expected) in table {
            assert_eq!(config.threshold(window, output), expected, "{name}");
        }
    }

    #[test]
    fn config_is_read_and_invalid_values_named() {
        let env = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            CompactionConfig::from_env(&pairs.collect())
        };
        assert_eq!(env(&[]), Ok(CompactionConfig::default()));
        assert_eq!(
            env(&[("DISABLE_AUTO_COMPACT", "1")]),
            Ok(CompactionConfig { auto_disabled: true, ..CompactionConfig::default() })
        );
        let disabled =
            CompactionConfig { auto_disabled: true, fully_disabled: true, ..CompactionConfig::default() };
        assert_eq!(env(&[("DISABLE_COMPACT", "true")]), Ok(disabled));
        assert_eq!(env(&[("DISABLE_AUTO_COMPACT", "0")]), Ok(CompactionConfig::default()));
        let both =
            env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50"), ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "9000")]);
        assert_eq!(
            both,
            Ok(CompactionConfig { percent: Some(50.0), window: Some(9000), ..CompactionConfig::default() })
        );
        for text in ["much", "0", "101", "NaN"] {
            let error = env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", text)]).unwrap_err();
            assert!(error.contains("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn compaction_is_not_repeated_without_progress() {
        let mut state = CompactionState::default();
        state.record_attempt();
        assert!(!state.should_try(), "no reply since the attempt");
        state.record_reply();
        assert!(state.should_try());
        state.record_attempt();
        state.record_reply();
        state.record_attempt();
        state.record_reply();
        assert!(!state.should_try(), "the context refills too fast");
        state.record_reply();
        state.record_reply();
        assert!(state.should_try(), "progress since the last compaction");
    }
}
