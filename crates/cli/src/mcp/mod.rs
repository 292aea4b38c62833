//! `whimbrel mcp`: MCP servers, for people: list, add, show, remove and try them; and our own tools as one.
//!
//! The rooms: [`command`] (what was typed), [`entry`] (words to an entry), [`serve`] (our tools for others), [`show`]
//! (entries and their state in words; pure), [`reach`] (connects), [`login`] (with a browser).

mod command;
mod entry;
mod login;
mod reach;
mod serve;
mod show;

use std::path::Path;

use whimbrel_engine::mcp::{Kept, KeptEntry, Scope};
use whimbrel_engine::setup::Setup;
use whimbrel_engine::{Engine, Start};
use whimbrel_models::providers::Providers;
use whimbrel_wire::options::{McpServerConfig, Options, RemoteServer};

use crate::session::Env;
use crate::stdio::{self, note};
use crate::{exit, home};
use command::{Command, Form};

/// Carries out what was typed after `mcp`, and gives the exit code.
pub(crate) fn main(argv: &[String], mut env: Env) -> i32 {
    let command = match command::parse(argv) {
        Ok(Command::Serve(flags)) => return serve::main(&flags, env),
        Ok(command) => command,
        Err(text) => return fail(&text),
    };
    home::settle(&mut env);
    match carry_out(command, env) {
        Ok(page) => match stdio::print(&page) {
            Ok(()) => 0,
            Err(error) => fail(&format!("The output could not be written: {error}.")),
        },
        Err(text) => fail(&text),
    }
}

fn carry_out(command: Command, env: Env) -> Result<String, String> {
    match command {
        Command::Help | Command::Serve(_) => Ok(command::PAGE.into()),
        Command::List(form) => {
            let mut setup = setup(env)?;
            let kept = Kept::of(&setup).all()?;
            let servers = std::mem::take(&mut setup.servers);
            servers.problems.iter().for_each(|problem| note(problem));
            let states = reach::all(servers, &setup)?;
            Ok(match form {
                Form::Person => show::list(&states, &kept),
                Form::Json => show::list_as_json(&states, &kept)?,
            })
        }
        Command::Get(name) => {
            let entries = named(&Kept::of(&setup(env)?), &name)?;
            Ok(show::entries(&entries))
        }
        Command::Test(name) => test(&setup(env)?, &name),
        Command::Login(name) => {
            let setup = setup(env)?;
            let file = login::login(&name, &address(&setup, &name)?, &setup)?;
            // The person is logged in, whatever else the server has to say.
            let tested = test(&setup, &name).unwrap_or_else(|problem| format!("{problem}\n"));
            Ok(format!("Logged in to {name}. The login is kept in {}.\n{tested}", file.display()))
        }
        Command::Logout(name) => {
            let setup = setup(env)?;
            login::logout(&name, &address(&setup, &name)?, &setup)
        }
        Command::Add { name, scope, entry } => {
            let kept = Kept::of(&setup(env)?);
            let file = kept.add(scope, &name, &entry)?;
            let mut page = format!("Added {name} ({scope}) to {}.\n", file.display());
            if scope == Scope::Project {
                page += "Sessions start it once the project is trusted, or enabledMcpjsonServers of your settings names it.\n";
            }
            Ok(page)
        }
        Command::Remove { name, scope } => remove(&Kept::of(&setup(env)?), &name, scope),
    }
}

/// Connects to a server and says what it offers.
fn test(setup: &Setup, name: &str) -> Result<String, String> {
    let kept = Kept::of(setup);
    let KeptEntry { scope, entry, .. } = counting(&kept, name)?;
    let mut servers = kept.servers(scope, name, &entry);
    servers.admission = setup.servers.admission.clone();
    servers.problems.iter().for_each(|problem| note(problem));
    show::tested(&reach::one(servers, setup)?)
}

/// The entry of a server at an address.
fn address(setup: &Setup, name: &str) -> Result<RemoteServer, String> {
    let kept = Kept::of(setup);
    let KeptEntry { scope, entry, .. } = counting(&kept, name)?;
    match kept
        .understood(scope, name, &entry)
        .map_err(|problem| format!("The entry of {name} makes no sense: {problem}"))?
    {
        McpServerConfig::Http(server) | McpServerConfig::Sse(server) => Ok(server),
        McpServerConfig::Stdio(_) | McpServerConfig::Sdk(_) => Err(format!(
            "{name} is a program. Only servers at an address ask for a login this way; give a program its key with -e."
        )),
    }
}

fn remove(kept: &Kept, name: &str, scope: Option<Scope>) -> Result<String, String> {
    let mut entries = named(kept, name)?;
    entries.retain(|entry| scope.is_none_or(|scope| entry.scope == scope));
    let mut scopes: Vec<Scope> = entries.iter().map(|entry| entry.scope).collect();
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

/// The entries of a name, the one that counts first.
fn named(kept: &Kept, name: &str) -> Result<Vec<KeptEntry>, String> {
    let (entries, others): (Vec<_>, Vec<_>) = kept.all()?.into_iter().partition(|entry| entry.name == name);
    if !entries.is_empty() {
        return Ok(entries);
    }
    let mut names: Vec<&str> = others.iter().map(|entry| entry.name.as_str()).collect();
    names.dedup();
    let hint = match (names.is_empty(), command::nearest(name, names.iter().copied())) {
        (true, _) => "There are none yet: whimbrel mcp add.".to_owned(),
        (false, Some(near)) => format!("Did you mean {near}?"),
        (false, None) => format!("There are: {}.", names.join(", ")),
    };
    Err(format!("There is no MCP server {name:?} here. {hint}"))
}

/// The entry that counts.
fn counting(kept: &Kept, name: &str) -> Result<KeptEntry, String> {
    let first = named(kept, name)?.into_iter().next();
    first.ok_or_else(|| format!("There is no MCP server {name:?} here."))
}

/// What a session in this folder would begin with.
fn setup(env: Env) -> Result<Setup, String> {
    let options = Options { persist_session: Some(false), ..Options::default() };
    let engine = Engine::new(Providers::offline());
    Setup::resolve(&engine, Start::new(options, env)).map_err(|error| error.to_string())
}

fn fail(text: &str) -> i32 {
    note(text);
    exit::FAILED
}
