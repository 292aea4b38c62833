//! The gate's answer about one call.

use serde_json::Value;
use whimbrel_policy::Place;

/// The gate's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Permit {
    /// Whether the call is made.
    pub verdict: Verdict,
    /// What the model is told besides.
    pub notes: Vec<String>,
    /// Set if the turn ends after the call.
    pub halt: Option<Halt>,
}

/// Whether a call is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Make it.
    Go {
        /// With this input.
        input: Value,
        /// On this file, if it is about one.
        place: Option<Place>,
    },
    /// Do not.
    No {
        /// What the model is told.
        message: String,
        /// What decided.
        by: Refuser,
        /// The input that was refused, if it is not the model's.
        changed: Option<Value>,
    },
    /// Not now: the host takes it up later, with this input.
    Defer(Value),
}

impl Verdict {
    /// The verdict in a few words.
    pub fn told(&self) -> String {
        match self {
            Self::Go { .. } => "permitted".into(),
            Self::No { by: Refuser::Rules, .. } => "refused by the rules".into(),
            Self::No { by: Refuser::Hook, .. } => "refused by a hook".into(),
            Self::No { by: Refuser::Host, .. } => "refused by the host".into(),
            Self::No { by: Refuser::NoAnswer, .. } => "refused for want of an answer".into(),
            Self::Defer(_) => "put off".into(),
        }
    }
}

/// Why a turn ends after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Whoever was asked said no, and that everything is to stop.
    Refused,
    /// A hook said so.
    Hook,
    /// The call was put off.
    Deferred,
}

/// Who refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuser {
    /// A rule or the mode.
    Rules,
    /// A hook.
    Hook,
    /// The host said no.
    Host,
    /// The host could not be asked, or its answer made no sense.
    NoAnswer,
}

impl Permit {
    pub(super) fn go(input: Value, place: Option<Place>) -> Self {
        Self { verdict: Verdict::Go { input, place }, notes: Vec::new(), halt: None }
    }

    pub(super) fn no(message: String, by: Refuser) -> Self {
        Self { verdict: Verdict::No { message, by, changed: None }, notes: Vec::new(), halt: None }
    }

    /// The same about an input that is not the model's, unless it is about another one already.
    pub(super) fn of(mut self, input: Value) -> Self {
        if let Verdict::No { changed, .. } = &mut self.verdict {
            changed.get_or_insert(input);
        }
        self
    }
}
