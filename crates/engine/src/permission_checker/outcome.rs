//! The gate's answer about one call.

use serde_json::Value;
use whimbrel_policy::ResolvedFile;

/// The gate's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckOutcome {
    /// Whether the call is made.
    pub decision: CheckDecision,
    /// What the model is told besides.
    pub notes: Vec<String>,
    /// Set if the turn ends after the call.
    pub end_turn: Option<EndTurn>,
}

/// Whether a call is made.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckDecision {
    /// Make it.
    Allow {
        /// With this input.
        input: Value,
        /// On this file, if it is about one.
        file: Option<ResolvedFile>,
    },
    /// Do not.
    Deny {
        /// What the model is told.
        message: String,
        /// What decided.
        by: DeniedBy,
        /// The input that was refused, if it is not the model's.
        changed: Option<Value>,
    },
    /// Not now: the host takes it up later, with this input.
    Defer(Value),
}

impl CheckDecision {
    /// The verdict in a few words.
    pub fn summary(&self) -> String {
        match self {
            Self::Allow { .. } => "permitted".into(),
            Self::Deny { by: DeniedBy::Rules, .. } => "refused by the rules".into(),
            Self::Deny { by: DeniedBy::Hook, .. } => "refused by a hook".into(),
            Self::Deny { by: DeniedBy::Host, .. } => "refused by the host".into(),
            Self::Deny { by: DeniedBy::NoAnswer, .. } => "refused for want of an answer".into(),
            Self::Defer(_) => "put off".into(),
        }
    }
}

/// Why a turn ends after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndTurn {
    /// Whoever was asked said no, and that everything is to stop.
    Denied,
    /// A hook said so.
    Hook,
    /// The call was put off.
    Deferred,
}

/// Who refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    /// A rule or the mode.
    Rules,
    /// A hook.
    Hook,
    /// The host said no.
    Host,
    /// The host could not be asked, or its answer made no sense.
    NoAnswer,
}

impl CheckOutcome {
    pub(super) fn allow(input: Value, place: Option<ResolvedFile>) -> Self {
        Self { decision: CheckDecision::Allow { input, file: place }, notes: Vec::new(), end_turn: None }
    }

    pub(super) fn deny(message: String, by: DeniedBy) -> Self {
        Self { decision: CheckDecision::Deny { message, by, changed: None }, notes: Vec::new(), end_turn: None }
    }

    /// The same about an input that is not the model's, unless it is about another one already.
    pub(super) fn with_changed_input(mut self, input: Value) -> Self {
        if let CheckDecision::Deny { changed, .. } = &mut self.decision {
            changed.get_or_insert(input);
        }
        self
    }
}
