//! Outcome of a permission check.

use serde_json::Value;
use whimbrel_policy::CheckedCall;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckOutcome {
    pub decision: CheckDecision,
    /// Additional context for the model.
    pub notes: Vec<String>,
    /// Set if the turn ends after the call.
    pub end_turn: Option<EndTurn>,
}

/// Decision on a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckDecision {
    Allow {
        /// Input to use.
        input: Value,
        /// What the decision was made about.
        checked: CheckedCall,
    },
    Deny {
        /// Message for the model.
        message: String,
        by: DeniedBy,
        /// Denied input, if it is not the model's own.
        changed: Option<Value>,
    },
    /// The host resumes it later, with this input.
    Defer(Value),
}

impl CheckDecision {
    /// Summary for the log.
    pub fn summary(&self) -> String {
        match self {
            Self::Allow { .. } => "allowed".into(),
            Self::Deny { by: DeniedBy::Rules, .. } => "denied by the rules".into(),
            Self::Deny { by: DeniedBy::Hook, .. } => "denied by a hook".into(),
            Self::Deny { by: DeniedBy::Host, .. } => "denied by the host".into(),
            Self::Deny { by: DeniedBy::NoAnswer, .. } => "denied without an answer".into(),
            Self::Defer(_) => "deferred".into(),
        }
    }
}

/// Why the turn ends after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndTurn {
    /// Denied with `interrupt`.
    Denied,
    Hook,
    /// A hook deferred the call.
    HookDeferred,
}

/// What denied a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    /// A rule or the mode.
    Rules,
    Hook,
    Host,
    /// Requests cannot be sent, no answer in time, or an invalid answer.
    NoAnswer,
}

impl CheckOutcome {
    pub(super) fn allow(input: Value, checked: CheckedCall) -> Self {
        Self { decision: CheckDecision::Allow { input, checked }, notes: Vec::new(), end_turn: None }
    }

    pub(super) fn deny(message: String, by: DeniedBy) -> Self {
        Self {
            decision: CheckDecision::Deny { message, by, changed: None },
            notes: Vec::new(),
            end_turn: None,
        }
    }

    /// Records that the denied input is not the model's own, unless that is recorded already.
    pub(super) fn with_changed_input(mut self, input: Value) -> Self {
        if let CheckDecision::Deny { changed, .. } = &mut self.decision {
            changed.get_or_insert(input);
        }
        self
    }
}
