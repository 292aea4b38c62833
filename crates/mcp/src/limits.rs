//! Timeouts and size limits of MCP servers.

use std::time::Duration;

use whimbrel_wire::options::McpServerConfig;

use super::expand::VariableLookup;
use super::reconnect_backoff::ReconnectBackoff;

/// Maximum size of a message. A server that sends more is disconnected.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// Maximum number of tools, prompts or resources of a server, and of pages read for them.
pub(super) const MAX_LISTED_ITEMS: usize = 1000;
pub(super) const MAX_LIST_PAGES: usize = 100;
/// Maximum size of a description and of a server's instructions; longer texts are truncated.
pub(super) const MAX_DESCRIPTION_BYTES: usize = 2048;
pub(super) const MAX_INSTRUCTIONS_BYTES: usize = 4 * 1024;
/// Maximum size of the instructions of all servers together.
pub const MAX_TOTAL_INSTRUCTIONS_BYTES: usize = 32 * 1024;
/// Maximum size and nesting of an input schema.
pub(super) const MAX_SCHEMA_BYTES: usize = 100_000;
pub(super) const MAX_SCHEMA_DEPTH: usize = 40;

/// Limits that the user can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// Timeout for starting a server (`MCP_TIMEOUT`).
    pub connect_timeout: Duration,
    /// Timeout of a tool call (`MCP_TOOL_TIMEOUT`); an entry's own `timeout` wins.
    pub call_timeout: Duration,
    /// Maximum silence of a remote server during a call.
    pub idle_timeout: Duration,
    /// Maximum text size of a result for the model (`MAX_MCP_OUTPUT_TOKENS`, counted as four bytes each).
    pub max_output_bytes: usize,
    pub backoff: ReconnectBackoff,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            // Some tools wait for the user.
            call_timeout: Duration::from_hours(24),
            idle_timeout: Duration::from_mins(5),
            max_output_bytes: 100_000,
            backoff: ReconnectBackoff::default(),
        }
    }
}

impl McpLimits {
    /// Reads the limits from environment variables; invalid values are ignored.
    pub fn from_env(variables: VariableLookup<'_>) -> Self {
        let number = |name: &str| variables(name)?.trim().parse::<u64>().ok().filter(|number| *number > 0);
        let defaults = Self::default();
        let tokens = number("MAX_MCP_OUTPUT_TOKENS").and_then(|tokens| usize::try_from(tokens).ok());
        Self {
            connect_timeout: number("MCP_TIMEOUT").map_or(defaults.connect_timeout, Duration::from_millis),
            call_timeout: number("MCP_TOOL_TIMEOUT").map_or(defaults.call_timeout, Duration::from_millis),
            max_output_bytes: tokens.map_or(defaults.max_output_bytes, |tokens| tokens.saturating_mul(4)),
            ..defaults
        }
    }
}

/// Timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestTimeouts {
    pub(super) total: Duration,
    /// Maximum time without response or progress.
    pub(super) idle: Option<Duration>,
}

impl RequestTimeouts {
    pub(super) fn from_total(total: Duration) -> Self {
        Self { total, idle: None }
    }
}

/// Timeouts of a call. The idle timeout applies only to remote servers, whose connection may be dead without notice.
pub(super) fn request_timeouts(config: &McpServerConfig, limits: McpLimits) -> RequestTimeouts {
    let (configured, idle) = match config {
        McpServerConfig::Stdio(server) => (server.timeout, None),
        McpServerConfig::Sdk(server) => (server.timeout, None),
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) => {
            (server.timeout, Some(limits.idle_timeout))
        }
    };
    let configured = entry_timeout(configured);
    // An explicit timeout replaces the idle timeout.
    RequestTimeouts {
        total: configured.unwrap_or(limits.call_timeout),
        idle: idle.filter(|_| configured.is_none()),
    }
}

/// Timeout of an entry, given in milliseconds; `None` if it is not positive.
fn entry_timeout(timeout: Option<f64>) -> Option<Duration> {
    let millis = timeout.filter(|millis| *millis >= 1.0)?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_overrides_limits_where_valid() {
        let variables = |name: &str| match name {
            "MCP_TIMEOUT" => Some("1500".to_owned()),
            "MCP_TOOL_TIMEOUT" => Some("soon".to_owned()),
            "MAX_MCP_OUTPUT_TOKENS" => Some("10".to_owned()),
            _ => None,
        };
        let expected = McpLimits {
            connect_timeout: Duration::from_millis(1500),
            max_output_bytes: 40,
            ..McpLimits::default()
        };
        assert_eq!(McpLimits::from_env(&variables), expected);
        assert_eq!(McpLimits::from_env(&|_| Some("0".into())), McpLimits::default());
    }

    #[test]
    fn an_entry_can_set_its_own_timeout() {
        assert_eq!(entry_timeout(Some(250.0)), Some(Duration::from_millis(250)));
        for timeout in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert_eq!(entry_timeout(timeout), None, "{timeout:?}");
        }
    }
}
