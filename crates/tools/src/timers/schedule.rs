//! Due times of timers. Pure: the current time is a parameter.

use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use jiff::Zoned;

#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    Cron {
        /// The expression as written.
        text: String,
        /// The parsed expression.
        pattern: Box<Cron>,
        recurrence: Recurrence,
    },
    /// Once, after a delay.
    Wakeup(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    EveryTime,
    /// At the first due time only.
    Once,
}

impl Schedule {
    /// Parses a cron expression of five fields, in local time.
    pub fn parse_cron(text: &str, recurrence: Recurrence) -> Result<Self, String> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.split(' ').count() != 5 {
            return Err(format!(
                "{text:?} must have five fields: minute, hour, day of month, month, day of week"
            ));
        }
        let pattern = Cron::from_str(&text)
            .map_err(|error| format!("{text:?} is not a valid cron expression: {error}"))?;
        Ok(Self::Cron { text, pattern: Box::new(pattern), recurrence })
    }

    /// The first due time after `now`, if any.
    pub fn next_after(&self, now: &Zoned) -> Option<Zoned> {
        match self {
            Self::Cron { pattern, .. } => pattern.find_next_occurrence(now, false).ok(),
            Self::Wakeup(delay) => now.checked_add(*delay).ok(),
        }
    }

    /// The next due time of a job that has fired, if it repeats.
    pub fn next_repeat(&self, now: &Zoned) -> Option<Zoned> {
        match self {
            Self::Cron { recurrence: Recurrence::EveryTime, .. } => self.next_after(now),
            Self::Cron { recurrence: Recurrence::Once, .. } | Self::Wakeup(_) => None,
        }
    }

    pub fn is_recurring(&self) -> bool {
        matches!(self, Self::Cron { recurrence: Recurrence::EveryTime, .. })
    }

    /// The cron expression as written; for a wake-up, its description.
    pub fn expression(&self) -> String {
        match self {
            Self::Cron { text, .. } => text.clone(),
            Self::Wakeup(_) => self.describe(),
        }
    }

    /// Describes the schedule for the user.
    pub fn describe(&self) -> String {
        match self {
            Self::Cron { pattern, .. } => pattern.describe(),
            Self::Wakeup(delay) => format!("after {} seconds", delay.as_secs()),
        }
    }
}
