//! The limits and switches of a session's agents.

use std::collections::BTreeMap;
use std::time::Duration;

use whimbrel_wire::options::Options;

use super::{SetupError, model};
use crate::agent::Limits;
use crate::context::room::Switches;
use crate::engine::Engine;
use crate::settings::Known;

/// How many minutes an overload may be ridden out at most: a month.
const LONGEST_RIDE: u64 = 30 * 24 * 60;

/// What options, environment and settings say about them.
pub(super) fn limits(
    engine: &Engine,
    options: &Options,
    env: &BTreeMap<String, String>,
    known: &Known,
) -> Result<Limits, SetupError> {
    let switches = Switches::from_env(env).map_err(SetupError::Invalid)?;
    let number = |name: &str| -> Result<Option<u64>, SetupError> {
        env.get(name)
            .map(|text| text.trim().parse())
            .transpose()
            .map_err(|_| SetupError::Invalid(format!("{name} must be a whole number.")))
    };
    if options.task_budget == Some(0) {
        let text = "--task-budget must be more than 0 tokens: with none, nothing can be done.";
        return Err(SetupError::Invalid(text.into()));
    }
    Ok(Limits {
        max_turns: options.max_turns,
        max_budget: options.max_budget_usd,
        task_budget: options.task_budget,
        max_output_tokens: options.max_output_tokens.or(number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?),
        max_retries: number("CLAUDE_CODE_MAX_RETRIES")?.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        ride_out: number("WHIMBREL_RIDE_OUT_MINUTES")?
            .map(|minutes| Duration::from_secs(minutes.min(LONGEST_RIDE) * 60)),
        partial_messages: options.include_partial_messages,
        betas: options.betas.clone(),
        fallback_models: model::fallback_models(engine, options, known),
        compaction: Switches { off: switches.off || known.auto_compact_enabled == Some(false), ..switches },
    })
}
