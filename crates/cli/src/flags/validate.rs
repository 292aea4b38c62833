//! Values that can be read but mean nothing: tools that there are not, folders that are not there. Pure.
//!
//! A person has made a mistake and is told. An SDK goes on with a warning: its users may name tools of a newer engine, or
//! folders that come later.

use super::Caller;
use whimbrel_engine::tools;

/// What becomes of a value that means nothing.
type Validation = Result<Option<String>, String>;

/// Tools that a session has if there is something for them.
const CONDITIONAL_TOOLS: [&str; 4] = [tools::SKILL, "SlashCommand", "ListMcpResourcesTool", "ReadMcpResourceTool"];

/// Judges the names in `--tools`.
pub(super) fn check_tools(names: &[String], caller: Caller) -> Validation {
    let all: Vec<_> = tools::builtin_tools().into_iter().chain(tools::team_tools()).collect();
    let answers = |name: &str| all.iter().any(|tool| tool.name() == name || tool.aliases().contains(&name));
    let known = |name: &&String| {
        answers(name) || CONDITIONAL_TOOLS.contains(&name.as_str()) || name.starts_with("mcp__") || *name == "*"
    };
    let Some(name) = names.iter().find(|name| !known(name)) else { return Ok(None) };
    let tools: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    error_or_warning(caller, &format!("--tools: there is no tool {name}"), &suggest_tool(name, &tools), "going on without it")
}

/// Judges the folders in `--add-dir`.
pub(crate) fn check_directories(names: &[String], caller: Caller, is_folder: impl Fn(&str) -> bool) -> Validation {
    let Some(name) = names.iter().find(|name| !is_folder(name)) else { return Ok(None) };
    let fault = format!("--add-dir: {name} is not a folder");
    error_or_warning(caller, &fault, "Make it first, or leave it out.", "it counts once it is one")
}

fn error_or_warning(caller: Caller, fault: &str, remedy: &str, meanwhile: &str) -> Validation {
    match caller {
        Caller::User => Err(format!("{fault}. {remedy}")),
        Caller::Sdk => Ok(Some(format!("{fault}; {meanwhile}."))),
    }
}

fn suggest_tool(name: &str, tools: &[&str]) -> String {
    let name = name.to_lowercase();
    let likeness = tools.iter().map(|tool| (strsim::jaro_winkler(&name, &tool.to_lowercase()), tool));
    match likeness.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((likeness, tool)) if likeness > 0.8 => format!("Did you mean {tool}?"),
        _ => format!("There are {}.", tools.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_tool_that_there_is_not_is_a_mistake_of_a_person_and_a_warning_to_an_sdk() {
        for names in [&[][..], &["Read", "Bash"], &["mcp__server__tool"]] {
            assert_eq!(check_tools(&strings(names), Caller::User), Ok(None), "{names:?}");
        }
        for (name, hint) in [("Nope", "There are Agent, "), ("bash", "Did you mean Bash?"), ("Raed", "Read?")]
        {
            let error = check_tools(&strings(&["Read", name]), Caller::User).unwrap_err();
            assert!(error.contains(name) && error.contains(hint), "{error}");
            let warning = check_tools(&strings(&[name]), Caller::Sdk).unwrap().unwrap();
            assert!(warning.contains(name) && warning.contains("going on"), "{warning}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let there = |name: &str| name == "/there";
        assert_eq!(check_directories(&strings(&["/there"]), Caller::User, there), Ok(None));
        let error = check_directories(&strings(&["/there", "/nope"]), Caller::User, there).unwrap_err();
        assert_eq!(error, "--add-dir: /nope is not a folder. Make it first, or leave it out.");
        assert!(check_directories(&strings(&["/nope"]), Caller::Sdk, there).unwrap().is_some());
    }
}
