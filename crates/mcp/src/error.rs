//! Errors of servers, classified by remedy, and the reconnect backoff.

use std::time::Duration;

use whimbrel_os::backoff::Backoff;

/// Error of a server or of a request to it. The text continues a sentence that starts with `MCP server x:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// Cannot work as configured. Not retried.
    #[error("{0}")]
    Permanent(String),
    /// Requires a login. Not retried.
    #[error(
        "it requires a login: {0} Run `whimbrel mcp login` with its name, or set a token in its `headers`; then reconnect."
    )]
    NeedsAuth(String),
    /// Unreachable, or the connection broke.
    #[error("{0}")]
    Disconnected(String),
    #[error("it did not answer within {}.", format_duration(*.0))]
    Timeout(Duration),
    /// Answered with a JSON-RPC error.
    #[error("{0}")]
    ErrorResponse(String),
    /// The response is not valid.
    #[error("its response is not valid: {0}")]
    InvalidResponse(String),
    /// The caller no longer needs the response.
    #[error("the call was cancelled.")]
    Cancelled,
}

fn format_duration(limit: Duration) -> String {
    match limit.as_millis() {
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        millis => format!("{millis} ms"),
    }
}

impl McpError {
    /// Returns true if a retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Permanent(_) | Self::NeedsAuth(_) | Self::Cancelled => false,
            Self::Disconnected(_) | Self::Timeout(_) | Self::ErrorResponse(_) | Self::InvalidResponse(_) => {
                true
            }
        }
    }

    /// Delay before the next connection attempt after `failures` failures in a row; `None` gives up.
    pub(super) fn retry_delay(&self, failures: u32, backoff: ReconnectBackoff) -> Option<Duration> {
        self.is_transient().then(|| backoff.delay(failures)).flatten()
    }
}

/// Exponential backoff for reconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectBackoff {
    /// Delay before the first retry; doubles with each further one.
    pub initial_delay: Duration,
    pub max_attempts: u32,
}

impl Default for ReconnectBackoff {
    fn default() -> Self {
        Self { initial_delay: Duration::from_secs(1), max_attempts: 5 }
    }
}

impl ReconnectBackoff {
    fn delay(self, failures: u32) -> Option<Duration> {
        let backoff = Backoff { initial: self.initial_delay, factor: 2, max: Duration::MAX };
        (failures <= self.max_attempts).then(|| backoff.delay(failures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_retried_and_not_forever() {
        let backoff = ReconnectBackoff { initial_delay: Duration::from_secs(1), max_attempts: 3 };
        let disconnected = || McpError::Disconnected(String::new());
        for (name, error, failures, seconds) in [
            ("first failure", disconnected(), 1, Some(1)),
            ("second failure", disconnected(), 2, Some(2)),
            ("third failure", disconnected(), 3, Some(4)),
            ("attempts exhausted", disconnected(), 4, None),
            ("far beyond the limit", disconnected(), u32::MAX, None),
            ("timeout", McpError::Timeout(Duration::ZERO), 1, Some(1)),
            ("error response", McpError::ErrorResponse(String::new()), 1, Some(1)),
            ("permanent error", McpError::Permanent(String::new()), 1, None),
            ("login required", McpError::NeedsAuth(String::new()), 1, None),
        ] {
            assert_eq!(error.retry_delay(failures, backoff), seconds.map(Duration::from_secs), "{name}");
        }
    }

    #[test]
    fn timeouts_are_shown_with_their_unit() {
        assert_eq!(McpError::Timeout(Duration::from_secs(30)).to_string(), "it did not answer within 30 s.");
        assert_eq!(
            McpError::Timeout(Duration::from_millis(1500)).to_string(),
            "it did not answer within 1500 ms."
        );
    }
}
