//! What a host can turn while a session runs, and what an agent is lent for a turn. The knobs are written only by
//! `control` and commands; a turn reads a snapshot at each step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use whimbrel_models::{Effort, Thinking, ThinkingDisplay};

/// The settings that can change in the middle of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeSettings {
    /// The model, by its full name.
    pub model: String,
    /// What was asked of thinking; none means the model's own default.
    pub thinking: Option<Thinking>,
    /// What is shown of it; none leaves that to the provider.
    pub thinking_display: Option<ThinkingDisplay>,
    /// How hard the model tries.
    pub effort: Option<Effort>,
    /// How the model is to go about a plan, in place of our own words.
    pub plan_mode_instructions: Option<Arc<str>>,
}

/// The writing end.
pub type RuntimeSettingsWriter = watch::Sender<RuntimeSettings>;

/// The reading end of one agent. Clones see the same loans.
#[derive(Debug, Clone)]
pub struct RuntimeSettingsReader {
    host_settings: watch::Receiver<RuntimeSettings>,
    /// What was lent to whoever started the agent, at that time.
    inherited_overrides: Vec<ActiveOverride>,
    /// What is lent to the agent itself.
    own_overrides: Arc<Mutex<Vec<ActiveOverride>>>,
}

/// What a skill or a command has in place of the knobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsOverride {
    /// The model, by its full name.
    pub model: Option<String>,
    /// How hard it is to try.
    pub effort: Option<Effort>,
}

/// Something lent.
#[derive(Debug, Clone)]
struct ActiveOverride {
    values: SettingsOverride,
    /// What the host had turned by then. What it turns afterwards counts more than what was lent before.
    host_settings_before: RuntimeSettings,
}

impl ActiveOverride {
    fn apply(&self, knobs: &mut RuntimeSettings, turned: &RuntimeSettings) {
        let Self { values: lent, host_settings_before: over } = self;
        if let Some(model) = lent.model.as_ref().filter(|_| turned.model == over.model) {
            knobs.model.clone_from(model);
            if turned.thinking == over.thinking {
                // A limit on thinking was meant for the other model.
                knobs.thinking = knobs.thinking.filter(|thinking| *thinking == Thinking::Disabled);
            }
        }
        if lent.effort.is_some() && turned.effort == over.effort {
            knobs.effort = lent.effort;
        }
    }
}

impl RuntimeSettingsReader {
    /// Reads what a host turns.
    pub fn new(host_settings: watch::Receiver<RuntimeSettings>) -> Self {
        Self { host_settings, inherited_overrides: Vec::new(), own_overrides: Arc::default() }
    }

    /// Reads knobs that nobody turns.
    pub fn fixed(knobs: RuntimeSettings) -> Self {
        Self::new(watch::Sender::new(knobs).subscribe())
    }

    /// For an agent that this one starts: what is lent to this one by now counts there as long as that agent lives.
    #[must_use]
    pub fn for_subagent(&self) -> Self {
        let inherited = [self.inherited_overrides.as_slice(), &self.lock_own()].concat();
        Self { host_settings: self.host_settings.clone(), inherited_overrides: inherited, own_overrides: Arc::default() }
    }

    /// The knobs as they stand now.
    pub fn current(&self) -> RuntimeSettings {
        let turned = self.host_settings.borrow();
        let mut knobs = turned.clone();
        self.inherited_overrides.iter().chain(self.lock_own().iter()).for_each(|loan| loan.apply(&mut knobs, &turned));
        knobs
    }

    /// Lends something to the agent, until it is taken back.
    pub fn push_override(&self, lent: SettingsOverride) {
        if lent != SettingsOverride::default() {
            let over = self.host_settings.borrow().clone();
            self.lock_own().push(ActiveOverride { values: lent, host_settings_before: over });
        }
    }

    /// Takes back what was lent to the agent.
    pub fn clear_overrides(&self) {
        self.lock_own().clear();
    }

    fn lock_own(&self) -> MutexGuard<'_, Vec<ActiveOverride>> {
        self.own_overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Option<Thinking> = Some(Thinking::Enabled { budget: 1000 });
    const MORE: Option<Thinking> = Some(Thinking::Enabled { budget: 9000 });

    fn settings(model: &str, thinking: Option<Thinking>, effort: Option<Effort>) -> RuntimeSettings {
        RuntimeSettings { model: model.into(), thinking, effort, ..RuntimeSettings::default() }
    }

    fn settings_override(model: Option<&str>, effort: Option<Effort>) -> SettingsOverride {
        SettingsOverride { model: model.map(Into::into), effort }
    }

    #[test]
    fn what_is_lent_counts_until_it_is_taken_back_or_the_host_turns_the_same_knob() {
        type Turn = fn(&mut RuntimeSettings);
        let both = || settings_override(Some("lent"), Some(Effort::Low));
        let rows: [(&str, SettingsOverride, Turn, RuntimeSettings); 6] = [
            ("all of it", both(), |_| {}, settings("lent", None, Some(Effort::Low))),
            (
                "another model of the host's",
                both(),
                |knobs| knobs.model = "new".into(),
                settings("new", SOME, Some(Effort::Low)),
            ),
            (
                "thinking that the host has set since",
                both(),
                |knobs| knobs.thinking = MORE,
                settings("lent", MORE, Some(Effort::Low)),
            ),
            (
                "no thinking stays none",
                settings_override(Some("lent"), None),
                |knobs| knobs.thinking = Some(Thinking::Disabled),
                settings("lent", Some(Thinking::Disabled), None),
            ),
            (
                "effort alone leaves thinking",
                settings_override(None, Some(Effort::High)),
                |_| {},
                settings("own", SOME, Some(Effort::High)),
            ),
            (
                "another effort of the host's",
                both(),
                |knobs| knobs.effort = Some(Effort::Max),
                settings("lent", None, Some(Effort::Max)),
            ),
        ];
        for (name, lent, turn, expected) in rows {
            let writer = watch::Sender::new(settings("own", SOME, None));
            let reader = RuntimeSettingsReader::new(writer.subscribe());
            reader.push_override(lent);
            writer.send_modify(turn);
            assert_eq!(reader.current(), expected, "{name}");
            reader.clear_overrides();
            assert_eq!(reader.current(), *writer.borrow(), "{name}, afterwards");
        }
    }

    #[test]
    fn of_two_loans_the_later_one_counts() {
        let reader = RuntimeSettingsReader::fixed(settings("own", SOME, None));
        reader.push_override(settings_override(Some("one"), Some(Effort::Low)));
        reader.push_override(settings_override(Some("two"), None));
        assert_eq!(reader.current(), settings("two", None, Some(Effort::Low)));
    }

    #[test]
    fn an_agent_begins_with_what_was_lent_to_the_one_that_started_it() {
        let above = RuntimeSettingsReader::fixed(settings("own", None, None));
        let early = above.for_subagent();
        above.push_override(settings_override(Some("lent"), None));
        let late = above.for_subagent();
        let models = || [&above, &early, &late].map(|reader| reader.current().model);
        assert_eq!(models(), ["lent", "own", "lent"]);
        late.push_override(settings_override(Some("lower"), None));
        assert_eq!(models(), ["lent", "own", "lower"]);
        late.clear_overrides();
        above.clear_overrides();
        assert_eq!(models(), ["own", "own", "lent"]);
    }
}
