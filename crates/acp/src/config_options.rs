//! Mode, model and effort of a session as options that the editor shows. Pure, except for reading them at the start.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionMode, SessionModeState,
};
use serde_json::Value;
use whimbrel::wire::control::{GetSettings, ListModels, ModelInfo};
use whimbrel::{Controls, PermissionMode};

use crate::errors::invalid_params;

/// The value for "as the settings say".
const DEFAULT: &str = "default";

const MODE: &str = "mode";
const MODEL: &str = "model";
const EFFORT: &str = "effort";

/// Options of a session and their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigState {
    pub(crate) mode: PermissionMode,
    /// Whether the mode that never asks is offered.
    can_bypass: bool,
    /// The model as the user named it.
    model: Option<String>,
    /// The model of the settings, for "default".
    default_model: String,
    models: Vec<ModelInfo>,
    effort: Option<String>,
}

/// Whether the mode that never asks may be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BypassMode {
    Offered,
    Withheld,
}

/// A change of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigChange {
    Mode(PermissionMode),
    Model(Option<String>),
    Effort(Option<String>),
}

impl ConfigState {
    /// Asks the engine for the values.
    pub(crate) async fn read(controls: &Controls, bypass: BypassMode) -> Result<Self, whimbrel::Error> {
        let (models, settings) =
            futures::try_join!(controls.call(ListModels {}), controls.call(GetSettings {}))?;
        let applied = |name: &str| settings.applied.get(name).and_then(Value::as_str);
        let bypass_disabled =
            settings.effective.get("permissions").and_then(|rules| rules.get("disableBypassPermissionsMode"));
        Ok(Self {
            mode: applied("permissionMode").and_then(|mode| mode.parse().ok()).unwrap_or_default(),
            can_bypass: bypass == BypassMode::Offered
                && bypass_disabled.and_then(Value::as_str) != Some("disable"),
            model: None,
            default_model: applied("model").unwrap_or_default().to_owned(),
            models: models.models,
            effort: applied("effort").map(str::to_owned),
        })
    }

    /// The modes, for editors without options.
    pub(crate) fn mode_state(&self) -> SessionModeState {
        let modes = self.modes().into_iter().map(|mode| {
            let (name, description) = describe_mode(mode);
            SessionMode::new(mode.to_string(), name).description(description.to_owned())
        });
        SessionModeState::new(self.mode.to_string(), modes.collect())
    }

    /// All options, in the order in which the editor shows them.
    pub(crate) fn options(&self) -> Vec<SessionConfigOption> {
        let modes = self.modes().into_iter().map(|mode| {
            let (name, description) = describe_mode(mode);
            SessionConfigSelectOption::new(mode.to_string(), name).description(description.to_owned())
        });
        let mode =
            SessionConfigOption::select(MODE, "Mode", self.mode.to_string(), modes.collect::<Vec<_>>())
                .category(SessionConfigOptionCategory::Mode)
                .description("What the agent may do without asking".to_owned());
        let model = SessionConfigOption::select(MODEL, "Model", self.model_value(), self.model_options())
            .category(SessionConfigOptionCategory::Model)
            .description("The model that answers".to_owned());
        let mut options = vec![mode, model];
        let levels = self.effort_levels();
        if !levels.is_empty() {
            let value = self.effort.clone().filter(|effort| levels.contains(effort));
            let choices = std::iter::once(DEFAULT.to_owned()).chain(levels);
            let choices =
                choices.map(|level| SessionConfigSelectOption::new(level.clone(), capitalized(&level)));
            let value = value.unwrap_or_else(|| DEFAULT.to_owned());
            options.push(
                SessionConfigOption::select(EFFORT, "Effort", value, choices.collect::<Vec<_>>())
                    .category(SessionConfigOptionCategory::ThoughtLevel)
                    .description("How hard the model thinks".to_owned()),
            );
        }
        options
    }

    /// Reads a change of an option.
    pub(crate) fn parse_change(
        &self,
        option: &str,
        value: &SessionConfigOptionValue,
    ) -> Result<ConfigChange, Error> {
        let Some(value) = value.as_value_id().map(|value| value.0.to_string()) else {
            return Err(invalid_params(format!(
                "the option {option} takes one of its values, not a boolean"
            )));
        };
        let unknown = || Err(invalid_params(format!("the option {option} has no value {value}")));
        let named = || (value != DEFAULT).then(|| value.clone());
        match option {
            MODE => self.parse_mode(&value).map(ConfigChange::Mode),
            MODEL => match self.model_options().iter().any(|known| *known.value.0 == *value) {
                true => Ok(ConfigChange::Model(named())),
                false => unknown(),
            },
            EFFORT => match value == DEFAULT || self.effort_levels().contains(&value) {
                true => Ok(ConfigChange::Effort(named())),
                false => unknown(),
            },
            _ => Err(invalid_params(format!("there is no option {option}"))),
        }
    }

    /// Reads the name of a mode that the session offers.
    pub(crate) fn parse_mode(&self, name: &str) -> Result<PermissionMode, Error> {
        let mode = name.parse().ok().filter(|mode| self.modes().contains(mode));
        mode.ok_or_else(|| invalid_params(format!("there is no mode {name}")))
    }

    /// Takes over a change that the engine has made.
    pub(crate) fn apply(&mut self, change: ConfigChange) {
        match change {
            ConfigChange::Mode(mode) => self.mode = mode,
            ConfigChange::Model(model) => self.model = model,
            ConfigChange::Effort(effort) => self.effort = effort,
        }
    }

    /// Takes over the model of a turn; returns whether it is another one.
    pub(crate) fn take_over_model(&mut self, model: &str) -> bool {
        let present = self.model.as_deref().unwrap_or(&self.default_model);
        let is_same = present == model
            || self.find_model(present).is_some_and(|known| known.resolved_model.as_deref() == Some(model));
        if is_same || model.is_empty() {
            return false;
        }
        let name = self.find_model(model).map_or_else(|| model.to_owned(), |known| known.value.clone());
        self.model = Some(name).filter(|_| model != self.default_model);
        true
    }

    fn modes(&self) -> Vec<PermissionMode> {
        use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
        let mut modes = vec![Default, AcceptEdits, Plan, DontAsk];
        if self.can_bypass {
            modes.push(BypassPermissions);
        }
        if !modes.contains(&self.mode) {
            modes.push(self.mode);
        }
        modes
    }

    fn model_value(&self) -> String {
        self.model.clone().unwrap_or_else(|| DEFAULT.to_owned())
    }

    fn model_options(&self) -> Vec<SessionConfigSelectOption> {
        let default =
            self.find_model(&self.default_model).map_or(&self.default_model, |model| &model.display_name);
        let default = SessionConfigSelectOption::new(DEFAULT, format!("Default ({default})"))
            .description("The model of the settings".to_owned());
        let mut options = vec![default];
        options.extend(self.models.iter().map(|model| {
            let name = if model.display_name.is_empty() { &model.value } else { &model.display_name };
            let option = SessionConfigSelectOption::new(model.value.clone(), name.clone());
            option.description(Some(model.description.clone()).filter(|text| !text.is_empty()))
        }));
        if let Some(model) = &self.model
            && !self.models.iter().any(|known| known.value == *model)
        {
            options.push(SessionConfigSelectOption::new(model.clone(), model.clone()));
        }
        options
    }

    fn effort_levels(&self) -> Vec<String> {
        let model = self.model.as_ref().unwrap_or(&self.default_model);
        self.find_model(model).and_then(|model| model.supported_effort_levels.clone()).unwrap_or_default()
    }

    fn find_model(&self, name: &str) -> Option<&ModelInfo> {
        self.models.iter().find(|model| model.value == name || model.resolved_model.as_deref() == Some(name))
    }
}

fn describe_mode(mode: PermissionMode) -> (&'static str, &'static str) {
    match mode {
        PermissionMode::Default => ("Default", "Asks before it edits files or runs commands"),
        PermissionMode::AcceptEdits => ("Accept edits", "Edits files without asking"),
        PermissionMode::Plan => ("Plan", "Reads and plans, and changes nothing"),
        PermissionMode::DontAsk => ("Don't ask", "Denies what it would have to ask for"),
        PermissionMode::BypassPermissions => {
            ("Bypass permissions", "Asks for nothing; deny rules still hold")
        }
        PermissionMode::Auto => ("Auto", "A classifier answers instead of you"),
        PermissionMode::Delegate => ("Delegate", "Works through teammates only"),
    }
}

fn capitalized(word: &str) -> String {
    match word {
        "xhigh" => "Extra high".into(),
        _ => word[..1].to_uppercase() + &word[1..],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(value: &str, levels: &[&str]) -> ModelInfo {
        ModelInfo {
            value: value.into(),
            resolved_model: Some(format!("model-{value}")),
            display_name: value.to_uppercase(),
            supported_effort_levels: Some(levels.iter().map(ToString::to_string).collect()),
            ..ModelInfo::default()
        }
    }

    fn state() -> ConfigState {
        ConfigState {
            default_model: "model-big".into(),
            models: vec![model("big", &["low", "high"]), model("small", &[])],
            ..ConfigState::default()
        }
    }

    fn ids(state: &ConfigState) -> Vec<String> {
        state.options().iter().map(|option| option.id.0.to_string()).collect()
    }

    #[test]
    fn options_follow_the_model() {
        let mut state = state();
        assert_eq!(ids(&state), [MODE, MODEL, EFFORT]);
        let options = json!(state.options());
        assert_eq!(options[1]["options"][0]["name"], "Default (BIG)");
        assert_eq!(options[2]["options"].as_array().unwrap().len(), 3);
        state.apply(ConfigChange::Model(Some("small".into())));
        assert_eq!(ids(&state), [MODE, MODEL]);
        assert_eq!(json!(state.options())[1]["currentValue"], "small");
    }

    #[test]
    fn model_of_a_turn_is_taken_over() {
        let mut state = state();
        let value =
            |state: &ConfigState| json!(state.options())[1]["currentValue"].as_str().map(str::to_owned);
        assert!(!state.take_over_model("model-big"), "it is the default");
        assert!(state.take_over_model("model-small"));
        assert_eq!(value(&state).as_deref(), Some("small"));
        assert!(!state.take_over_model("model-small"));
        assert!(state.take_over_model("own"));
        assert_eq!(value(&state).as_deref(), Some("own"));
        assert!(state.take_over_model("model-big"));
        assert_eq!(value(&state).as_deref(), Some("default"));
    }

    #[test]
    fn only_offered_values_are_accepted() {
        let state = state();
        let change = |option: &str, value: &str| state.parse_change(option, &value.into()).ok();
        assert_eq!(change(MODE, "plan"), Some(ConfigChange::Mode(PermissionMode::Plan)));
        assert_eq!(change(MODEL, "small"), Some(ConfigChange::Model(Some("small".into()))));
        assert_eq!(change(MODEL, "default"), Some(ConfigChange::Model(None)));
        assert_eq!(change(EFFORT, "high"), Some(ConfigChange::Effort(Some("high".into()))));
        for (option, value) in
            [(MODE, "bypassPermissions"), (MODE, "x"), (MODEL, "x"), (EFFORT, "max"), ("x", "y")]
        {
            assert_eq!(change(option, value), None, "{option} {value}");
        }
        assert!(state.parse_change(MODE, &true.into()).is_err());
    }
}
