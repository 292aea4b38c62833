//! Settings that can change while a session runs, and per-turn overrides by skills and commands. Only `control` and
//! commands write the settings; a turn reads a snapshot at each step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use whimbrel_models::{Effort, Thinking, ThinkingDisplay};
use whimbrel_wire::options;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeSettings {
    /// The model's full name.
    pub model: String,
    /// Thinking configuration; `None` means the model's default.
    pub thinking: Option<Thinking>,
    /// Display of thinking; `None` leaves that to the provider.
    pub thinking_display: Option<ThinkingDisplay>,
    pub effort: Option<Effort>,
    /// Whether the host gets the raw events of replies while they stream.
    pub partial_messages: bool,
    /// Instructions for plan mode that replace the built-in ones.
    pub plan_mode_instructions: Option<Arc<str>>,
}

pub type RuntimeSettingsWriter = watch::Sender<RuntimeSettings>;

/// Reading end of one agent. Clones share the overrides.
#[derive(Debug, Clone)]
pub struct RuntimeSettingsReader {
    host_settings: watch::Receiver<RuntimeSettings>,
    /// Overrides of the parent agent, as of the start of this agent.
    inherited_overrides: Vec<ActiveOverride>,
    /// Overrides of this agent.
    own_overrides: Arc<Mutex<Vec<ActiveOverride>>>,
}

/// Override by a skill or a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsOverride {
    /// The model's full name.
    pub model: Option<String>,
    pub effort: Option<Effort>,
}

/// An override with the host's settings at that time.
#[derive(Debug, Clone)]
struct ActiveOverride {
    values: SettingsOverride,
    /// A setting that the host changes afterwards takes precedence over the override.
    host_settings_before: RuntimeSettings,
}

impl ActiveOverride {
    fn apply(&self, runtime_settings: &mut RuntimeSettings, host_settings: &RuntimeSettings) {
        let Self { values: turn_override, host_settings_before } = self;
        if let Some(model) =
            turn_override.model.as_ref().filter(|_| host_settings.model == host_settings_before.model)
        {
            runtime_settings.model.clone_from(model);
            if host_settings.thinking == host_settings_before.thinking {
                // A thinking budget was meant for the other model.
                runtime_settings.thinking =
                    runtime_settings.thinking.filter(|thinking| *thinking == Thinking::Disabled);
            }
        }
        if turn_override.effort.is_some() && host_settings.effort == host_settings_before.effort {
            runtime_settings.effort = turn_override.effort;
        }
    }
}

impl RuntimeSettingsReader {
    /// Reads the settings of a session.
    pub fn new(host_settings: watch::Receiver<RuntimeSettings>) -> Self {
        Self { host_settings, inherited_overrides: Vec::new(), own_overrides: Arc::default() }
    }

    /// Reads settings that never change.
    pub fn fixed(runtime_settings: RuntimeSettings) -> Self {
        Self::new(watch::Sender::new(runtime_settings).subscribe())
    }

    /// For a subagent: the current overrides of this agent apply to it for its whole life.
    #[must_use]
    pub fn for_subagent(&self) -> Self {
        let inherited = [self.inherited_overrides.as_slice(), &self.lock_own()].concat();
        Self {
            host_settings: self.host_settings.clone(),
            inherited_overrides: inherited,
            own_overrides: Arc::default(),
        }
    }

    /// A snapshot with all overrides applied.
    pub fn current(&self) -> RuntimeSettings {
        let host_settings = self.host_settings.borrow();
        let mut runtime_settings = host_settings.clone();
        self.inherited_overrides
            .iter()
            .chain(self.lock_own().iter())
            .for_each(|active_override| active_override.apply(&mut runtime_settings, &host_settings));
        runtime_settings
    }

    /// Adds an override that lasts until [`Self::clear_overrides`].
    pub fn push_override(&self, turn_override: SettingsOverride) {
        if turn_override != SettingsOverride::default() {
            let host_settings_before = self.host_settings.borrow().clone();
            self.lock_own().push(ActiveOverride { values: turn_override, host_settings_before });
        }
    }

    pub fn clear_overrides(&self) {
        self.lock_own().clear();
    }

    fn lock_own(&self) -> MutexGuard<'_, Vec<ActiveOverride>> {
        self.own_overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The effort that a setting names.
pub(crate) fn parse_effort(name: &str) -> Option<Effort> {
    name.parse().ok().map(to_model_effort)
}

pub(crate) fn to_model_effort(effort: options::Effort) -> Effort {
    match effort {
        options::Effort::Low => Effort::Low,
        options::Effort::Medium => Effort::Medium,
        options::Effort::High => Effort::High,
        options::Effort::XHigh => Effort::Xhigh,
        options::Effort::Max => Effort::Max,
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
    fn override_lasts_until_cleared_or_host_changes_that_setting() {
        type Change = fn(&mut RuntimeSettings);
        let both = || settings_override(Some("override"), Some(Effort::Low));
        let rows: [(&str, SettingsOverride, Change, RuntimeSettings); 6] = [
            ("unchanged by the host", both(), |_| {}, settings("override", None, Some(Effort::Low))),
            (
                "model changed by the host",
                both(),
                |runtime_settings| runtime_settings.model = "new".into(),
                settings("new", SOME, Some(Effort::Low)),
            ),
            (
                "thinking changed by the host",
                both(),
                |runtime_settings| runtime_settings.thinking = MORE,
                settings("override", MORE, Some(Effort::Low)),
            ),
            (
                "disabled thinking stays disabled",
                settings_override(Some("override"), None),
                |runtime_settings| runtime_settings.thinking = Some(Thinking::Disabled),
                settings("override", Some(Thinking::Disabled), None),
            ),
            (
                "effort alone leaves thinking",
                settings_override(None, Some(Effort::High)),
                |_| {},
                settings("own", SOME, Some(Effort::High)),
            ),
            (
                "effort changed by the host",
                both(),
                |runtime_settings| runtime_settings.effort = Some(Effort::Max),
                settings("override", None, Some(Effort::Max)),
            ),
        ];
        for (name, turn_override, change, expected) in rows {
            let writer = watch::Sender::new(settings("own", SOME, None));
            let reader = RuntimeSettingsReader::new(writer.subscribe());
            reader.push_override(turn_override);
            writer.send_modify(change);
            assert_eq!(reader.current(), expected, "{name}");
            reader.clear_overrides();
            assert_eq!(reader.current(), *writer.borrow(), "{name}, afterwards");
        }
    }

    #[test]
    fn later_override_wins() {
        let reader = RuntimeSettingsReader::fixed(settings("own", SOME, None));
        reader.push_override(settings_override(Some("one"), Some(Effort::Low)));
        reader.push_override(settings_override(Some("two"), None));
        assert_eq!(reader.current(), settings("two", None, Some(Effort::Low)));
    }

    #[test]
    fn subagent_inherits_overrides_of_its_start() {
        let parent = RuntimeSettingsReader::fixed(settings("own", None, None));
        let first = parent.for_subagent();
        parent.push_override(settings_override(Some("override"), None));
        let second = parent.for_subagent();
        let models = || [&parent, &first, &second].map(|reader| reader.current().model);
        assert_eq!(models(), ["override", "own", "override"]);
        second.push_override(settings_override(Some("lower"), None));
        assert_eq!(models(), ["override", "own", "lower"]);
        second.clear_overrides();
        parent.clear_overrides();
        assert_eq!(models(), ["own", "own", "override"]);
    }
}
