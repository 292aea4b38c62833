//! `whimbrel mcp`: lists, adds, shows, removes and tests MCP servers, and serves our own tools as one.
//!
//! Modules: [`command`] (command line), [`config_entry`] (arguments to an entry), [`serve`] (our tools as a server),
//! [`official_layout`] (servers in the lines of the official program; pure), [`render`] (servers for users; pure),
//! [`connect`], [`login`] (OAuth).

mod command;
mod config_entry;
mod connect;
mod login;
mod official_layout;
mod render;
mod serve;

use std::path::Path;

use whimbrel_engine::setup::Setup;
use whimbrel_engine::setup::mcp_config_files::{ConfigFileEntry, ConfigScope, McpConfigFiles};
use whimbrel_engine::{Engine, SessionRequest};
use whimbrel_models::providers::Providers;
use whimbrel_wire::options::{McpServerConfig, Options, RemoteServer};

use crate::environment::{Env, resolve_home};
use crate::stdio::{self, print_note, report_error};
use crate::suggest::most_similar;
use command::{Layout, McpCommand, ServerListFormat};

/// Help page of `whimbrel mcp`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env) -> i32 {
    let command = match command::parse(argv) {
        Ok(McpCommand::Serve(flags)) => return serve::main(&flags, env),
        Ok(command) => command,
        Err(text) => return report_error(&text),
    };
    resolve_home(&mut env);
    match execute(command, env) {
        Ok(page) => match stdio::print(&page) {
            Ok(()) => 0,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn execute(command: McpCommand, env: Env) -> Result<String, String> {
    match command {
        McpCommand::Help | McpCommand::Serve(_) => Ok(help_page().into()),
        McpCommand::List(format) => list_servers(resolve_setup(env)?, format),
        McpCommand::Get { name, layout: Layout::Long } => {
            let entries = find_entries(&McpConfigFiles::from_setup(&resolve_setup(env)?), &name)?;
            Ok(render::render_entries(&entries))
        }
        McpCommand::Get { name, layout: Layout::Official } => show_server(resolve_setup(env)?, &name),
        McpCommand::Test(name) => test_server(&resolve_setup(env)?, &name),
        McpCommand::Login(name) => {
            let setup = resolve_setup(env)?;
            let file = login::login(&name, &find_remote_server(&setup, &name)?, &setup)?;
            // The login has succeeded, whatever the test reports.
            let tested = test_server(&setup, &name).unwrap_or_else(|error| format!("{error}\n"));
            Ok(format!("Logged in to {name}. The credentials are stored in {}.\n{tested}", file.display()))
        }
        McpCommand::Logout(name) => {
            let setup = resolve_setup(env)?;
            login::logout(&name, &find_remote_server(&setup, &name)?, &setup)
        }
        McpCommand::Add { name, scope, entry } => {
            let files = McpConfigFiles::from_setup(&resolve_setup(env)?);
            let file = files.add(scope, &name, &entry)?;
            let mut page = format!("Added {name} ({scope}) to {}.\n", file.display());
            if scope == ConfigScope::Project {
                page += "Sessions start it once the project is trusted or enabledMcpjsonServers in your settings \
                    names it.\n";
            }
            Ok(page)
        }
        McpCommand::Remove { name, scope } => {
            remove_server(&McpConfigFiles::from_setup(&resolve_setup(env)?), &name, scope)
        }
    }
}

/// Connects to all servers and lists them.
fn list_servers(mut setup: Setup, format: ServerListFormat) -> Result<String, String> {
    let entries = McpConfigFiles::from_setup(&setup).entries()?;
    let servers = std::mem::take(&mut setup.mcp.servers);
    servers.warnings.iter().for_each(|warning| print_note(warning));
    let is_official = format == ServerListFormat::Text(Layout::Official);
    if is_official && !(servers.entries.is_empty() && entries.is_empty()) {
        stdio::print(official_layout::HEADING)
            .map_err(|error| format!("Cannot write the output: {error}."))?;
    }
    let statuses = connect::server_statuses(servers, &setup)?;
    Ok(match format {
        ServerListFormat::Text(Layout::Official) => official_layout::render_list(&statuses, &entries),
        ServerListFormat::Text(Layout::Long) => render::render_list(&statuses, &entries),
        ServerListFormat::Json => render::render_list_json(&statuses, &entries)?,
    })
}

/// Connects to one server and shows it. A server that needs approval is not started.
fn show_server(mut setup: Setup, name: &str) -> Result<String, String> {
    let entry = effective_entry(&McpConfigFiles::from_setup(&setup), name)?;
    let mut servers = std::mem::take(&mut setup.mcp.servers);
    servers.entries.retain(|other, _| other == name);
    let status = connect::server_statuses(servers, &setup)?.into_iter().next();
    Ok(official_layout::render_server(&entry, status.as_ref()))
}

/// Connects to a server and lists its tools.
fn test_server(setup: &Setup, name: &str) -> Result<String, String> {
    let files = McpConfigFiles::from_setup(setup);
    let ConfigFileEntry { scope, entry, .. } = effective_entry(&files, name)?;
    let mut servers = files.to_server_configs(scope, name, &entry);
    servers.policy = setup.mcp.servers.policy.clone();
    servers.warnings.iter().for_each(|warning| print_note(warning));
    render::render_test(&connect::server_status(servers, setup)?)
}

/// Returns the configuration of a remote server.
fn find_remote_server(setup: &Setup, name: &str) -> Result<RemoteServer, String> {
    let files = McpConfigFiles::from_setup(setup);
    let ConfigFileEntry { scope, entry, .. } = effective_entry(&files, name)?;
    match files
        .parse_entry(scope, name, &entry)
        .map_err(|error| format!("The entry of {name} is invalid: {error}"))?
    {
        McpServerConfig::Http(server) | McpServerConfig::Sse(server) => Ok(server),
        McpServerConfig::Stdio(_) | McpServerConfig::Sdk(_) => Err(format!(
            "{name} is a program. Only servers with a URL support this login; pass a key to a program with -e."
        )),
    }
}

fn remove_server(files: &McpConfigFiles, name: &str, scope: Option<ConfigScope>) -> Result<String, String> {
    let mut entries = find_entries(files, name)?;
    entries.retain(|entry| scope.is_none_or(|scope| entry.scope == scope));
    let mut scopes: Vec<ConfigScope> = entries.iter().map(|entry| entry.scope).collect();
    scopes.dedup();
    let scope = match scopes.as_slice() {
        [] => return Err(format!("{name} is not configured in that scope. See whimbrel mcp get {name}.")),
        [scope] => *scope,
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            return Err(format!(
                "{name} is configured in several scopes: {}. Choose one with --scope.",
                names.join(", ")
            ));
        }
    };
    match files.remove(scope, name)? {
        Some(file) => Ok(format!("Removed {name} ({scope}) from {}.\n", file.display())),
        None => {
            let dir = entries.first().and_then(|entry| entry.file.parent()).unwrap_or(Path::new("."));
            Err(format!("{name} is configured for a parent directory. Remove it in {}.", dir.display()))
        }
    }
}

/// Returns the entries of a name, the effective one first.
fn find_entries(files: &McpConfigFiles, name: &str) -> Result<Vec<ConfigFileEntry>, String> {
    let (entries, others): (Vec<_>, Vec<_>) =
        files.entries()?.into_iter().partition(|entry| entry.name == name);
    if !entries.is_empty() {
        return Ok(entries);
    }
    let mut names: Vec<&str> = others.iter().map(|entry| entry.name.as_str()).collect();
    names.dedup();
    let hint = match (names.is_empty(), most_similar(name, names.iter().copied(), command::MIN_SIMILARITY)) {
        (true, _) => "There are none; add one with whimbrel mcp add.".to_owned(),
        (false, Some(near)) => format!("Did you mean {near}?"),
        (false, None) => format!("The servers are {}.", names.join(", ")),
    };
    Err(format!("There is no MCP server {name:?}. {hint}"))
}

/// Returns the effective entry of a name.
fn effective_entry(files: &McpConfigFiles, name: &str) -> Result<ConfigFileEntry, String> {
    let first = find_entries(files, name)?.into_iter().next();
    first.ok_or_else(|| format!("There is no MCP server {name:?}."))
}

/// Resolves the setup of a session in this directory.
fn resolve_setup(env: Env) -> Result<Setup, String> {
    let options = Options { persist_session: Some(false), ..Options::default() };
    let engine = Engine::new(Providers::offline());
    Setup::resolve(&engine, SessionRequest::new(options, env)).map_err(|error| error.to_string())
}
