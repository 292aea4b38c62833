//! What can go wrong with a server, sorted by what can be done about it.

use std::time::Duration;

/// Why a server, or a request to it, failed. The text goes on where `MCP server x:` began.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// It cannot be reached as it is configured. Trying again does not help.
    #[error("{0}")]
    Permanent(String),
    /// It wants to know who asks. Trying again does not help.
    #[error(
        "it wants a login: {0} Log in with `whimbrel mcp login` and its name, or put a token into its `headers`; then reconnect."
    )]
    NeedsAuth(String),
    /// It cannot be reached, or the connection broke.
    #[error("{0}")]
    Disconnected(String),
    /// It did not answer in time.
    #[error("it did not answer within {}.", format_duration(*.0))]
    Timeout(Duration),
    /// It answered with an error.
    #[error("{0}")]
    ErrorResponse(String),
    /// Its answer makes no sense.
    #[error("its answer cannot be read: {0}")]
    InvalidResponse(String),
    /// Whoever asked no longer wants to know.
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
    /// Whether it may be over when it is tried again.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Permanent(_) | Self::NeedsAuth(_) | Self::Cancelled => false,
            Self::Disconnected(_) | Self::Timeout(_) | Self::ErrorResponse(_) | Self::InvalidResponse(_) => true,
        }
    }

    /// How long to wait before connecting again, after so many attempts in a row that failed. None: not at all.
    pub(super) fn retry_delay(&self, failed: u32, backoff: ReconnectBackoff) -> Option<Duration> {
        self.is_transient().then(|| backoff.delay(failed)).flatten()
    }
}

/// How patiently a server that was lost is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectBackoff {
    /// The wait before the first attempt; each further one is twice as long.
    pub initial_delay: Duration,
    /// How many attempts are made.
    pub max_attempts: u32,
}

impl Default for ReconnectBackoff {
    fn default() -> Self {
        Self { initial_delay: Duration::from_secs(1), max_attempts: 5 }
    }
}

impl ReconnectBackoff {
    fn delay(self, failed: u32) -> Option<Duration> {
        (failed <= self.max_attempts).then(|| self.initial_delay * 2_u32.saturating_pow(failed.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_come_back_is_tried_again_and_not_for_ever() {
        let backoff = ReconnectBackoff { initial_delay: Duration::from_secs(1), max_attempts: 3 };
        let gone = || McpError::Disconnected(String::new());
        for (name, fault, failed, seconds) in [
            ("at first soon", gone(), 1, Some(1)),
            ("then later", gone(), 2, Some(2)),
            ("then later still", gone(), 3, Some(4)),
            ("then no more", gone(), 4, None),
            ("nor ever again", gone(), u32::MAX, None),
            ("late", McpError::Timeout(Duration::ZERO), 1, Some(1)),
            ("an error", McpError::ErrorResponse(String::new()), 1, Some(1)),
            ("no such program", McpError::Permanent(String::new()), 1, None),
            ("no login", McpError::NeedsAuth(String::new()), 1, None),
        ] {
            assert_eq!(fault.retry_delay(failed, backoff), seconds.map(Duration::from_secs), "{name}");
        }
    }

    #[test]
    fn a_time_is_told_in_words() {
        assert_eq!(McpError::Timeout(Duration::from_secs(30)).to_string(), "it did not answer within 30 s.");
        assert_eq!(McpError::Timeout(Duration::from_millis(1500)).to_string(), "it did not answer within 1500 ms.");
    }
}
