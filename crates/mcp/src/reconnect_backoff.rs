//! When and how often a connection to a server is tried again after a failure.

use std::time::Duration;

use whimbrel_os::backoff::Backoff;

use super::error::McpError;

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

impl McpError {
    /// Delay before the next connection attempt after `failures` failures in a row; `None` gives up.
    pub(super) fn retry_delay(&self, failures: u32, backoff: ReconnectBackoff) -> Option<Duration> {
        self.is_transient().then(|| backoff.delay(failures)).flatten()
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
}
