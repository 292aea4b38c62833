//! `whimbrel demo`: a real run of the engine with real tools in a temporary directory. Only the model is scripted, so
//! that it needs no key and no network.

use std::io::{self, Write};
use std::sync::Arc;

use whimbrel_engine::{Engine, Start};
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::Scripted;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionMode;

use crate::local_host::FrameDisplay;
use crate::print::serve_prompt;
use crate::run::RunOutcome;
use crate::session::{Env, Session};
use crate::terminal::{Terminal, columns};
use crate::terminal_ui::{FrameRenderer, PermissionPrompter, Spinner, Style};

/// Script of the model.
const SCRIPT: &str = include_str!("demo.json");

/// Prompt of the demo.
const PROMPT: &str =
    "Count the curlews in sightings.csv with a small script, and check that it counts right.";

/// Delay between streamed deltas in milliseconds, so that a user can read along.
const DELTA_DELAY_MS: u64 = 30;

/// Runs the demo.
pub(crate) fn run(env: Env, terminal: Terminal) -> io::Result<RunOutcome> {
    let folder = tempfile::Builder::new().prefix("whimbrel-demo-").tempdir()?;
    let place = folder.path().canonicalize()?;
    let mut out = io::stdout();
    writeln!(out, "A scripted model, real tools, in {}\n\n> {PROMPT}\n", place.display())?;
    let judge = if terminal.stdin && terminal.stderr {
        PermissionPrompter::Terminal
    } else {
        PermissionPrompter::AutoAllow
    };
    let paint = if terminal.has_colour && terminal.stdout { Style::Dimmed } else { Style::Plain };
    let spinner =
        (terminal.stdout && terminal.stderr && terminal.can_move_cursor).then(|| Spinner::new(paint));
    let story =
        FrameRenderer::new((io::stdout(), io::stdout()), || columns(io::stdout()), &place, paint, spinner);
    let pace = if terminal.stdout { DELTA_DELAY_MS } else { 0 };
    let ended = serve_prompt(
        build_session(&place.display().to_string(), env, pace)?,
        PROMPT.into(),
        FrameDisplay::Terminal(story),
        judge,
    )?;
    folder.close()?;
    let outcome = describe_outcome(&ended).map_or_else(String::new, |outcome| format!("\n{outcome}"));
    writeln!(
        out,
        "{outcome}\n{} is removed. The same with a model of yours: whimbrel \"your task\"",
        place.display()
    )?;
    Ok(ended)
}

/// Describes the outcome; `None` if the run failed.
fn describe_outcome(ended: &RunOutcome) -> Option<&'static str> {
    let result = ended.result.as_ref().filter(|result| !result.is_error)?;
    Some(match result.permission_denials.is_empty() {
        true => "So there are two curlews: the curlew, and the whimbrel, which is one, too.",
        false => {
            "Without a yes the command was not run, so nobody has counted: that is what the question is for. To see the count, start whimbrel demo again and answer y."
        }
    })
}

/// Creates a session in this directory that is not stored and may edit files without asking.
fn build_session(folder: &str, env: Env, pace: u64) -> io::Result<Session> {
    let script = Scripted::parse(&render_script(folder, pace)).map_err(io::Error::other)?;
    let providers = Providers::offline();
    providers.add_script("demo", Arc::new(script));
    let options = Options {
        model: Some("scripted:demo".into()),
        cwd: Some(folder.into()),
        permission_mode: Some(PermissionMode::AcceptEdits),
        permission_prompt_tool: Some(PermissionPromptTool::Stdio),
        persist_session: Some(false),
        setting_sources: Some(Vec::new()),
        include_partial_messages: true,
        ..Options::default()
    };
    Ok(Session { engine: Engine::new(providers), start: Start::new(options, env) })
}

/// Fills the directory into the script, so that file names become absolute paths.
fn render_script(folder: &str, pace: u64) -> String {
    let folder = serde_json::Value::from(folder).to_string();
    SCRIPT.replace("$FOLDER", folder.trim_matches('"')).replace("\"$PACE\"", &pace.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_parses_for_any_directory() {
        for folder in ["/tmp/x", "/tmp/with \"quotes\" and \\"] {
            Scripted::parse(&render_script(folder, 30)).unwrap();
        }
    }
}
