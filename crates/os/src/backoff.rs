//! Exponential backoff: the delay before each further attempt. Pure.

use std::time::Duration;

/// Delays that grow by a factor up to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub initial: Duration,
    pub factor: u32,
    pub max: Duration,
}

impl Backoff {
    /// The delay after this number of failures; the first one counts as 1.
    pub fn delay(&self, failures: u32) -> Duration {
        let growth = self.factor.saturating_pow(failures.saturating_sub(1));
        self.initial.saturating_mul(growth).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_grows_to_the_maximum() {
        let backoff = Backoff { initial: Duration::from_secs(1), factor: 2, max: Duration::from_secs(5) };
        for (failures, seconds) in [(0, 1), (1, 1), (2, 2), (3, 4), (4, 5), (u32::MAX, 5)] {
            assert_eq!(backoff.delay(failures), Duration::from_secs(seconds), "{failures}");
        }
    }
}
