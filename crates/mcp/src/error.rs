//! Errors of servers, classified by remedy.

use std::time::Duration;

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_shown_with_their_unit() {
        assert_eq!(McpError::Timeout(Duration::from_secs(30)).to_string(), "it did not answer within 30 s.");
        assert_eq!(
            McpError::Timeout(Duration::from_millis(1500)).to_string(),
            "it did not answer within 1500 ms."
        );
    }
}
