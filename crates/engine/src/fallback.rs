//! Fallback models, used while the primary model is unavailable.
//!
//! They are tried in order for the rest of a turn; the next turn starts with the primary model again.

use whimbrel_models::{ModelError, ModelErrorKind};

/// Number of calls to an overloaded model before a fallback model is used.
pub const MAX_OVERLOAD_ATTEMPTS: u32 = 3;

/// The fallback models of an agent.
#[derive(Debug, Clone, Default)]
pub struct FallbackModels {
    names: Vec<String>,
    /// Index of the active fallback model, and the model it replaces.
    active: Option<(usize, String)>,
}

impl FallbackModels {
    /// Creates the list from full names, in order.
    pub fn new(names: Vec<String>) -> Self {
        Self { names, active: None }
    }

    /// Returns to the primary model.
    pub fn begin_turn(&mut self) {
        self.active = None;
    }

    /// The model to call for `primary`.
    pub fn active_model(&self, primary: &str) -> String {
        match &self.active {
            Some((index, replaced)) if replaced == primary => self.names[*index].clone(),
            _ => primary.to_owned(),
        }
    }

    /// Returns whether another fallback model is left for `primary`.
    pub fn has_next(&self, primary: &str) -> bool {
        self.next_index(primary).is_some()
    }

    /// Activates the next fallback model for `primary` and returns its name.
    pub fn activate_next(&mut self, primary: &str) -> Option<String> {
        let index = self.next_index(primary)?;
        self.active = Some((index, primary.to_owned()));
        self.names.get(index).cloned()
    }

    /// The index of the next fallback model that is not `primary` itself.
    fn next_index(&self, primary: &str) -> Option<usize> {
        let start = match &self.active {
            Some((index, replaced)) if replaced == primary => index + 1,
            _ => 0,
        };
        (start..self.names.len()).find(|index| self.names[*index] != primary)
    }
}

/// Reason why a model is unavailable, as a trigger word and as a phrase; `None` if a fallback would not help.
pub fn classify_unavailable(error: &ModelError) -> Option<(&'static str, &'static str)> {
    Some(match error.kind {
        ModelErrorKind::Overloaded => ("overloaded", "is overloaded"),
        ModelErrorKind::ModelNotFound => ("model_not_found", "is not available"),
        ModelErrorKind::RateLimit => ("rate_limit", "is rate limited"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fallback_models(names: &[&str]) -> FallbackModels {
        FallbackModels::new(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn fallbacks_are_tried_in_order_and_skip_the_primary() {
        let mut models = fallback_models(&["a", "b", "openai:c"]);
        assert_eq!(models.active_model("b"), "b");
        assert_eq!(models.activate_next("b").as_deref(), Some("a"));
        assert_eq!(models.active_model("b"), "a");
        assert!(models.has_next("b"));
        assert_eq!(models.activate_next("b").as_deref(), Some("openai:c"), "b is no fallback for itself");
        assert!(!models.has_next("b"));
        assert_eq!(models.activate_next("b"), None);
        assert_eq!(models.active_model("b"), "openai:c", "the last model stays active");
        models.begin_turn();
        assert_eq!(models.active_model("b"), "b", "the next turn begins with the primary model");
    }

    #[test]
    fn model_chosen_by_host_meanwhile_is_used() {
        let mut models = fallback_models(&["a", "b"]);
        models.activate_next("x");
        models.activate_next("x");
        assert_eq!(models.active_model("y"), "y");
        assert_eq!(models.activate_next("y").as_deref(), Some("a"));
    }

    #[test]
    fn empty_list_has_no_fallback() {
        assert!(!fallback_models(&[]).has_next("a"));
        assert!(!fallback_models(&["a", "a"]).has_next("a"));
    }
}
