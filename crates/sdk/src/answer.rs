//! The answer of a turn.

use std::fmt;

use serde_json::Value;
use whimbrel_wire::Usage;
use whimbrel_wire::message::{Denial, TurnResult};

/// The answer of a successful turn. It displays as its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    result: Box<TurnResult>,
}

impl Answer {
    pub(crate) fn new(result: Box<TurnResult>) -> Self {
        Self { result }
    }

    /// The model's last text.
    pub fn text(&self) -> &str {
        self.result.result.as_deref().unwrap_or_default()
    }

    /// Converts the answer to its text.
    pub fn into_text(self) -> String {
        self.result.result.unwrap_or_default()
    }

    /// The answer in the format that was asked for, if one was.
    pub fn structured_output(&self) -> Option<&Value> {
        self.result.structured_output.as_ref()
    }

    /// Cost of the session so far, in dollars.
    pub fn session_cost_usd(&self) -> f64 {
        self.result.total_cost_usd
    }

    /// Tokens of this turn.
    pub fn usage(&self) -> &Usage {
        &self.result.usage
    }

    /// Id of the session, by which it can be resumed.
    pub fn session_id(&self) -> &str {
        &self.result.session_id
    }

    /// Tool calls of this turn that were not permitted.
    pub fn denials(&self) -> &[Denial] {
        &self.result.permission_denials
    }

    /// The result frame with everything that the engine reports.
    pub fn result(&self) -> &TurnResult {
        &self.result
    }

    /// Converts the answer to the result frame.
    pub fn into_result(self) -> TurnResult {
        *self.result
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
