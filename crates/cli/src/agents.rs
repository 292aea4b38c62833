//! `whimbrel agents`: the agent definitions that a session in this directory would have.

use std::fmt::Write as _;

use serde_json::{Value, json};
use whimbrel_engine::agents::ResolvedDefinition;
use whimbrel_engine::agents::definition::DefinitionSource;
use whimbrel_engine::setup::Setup;
use whimbrel_engine::{Engine, SessionRequest};
use whimbrel_models::providers::Providers;

use crate::arg_list::ListFormat;
use crate::environment::{Env, resolve_home};
use crate::flags::{InspectArgs, parse_inspect_args};
use crate::stdio::{self, print_note, report_error};
use crate::terminal_ui::{LineBreaks, sanitize};

const HELP_PAGE: &str = "\
whimbrel agents: agent definitions.

  whimbrel agents [list] [--json] [FLAGS]
      list the definitions that a session in this directory would have, with
      their source and model. FLAGS are those of a session, such as
      --plugin-dir, --agents and --setting-sources.
";

/// Help page of `whimbrel agents`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Lists the definitions and returns the exit code.
pub(crate) fn main(argv: &[String], env: Env) -> i32 {
    match execute(argv, env) {
        Ok(page) => match stdio::print(&page) {
            Ok(()) => 0,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

fn execute(argv: &[String], mut env: Env) -> Result<String, String> {
    let flags = match argv {
        [verb, rest @ ..] if matches!(verb.as_str(), "list" | "ls") => rest,
        [verb, ..] if verb == "help" => return Ok(HELP_PAGE.into()),
        all => all,
    };
    let parsed = parse_inspect_args("agents", flags, &|path| std::fs::read_to_string(path))?;
    let Some(InspectArgs { options, format, warnings }) = parsed else { return Ok(HELP_PAGE.into()) };
    warnings.iter().for_each(|warning| print_note(warning));
    resolve_home(&mut env);
    let engine = Engine::new(Providers::offline());
    let setup =
        Setup::resolve(&engine, SessionRequest::new(options, env)).map_err(|error| error.to_string())?;
    setup.host.warning.iter().for_each(|warning| print_note(warning));
    let definitions: Vec<&ResolvedDefinition> = setup.agents.definitions.iter().collect();
    Ok(match format {
        ListFormat::Text => render_text(&definitions),
        ListFormat::Json => format!("{:#}\n", render_json(&definitions)),
    })
}

/// Sources in the order of the list, with their headings.
const SOURCES: [(DefinitionSource, &str); 5] = [
    (DefinitionSource::Host, "Flags"),
    (DefinitionSource::Project, "Project"),
    (DefinitionSource::User, "User"),
    (DefinitionSource::Plugin, "Plugins"),
    (DefinitionSource::BuiltIn, "Built in"),
];

fn render_text(definitions: &[&ResolvedDefinition]) -> String {
    let mut page = format!("{} agents\n", definitions.len());
    for (source, heading) in SOURCES {
        let mut of_source = definitions.iter().filter(|definition| definition.source == source).peekable();
        if of_source.peek().is_some() {
            let _ = write!(page, "\n{heading}:\n");
        }
        for ResolvedDefinition { name, model, description, .. } in of_source {
            let line = format!("  {name} · {} · {description}", model.as_deref().unwrap_or("inherit"));
            page += &sanitize(line.trim_end(), LineBreaks::Replace);
            page += "\n";
        }
    }
    page
}

fn render_json(definitions: &[&ResolvedDefinition]) -> Value {
    let render = |definition: &&ResolvedDefinition| {
        json!({
            "name": definition.name,
            "source": source_name(definition.source),
            "model": definition.model.as_deref().unwrap_or("inherit"),
            "description": definition.description,
            "tools": definition.tools,
        })
    };
    definitions.iter().map(render).collect()
}

fn source_name(source: DefinitionSource) -> &'static str {
    match source {
        DefinitionSource::Host => "flag",
        DefinitionSource::Project => "project",
        DefinitionSource::User => "user",
        DefinitionSource::Plugin => "plugin",
        DefinitionSource::BuiltIn => "built-in",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_grouped_by_source() {
        let definition = |name: &str, source, model: Option<&str>| ResolvedDefinition {
            name: name.into(),
            source,
            model: model.map(str::to_owned),
            description: "does\nthings".into(),
            ..ResolvedDefinition::default()
        };
        let built_in = definition("Explore", DefinitionSource::BuiltIn, None);
        let mine = definition("mine", DefinitionSource::User, Some("haiku"));
        let all = [&built_in, &mine];
        assert_eq!(
            render_text(&all),
            "2 agents\n\nUser:\n  mine · haiku · does things\n\nBuilt in:\n  Explore · inherit · does things\n"
        );
        assert_eq!(
            render_json(&all)[1],
            json!({"name": "mine", "source": "user", "model": "haiku", "description": "does\nthings", "tools": null})
        );
    }
}
