//! Limits, timeouts and budget of a session's agents.

use std::time::Duration;

use whimbrel_config::settings::TypedSettings;
use whimbrel_models::model_call::CallTimeouts;
use whimbrel_tools::cost::unknown_price_text;
use whimbrel_wire::options::Options;

use super::env::{Env, parse_non_blank_number, parse_number};
use super::{SetupError, model};
use crate::agent::AgentLimits;
use crate::agents::spawn_limits::CONCURRENCY_VARIABLE;
use crate::agents::team::MAX_MESSAGES_VARIABLE;
use crate::context::compaction_policy::CompactionConfig;
use crate::engine::Engine;

/// Limit on the minutes of retrying during an overload: a month.
const MAX_RETRY_MINUTES: u64 = 30 * 24 * 60;

/// Limit on timeouts in milliseconds: a month.
const MAX_TIMEOUT_MILLIS: u64 = MAX_RETRY_MINUTES * 60 * 1000;

/// Timeouts for replies of a provider, from environment variables in milliseconds.
fn parse_timing(
    number: impl Fn(&str) -> Result<Option<u64>, SetupError>,
) -> Result<CallTimeouts, SetupError> {
    let default = CallTimeouts::default();
    let time = |name: &str, default: Duration| -> Result<Duration, SetupError> {
        Ok(number(name)?.map_or(default, |millis| Duration::from_millis(millis.min(MAX_TIMEOUT_MILLIS))))
    };
    Ok(CallTimeouts {
        response_start: time("API_TIMEOUT_MS", default.response_start)?,
        bytes: time("WHIMBREL_NO_BYTES_TIMEOUT_MS", default.bytes)?,
        events: time("WHIMBREL_NO_EVENTS_TIMEOUT_MS", default.events)?,
        total: time("WHIMBREL_REPLY_TIMEOUT_MS", default.total)?,
    })
}

/// Builds the limits from options, environment and settings.
pub(super) fn resolve_limits(
    engine: &Engine,
    options: &Options,
    env: &Env,
    settings: &TypedSettings,
) -> Result<AgentLimits, SetupError> {
    let compaction = CompactionConfig::from_env(env).map_err(SetupError::Invalid)?;
    let number = |name: &str| parse_non_blank_number(env, name);
    let positive = |name: &str| match number(name)? {
        Some(0) => Err(SetupError::Invalid(format!("{name} must be a whole number above 0."))),
        number => Ok(number),
    };
    let max_output_tokens = options.max_output_tokens.or(positive("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?);
    if max_output_tokens == Some(0) {
        return Err(SetupError::InvalidOption {
            option: "max_output_tokens",
            reason: "must be more than 0.".into(),
        });
    }
    if options.max_turns == Some(0) {
        return Err(SetupError::InvalidOption { option: "max_turns", reason: "must be at least 1.".into() });
    }
    if options.task_budget == Some(0) {
        return Err(SetupError::InvalidOption {
            option: "task_budget",
            reason: "must be more than 0 tokens.".into(),
        });
    }
    let max_turns = positive("CLAUDE_CODE_MAX_TURNS")?.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    Ok(AgentLimits {
        max_turns: options.max_turns.or(max_turns),
        max_budget_usd: options.max_budget_usd,
        task_budget_tokens: options.task_budget,
        max_output_tokens,
        max_retries: number("CLAUDE_CODE_MAX_RETRIES")?.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        overload_timeout: number("WHIMBREL_OVERLOAD_TIMEOUT_MINUTES")?
            .map(|minutes| Duration::from_secs(minutes.min(MAX_RETRY_MINUTES) * 60)),
        timing: parse_timing(positive)?,
        betas: options.betas.clone(),
        fallback_models: model::fallback_models(engine, options, settings),
        compaction: CompactionConfig {
            auto_disabled: compaction.auto_disabled || settings.auto_compact_enabled == Some(false),
            ..compaction
        },
    })
}

/// Checks the budget: it must be a positive amount, and every model must have a price.
pub(super) fn check_budget(
    engine: &Engine,
    options: &Options,
    settings: &TypedSettings,
    model: &str,
) -> Result<(), SetupError> {
    let models = std::iter::once(model.to_owned()).chain(model::fallback_models(engine, options, settings));
    let unpriced = models.into_iter().find(|model| engine.catalog().lookup(model).is_none());
    match options.max_budget_usd {
        None => Ok(()),
        Some(dollars) if !(dollars.is_finite() && dollars > 0.0) => Err(SetupError::InvalidOption {
            option: "max_budget_usd",
            reason: format!("must be an amount above 0, but is {dollars}."),
        }),
        Some(_) => unpriced.map_or(Ok(()), |model| Err(SetupError::Invalid(unknown_price_text(&model)))),
    }
}

/// Limit on concurrent agents, if set.
pub(super) fn max_concurrent_agents(env: &Env) -> Result<Option<usize>, SetupError> {
    match parse_number(env, CONCURRENCY_VARIABLE)? {
        Some(0) => Err(SetupError::Invalid(format!("{CONCURRENCY_VARIABLE} must be at least 1."))),
        other => Ok(other.map(|number| usize::try_from(number).unwrap_or(usize::MAX))),
    }
}

/// Limit on messages of a team, if set.
pub(super) fn max_team_messages(env: &Env) -> Result<Option<usize>, SetupError> {
    Ok(parse_number(env, MAX_MESSAGES_VARIABLE)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use whimbrel_models::providers::Providers;

    use super::*;

    fn limits_with(name: &str, value: &str) -> Result<AgentLimits, SetupError> {
        let env = [(name.to_owned(), value.to_owned())].into();
        resolve_limits(
            &Engine::new(Providers::offline()),
            &Options::default(),
            &env,
            &TypedSettings::default(),
        )
    }

    #[test]
    fn zero_and_invalid_limits_name_their_variable() {
        let names = [
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_TURNS",
            "API_TIMEOUT_MS",
            "WHIMBREL_REPLY_TIMEOUT_MS",
        ];
        for (name, value) in
            names.into_iter().flat_map(|name| ["0", "-1", "much", ""].map(|value| (name, value)))
        {
            let error = limits_with(name, value).unwrap_err().to_string();
            assert!(error.contains(name), "{name}={value}: {error}");
        }
        assert_eq!(
            limits_with("CLAUDE_CODE_MAX_OUTPUT_TOKENS", " 5000 ").unwrap().max_output_tokens,
            Some(5000)
        );
        let none = Options { max_output_tokens: Some(0), ..Options::default() };
        let engine = Engine::new(Providers::offline());
        assert!(resolve_limits(&engine, &none, &Env::new(), &TypedSettings::default()).is_err());
    }

    #[test]
    fn option_wins_over_the_variable_for_turns() {
        let engine = Engine::new(Providers::offline());
        let env = [("CLAUDE_CODE_MAX_TURNS".to_owned(), "7".to_owned())].into();
        for (given, expected) in [(None, 7), (Some(3), 3)] {
            let options = Options { max_turns: given, ..Options::default() };
            let limits = resolve_limits(&engine, &options, &env, &TypedSettings::default()).unwrap();
            assert_eq!(limits.max_turns, Some(expected), "{given:?}");
        }
    }

    #[test]
    fn each_timeout_has_its_variable() {
        let (default, set) = (CallTimeouts::default(), Duration::from_millis(1500));
        let table = [
            ("API_TIMEOUT_MS", CallTimeouts { response_start: set, ..default }),
            ("WHIMBREL_NO_BYTES_TIMEOUT_MS", CallTimeouts { bytes: set, ..default }),
            ("WHIMBREL_NO_EVENTS_TIMEOUT_MS", CallTimeouts { events: set, ..default }),
            ("WHIMBREL_REPLY_TIMEOUT_MS", CallTimeouts { total: set, ..default }),
            ("SOMETHING_ELSE", default),
        ];
        for (name, expected) in table {
            assert_eq!(limits_with(name, "1500").unwrap().timing, expected, "{name}");
        }
        let longest = limits_with("API_TIMEOUT_MS", &u64::MAX.to_string()).unwrap().timing.response_start;
        assert_eq!(longest, Duration::from_millis(MAX_TIMEOUT_MILLIS), "too large for a clock");
    }

    #[test]
    fn concurrent_agents_are_limited_by_a_variable() {
        let env = |value: &str| [(CONCURRENCY_VARIABLE.to_owned(), value.to_owned())].into();
        let error = max_concurrent_agents(&env("0")).unwrap_err();
        assert!(error.to_string().contains(CONCURRENCY_VARIABLE), "{error}");
        assert_eq!(max_concurrent_agents(&env("3")).unwrap(), Some(3));
    }
}
