//! How long servers may take and how much they may say.

use std::time::Duration;

use super::expand::VariableLookup;
use super::error::ReconnectBackoff;

/// The longest message that a server may send. One that says more at once is ended.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// How many tools, prompts or resources of a server are taken, and from how many pages.
pub(super) const MAX_LISTED_ITEMS: usize = 1000;
pub(super) const MAX_LIST_PAGES: usize = 100;
/// How much of a description is kept, and of a server's instructions.
pub(super) const MAX_DESCRIPTION_BYTES: usize = 2048;
pub(super) const MAX_INSTRUCTIONS_BYTES: usize = 4 * 1024;
/// How much all servers together may want the model to know.
pub(super) const MAX_TOTAL_INSTRUCTIONS_BYTES: usize = 32 * 1024;
/// How large and how deep a schema may be.
pub(super) const MAX_SCHEMA_BYTES: usize = 100_000;
pub(super) const MAX_SCHEMA_DEPTH: usize = 40;

/// Limits of time and size that the user can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// How long a server may take to start (`MCP_TIMEOUT`).
    pub connect_timeout: Duration,
    /// How long a call may take (`MCP_TOOL_TIMEOUT`); an entry's own `timeout` wins.
    pub call_timeout: Duration,
    /// How long a server at an address may be silent during a call.
    pub idle_timeout: Duration,
    /// How many bytes of text a result may have for the model (`MAX_MCP_OUTPUT_TOKENS`, four bytes each).
    pub max_output_bytes: usize,
    /// How a lost server is looked for.
    pub backoff: ReconnectBackoff,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            // Some tools wait for a person.
            call_timeout: Duration::from_hours(24),
            idle_timeout: Duration::from_mins(5),
            max_output_bytes: 100_000,
            backoff: ReconnectBackoff::default(),
        }
    }
}

impl McpLimits {
    /// What the environment says.
    pub fn from_env(variables: VariableLookup<'_>) -> Self {
        let number = |name: &str| variables(name)?.trim().parse::<u64>().ok().filter(|number| *number > 0);
        let usual = Self::default();
        let tokens = number("MAX_MCP_OUTPUT_TOKENS").and_then(|tokens| usize::try_from(tokens).ok());
        Self {
            connect_timeout: number("MCP_TIMEOUT").map_or(usual.connect_timeout, Duration::from_millis),
            call_timeout: number("MCP_TOOL_TIMEOUT").map_or(usual.call_timeout, Duration::from_millis),
            max_output_bytes: tokens.map_or(usual.max_output_bytes, |tokens| tokens.saturating_mul(4)),
            ..usual
        }
    }
}

/// An entry's own `timeout`, in milliseconds, if it makes sense.
pub(super) fn entry_timeout(timeout: Option<f64>) -> Option<Duration> {
    let millis = timeout.filter(|millis| *millis >= 1.0)?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_its_say_where_it_makes_sense() {
        let set = |name: &str| match name {
            "MCP_TIMEOUT" => Some("1500".to_owned()),
            "MCP_TOOL_TIMEOUT" => Some("soon".to_owned()),
            "MAX_MCP_OUTPUT_TOKENS" => Some("10".to_owned()),
            _ => None,
        };
        let expected = McpLimits { connect_timeout: Duration::from_millis(1500), max_output_bytes: 40, ..McpLimits::default() };
        assert_eq!(McpLimits::from_env(&set), expected);
        assert_eq!(McpLimits::from_env(&|_| Some("0".into())), McpLimits::default());
    }

    #[test]
    fn an_entry_may_have_a_limit_of_its_own() {
        assert_eq!(entry_timeout(Some(250.0)), Some(Duration::from_millis(250)));
        for timeout in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert_eq!(entry_timeout(timeout), None, "{timeout:?}");
        }
    }
}
