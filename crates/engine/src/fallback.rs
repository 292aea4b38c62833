//! Understudies: models that answer in another one's place while that one is not to be had.
//!
//! They are tried in order, for the rest of a turn; the next turn begins with the model itself again.

use whimbrel_models::{ModelError, ModelErrorKind};
use whimbrel_wire::system::ModelFallback;

use crate::agent::Agent;

/// How often an overloaded model is asked before an understudy is.
pub const OVERLOAD_ATTEMPTS: u32 = 3;

/// The understudies of an agent.
#[derive(Debug, Clone, Default)]
pub struct FallbackModels {
    names: Vec<String>,
    /// Which of them speaks, and for whom.
    active: Option<(usize, String)>,
}

impl FallbackModels {
    /// These models, by their full names, in this order.
    pub fn new(names: Vec<String>) -> Self {
        Self { names, active: None }
    }

    /// Begins a new turn: the model itself is asked again.
    pub fn begin_turn(&mut self) {
        self.active = None;
    }

    /// The model to ask when `wanted` is wanted.
    pub fn active_model(&self, wanted: &str) -> String {
        match &self.active {
            Some((at, stands_for)) if stands_for == wanted => self.names[*at].clone(),
            _ => wanted.to_owned(),
        }
    }

    /// Whether another one could be asked in place of `wanted`.
    pub fn has_next(&self, wanted: &str) -> bool {
        self.next_index(wanted).is_some()
    }

    /// Lets the next one speak in place of `wanted`, and gives its name.
    pub fn activate_next(&mut self, wanted: &str) -> Option<String> {
        let at = self.next_index(wanted)?;
        self.active = Some((at, wanted.to_owned()));
        self.names.get(at).cloned()
    }

    /// The next one that is not the model itself.
    fn next_index(&self, wanted: &str) -> Option<usize> {
        let from = match &self.active {
            Some((at, stands_for)) if stands_for == wanted => at + 1,
            _ => 0,
        };
        (from..self.names.len()).find(|at| self.names[*at] != wanted)
    }
}

/// Why a model is not to be had, as a word and as the middle of a sentence; none if another one would do no better.
pub fn unavailability(fault: &ModelError) -> Option<(&'static str, &'static str)> {
    Some(match fault.kind {
        ModelErrorKind::Overloaded => ("overloaded", "is overloaded"),
        ModelErrorKind::ModelNotFound => ("model_not_found", "is not available"),
        ModelErrorKind::RateLimit => ("rate_limit", "takes no more requests for now"),
        ModelErrorKind::Server => ("server_error", "fails"),
        ModelErrorKind::Connection | ModelErrorKind::Stalled => ("unavailable", "does not answer"),
        ModelErrorKind::NoCredentials
        | ModelErrorKind::Authentication
        | ModelErrorKind::Forbidden
        | ModelErrorKind::Billing
        | ModelErrorKind::SpendLimit
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::PromptTooLong
        | ModelErrorKind::TooLarge
        | ModelErrorKind::Certificate
        | ModelErrorKind::Cut
        | ModelErrorKind::NotAStream
        | ModelErrorKind::Protocol
        | ModelErrorKind::Script
        | ModelErrorKind::Interrupted => return None,
    })
}

/// Lets the next understudy speak, and tells the host.
pub async fn switch_to_fallback(agent: &mut Agent, fault: Option<&ModelError>) {
    let wanted = agent.runtime_settings.current().model;
    let failed = agent.model();
    let (trigger, why) = fault.and_then(unavailability).unwrap_or(("unavailable", "does not answer"));
    let Some(name) = agent.fallback_models.activate_next(&wanted) else { return };
    let content = format!("{failed} {why}; {name} answers in its place for the rest of this turn.");
    let trigger = trigger.to_owned();
    agent
        .frame_sender
        .notify(ModelFallback { trigger, original_model: failed, fallback_model: name, content })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallback_models(names: &[&str]) -> FallbackModels {
        FallbackModels::new(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn they_step_in_one_after_the_other_and_never_for_themselves() {
        let mut cast = fallback_models(&["a", "b", "openai:c"]);
        assert_eq!(cast.active_model("b"), "b");
        assert_eq!(cast.activate_next("b").as_deref(), Some("a"));
        assert_eq!(cast.active_model("b"), "a");
        assert!(cast.has_next("b"));
        assert_eq!(cast.activate_next("b").as_deref(), Some("openai:c"), "b does not stand in for b");
        assert!(!cast.has_next("b"));
        assert_eq!(cast.activate_next("b"), None);
        assert_eq!(cast.active_model("b"), "openai:c", "the last one stays");
        cast.begin_turn();
        assert_eq!(cast.active_model("b"), "b", "the next turn begins with the model itself");
    }

    #[test]
    fn a_model_that_the_host_chooses_meanwhile_is_asked_itself() {
        let mut cast = fallback_models(&["a", "b"]);
        cast.activate_next("x");
        cast.activate_next("x");
        assert_eq!(cast.active_model("y"), "y");
        assert_eq!(cast.activate_next("y").as_deref(), Some("a"));
    }

    #[test]
    fn nobody_steps_in_where_there_is_nobody() {
        assert!(!fallback_models(&[]).has_next("a"));
        assert!(!fallback_models(&["a", "a"]).has_next("a"));
    }
}
