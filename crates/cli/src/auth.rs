//! `whimbrel auth status`: whether there is a key for the model, and where it comes from.

use serde_json::{Value, json};

use crate::credentials::{Credentials, KeyOrigin, find_credentials};
use crate::environment::{Env, resolve_home};
use crate::exit_code::FAILURE;
use crate::flags::{InspectArgs, parse_inspect_args};
use crate::missing_key::NO_KEY_HELP;
use crate::official::refuse_subcommand;
use crate::serve_session::PreparedSession;
use crate::stdio::{self, print_note, report_error};
use crate::terminal::Terminal;

const HELP_PAGE: &str = "\
whimbrel auth: the key that the model is called with.

  whimbrel auth status [--json | --text] [FLAGS]
      say whether there is a key, and where it comes from; the key itself is
      not shown. Without a key the exit code is 1.
      --json: as JSON, which is the default if a program reads the output
      FLAGS are those of a session, such as --model and --settings.
";

/// Help page of `whimbrel auth`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
pub(crate) fn main(argv: &[String], env: Env, terminal: Terminal) -> i32 {
    match execute(argv, env, terminal) {
        Ok((page, code)) => match stdio::print(&page) {
            Ok(()) => code,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

/// Format of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusFormat {
    Text,
    Json,
}

fn execute(argv: &[String], mut env: Env, terminal: Terminal) -> Result<(String, i32), String> {
    let rest = match argv.split_first() {
        None => return Ok((HELP_PAGE.into(), 0)),
        Some((verb, _)) if matches!(verb.as_str(), "help" | "-h" | "--help") => {
            return Ok((HELP_PAGE.into(), 0));
        }
        Some((verb, rest)) if verb == "status" => rest,
        Some((verb, _)) => {
            let unknown = || format!("whimbrel auth {verb}: unknown command. See whimbrel auth --help.");
            return Err(refuse_subcommand(&format!("auth {verb}")).unwrap_or_else(unknown));
        }
    };
    let format = choose_format(rest, terminal);
    let flags: Vec<String> =
        rest.iter().filter(|argument| !matches!(argument.as_str(), "--json" | "--text")).cloned().collect();
    let parsed = parse_inspect_args("auth", &flags, &|path| std::fs::read_to_string(path))?;
    let Some(InspectArgs { options, warnings, .. }) = parsed else { return Ok((HELP_PAGE.into(), 0)) };
    warnings.iter().for_each(|warning| print_note(warning));
    resolve_home(&mut env);
    let mut session = PreparedSession::new(options, env.clone());
    if session.request.settings.is_none()
        && let Err(error) = session.request.read_settings()
    {
        print_note(&error.to_string());
    }
    let credentials = find_credentials(&session, &env);
    let page = match format {
        StatusFormat::Text => render_text(&credentials),
        StatusFormat::Json => format!("{:#}\n", render_json(&credentials)),
    };
    Ok((page, if credentials.key == KeyOrigin::Missing { FAILURE } else { 0 }))
}

/// The last flag decides; without one, a terminal gets text and a program JSON.
fn choose_format(argv: &[String], terminal: Terminal) -> StatusFormat {
    let by_flag = argv.iter().rev().find_map(|argument| match argument.as_str() {
        "--json" => Some(StatusFormat::Json),
        "--text" => Some(StatusFormat::Text),
        _ => None,
    });
    by_flag.unwrap_or(if terminal.stdout { StatusFormat::Text } else { StatusFormat::Json })
}

fn render_text(credentials: &Credentials) -> String {
    let Credentials { model, provider, key } = credentials;
    let page = format!("Model: {model} ({})\nKey: {}\n", provider.name(), key.describe());
    match key {
        KeyOrigin::Missing => format!("{page}\n{NO_KEY_HELP}\n"),
        _ => page,
    }
}

/// Renders the status with the fields of the official program.
fn render_json(credentials: &Credentials) -> Value {
    let Credentials { model, provider, key } = credentials;
    let method = match (key, key.source()) {
        (KeyOrigin::Helper, _) => "api_key_helper",
        (_, Some(variable)) if variable.ends_with("_TOKEN") => "oauth_token",
        (_, Some(_)) => "api_key",
        (_, None) => "none",
    };
    let mut status = json!({
        "loggedIn": *key != KeyOrigin::Missing,
        "authMethod": method,
        "apiProvider": provider.id(),
        "model": model,
    });
    if let Some(source) = key.source() {
        status["apiKeySource"] = source.into();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Provider;

    #[test]
    fn json_names_the_method_and_the_source() {
        let rows = [
            (KeyOrigin::Missing, json!({"loggedIn": false, "authMethod": "none"})),
            (
                KeyOrigin::Environment("ANTHROPIC_API_KEY".into()),
                json!({"loggedIn": true, "authMethod": "api_key", "apiKeySource": "ANTHROPIC_API_KEY"}),
            ),
            (
                KeyOrigin::Settings("ANTHROPIC_AUTH_TOKEN".into()),
                json!({"loggedIn": true, "authMethod": "oauth_token", "apiKeySource": "ANTHROPIC_AUTH_TOKEN"}),
            ),
            (
                KeyOrigin::Helper,
                json!({"loggedIn": true, "authMethod": "api_key_helper", "apiKeySource": "apiKeyHelper"}),
            ),
        ];
        for (key, mut expected) in rows {
            expected["apiProvider"] = "firstParty".into();
            expected["model"] = "m".into();
            let credentials = Credentials { model: "m".into(), provider: Provider::Messages, key };
            assert_eq!(render_json(&credentials), expected, "{credentials:?}");
        }
    }

    #[test]
    fn missing_key_is_explained() {
        let credentials =
            Credentials { model: "m".into(), provider: Provider::Messages, key: KeyOrigin::Missing };
        let page = render_text(&credentials);
        assert!(page.starts_with("Model: m (Messages API)\nKey: none\n"), "{page}");
        assert!(page.contains("ANTHROPIC_API_KEY"), "{page}");
    }
}
