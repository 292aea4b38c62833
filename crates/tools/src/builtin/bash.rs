//! Bash: runs a shell command.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel_os::files;
use whimbrel_policy::ToolKind;
use whimbrel_policy::sandbox::OVERRIDE_FIELD;
use whimbrel_process::{CommandSpec, CwdTracker, Launch, Leftover, ProcessExit, SpawnError};
use whimbrel_wire::message::CommandExit;

use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::sandbox::report::ViolationReport;
use crate::sandbox::{CommandStdin, PolicyFacts};
use crate::tasks::{CommandRun, FinishedCommand, NewTask, TaskCommand, TaskInfo};
use crate::workspace::{DISABLE_BACKGROUND_VARIABLE, Workspace};

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
    // The model sees it only in sessions with a sandbox.
    #[serde(default, rename = "dangerouslyDisableSandbox", deserialize_with = "lenient::flag")]
    #[schemars(skip)]
    disable_sandbox: bool,
}

/// Switch: each command starts in the project's directory, whatever an earlier one did.
const KEEP_CWD_VARIABLE: &str = "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR";

/// The field for background commands, and the sentence of the description about it.
pub const BACKGROUND_FIELD: &str = "run_in_background";
const BACKGROUND_SENTENCE: &str = " Use run_in_background for servers and long jobs.";

/// The description for sessions without background tasks.
pub fn describe_without_background() -> String {
    BashTool::DESCRIPTION.replace(BACKGROUND_SENTENCE, "")
}

/// Length of the description that is taken from the command.
const MAX_DESCRIPTION_CHARS: usize = 80;

impl Tool for BashTool {
    type Input = BashInput;

    const NAME: &'static str = whimbrel_wire::tool_names::BASH;

    const DESCRIPTION: &'static str = "Runs a bash command and returns stdout and stderr combined. Each call starts a \
        new shell: `cd` within the workspace persists, variables do not. There is no terminal and no stdin: avoid \
        interactive programs. Use run_in_background for servers and long jobs. For files, prefer Read, Edit, Write, \
        Grep and Glob.";

    fn effects(_: &BashInput) -> Effects {
        Effects::RunsProgram
    }

    async fn run(&self, input: BashInput, call: ToolContext) -> ToolResult {
        check_command(&input.command)?;
        if input.run_in_background && call.workspace.is_background_disabled() {
            return Err(ToolError::Rejected(format!(
                "Background tasks are disabled ({DISABLE_BACKGROUND_VARIABLE}). Run the command without \
                 run_in_background."
            )));
        }
        if input.run_in_background {
            start_background(&input, &call).await
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
    let mut spec = bare_spec(&input.command, &call.workspace);
    let returns_to_base = call.workspace.is_switched_on(KEEP_CWD_VARIABLE);
    let confinement = Confinement::for_command(&input.command, input.disable_sandbox, call);
    let tracker = match &confinement {
        _ if returns_to_base => None,
        Confinement::None => CwdTracker::attach(&mut spec),
        Confinement::Sandbox(facts) => {
            let scratch = call.workspace.sandbox().scratch(facts).map_err(|error| not_confined(&error))?;
            CwdTracker::attach_in(&mut spec, &scratch)
        }
    };
    let mut spec = prepare(spec, &call.workspace);
    let (output_dir, start) = (call.workspace.output_dir(), new_task(input, call));
    let command = confinement.launch(&mut spec, call).await?;
    let work = call.tasks.run_or_background(command, &input.command, output_dir, limit, start);
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
    let remedy = timeout_remedy(&call.workspace);
    command_result(&finished, limit, remedy, cwd_note)
}

async fn start_background(input: &BashInput, call: &ToolContext) -> ToolResult {
    let mut spec = command_spec(&input.command, &call.workspace);
    let confinement = Confinement::for_command(&input.command, input.disable_sandbox, call);
    let command = confinement.launch(&mut spec, call).await?;
    let task = call.tasks.start_command(command, call.workspace.output_dir(), new_task(input, call));
    let task = task.map_err(|error| spawn_failure(&error, &call.workspace))?;
    Ok(background_result("Running in the background", &task))
}

/// How a command of this call runs.
pub(super) enum Confinement {
    None,
    Sandbox(Box<PolicyFacts>),
}

impl Confinement {
    /// A command runs unconfined only if it was decided so and the settings still say so. Accesses the disk.
    pub(super) fn for_command(command: &str, disable_sandbox: bool, call: &ToolContext) -> Self {
        let permissions = call.mode.permissions();
        let input = json!({"command": command, OVERRIDE_FIELD: disable_sandbox});
        let now = permissions.sandbox_state(ToolKind::Shell, &input);
        let states = [now, call.checked.sandbox];
        match states.iter().flatten().any(|state| state.is_confined()) {
            true => Self::Sandbox(Box::new(permissions.policy_facts())),
            false => Self::None,
        }
    }

    /// Prepares the command to be started. The environment of a confined one changes.
    pub(super) async fn launch<'a>(
        self,
        spec: &'a mut CommandSpec,
        call: &ToolContext,
    ) -> Result<TaskCommand<'a>, ToolError> {
        let Self::Sandbox(facts) = self else { return Ok(TaskCommand::from(&*spec)) };
        let (sandbox, id) = (Arc::clone(call.workspace.sandbox()), call.id.clone());
        let mut command = spec.clone();
        let prepare = move || {
            let prepared = sandbox.prepare(&facts, &mut command, &id, CommandStdin::Empty);
            prepared.map(|prepared| (prepared, command))
        };
        let prepared = files::run_blocking(prepare).await.map_err(|error| error.to_string()).flatten();
        let (prepared, command) = prepared.map_err(|error| not_confined(&error))?;
        *spec = command;
        let launch = Launch::Confined(spec, Box::new(prepared.command));
        Ok(TaskCommand { launch, confined: Some(prepared.run) })
    }
}

fn not_confined(error: &str) -> ToolError {
    ToolError::Failed(format!("Not run: the command cannot be confined: {error}."))
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

/// The command as it is started. Accesses the disk.
pub(super) fn command_spec(command: &str, workspace: &Workspace) -> CommandSpec {
    prepare(bare_spec(command, workspace), workspace)
}

/// Adds what the user and hooks put before the command.
fn prepare(spec: CommandSpec, workspace: &Workspace) -> CommandSpec {
    CommandSpec { command: workspace.prepare_bash_command(spec.command), ..spec }
}

fn bare_spec(command: &str, workspace: &Workspace) -> CommandSpec {
    let mut environment = workspace.program_environment();
    // CDPATH would make `cd` go elsewhere than the permission check assumed.
    environment.remove("CDPATH");
    // Scripts recognize by it that an agent runs them.
    environment.insert("CLAUDECODE".to_owned(), "1".to_owned());
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

fn command_result(
    finished: &FinishedCommand,
    limit: Duration,
    remedy: &str,
    cwd_note: Option<String>,
) -> ToolResult {
    let output = finished.output.render_for_model();
    let end = exit_line(finished.exit, limit, remedy);
    let empty_note = (output.is_empty() && end.is_none()).then(|| "(no output)".to_owned());
    let leftover_note = match finished.leftover {
        Leftover::Nothing => None,
        Leftover::Running => Some(
            "(A process started by this command is still running; its further output is not \
            captured.)"
                .into(),
        ),
    };
    let violations = finished.report.as_ref().and_then(ViolationReport::render);
    let output = Some(output).filter(|output| !output.is_empty());
    let parts = [end, empty_note, output, leftover_note, cwd_note, violations];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    match finished.exit {
        ProcessExit::Exited(0) => Ok(ToolOutput::text(text, result_meta(finished))),
        ProcessExit::Exited(_) | ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => {
            let meta = finished.report.as_ref().map(|_| Box::new(result_meta(finished)));
            Err(ToolError::CommandFailed { text, exit: command_exit(finished.exit), meta })
        }
    }
}

/// The end of a command as hosts get it.
fn command_exit(exit: ProcessExit) -> CommandExit {
    let signalled = |signal: Signal| CommandExit { exit_code: None, signal: Some(signal.as_str().into()) };
    match exit {
        ProcessExit::Exited(code) => CommandExit { exit_code: Some(code), signal: None },
        ProcessExit::Killed(signal) => Signal::try_from(signal).map(signalled).unwrap_or_default(),
        ProcessExit::TimedOut => signalled(Signal::SIGTERM),
        ProcessExit::Unknown => CommandExit::default(),
    }
}

/// What the model can do about a timeout.
fn timeout_remedy(workspace: &Workspace) -> &'static str {
    match workspace.is_background_disabled() {
        true => "use a longer timeout",
        false => "use a longer timeout or run_in_background",
    }
}

/// First line of the result of a failed command.
fn exit_line(exit: ProcessExit, limit: Duration, remedy: &str) -> Option<String> {
    match exit {
        ProcessExit::Exited(0) => None,
        ProcessExit::Exited(code) => Some(format!("Exit code {code}")),
        ProcessExit::Killed(signal) => {
            let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
            Some(format!("Exit code {} (killed by {name})", 128 + signal))
        }
        ProcessExit::TimedOut => {
            Some(format!("Exit code 143 (timed out after {limit:?} and killed; {remedy})"))
        }
        ProcessExit::Unknown => Some("Exit code unknown".into()),
    }
}

fn result_meta(finished: &FinishedCommand) -> Value {
    let mut meta = stdout_meta(&finished.output.render_for_host());
    if let Some(report) = &finished.report {
        meta["sandbox"] = report.to_json();
    }
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
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::test_support::TestWorkspace;

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
    async fn failed_command_says_how_it_ended() {
        let fixture = TestWorkspace::new(&[]);
        let by_signal = |name: &str| CommandExit { exit_code: None, signal: Some(name.into()) };
        let rows = [
            (json!({"command": "echo no; exit 3"}), CommandExit { exit_code: Some(3), signal: None }),
            (json!({"command": "kill -KILL $$; :"}), by_signal("SIGKILL")),
            (json!({"command": "tail -f /dev/null", "timeout": 1}), by_signal("SIGTERM")),
        ];
        for (input, expected) in rows {
            let result = fixture.run_tool("Bash", input.clone()).await;
            let Err(ToolError::CommandFailed { exit, .. }) = result else { panic!("{input}: {result:?}") };
            assert_eq!(exit, expected, "{input}");
        }
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
        let input: BashInput = serde_json::from_value(json!({"command": "touch begun; sleep 600"})).unwrap();
        let (output, ()) = tokio::join!(BashTool.run(input, call), async {
            while !fixture.path("begun").exists() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert_eq!(output, Err(ToolError::Failed("The command was interrupted and killed.".into())));
    }

    #[tokio::test]
    async fn keys_do_not_reach_commands_unless_they_are_passed() {
        let fixture = TestWorkspace::new(&[]);
        let variables = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_API_KEY"];
        fixture
            .workspace()
            .set_variables(variables.map(|name| (name.to_owned(), "secret".to_owned())).into());
        let command = "echo \"$ANTHROPIC_API_KEY,$OPENAI_API_KEY,$MY_API_KEY\"";
        for (tool, input) in [
            ("Bash", json!({"command": command})),
            ("Bash", json!({"command": format!("exec 2>&1; {command}")})),
        ] {
            assert_eq!(fixture.run_to_text(tool, input).await, ",,secret");
        }
        let direct = fixture.run_to_text("Bash", json!({"command": "printenv OPENAI_API_KEY"})).await;
        assert_eq!(direct, "Exit code 1");
        let workspace =
            Workspace::new(fixture.path(""), fixture.path("spill"), fixture.workspace().environment());
        let passed = workspace.with_passed_variables(&["OPENAI_API_KEY".to_owned()]);
        let spec = command_spec("x", &passed);
        assert_eq!(spec.environment.get("OPENAI_API_KEY").map(String::as_str), Some("secret"));
        assert_eq!(spec.environment.get("ANTHROPIC_API_KEY"), None);
    }

    #[tokio::test]
    async fn commands_can_tell_that_an_agent_runs_them() {
        let fixture = TestWorkspace::new(&[]);
        for command in ["printenv CLAUDECODE", "echo $CLAUDECODE"] {
            assert_eq!(fixture.run_to_text("Bash", json!({"command": command})).await, "1", "{command}");
        }
    }

    #[tokio::test]
    async fn env_files_are_read_before_each_command() {
        let fixture = TestWorkspace::new(&[("own.sh", "export A=own; B=own; echo noise; f() { echo f; }")]);
        fixture.workspace().set_variables([("CLAUDE_ENV_FILE".to_owned(), "own.sh".to_owned())].into());
        let run = async |command: &str| fixture.run_to_text("Bash", json!({"command": command})).await;
        assert_eq!(run("echo $A $B; f").await, "own own\nf");
        assert_eq!(run("printenv A").await, "own");
        let hook_file = fixture.workspace().hook_env_file().unwrap();
        std::fs::write(hook_file, "export A=hook\nexport CDPATH=/\n").unwrap();
        assert_eq!(
            run("echo $A $B; cd tmp 2>/dev/null; pwd").await,
            format!("hook own\n{}", fixture.root().display())
        );
        fixture.workspace().set_variables([("CLAUDE_ENV_FILE".to_owned(), "gone.sh".to_owned())].into());
        assert_eq!(run("echo $A $B").await, "hook");
    }

    #[tokio::test]
    async fn shell_prefix_gets_the_command_as_one_argument() {
        let log = "#!/bin/bash\nprintf '%s|' \"$#\" \"${!#}\" >>\"$LOG\"\nexec bash -c \"${!#}\"\n";
        let fixture = TestWorkspace::new(&[("log.sh", log), ("sub/a", "")]);
        let prefix =
            format!("LOG={} bash {} x", fixture.path("log").display(), fixture.path("log.sh").display());
        fixture.workspace().set_variables([("CLAUDE_CODE_SHELL_PREFIX".to_owned(), prefix)].into());
        let run = async |command: &str| fixture.run_to_text("Bash", json!({"command": command})).await;
        assert_eq!(run("echo 'a  b' \"$((1+1))\"").await, "a  b 2");
        assert_eq!(run("exit 3").await, "Exit code 3");
        assert_eq!(
            std::fs::read_to_string(fixture.path("log")).unwrap(),
            "2|echo 'a  b' \"$((1+1))\"|2|exit 3|"
        );
        run("cd sub").await;
        assert_eq!(fixture.workspace().cwd(), fixture.path("sub"), "the directory is still tracked");
    }

    #[tokio::test]
    async fn working_directory_can_be_reset_after_each_command() {
        let fixture = TestWorkspace::new(&[("sub/a", "")]);
        fixture.workspace().set_variables([(KEEP_CWD_VARIABLE.to_owned(), "1".to_owned())].into());
        fixture.run_to_text("Bash", json!({"command": "cd sub"})).await;
        assert_eq!(fixture.workspace().cwd(), fixture.root());
    }

    #[tokio::test]
    async fn background_commands_can_be_disabled() {
        let fixture = TestWorkspace::new(&[]);
        fixture.workspace().set_variables([(DISABLE_BACKGROUND_VARIABLE.to_owned(), "1".to_owned())].into());
        let text =
            fixture.run_to_text("Bash", json!({"command": "touch made", "run_in_background": true})).await;
        assert!(text.contains("Background tasks are disabled"), "{text}");
        assert!(!fixture.path("made").exists());
        let text = fixture.run_to_text("Bash", json!({"command": "sleep 60", "timeout": 100})).await;
        assert!(text.contains("timed out") && !text.contains("background"), "{text}");
        assert!(!describe_without_background().contains("background"));
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
