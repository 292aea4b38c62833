//! When a job is due. Pure: the time comes in as a value.

use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use jiff::Zoned;

/// When a job is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// At the times of a cron expression.
    Cron {
        /// The expression, as it was written.
        text: String,
        /// What it means.
        pattern: Box<Cron>,
        /// How often.
        recurrence: Recurrence,
    },
    /// Once, after a while.
    Wakeup(Duration),
}

/// How often a job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// Every time.
    EveryTime,
    /// The first time only.
    Once,
}

impl Schedule {
    /// Reads a cron expression of five fields, in the time of this machine.
    pub fn parse_cron(text: &str, often: Recurrence) -> Result<Self, String> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.split(' ').count() != 5 {
            return Err(format!(
                "{text:?} must have five fields: minute, hour, day of month, month, day of week"
            ));
        }
        let pattern =
            Cron::from_str(&text).map_err(|error| format!("{text:?} is no cron expression: {error}"))?;
        Ok(Self::Cron { text, pattern: Box::new(pattern), recurrence: often })
    }

    /// The first time after this one; none if there is none.
    pub fn next_after(&self, now: &Zoned) -> Option<Zoned> {
        match self {
            Self::Cron { pattern, .. } => pattern.find_next_occurrence(now, false).ok(),
            Self::Wakeup(delay) => now.checked_add(*delay).ok(),
        }
    }

    /// The next time after a job was due; none if that was all.
    pub fn next_repeat(&self, now: &Zoned) -> Option<Zoned> {
        match self {
            Self::Cron { recurrence: Recurrence::EveryTime, .. } => self.next_after(now),
            Self::Cron { recurrence: Recurrence::Once, .. } | Self::Wakeup(_) => None,
        }
    }

    /// Whether it is due more than once.
    pub fn is_recurring(&self) -> bool {
        matches!(self, Self::Cron { recurrence: Recurrence::EveryTime, .. })
    }

    /// The expression, as it was written; of a wake-up, how it would be said.
    pub fn expression(&self) -> String {
        match self {
            Self::Cron { text, .. } => text.clone(),
            Self::Wakeup(_) => self.describe(),
        }
    }

    /// The same for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Cron { pattern, .. } => pattern.describe(),
            Self::Wakeup(delay) => format!("after {} seconds", delay.as_secs()),
        }
    }
}
