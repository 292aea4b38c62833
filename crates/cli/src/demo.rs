//! `whimbrel demo`: a real run of the engine with real tools in a temporary directory. Only the model is scripted, so
//! that it needs no key and no network.

use std::io::{self, Write};
use std::sync::Arc;

use whimbrel_engine::{Engine, SandboxLauncher, SessionRequest};
use whimbrel_models::providers::Providers;
use whimbrel_models::scripted::Scripted;
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionMode;

use crate::environment::Env;
use crate::in_process_host::FrameDisplay;
use crate::one_prompt::serve_prompt;
use crate::serve_session::PreparedSession;
use crate::shutdown::RunOutcome;
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
    let temp_dir = tempfile::Builder::new().prefix("whimbrel-demo-").tempdir()?;
    let dir = temp_dir.path().canonicalize()?;
    let mut out = io::stdout();
    writeln!(out, "A scripted model with real tools, in {}\n\n> {PROMPT}\n", dir.display())?;
    let prompter = if terminal.stdin && terminal.stderr {
        PermissionPrompter::Terminal
    } else {
        PermissionPrompter::AutoAllow
    };
    let style = if terminal.has_color && terminal.stdout { Style::Dimmed } else { Style::Plain };
    let spinner =
        (terminal.stdout && terminal.stderr && terminal.can_move_cursor).then(|| Spinner::new(style));
    let renderer =
        FrameRenderer::new((io::stdout(), io::stdout()), || columns(io::stdout()), &dir, style, spinner);
    let delay_ms = if terminal.stdout { DELTA_DELAY_MS } else { 0 };
    let run_outcome = serve_prompt(
        build_session(&dir.display().to_string(), env, delay_ms)?,
        PROMPT.into(),
        FrameDisplay::Terminal(renderer),
        prompter,
    )?;
    temp_dir.close()?;
    let outcome = describe_outcome(&run_outcome).map_or_else(String::new, |outcome| format!("\n{outcome}"));
    writeln!(
        out,
        "{outcome}\n{} was removed. To run a task with a real model: whimbrel \"your task\"",
        dir.display()
    )?;
    Ok(run_outcome)
}

/// Describes the outcome; `None` if the run failed.
fn describe_outcome(run_outcome: &RunOutcome) -> Option<&'static str> {
    let result = run_outcome.result.as_ref().filter(|result| !result.is_error)?;
    Some(match result.permission_denials.is_empty() {
        true => "There are two curlews: the curlew and the whimbrel, which is one, too.",
        false => {
            "The command was denied and did not run, so nothing was counted. To see the count, run whimbrel demo \
                again and answer y."
        }
    })
}

/// Creates a session in this directory that is not stored and may edit files without asking.
fn build_session(dir: &str, env: Env, delay_ms: u64) -> io::Result<PreparedSession> {
    let script = Scripted::parse(&render_script(dir, delay_ms)).map_err(io::Error::other)?;
    let providers = Providers::offline();
    providers.add_script("demo", Arc::new(script));
    let options = Options {
        model: Some("scripted:demo".into()),
        cwd: Some(dir.into()),
        permission_mode: Some(PermissionMode::AcceptEdits),
        permission_prompt_tool: Some(PermissionPromptTool::Stdio),
        persist_session: Some(false),
        setting_sources: Some(Vec::new()),
        include_partial_messages: true,
        ..Options::default()
    };
    Ok(PreparedSession {
        engine: Engine::new(providers).with_sandbox_launcher(SandboxLauncher::ThisProgram),
        request: SessionRequest::new(options, env),
    })
}

/// Fills the directory into the script, so that file names become absolute paths.
fn render_script(dir: &str, delay_ms: u64) -> String {
    let dir = serde_json::Value::from(dir).to_string();
    SCRIPT.replace("$DIR", dir.trim_matches('"')).replace("\"$DELAY_MS\"", &delay_ms.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_parses_for_any_directory() {
        for dir in ["/tmp/x", "/tmp/with \"quotes\" and \\"] {
            Scripted::parse(&render_script(dir, 30)).unwrap();
        }
    }
}
