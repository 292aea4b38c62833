//! Checks values that parse but refer to nothing: unknown tools, missing directories. Pure.
//!
//! A user gets an error. An SDK gets a warning: its users may name tools of a newer engine, or directories that are
//! created later.

use whimbrel_engine::{builtin_tools, team_tools};
use whimbrel_wire::tool_names::SKILL;

use crate::caller::Caller;
use crate::suggest::most_similar;

/// Similarity from which a tool is suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// Nothing, a warning, or an error.
type Validation = Result<Option<String>, String>;

/// Tools that a session offers only if there is something for them to work on.
const CONDITIONAL_TOOLS: [&str; 4] = [SKILL, "SlashCommand", "ListMcpResourcesTool", "ReadMcpResourceTool"];

/// Checks the names in `--tools`.
pub(super) fn check_tools(names: &[String], caller: Caller) -> Validation {
    let all: Vec<_> = builtin_tools().into_iter().chain(team_tools()).collect();
    let exists = |name: &str| all.iter().any(|tool| tool.name() == name || tool.aliases().contains(&name));
    let known = |name: &&String| {
        exists(name)
            || CONDITIONAL_TOOLS.contains(&name.as_str())
            || name.starts_with("mcp__")
            || *name == "*"
    };
    let Some(name) = names.iter().find(|name| !known(name)) else { return Ok(None) };
    let tools: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    error_or_warning(
        caller,
        &format!("--tools: there is no tool {name}"),
        &suggest_tool(name, &tools),
        "continuing without it",
    )
}

/// Checks the directories in `--add-dir`.
pub(crate) fn check_directories(
    names: &[String],
    caller: Caller,
    is_dir: impl Fn(&str) -> bool,
) -> Validation {
    let Some(name) = names.iter().find(|name| !is_dir(name)) else { return Ok(None) };
    let problem = format!("--add-dir: {name} is not a directory");
    error_or_warning(caller, &problem, "Create it, or remove the flag.", "it is used once it exists")
}

fn error_or_warning(caller: Caller, problem: &str, remedy: &str, meanwhile: &str) -> Validation {
    match caller {
        Caller::User => Err(format!("{problem}. {remedy}")),
        Caller::Sdk => Ok(Some(format!("{problem}; {meanwhile}."))),
    }
}

/// Suggests a tool, whatever the case of its name.
fn suggest_tool(name: &str, tools: &[&str]) -> String {
    let lower: Vec<String> = tools.iter().map(|tool| tool.to_lowercase()).collect();
    let similar = most_similar(&name.to_lowercase(), lower.iter().map(String::as_str), MIN_SIMILARITY);
    match tools.iter().zip(&lower).find(|(_, lower)| Some(lower.as_str()) == similar) {
        Some((tool, _)) => format!("Did you mean {tool}?"),
        None => format!("The tools are {}.", tools.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn unknown_tool_is_an_error_or_a_warning() {
        for names in [&[][..], &["Read", "Bash"], &["mcp__server__tool"]] {
            assert_eq!(check_tools(&strings(names), Caller::User), Ok(None), "{names:?}");
        }
        for (name, hint) in
            [("Nope", "The tools are Agent, "), ("bash", "Did you mean Bash?"), ("Raed", "Read?")]
        {
            let error = check_tools(&strings(&["Read", name]), Caller::User).unwrap_err();
            assert!(error.contains(name) && error.contains(hint), "{error}");
            let warning = check_tools(&strings(&[name]), Caller::Sdk).unwrap().unwrap();
            assert!(warning.contains(name) && warning.contains("continuing"), "{warning}");
        }
    }

    #[test]
    fn missing_directory_is_named() {
        let there = |name: &str| name == "/there";
        assert_eq!(check_directories(&strings(&["/there"]), Caller::User, there), Ok(None));
        let error = check_directories(&strings(&["/there", "/nope"]), Caller::User, there).unwrap_err();
        assert_eq!(error, "--add-dir: /nope is not a directory. Create it, or remove the flag.");
        assert!(check_directories(&strings(&["/nope"]), Caller::Sdk, there).unwrap().is_some());
    }
}
