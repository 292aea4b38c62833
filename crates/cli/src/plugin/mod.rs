//! `whimbrel plugin`: marketplaces, and plugins from them.
//!
//! Modules: [`command`] (command line), [`render`] (lists as text and JSON; pure), [`validate`].

mod command;
mod render;
mod validate;

use std::path::Path;

use whimbrel_config::plugins::records::InstallScope;
use whimbrel_engine::SessionRequest;
use whimbrel_plugin_installer::marketplaces::RemovedMarketplace;
use whimbrel_plugin_installer::plugins::{InstallOutcome, PluginState};
use whimbrel_plugin_installer::{InstallError, PluginInstaller};
use whimbrel_wire::options::Options;

use crate::arg_list::ListFormat;
use crate::environment::{Env, resolve_home};
use crate::exit_code::FAILURE;
use crate::stdio::{self, print_note, report_error};
use command::PluginCommand;

/// Help page of `whimbrel plugin`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], env: Env) -> i32 {
    let done = match command::parse(argv) {
        Ok(PluginCommand::Help) => Ok((help_page().to_owned(), 0)),
        Ok(PluginCommand::Validate { path, format }) => {
            let validation = validate::validate(&path);
            let code = if validation.is_valid() { 0 } else { FAILURE };
            validation.render(format).map(|page| (page, code))
        }
        Ok(command) => run(command, env).map(|page| (page, 0)),
        Err(text) => Err(text),
    };
    match done {
        Ok((page, code)) => match stdio::print(&page) {
            Ok(()) => code,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn run(command: PluginCommand, mut env: Env) -> Result<String, String> {
    resolve_home(&mut env);
    let cwd = std::env::current_dir()
        .map_err(|error| format!("Cannot determine the working directory: {error}."))?;
    let mut start = SessionRequest::new(Options::default(), env);
    let settings = start.read_settings().map_err(|error| error.to_string())?.clone();
    let mut installer = PluginInstaller::new(settings, start.env).map_err(|error| to_sentence(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("Cannot start the runtime: {error}."))?;
    let done = runtime.block_on(execute(&mut installer, command, &cwd));
    installer.take_notes().iter().for_each(|note| print_note(note));
    // A process that git left behind is killed with the installer.
    drop(installer);
    runtime.shutdown_background();
    done
}

async fn execute(
    installer: &mut PluginInstaller,
    command: PluginCommand,
    cwd: &Path,
) -> Result<String, String> {
    let done = match command {
        PluginCommand::Help | PluginCommand::Validate { .. } => Ok(help_page().to_owned()),
        PluginCommand::ListMarketplaces(format) => {
            let listed = installer.list_marketplaces().map_err(|error| to_sentence(&error))?;
            return match format {
                ListFormat::Text => Ok(render::render_marketplaces(&listed)),
                ListFormat::Json => render::render_marketplaces_json(&listed),
            };
        }
        PluginCommand::List { format, with_offers } => {
            let listed = installer.list_plugins().map_err(|error| to_sentence(&error))?;
            let offers = with_offers.then(|| installer.list_available()).transpose();
            let offers = offers.map_err(|error| to_sentence(&error))?;
            return match format {
                ListFormat::Text => Ok(render::render_plugins(&listed, offers.as_deref())),
                ListFormat::Json => render::render_plugins_json(&listed, offers.as_deref()),
            };
        }
        PluginCommand::AddMarketplace { source, scope } => {
            add_marketplace(installer, &source, cwd, scope).await
        }
        PluginCommand::UpdateMarketplaces(name) => update_marketplaces(installer, name.as_deref()).await,
        PluginCommand::RemoveMarketplace { name, scope } => {
            installer.remove_marketplace(&name, scope).await.map(|removed| describe_removal(&name, &removed))
        }
        PluginCommand::Install { plugin, scope } => installer.install(&plugin, scope).await.map(|outcome| {
            let InstallOutcome { id, version, was_current } = outcome;
            let verb = if was_current { "is already installed" } else { "is installed and enabled" };
            format!("{id} {verb} ({}, version {version}).\n", scope.as_str())
        }),
        PluginCommand::Update(plugin) => installer.update(&plugin).await.map(|outcome| {
            let InstallOutcome { id, version, was_current } = outcome;
            let verb = if was_current { "is up to date" } else { "is updated" };
            format!("{id} {verb} (version {version}).\n")
        }),
        PluginCommand::Uninstall { plugin, scope } => installer
            .uninstall(&plugin, scope)
            .await
            .map(|(id, scope)| format!("Uninstalled {id} ({}).\n", scope.as_str())),
        PluginCommand::SetState { plugin, state, scope } => {
            let verb = match state {
                PluginState::Enabled => "Enabled",
                PluginState::Disabled => "Disabled",
            };
            let changed = installer.set_state(&plugin, state, scope);
            changed.map(|(id, scope)| format!("{verb} {id} ({}).\n", scope.as_str()))
        }
    };
    done.map_err(|error| to_sentence(&error))
}

async fn add_marketplace(
    installer: &mut PluginInstaller,
    source: &str,
    cwd: &Path,
    scope: InstallScope,
) -> Result<String, InstallError> {
    let added = installer.add_marketplace(source, cwd, scope).await?;
    let verb = if added.was_known { "Updated" } else { "Added" };
    Ok(format!(
        "{verb} the marketplace {} with {} ({}).\n",
        added.name,
        count_plugins(added.plugins),
        scope.as_str()
    ))
}

async fn update_marketplaces(
    installer: &mut PluginInstaller,
    name: Option<&str>,
) -> Result<String, InstallError> {
    let updated = installer.update_marketplaces(name).await?;
    Ok(match updated.as_slice() {
        [] => "No marketplace was updated.\n".to_owned(),
        names => format!("Updated {}.\n", names.join(", ")),
    })
}

fn describe_removal(name: &str, removed: &RemovedMarketplace) -> String {
    match (removed.is_still_declared, removed.plugins.as_slice()) {
        (true, _) => {
            format!("Removed the marketplace {name} from these settings; other settings still name it.\n")
        }
        (false, []) => format!("Removed the marketplace {name}.\n"),
        (false, plugins) => {
            format!("Removed the marketplace {name}, and uninstalled {}.\n", plugins.join(", "))
        }
    }
}

fn count_plugins(number: usize) -> String {
    match number {
        1 => "1 plugin".into(),
        number => format!("{number} plugins"),
    }
}

/// The text of an error with a capital letter and a full stop.
fn to_sentence(error: &InstallError) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let text: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}
