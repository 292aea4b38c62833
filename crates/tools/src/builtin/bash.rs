//! Bash: runs a shell command.

use std::time::Duration;

use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_process::{CommandSpec, CwdTracker, Leftover, ProcessExit, SpawnError};

use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::tasks::{CommandRun, FinishedCommand, NewTask, TaskInfo};
use crate::workspace::Workspace;

pub(super) struct BashTool;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct BashInput {
    command: String,
    /// Milliseconds; default 120000, maximum 600000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<usize>,
    /// What the command does, in 5-10 words.
    #[serde(default)]
    description: Option<String>,
    /// Return immediately; you are notified when it ends.
    #[serde(default, deserialize_with = "lenient::flag")]
    run_in_background: bool,
}

/// Length of the description that is taken from the command.
const MAX_DESCRIPTION_CHARS: usize = 80;

impl Tool for BashTool {
    type Input = BashInput;

    const NAME: &'static str = "Bash";

    const DESCRIPTION: &'static str = "Runs a bash command and returns stdout and stderr combined. Each call starts a \
        new shell: `cd` within the workspace persists, variables do not. There is no terminal and no stdin: avoid \
        interactive programs. Use run_in_background for servers and long jobs. For files, prefer Read, Edit, Write, \
        Grep and Glob.";

    fn effects(_: &BashInput) -> Effects {
        Effects::RunsProgram
    }

    async fn run(&self, input: BashInput, call: ToolContext) -> ToolResult {
        check_command(&input.command)?;
        if input.run_in_background {
            start_background(&input, &call)
        } else {
            run_foreground(&input, &call).await
        }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "stdout and stderr are interleaved in order",
                json!({"command": "echo out; echo err >&2"}),
            )
            .expect_output(&["out\nerr"]),
            Example::new("a non-zero exit code is an error", json!({"command": "echo before; exit 3"}))
                .expect_error(&["Exit code 3\nbefore"]),
            Example::new("empty output is reported", json!({"command": "echo made > made.txt"}))
                .expect_output(&["(no output)"])
                .expect_files(&[("made.txt", "made\n")]),
            Example::new("the working directory persists", json!({"command": "cat a.txt"}))
                .with_files(&[("src/a.txt", "in src")])
                .after_call("Bash", json!({"command": "cd src"}))
                .expect_output(&["in src"]),
            Example::new(
                "a timed-out command is killed",
                json!({"command": "echo so far; sleep 60", "timeout": 300}),
            )
            .expect_error(&["timed out", "so far"]),
            Example::new("a signal is named", json!({"command": "kill -9 $$"}))
                .expect_error(&["Exit code 137", "SIGKILL"]),
            Example::new(
                "a background command returns its task id",
                json!({"command": "sleep 60", "run_in_background": true}),
            )
            .expect_output(&["background", ".output"]),
            Example::new("an empty command is rejected", json!({"command": " "}))
                .expect_error(&["command is empty"]),
        ]
    }
}

async fn run_foreground(input: &BashInput, call: &ToolContext) -> ToolResult {
    let limit = command_timeout(input.timeout, &call.workspace);
    let mut spec = command_spec(&input.command, &call.workspace);
    let tracker = CwdTracker::attach(&mut spec);
    let (output_dir, start) = (call.workspace.output_dir(), new_task(input, call));
    let work = call.tasks.run_or_background(&spec, &input.command, output_dir, limit, start);
    let Some(run) = call.cancel.run_until_cancelled(work).await else {
        return Err(ToolError::Failed("The command was interrupted and killed.".into()));
    };
    let finished = match run.map_err(|error| spawn_failure(&error, &call.workspace))? {
        CommandRun::Finished(finished) => finished,
        CommandRun::Backgrounded(task) => {
            let mut output = background_result("The user moved this command to the background", &task);
            output.meta["backgroundedByUser"] = true.into();
            return Ok(output);
        }
    };
    let cwd_note = tracker.and_then(CwdTracker::last_dir).and_then(|dir| call.workspace.follow_command(&dir));
    command_result(&finished, limit, cwd_note)
}

fn start_background(input: &BashInput, call: &ToolContext) -> ToolResult {
    let spec = command_spec(&input.command, &call.workspace);
    let task = call.tasks.start_command(&spec, call.workspace.output_dir(), new_task(input, call));
    let task = task.map_err(|error| spawn_failure(&error, &call.workspace))?;
    Ok(background_result("Running in the background", &task))
}

/// Task data for a command that may run in the background.
fn new_task(input: &BashInput, call: &ToolContext) -> NewTask {
    let description = input.description.clone().unwrap_or_else(|| default_description(&input.command));
    call.new_task(description)
}

/// Result of a command that runs in the background.
fn background_result(status: &str, task: &TaskInfo) -> ToolOutput {
    let text = format!("{status} (task {}). Output file: {}.", task.task_id, task.output_file.display());
    let mut meta = stdout_meta("");
    meta["backgroundTaskId"] = task.task_id.clone().into();
    ToolOutput::text(text, meta)
}

/// Rejects commands that no shell can run.
pub(super) fn check_command(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::Rejected("The command is empty.".into()));
    }
    if command.contains('\0') {
        let text = "The command contains a NUL byte, which no shell accepts. Remove it, or write it with `printf \
            '\\0'`.";
        return Err(ToolError::Rejected(text.into()));
    }
    Ok(())
}

pub(super) fn command_spec(command: &str, workspace: &Workspace) -> CommandSpec {
    let mut environment = workspace.environment();
    // CDPATH would make `cd` go elsewhere than the permission check assumed.
    environment.remove("CDPATH");
    CommandSpec { command: command.to_owned(), cwd: workspace.cwd(), environment }
}

/// The requested timeout within the user's limits.
fn command_timeout(requested: Option<usize>, workspace: &Workspace) -> Duration {
    let setting = |name| workspace.variable(name).and_then(|value| value.parse().ok());
    let default = setting("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(120_000);
    let max_timeout = setting("BASH_MAX_TIMEOUT_MS").unwrap_or(600_000).max(default);
    let requested =
        requested.filter(|requested| *requested > 0).map_or(default, |requested| requested as u64);
    Duration::from_millis(requested.min(max_timeout))
}

/// Error of a command that could not be started. If its directory is gone, the working directory falls back to the base
/// or start directory; an isolated agent has no fallback.
pub(super) fn spawn_failure(error: &SpawnError, workspace: &Workspace) -> ToolError {
    match error {
        SpawnError::MissingDir(dir) if dir != workspace.root() => {
            let base = Some(workspace.base_dir()).filter(|base| base != dir);
            match base.or_else(|| workspace.fallback_dir().map(Into::into)) {
                Some(base) => {
                    let text = format!("Not run: {error}. The next command starts in {}.", base.display());
                    workspace.set_cwd(base);
                    ToolError::Failed(text)
                }
                None => ToolError::Failed(format!("Not run: {error}.")),
            }
        }
        SpawnError::MissingDir(_)
        | SpawnError::EnvironmentTooLarge
        | SpawnError::SessionEnded
        | SpawnError::Io(_) => ToolError::Failed(format!("Not run: {error}.")),
    }
}

fn command_result(finished: &FinishedCommand, limit: Duration, cwd_note: Option<String>) -> ToolResult {
    let output = finished.output.render_for_model();
    let end = exit_line(finished.exit, limit);
    let empty_note = (output.is_empty() && end.is_none()).then(|| "(no output)".to_owned());
    let leftover_note = match finished.leftover {
        Leftover::Nothing => None,
        Leftover::Running => Some(
            "(A process started by this command is still running; its further output is not \
            captured.)"
                .into(),
        ),
    };
    let parts = [end, empty_note, Some(output).filter(|output| !output.is_empty()), leftover_note, cwd_note];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    match finished.exit {
        ProcessExit::Exited(0) => Ok(ToolOutput::text(text, result_meta(finished))),
        ProcessExit::Exited(_) | ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => {
            Err(ToolError::Failed(text))
        }
    }
}

/// First line of the result of a failed command.
fn exit_line(exit: ProcessExit, limit: Duration) -> Option<String> {
    match exit {
        ProcessExit::Exited(0) => None,
        ProcessExit::Exited(code) => Some(format!("Exit code {code}")),
        ProcessExit::Killed(signal) => {
            let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
            Some(format!("Exit code {} (killed by {name})", 128 + signal))
        }
        ProcessExit::TimedOut => Some(format!(
            "Exit code 143 (timed out after {limit:?} and killed; use a longer timeout or run_in_background)"
        )),
        ProcessExit::Unknown => Some("Exit code unknown".into()),
    }
}

fn result_meta(finished: &FinishedCommand) -> Value {
    let mut meta = stdout_meta(&finished.output.render_for_host());
    if let Some(file) = finished.output.file() {
        meta["persistedOutputPath"] = json!(file);
        meta["persistedOutputSize"] = finished.output.total().into();
    }
    meta
}

fn stdout_meta(stdout: &str) -> Value {
    let stdout = stdout.trim_end_matches('\n');
    json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false})
}

fn default_description(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((index, _)) => format!("{}...", &line[..index]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::test_support::TestWorkspace;
    use whimbrel_os::clock;

    use crate::tasks::TaskRegistry;

    async fn run_bash(fixture: &TestWorkspace, command: &str) -> ToolOutput {
        fixture.run_tool("Bash", json!({"command": command})).await.unwrap()
    }

    #[tokio::test]
    async fn the_host_gets_the_output() {
        let fixture = TestWorkspace::new(&[]);
        let output = run_bash(&fixture, "echo out; echo err >&2").await;
        let meta = json!({
            "stdout": "out\nerr", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
        });
        assert_eq!(output, ToolOutput::text("out\nerr", meta));
    }

    #[tokio::test]
    async fn long_output_is_shortened_and_saved() {
        let fixture = TestWorkspace::new(&[]);
        let output = run_bash(&fixture, "seq 1 20000").await;
        let file = output.meta["persistedOutputPath"].as_str().unwrap();
        assert!(file.starts_with(fixture.workspace().output_dir().to_str().unwrap()));
        assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 20_000);
        assert_eq!(output.meta["persistedOutputSize"], 108_894);
        let text = serde_json::to_string(&output.content).unwrap();
        assert!(
            text.len() < 40_000 && text.contains("\\n20\\n") && text.contains("20000") && text.contains(file)
        );
    }

    #[tokio::test]
    async fn cd_is_kept_inside_the_workspace_only() {
        let fixture = TestWorkspace::new(&[("a/b/c.txt", "")]);
        let root = fixture.workspace().root().to_path_buf();
        for (command, dir, note) in [
            ("cd a/b", root.join("a/b"), ""),
            ("pwd", root.join("a/b"), ""),
            ("cd .. && false", root.join("a"), ""),
            ("(cd b); cd b | cat", root.join("a"), ""),
            ("set -euC; cd b; exit 2", root.join("a/b"), ""),
            ("cd nowhere", root.join("a/b"), "No such file"),
            (
                "cd /; echo there",
                root.clone(),
                "there\n(/ is outside the workspace: the next command starts in ",
            ),
            ("pushd a >/dev/null", root.join("a"), ""),
            ("popd() { :; }; trap - EXIT; cd b", root.join("a"), ""),
            ("cd /tmp; rmdir nothing-here", root.clone(), "outside"),
        ] {
            let text = fixture.run_to_text("Bash", json!({"command": command})).await;
            assert_eq!(fixture.workspace().cwd(), dir, "{command}: {text}");
            assert!(text.contains(note), "{command}: {text}");
        }
    }

    #[tokio::test]
    async fn a_deleted_working_directory_is_reported_and_left() {
        let fixture = TestWorkspace::new(&[("a/b.txt", "")]);
        fixture.run_to_text("Bash", json!({"command": "cd a"})).await;
        fixture.run_to_text("Bash", json!({"command": "rm -r ../a"})).await;
        let dir = fixture.path("a");
        let text = fixture.run_to_text("Bash", json!({"command": "true"})).await;
        let root = fixture.root().display();
        assert_eq!(
            text,
            format!(
                "Not run: the working directory {} no longer exists. The next command starts in {root}.",
                dir.display()
            )
        );
        assert_eq!(fixture.run_to_text("Bash", json!({"command": "true"})).await, "(no output)");
    }

    #[tokio::test]
    async fn a_command_may_have_any_length() {
        for length in [128 * 1024 - 1, 128 * 1024, 1_000_000] {
            let fixture = TestWorkspace::new(&[("sub/a.txt", "")]);
            let body = "line 'of' \"text\" $HOME\n".repeat(length / 22);
            let mut command = format!("cat >big.txt <<'END'\n{body}END\ncd sub; cat; echo \"$0 $#\" #");
            command.push_str(&"x".repeat(length.saturating_sub(command.len())));
            assert!(command.len() >= length);
            let text = fixture.run_to_text("Bash", json!({"command": command})).await;
            assert!(text.ends_with("bash 0"), "{length}: {text}");
            assert!(std::fs::read_to_string(fixture.path("big.txt")).unwrap() == body, "{length}");
            assert_eq!(fixture.workspace().cwd(), fixture.path("sub"));
            let failing = format!("{command}\nexit 7");
            assert!(
                fixture.run_to_text("Bash", json!({"command": failing})).await.starts_with("Exit code 7")
            );
        }
    }

    #[tokio::test]
    async fn commands_no_shell_can_run_are_rejected() {
        let fixture = TestWorkspace::new(&[]);
        let text = fixture.run_to_text("Bash", json!({"command": "echo a\u{0}b"})).await;
        assert!(text.contains("NUL byte"), "{text}");
        fixture.workspace().set_variables([("HUGE".to_owned(), "x".repeat(200_000))].into());
        let text = fixture.run_to_text("Bash", json!({"command": "true"})).await;
        assert!(text.starts_with("Not run: the environment is too large"), "{text}");
    }

    #[tokio::test]
    async fn an_interrupt_returns_at_once() {
        let fixture = TestWorkspace::new(&[]);
        let workspace =
            Arc::new(Workspace::new(fixture.path(""), fixture.path("spill"), std::env::vars().collect()));
        let (tasks, cancel) = (TaskRegistry::new(mpsc::unbounded_channel().0), CancellationToken::new());
        let call = ToolContext { tasks, cancel: cancel.clone(), ..ToolContext::for_test(workspace) };
        let started = clock::monotonic();
        let input: BashInput = serde_json::from_value(json!({"command": "touch begun; sleep 60"})).unwrap();
        let (output, ()) = tokio::join!(BashTool.run(input, call), async {
            while !fixture.path("begun").exists() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert_eq!(output, Err(ToolError::Failed("The command was interrupted and killed.".into())));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_timeout_is_limited() {
        let fixture = TestWorkspace::new(&[]);
        let millis = |requested| command_timeout(requested, fixture.workspace()).as_millis();
        assert_eq!(
            [millis(None), millis(Some(0)), millis(Some(800)), millis(Some(9_999_999))],
            [120_000, 120_000, 800, 600_000]
        );
        let settings = [("BASH_DEFAULT_TIMEOUT_MS", "5000"), ("BASH_MAX_TIMEOUT_MS", "9000")];
        fixture.workspace().set_variables(settings.map(|(name, value)| (name.into(), value.into())).into());
        assert_eq!(
            [
                command_timeout(None, fixture.workspace()).as_millis(),
                command_timeout(Some(99_999), fixture.workspace()).as_millis()
            ],
            [5000, 9000]
        );
    }

    #[test]
    fn a_long_command_is_described_by_its_first_line() {
        assert_eq!(default_description("ls\nrm x"), "ls");
        assert_eq!(default_description(&"ü".repeat(100)), format!("{}...", "ü".repeat(80)));
    }

    #[test]
    fn the_specification_is_small() {
        assert!(serde_json::to_string(&crate::api::AnyTool::spec(&BashTool)).unwrap().len() <= 900);
    }
}
