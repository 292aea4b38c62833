//! `whimbrel config`: lists, gets, sets and removes settings. Modules: [`command`] (command line).

mod command;

use serde_json::{Map, Value};
use whimbrel_config::settings::{ChangeStatus, LayerSource, Settings, UpdateReport};
use whimbrel_engine::SessionRequest;
use whimbrel_wire::options::{Options, SettingSource};

use crate::arg_list::ListFormat;
use crate::environment::{Env, resolve_home};
use crate::stdio::{self, print_note, report_error};
use crate::terminal_ui::{LineBreaks, sanitize};
use command::{ConfigCommand, Key, NewValue};

/// Help page of `whimbrel config`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], env: Env) -> i32 {
    match command::parse(argv).and_then(|command| execute(command, env)) {
        Ok(page) => match stdio::print(&page) {
            Ok(()) => 0,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn execute(command: ConfigCommand, mut env: Env) -> Result<String, String> {
    if command == ConfigCommand::Help {
        return Ok(command::HELP_PAGE.into());
    }
    resolve_home(&mut env);
    let settings =
        SessionRequest::new(Options::default(), env).inspect_settings().map_err(|error| error.to_string())?;
    match command {
        ConfigCommand::Help => Ok(command::HELP_PAGE.into()),
        ConfigCommand::List { scope, format } => {
            settings.warnings().iter().for_each(|warning| print_note(warning));
            let values = hide_variables(values_of(&settings, scope));
            Ok(match format {
                ListFormat::Text => render_list(&values),
                ListFormat::Json => format!("{:#}\n", Value::Object(values)),
            })
        }
        ConfigCommand::Get { key, scope } => {
            settings.warnings().iter().for_each(|warning| print_note(warning));
            let values = Value::Object(values_of(&settings, scope));
            let found = find_value(&values, &key).ok_or_else(|| format!("{key} is not set."))?;
            Ok(render_value(found) + "\n")
        }
        ConfigCommand::Set { key, value, scope } => set_value(settings, &key, &value, scope),
        ConfigCommand::Remove { key, scope } => {
            let report = write_entry(&mut settings.clone(), scope, &key, None)?;
            match report.changed {
                true => Ok(format!("Removed {key} from {}.\n", report.file.display())),
                false => Err(format!("{key} is not set in {}.", report.file.display())),
            }
        }
    }
}

/// The values in force, or those of one file as written.
fn values_of(settings: &Settings, scope: Option<SettingSource>) -> Map<String, Value> {
    let Some(scope) = scope else { return settings.effective().values.clone() };
    let source = match scope {
        SettingSource::User => LayerSource::User,
        SettingSource::Project => LayerSource::Project,
        SettingSource::Local => LayerSource::Local,
    };
    let layer = settings.layers().iter().find(|layer| layer.origin.source == source);
    layer.map(|layer| layer.raw.clone()).unwrap_or_default()
}

/// Sets a value in its likeliest reading that is valid.
fn set_value(
    mut settings: Settings,
    key: &Key,
    value: &NewValue,
    scope: SettingSource,
) -> Result<String, String> {
    let mut first_error = None;
    for reading in value.readings() {
        match write_entry(&mut settings, scope, key, Some(reading.clone())) {
            Ok(report) => return Ok(render_set(&settings, key, &reading, &report)),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    Err(first_error.unwrap_or_default())
}

fn render_set(settings: &Settings, key: &Key, value: &Value, report: &UpdateReport) -> String {
    let file = report.file.display();
    let mut page = match report.changed {
        true => format!("Set {key} to {value} in {file}.\n"),
        false => format!("{key} is {value} in {file} already.\n"),
    };
    let effective = Value::Object(settings.effective().values.clone());
    let is_single = !matches!(value, Value::Array(_) | Value::Object(_));
    if report.status == ChangeStatus::NotTrusted {
        page += "It has no effect until the project is trusted.\n";
    } else if is_single
        && find_value(&effective, key).is_some_and(|found| render_value(found) != render_value(value))
    {
        page += "A stronger source of settings overrides it here.\n";
    }
    page
}

/// Writes one entry to the file of a scope, and prints warnings.
fn write_entry(
    settings: &mut Settings,
    scope: SettingSource,
    key: &Key,
    value: Option<Value>,
) -> Result<UpdateReport, String> {
    let draft = settings.draft_entry(scope, key.0.clone(), value).map_err(|error| error.to_string())?;
    let written = draft.write().map_err(|error| error.to_string())?;
    let report = settings.adopt_written(written);
    report.warnings.iter().for_each(|warning| print_note(warning));
    Ok(report)
}

fn find_value<'a>(values: &'a Value, key: &Key) -> Option<&'a Value> {
    key.0.iter().try_fold(values, |value, key| value.get(key))
}

/// Strings as they are, other values as JSON.
fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Replaces the values of environment variables, which may be keys.
fn hide_variables(mut values: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(variables)) = values.get_mut("env") {
        variables.values_mut().for_each(|value| *value = "***".into());
    }
    values
}

fn render_list(values: &Map<String, Value>) -> String {
    if values.is_empty() {
        return "There are no settings.\n".into();
    }
    let line =
        |(key, value): (&String, &Value)| sanitize(&format!("{key} = {value}"), LineBreaks::Replace) + "\n";
    values.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn list_hides_variables() {
        let values = json!({"model": "opus", "env": {"KEY": "secret"}}).as_object().cloned().unwrap();
        assert_eq!(render_list(&hide_variables(values)), "model = \"opus\"\nenv = {\"KEY\":\"***\"}\n");
        assert_eq!(render_list(&Map::new()), "There are no settings.\n");
    }
}
