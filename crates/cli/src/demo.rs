//! `whimbrel demo`: a real run of the engine with real tools in a temporary folder. Only the model is a script, so it needs
//! no key and no network.

use std::io::{self, Write};
use std::sync::Arc;

use whimbrel_engine::{Engine, Start};
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::Scripted;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionMode;

use crate::local_host::FrameDisplay;
use crate::terminal_ui::{PermissionPrompter, Style, Spinner, FrameRenderer};
use crate::print::serve_prompt;
use crate::run::RunOutcome;
use crate::session::{Env, Session};
use crate::terminal::{Terminal, columns};

/// What the model will say.
const SCRIPT: &str = include_str!("demo.json");

/// What it is asked.
const PROMPT: &str =
    "Count the curlews in sightings.csv with a small script, and check that it counts right.";

/// Between the pieces of a text, so that a person can read along.
const DELTA_DELAY_MS: u64 = 30;

/// Runs the demonstration.
pub(crate) fn run(env: Env, terminal: Terminal) -> io::Result<RunOutcome> {
    let folder = tempfile::Builder::new().prefix("whimbrel-demo-").tempdir()?;
    let place = folder.path().canonicalize()?;
    let mut out = io::stdout();
    writeln!(out, "A scripted model, real tools, in {}\n\n> {PROMPT}\n", place.display())?;
    let judge = if terminal.stdin && terminal.stderr { PermissionPrompter::Terminal } else { PermissionPrompter::AutoAllow };
    let paint = if terminal.has_colour && terminal.stdout { Style::Dimmed } else { Style::Plain };
    let spinner = (terminal.stdout && terminal.stderr && terminal.can_move_cursor).then(|| Spinner::new(paint));
    let story = FrameRenderer::new((io::stdout(), io::stdout()), || columns(io::stdout()), &place, paint, spinner);
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

/// What came of the question, in words; none if the run did not get that far.
fn describe_outcome(ended: &RunOutcome) -> Option<&'static str> {
    let result = ended.result.as_ref().filter(|result| !result.is_error)?;
    Some(match result.permission_denials.is_empty() {
        true => "So there are two curlews: the curlew, and the whimbrel, which is one, too.",
        false => {
            "Without a yes the command was not run, so nobody has counted: that is what the question is for. To see the count, start whimbrel demo again and answer y."
        }
    })
}

/// A session in the folder that keeps nothing and may edit files there without asking.
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

/// The script for a folder: names of files become whole paths.
fn render_script(folder: &str, pace: u64) -> String {
    let folder = serde_json::Value::from(folder).to_string();
    SCRIPT.replace("$FOLDER", folder.trim_matches('"')).replace("\"$PACE\"", &pace.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_be_read_for_any_folder() {
        for folder in ["/tmp/x", "/tmp/with \"quotes\" and \\"] {
            Scripted::parse(&render_script(folder, 30)).unwrap();
        }
    }
}
