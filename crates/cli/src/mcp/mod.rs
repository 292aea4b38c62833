//! `whimbrel mcp`: MCP servers, for people: list, add, show, remove and try them; and our own tools as one.
//!
//! The rooms: [`command`] (what was typed), [`entry`] (words to an entry), [`serve`] (our tools for others), [`show`]
//! (entries and their state in words; pure), [`reach`] (connects).

mod command;
mod entry;
mod reach;
mod serve;
mod show;

use std::path::Path;

use whimbrel_engine::mcp::{Kept, KeptEntry, Scope};
use whimbrel_engine::setup::Setup;
use whimbrel_engine::{Engine, Start};
use whimbrel_models::providers::Providers;
use whimbrel_wire::options::Options;

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
        Command::Test(name) => {
            let setup = setup(env)?;
            let kept = Kept::of(&setup);
            let entries = named(&kept, &name)?;
            let Some(KeptEntry { scope, entry, .. }) = entries.first() else { return Err(unknown(&name)) };
            let mut servers = kept.servers(*scope, &name, entry);
            servers.admission = setup.servers.admission.clone();
            servers.problems.iter().for_each(|problem| note(problem));
            show::tested(&reach::one(servers, &setup)?)
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
    let mut entries = kept.all()?;
    entries.retain(|entry| entry.name == name);
    if entries.is_empty() { Err(unknown(name)) } else { Ok(entries) }
}

fn unknown(name: &str) -> String {
    format!("There is no MCP server {name:?} here. See whimbrel mcp list.")
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
