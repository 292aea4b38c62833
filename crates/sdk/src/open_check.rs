//! What is checked before a session is opened: the runtime, and options that cannot work.

#[cfg(feature = "in-process")]
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use whimbrel_wire::options::Options;
#[cfg(feature = "in-process")]
use whimbrel_wire::options::ToolSet;
#[cfg(feature = "in-process")]
use whimbrel_wire::tool_names::SKILL;

use crate::error::Error;
use crate::error::OpenError;

/// An option that cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidOption {
    /// Name of its setter.
    pub(crate) option: &'static str,
    /// What is wrong, and the remedy.
    pub(crate) reason: String,
}

impl From<InvalidOption> for Error {
    fn from(InvalidOption { option, reason }: InvalidOption) -> Self {
        OpenError::InvalidOption { option: option.to_owned(), reason }.into()
    }
}

/// Checks that the current runtime has timers, without which the engine panics later.
pub(crate) fn check_runtime() -> Result<(), Error> {
    tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
    // Tokio has no other way to ask: only its own types know the timers of a handle. It prints the panic, and with
    // `panic = "abort"` the program ends here instead of at the first timeout of the engine.
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| Error::NoTimer)
}

/// Checks the options. `odd_paths` are paths that are not UTF-8, which the options cannot hold, and their setters.
pub(crate) fn check_options(
    options: &Options,
    odd_paths: &[(&'static str, PathBuf)],
) -> Result<(), InvalidOption> {
    let invalid = |option, reason| Err(InvalidOption { option, reason });
    if let Some((option, dir)) = odd_paths.first() {
        return invalid(option, format!("names {}, which is not UTF-8: rename the directory", dir.display()));
    }
    if options.max_turns == Some(0) {
        return invalid("max_turns", "must be at least 1".into());
    }
    if let Some((name, _)) = options.agents.iter().find(|(_, agent)| agent.max_turns == Some(0)) {
        return invalid("subagent", format!("{name}: max_turns must be at least 1"));
    }
    check_server_names(options)?;
    match options.max_budget_usd {
        Some(dollars) if !(dollars.is_finite() && dollars > 0.0) => {
            invalid("max_budget_usd", format!("must be an amount above 0, but is {dollars}"))
        }
        _ => Ok(()),
    }
}

/// Checks that the tools that are named exist. Other engines may have other tools, so only this process is asked.
#[cfg(feature = "in-process")]
pub(crate) fn check_tool_names(
    options: &Options,
    engine: &whimbrel_engine::Engine,
) -> Result<(), InvalidOption> {
    let known = || engine.tools().iter().chain(engine.team_tools()).map(|entry| entry.tool());
    // This one exists only where there are skills.
    let is_known = |name: &str| {
        name == SKILL || known().any(|tool| tool.name() == name || tool.aliases().contains(&name))
    };
    let unknown = |option: &'static str, owner: String, name: &str| {
        let mut all: Vec<String> = known().map(|tool| tool.name().to_owned()).collect();
        all.sort_unstable();
        all.dedup();
        let reason =
            format!("{owner}names {name}, which is no built-in tool: choose from {}", all.join(", "));
        Err(InvalidOption { option, reason })
    };
    if let Some(ToolSet::List(names)) = &options.tools
        && let Some(name) = names.iter().find(|name| !is_known(name))
    {
        return unknown("tools", String::new(), name);
    }
    for (agent, definition) in &options.agents {
        let names = [&definition.tools, &definition.disallowed_tools].into_iter().flatten().flatten();
        // An entry may restrict a tool, such as `Agent(reviewer)`, or name a tool or all tools of a server.
        let name_of = |entry: &'_ String| entry.split('(').next().unwrap_or_default().trim().to_owned();
        let is_accepted = |name: &String| name == "*" || name.starts_with("mcp__") || is_known(name);
        if let Some(name) = names.map(name_of).find(|name| !is_accepted(name)) {
            return unknown("subagent", format!("{agent}: "), &name);
        }
    }
    Ok(())
}

/// Checks that subagents name servers that exist. Settings files and plugins may add servers, so that an agent with them
/// is not checked.
fn check_server_names(options: &Options) -> Result<(), InvalidOption> {
    let is_closed = options.setting_sources.as_ref().is_some_and(Vec::is_empty)
        && options.settings.is_none()
        && options.managed_settings.is_none()
        && options.plugins.is_empty()
        && options.extra_args.is_empty();
    if !is_closed {
        return Ok(());
    }
    for (agent, definition) in &options.agents {
        let mut names = definition.mcp_servers.iter().flatten().filter_map(Value::as_str);
        if let Some(name) = names.find(|name| !options.mcp_servers.contains_key(*name)) {
            let known: Vec<&str> = options.mcp_servers.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "the agent has none".into() } else { known.join(", ") };
            let reason = format!("{agent}: names {name}, which is no MCP server of the agent: {known}");
            return Err(InvalidOption { option: "subagent", reason });
        }
    }
    Ok(())
}

/// Checks that no setter was called that an engine which was given does not read.
#[cfg(feature = "in-process")]
pub(crate) fn check_provider_setters(setters: &BTreeSet<&'static str>) -> Result<(), InvalidOption> {
    let Some(option) = setters.first() else { return Ok(()) };
    let reason =
        "has no effect on an engine that was given: give the provider to Engine::builder, or remove engine";
    Err(InvalidOption { option, reason: reason.into() })
}

/// Checks that a working directory exists.
pub(crate) fn check_dir(dir: &Path) -> Result<(), OpenError> {
    if dir.is_dir() { Ok(()) } else { Err(OpenError::NoSuchDirectory(dir.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_are_named() {
        let budget = |dollars| Options { max_budget_usd: Some(dollars), ..Options::default() };
        let turns = |limit| Options { max_turns: Some(limit), ..Options::default() };
        let odd = [("cwd", PathBuf::from("x"))];
        let rows = [
            ("nothing", Options::default(), &[][..], None),
            ("turns", turns(1), &[][..], None),
            ("no turns", turns(0), &[][..], Some("max_turns")),
            ("budget", budget(0.1), &[][..], None),
            ("no budget", budget(0.0), &[][..], Some("max_budget_usd")),
            ("negative budget", budget(-1.0), &[][..], Some("max_budget_usd")),
            ("no number", budget(f64::NAN), &[][..], Some("max_budget_usd")),
            ("infinite budget", budget(f64::INFINITY), &[][..], Some("max_budget_usd")),
            ("odd directory", Options::default(), &odd[..], Some("cwd")),
        ];
        for (name, options, odd_paths, expected) in rows {
            let found = check_options(&options, odd_paths).err().map(|invalid| invalid.option);
            assert_eq!(found, expected, "{name}");
        }
    }
}
