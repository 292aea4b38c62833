//! Understudies: models that answer in another one's place while that one is not to be had.
//!
//! They are tried in order, for the rest of a turn; the next turn begins with the model itself again.

use whimbrel_models::{Fault, FaultKind};
use whimbrel_wire::system::ModelFallback;

use crate::agent::Agent;

/// How often an overloaded model is asked before an understudy is.
pub const ATTEMPTS: u32 = 3;

/// The understudies of an agent.
#[derive(Debug, Clone, Default)]
pub struct Understudies {
    names: Vec<String>,
    /// Which of them speaks, and for whom.
    speaks: Option<(usize, String)>,
}

impl Understudies {
    /// These models, by their full names, in this order.
    pub fn new(names: Vec<String>) -> Self {
        Self { names, speaks: None }
    }

    /// Begins a new turn: the model itself is asked again.
    pub fn begin_turn(&mut self) {
        self.speaks = None;
    }

    /// The model to ask when `wanted` is wanted.
    pub fn model(&self, wanted: &str) -> String {
        match &self.speaks {
            Some((at, stands_for)) if stands_for == wanted => self.names[*at].clone(),
            _ => wanted.to_owned(),
        }
    }

    /// Whether another one could be asked in place of `wanted`.
    pub fn are_left(&self, wanted: &str) -> bool {
        self.successor(wanted).is_some()
    }

    /// Lets the next one speak in place of `wanted`, and gives its name.
    pub fn step_in(&mut self, wanted: &str) -> Option<String> {
        let at = self.successor(wanted)?;
        self.speaks = Some((at, wanted.to_owned()));
        self.names.get(at).cloned()
    }

    /// The next one that is not the model itself.
    fn successor(&self, wanted: &str) -> Option<usize> {
        let from = match &self.speaks {
            Some((at, stands_for)) if stands_for == wanted => at + 1,
            _ => 0,
        };
        (from..self.names.len()).find(|at| self.names[*at] != wanted)
    }
}

/// Why a model is not to be had, as a word and as the middle of a sentence; none if another one would do no better.
pub fn unavailable(fault: &Fault) -> Option<(&'static str, &'static str)> {
    Some(match fault.kind {
        FaultKind::Overloaded => ("overloaded", "is overloaded"),
        FaultKind::ModelNotFound => ("model_not_found", "is not available"),
        FaultKind::RateLimit => ("rate_limit", "takes no more requests for now"),
        FaultKind::Server => ("server_error", "fails"),
        FaultKind::Connection | FaultKind::Stalled => ("unavailable", "does not answer"),
        FaultKind::NoCredentials
        | FaultKind::Authentication
        | FaultKind::Forbidden
        | FaultKind::Billing
        | FaultKind::SpendLimit
        | FaultKind::InvalidRequest
        | FaultKind::PromptTooLong
        | FaultKind::TooLarge
        | FaultKind::Certificate
        | FaultKind::Cut
        | FaultKind::NotAStream
        | FaultKind::Protocol
        | FaultKind::Script
        | FaultKind::Interrupted => return None,
    })
}

/// Lets the next understudy speak, and tells the host.
pub async fn step_in(agent: &mut Agent, fault: Option<&Fault>) {
    let wanted = agent.knobs.now().model;
    let failed = agent.model();
    let (trigger, why) = fault.and_then(unavailable).unwrap_or(("unavailable", "does not answer"));
    let Some(name) = agent.understudies.step_in(&wanted) else { return };
    let content = format!("{failed} {why}; {name} answers in its place for the rest of this turn.");
    let trigger = trigger.to_owned();
    agent
        .outbox
        .notify(ModelFallback { trigger, original_model: failed, fallback_model: name, content })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understudies(names: &[&str]) -> Understudies {
        Understudies::new(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn they_step_in_one_after_the_other_and_never_for_themselves() {
        let mut cast = understudies(&["a", "b", "openai:c"]);
        assert_eq!(cast.model("b"), "b");
        assert_eq!(cast.step_in("b").as_deref(), Some("a"));
        assert_eq!(cast.model("b"), "a");
        assert!(cast.are_left("b"));
        assert_eq!(cast.step_in("b").as_deref(), Some("openai:c"), "b does not stand in for b");
        assert!(!cast.are_left("b"));
        assert_eq!(cast.step_in("b"), None);
        assert_eq!(cast.model("b"), "openai:c", "the last one stays");
        cast.begin_turn();
        assert_eq!(cast.model("b"), "b", "the next turn begins with the model itself");
    }

    #[test]
    fn a_model_that_the_host_chooses_meanwhile_is_asked_itself() {
        let mut cast = understudies(&["a", "b"]);
        cast.step_in("x");
        cast.step_in("x");
        assert_eq!(cast.model("y"), "y");
        assert_eq!(cast.step_in("y").as_deref(), Some("a"));
    }

    #[test]
    fn nobody_steps_in_where_there_is_nobody() {
        assert!(!understudies(&[]).are_left("a"));
        assert!(!understudies(&["a", "a"]).are_left("a"));
    }
}
