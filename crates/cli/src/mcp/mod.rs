//! `whimbrel mcp`: lists, adds, shows, removes and tests MCP servers, and serves our own tools as one.
//!
//! Modules: [`command`] (command line), [`config_entry`] (arguments to an entry), [`serve`] (our tools as a server),
//! [`render`] (entries and status as text; pure), [`connect`], [`login`] (OAuth).

mod command;
mod config_entry;
mod connect;
mod login;
mod render;
mod serve;

use std::path::Path;

use whimbrel_engine::mcp::{ConfigFileEntry, ConfigScope, McpConfigFiles};
use whimbrel_engine::setup::Setup;
use whimbrel_engine::{Engine, Start};
use whimbrel_models::providers::Providers;
use whimbrel_wire::options::{McpServerConfig, Options, RemoteServer};

use crate::session::Env;
use crate::stdio::{self, print_note};
use crate::{exit, home_dir};
use command::{McpCommand, McpListFormat};

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env) -> i32 {
    let command = match command::parse(argv) {
        Ok(McpCommand::Serve(flags)) => return serve::main(&flags, env),
        Ok(command) => command,
        Err(text) => return report_error(&text),
    };
    home_dir::resolve_home(&mut env);
    match execute(command, env) {
        Ok(page) => match stdio::print(&page) {
            Ok(()) => 0,
            Err(error) => report_error(&format!("The output could not be written: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn execute(command: McpCommand, env: Env) -> Result<String, String> {
    match command {
        McpCommand::Help | McpCommand::Serve(_) => Ok(command::HELP_PAGE.into()),
        McpCommand::List(form) => {
            let mut setup = resolve_setup(env)?;
            let kept = McpConfigFiles::from_setup(&setup).entries()?;
            let servers = std::mem::take(&mut setup.servers);
            servers.warnings.iter().for_each(|problem| print_note(problem));
            let states = connect::server_statuses(servers, &setup)?;
            Ok(match form {
                McpListFormat::Text => render::render_list(&states, &kept),
                McpListFormat::Json => render::render_list_json(&states, &kept)?,
            })
        }
        McpCommand::Get(name) => {
            let entries = find_entries(&McpConfigFiles::from_setup(&resolve_setup(env)?), &name)?;
            Ok(render::render_entries(&entries))
        }
        McpCommand::Test(name) => test_server(&resolve_setup(env)?, &name),
        McpCommand::Login(name) => {
            let setup = resolve_setup(env)?;
            let file = login::login(&name, &find_remote_server(&setup, &name)?, &setup)?;
            // The login has succeeded, whatever the test reports.
            let tested = test_server(&setup, &name).unwrap_or_else(|problem| format!("{problem}\n"));
            Ok(format!("Logged in to {name}. The login is kept in {}.\n{tested}", file.display()))
        }
        McpCommand::Logout(name) => {
            let setup = resolve_setup(env)?;
            login::logout(&name, &find_remote_server(&setup, &name)?, &setup)
        }
        McpCommand::Add { name, scope, entry } => {
            let kept = McpConfigFiles::from_setup(&resolve_setup(env)?);
            let file = kept.add(scope, &name, &entry)?;
            let mut page = format!("Added {name} ({scope}) to {}.\n", file.display());
            if scope == ConfigScope::Project {
                page += "Sessions start it once the project is trusted, or enabledMcpjsonServers of your settings names it.\n";
            }
            Ok(page)
        }
        McpCommand::Remove { name, scope } => {
            remove_server(&McpConfigFiles::from_setup(&resolve_setup(env)?), &name, scope)
        }
    }
}

/// Connects to a server and lists its tools.
fn test_server(setup: &Setup, name: &str) -> Result<String, String> {
    let kept = McpConfigFiles::from_setup(setup);
    let ConfigFileEntry { scope, entry, .. } = effective_entry(&kept, name)?;
    let mut servers = kept.to_server_configs(scope, name, &entry);
    servers.policy = setup.servers.policy.clone();
    servers.warnings.iter().for_each(|problem| print_note(problem));
    render::render_test(&connect::server_status(servers, setup)?)
}

/// Returns the configuration of a remote server.
fn find_remote_server(setup: &Setup, name: &str) -> Result<RemoteServer, String> {
    let kept = McpConfigFiles::from_setup(setup);
    let ConfigFileEntry { scope, entry, .. } = effective_entry(&kept, name)?;
    match kept
        .parse_entry(scope, name, &entry)
        .map_err(|problem| format!("The entry of {name} makes no sense: {problem}"))?
    {
        McpServerConfig::Http(server) | McpServerConfig::Sse(server) => Ok(server),
        McpServerConfig::Stdio(_) | McpServerConfig::Sdk(_) => Err(format!(
            "{name} is a program. Only servers at an address ask for a login this way; give a program its key with -e."
        )),
    }
}

fn remove_server(kept: &McpConfigFiles, name: &str, scope: Option<ConfigScope>) -> Result<String, String> {
    let mut entries = find_entries(kept, name)?;
    entries.retain(|entry| scope.is_none_or(|scope| entry.scope == scope));
    let mut scopes: Vec<ConfigScope> = entries.iter().map(|entry| entry.scope).collect();
    scopes.dedup();
    let scope = match scopes.as_slice() {
        [] => return Err(format!("{name} is not kept there. See whimbrel mcp get {name}.")),
        [scope] => *scope,
        several => {
            let words: Vec<String> = several.iter().map(ToString::to_string).collect();
            return Err(format!(
                "{name} is kept more than once: {}. Say which with --scope.",
                words.join(", ")
            ));
        }
    };
    match kept.remove(scope, name)? {
        Some(file) => Ok(format!("Removed {name} ({scope}) from {}.\n", file.display())),
        None => {
            let folder = entries.first().and_then(|entry| entry.file.parent()).unwrap_or(Path::new("."));
            Err(format!("{name} is kept for a folder above this one. Remove it in {}.", folder.display()))
        }
    }
}

/// Returns the entries of a name, the effective one first.
fn find_entries(kept: &McpConfigFiles, name: &str) -> Result<Vec<ConfigFileEntry>, String> {
    let (entries, others): (Vec<_>, Vec<_>) =
        kept.entries()?.into_iter().partition(|entry| entry.name == name);
    if !entries.is_empty() {
        return Ok(entries);
    }
    let mut names: Vec<&str> = others.iter().map(|entry| entry.name.as_str()).collect();
    names.dedup();
    let hint = match (names.is_empty(), command::suggest(name, names.iter().copied())) {
        (true, _) => "There are none yet: whimbrel mcp add.".to_owned(),
        (false, Some(near)) => format!("Did you mean {near}?"),
        (false, None) => format!("There are: {}.", names.join(", ")),
    };
    Err(format!("There is no MCP server {name:?} here. {hint}"))
}

/// Returns the effective entry of a name.
fn effective_entry(kept: &McpConfigFiles, name: &str) -> Result<ConfigFileEntry, String> {
    let first = find_entries(kept, name)?.into_iter().next();
    first.ok_or_else(|| format!("There is no MCP server {name:?} here."))
}

/// Resolves the setup of a session in this directory.
fn resolve_setup(env: Env) -> Result<Setup, String> {
    let options = Options { persist_session: Some(false), ..Options::default() };
    let engine = Engine::new(Providers::offline());
    Setup::resolve(&engine, Start::new(options, env)).map_err(|error| error.to_string())
}

fn report_error(text: &str) -> i32 {
    print_note(text);
    exit::FAILURE
}
