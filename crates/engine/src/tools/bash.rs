//! Bash: runs a command.

use std::time::Duration;

use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Done, Example, Output, Tool, Touches, Trouble, lenient};
use crate::tasks::{Ending, Finished, Leftover, Order, Ran, Start, StartFault, TaskFacts, Trail};
use crate::workspace::Workspace;

/// The tool.
pub(super) struct Bash;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    command: String,
    /// Milliseconds; default 120000, at most 600000.
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<usize>,
    /// What it does, in 5 to 10 words.
    #[serde(default)]
    description: Option<String>,
    /// Return at once. You are told when it ends.
    #[serde(default, deserialize_with = "lenient::flag")]
    run_in_background: bool,
}

/// How much of a command stands for a missing description.
const DESCRIPTION_LENGTH: usize = 80;

impl Tool for Bash {
    type Input = Input;

    const NAME: &'static str = "Bash";

    const DESCRIPTION: &'static str = "Runs a command in bash; returns stdout and stderr together. Each call is a new \
        shell: `cd` inside the workspace is kept, variables are not. There is no terminal and no input: avoid \
        interactive programs. Start servers and long jobs with run_in_background. For files, prefer Read, Edit, \
        Write, Grep and Glob.";

    fn touches(_: &Input) -> Touches {
        Touches::Runs
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        check(&input.command)?;
        if input.run_in_background { start(&input, &call) } else { run(&input, &call).await }
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("both outputs come back in order", json!({"command": "echo out; echo err >&2"}))
                .says(&["out\nerr"]),
            Example::new("an exit code is an error", json!({"command": "echo before; exit 3"}))
                .fails(&["Exit code 3\nbefore"]),
            Example::new("silence is said", json!({"command": "echo made > made.txt"}))
                .says(&["(no output)"])
                .leaves(&[("made.txt", "made\n")]),
            Example::new("a folder is kept for the next command", json!({"command": "cat a.txt"}))
                .files(&[("src/a.txt", "in src")])
                .after("Bash", json!({"command": "cd src"}))
                .says(&["in src"]),
            Example::new(
                "a command out of time is killed",
                json!({"command": "echo so far; sleep 60", "timeout": 300}),
            )
            .fails(&["timed out", "so far"]),
            Example::new("a signal is named", json!({"command": "kill -9 $$"}))
                .fails(&["Exit code 137", "SIGKILL"]),
            Example::new(
                "work in the background has a name",
                json!({"command": "sleep 60", "run_in_background": true}),
            )
            .says(&["background", ".output"]),
            Example::new("nothing is not a command", json!({"command": " "})).fails(&["no command"]),
        ]
    }
}

async fn run(input: &Input, call: &Call) -> Output {
    let limit = limit(input.timeout, &call.workspace);
    let mut order = order(&input.command, &call.workspace);
    let trail = Trail::follow(&mut order);
    let (spill, start) = (call.workspace.spill(), about(input, call));
    let work = call.tasks.run_or_let_go(&order, &input.command, spill, limit, start);
    let Some(ran) = call.cancel.run_until_cancelled(work).await else {
        return Err(Trouble::Failed("The command was interrupted and killed.".into()));
    };
    let finished = match ran.map_err(|fault| not_started(&fault, &call.workspace))? {
        Ran::Finished(finished) => finished,
        Ran::LetGo(task) => {
            let mut done = beside("The user lets you go on beside it: it runs", &task);
            done.meta["backgroundedByUser"] = true.into();
            return Ok(done);
        }
    };
    let moved = trail.and_then(|trail| trail.arrive(&call.workspace));
    report(&finished, limit, moved)
}

fn start(input: &Input, call: &Call) -> Output {
    let order = order(&input.command, &call.workspace);
    let task = call.tasks.start_command(&order, call.workspace.spill(), about(input, call));
    let task = task.map_err(|fault| not_started(&fault, &call.workspace))?;
    Ok(beside("Runs", &task))
}

/// What is said about a command that may run in the background.
fn about(input: &Input, call: &Call) -> Start {
    let description = input.description.clone().unwrap_or_else(|| shortened(&input.command));
    Start { tool_use_id: call.id.clone(), description, owner: call.agent_id.clone() }
}

/// The result of a call beside which a command runs.
fn beside(runs: &str, task: &TaskFacts) -> Done {
    let text = format!(
        "{runs} in the background as {}; its output goes to {}.",
        task.task_id,
        task.output_file.display()
    );
    let mut meta = meta("");
    meta["backgroundTaskId"] = task.task_id.clone().into();
    Done::text(text, meta)
}

/// A command is something that a shell can take.
pub(super) fn check(command: &str) -> Result<(), Trouble> {
    if command.trim().is_empty() {
        return Err(Trouble::Refused("There is no command.".into()));
    }
    if command.contains('\0') {
        let text = "The command has a NUL byte in it, which no shell can take. Leave it out, or let `printf '\\0'` write it.";
        return Err(Trouble::Refused(text.into()));
    }
    Ok(())
}

pub(super) fn order(command: &str, workspace: &Workspace) -> Order {
    let mut environment = workspace.environment();
    // With it, `cd` leads elsewhere than the command was judged by.
    environment.remove("CDPATH");
    Order { command: command.to_owned(), cwd: workspace.cwd(), environment }
}

/// What the model asked for, within what the user allows.
fn limit(asked: Option<usize>, workspace: &Workspace) -> Duration {
    let setting = |name| workspace.variable(name).and_then(|value| value.parse().ok());
    let default = setting("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(120_000);
    let longest = setting("BASH_MAX_TIMEOUT_MS").unwrap_or(600_000).max(default);
    let asked = asked.filter(|asked| *asked > 0).map_or(default, |asked| asked as u64);
    Duration::from_millis(asked.min(longest))
}

/// Why there is nothing to report. A session whose folder is gone goes on where it works, or where it began.
pub(super) fn not_started(fault: &StartFault, workspace: &Workspace) -> Trouble {
    match fault {
        StartFault::NoFolder(folder) if folder != workspace.root() => {
            let base = Some(workspace.base()).filter(|base| base != folder);
            let base = base.unwrap_or_else(|| workspace.root().to_path_buf());
            workspace.set_cwd(base.clone());
            Trouble::Failed(format!("Not run: {fault}. The next command starts in {}.", base.display()))
        }
        StartFault::NoFolder(_)
        | StartFault::LargeEnvironment
        | StartFault::SessionEnded
        | StartFault::Io(_) => Trouble::Failed(format!("Not run: {fault}.")),
    }
}

fn report(finished: &Finished, limit: Duration, moved: Option<String>) -> Output {
    let said = finished.output.for_model();
    let end = end(finished.ending, limit);
    let silence = (said.is_empty() && end.is_none()).then(|| "(no output)".to_owned());
    let left = match finished.leftover {
        Leftover::Nothing => None,
        Leftover::Running => Some("(Something it started still runs; what that prints is not kept.)".into()),
    };
    let parts = [end, silence, Some(said).filter(|said| !said.is_empty()), left, moved];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    match finished.ending {
        Ending::Exited(0) => Ok(Done::text(text, full_meta(finished))),
        Ending::Exited(_) | Ending::Killed(_) | Ending::TimedOut | Ending::Unknown => {
            Err(Trouble::Failed(text))
        }
    }
}

/// The first line about a command that went wrong.
fn end(ending: Ending, limit: Duration) -> Option<String> {
    match ending {
        Ending::Exited(0) => None,
        Ending::Exited(code) => Some(format!("Exit code {code}")),
        Ending::Killed(signal) => {
            let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
            Some(format!("Exit code {} (killed by {name})", 128 + signal))
        }
        Ending::TimedOut => Some(format!(
            "Exit code 143 (timed out after {limit:?} and killed; give it a longer timeout or run_in_background)"
        )),
        Ending::Unknown => Some("Exit code unknown".into()),
    }
}

fn full_meta(finished: &Finished) -> Value {
    let mut meta = meta(&finished.output.for_host());
    if let Some(file) = finished.output.file() {
        meta["persistedOutputPath"] = json!(file);
        meta["persistedOutputSize"] = finished.output.total().into();
    }
    meta
}

fn meta(stdout: &str) -> Value {
    let stdout = stdout.trim_end_matches('\n');
    json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false})
}

fn shortened(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(DESCRIPTION_LENGTH) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::super::example::Bench;
    use super::*;
    use crate::clock;

    use crate::tasks::Tasks;

    async fn done(bench: &Bench, command: &str) -> Done {
        bench.call("Bash", json!({"command": command})).await.unwrap()
    }

    #[tokio::test]
    async fn the_host_gets_the_output_too() {
        let bench = Bench::new(&[]);
        let done = done(&bench, "echo out; echo err >&2").await;
        let meta = json!({
            "stdout": "out\nerr", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
        });
        assert_eq!(done, Done::text("out\nerr", meta));
    }

    #[tokio::test]
    async fn long_output_is_cut_and_kept() {
        let bench = Bench::new(&[]);
        let done = done(&bench, "seq 1 20000").await;
        let file = done.meta["persistedOutputPath"].as_str().unwrap();
        assert!(file.starts_with(bench.workspace().spill().to_str().unwrap()));
        assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 20_000);
        assert_eq!(done.meta["persistedOutputSize"], 108_894);
        let text = serde_json::to_string(&done.content).unwrap();
        assert!(
            text.len() < 40_000 && text.contains("\\n20\\n") && text.contains("20000") && text.contains(file)
        );
    }

    #[tokio::test]
    async fn a_folder_is_kept_inside_the_workspace_only() {
        let bench = Bench::new(&[("a/b/c.txt", "")]);
        let root = bench.workspace().root().to_path_buf();
        for (command, folder, note) in [
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
            let said = bench.says("Bash", json!({"command": command})).await;
            assert_eq!(bench.workspace().cwd(), folder, "{command}: {said}");
            assert!(said.contains(note), "{command}: {said}");
        }
    }

    #[tokio::test]
    async fn a_folder_that_was_deleted_is_named_and_left() {
        let bench = Bench::new(&[("a/b.txt", "")]);
        bench.says("Bash", json!({"command": "cd a"})).await;
        bench.says("Bash", json!({"command": "rm -r ../a"})).await;
        let folder = bench.path("a");
        let said = bench.says("Bash", json!({"command": "true"})).await;
        let root = bench.root().display();
        assert_eq!(
            said,
            format!(
                "Not run: the folder {} does not exist any more. The next command starts in {root}.",
                folder.display()
            )
        );
        assert_eq!(bench.says("Bash", json!({"command": "true"})).await, "(no output)");
    }

    #[tokio::test]
    async fn a_command_may_have_any_length() {
        for length in [128 * 1024 - 1, 128 * 1024, 1_000_000] {
            let bench = Bench::new(&[("sub/a.txt", "")]);
            let body = "line 'of' \"text\" $HOME\n".repeat(length / 22);
            let mut command = format!("cat >big.txt <<'END'\n{body}END\ncd sub; cat; echo \"$0 $#\" #");
            command.push_str(&"x".repeat(length.saturating_sub(command.len())));
            assert!(command.len() >= length);
            let said = bench.says("Bash", json!({"command": command})).await;
            assert!(said.ends_with("bash 0"), "{length}: {said}");
            assert!(std::fs::read_to_string(bench.path("big.txt")).unwrap() == body, "{length}");
            assert_eq!(bench.workspace().cwd(), bench.path("sub"));
            let failing = format!("{command}\nexit 7");
            assert!(bench.says("Bash", json!({"command": failing})).await.starts_with("Exit code 7"));
        }
    }

    #[tokio::test]
    async fn what_no_shell_can_take_is_refused_with_the_reason() {
        let bench = Bench::new(&[]);
        let said = bench.says("Bash", json!({"command": "echo a\u{0}b"})).await;
        assert!(said.contains("NUL byte"), "{said}");
        bench.workspace().set_variables([("HUGE".to_owned(), "x".repeat(200_000))].into());
        let said = bench.says("Bash", json!({"command": "true"})).await;
        assert!(said.starts_with("Not run: the variables of its environment are too long"), "{said}");
    }

    #[tokio::test]
    async fn an_interrupt_returns_at_once() {
        let bench = Bench::new(&[]);
        let workspace =
            Arc::new(Workspace::new(bench.path(""), bench.path("spill"), std::env::vars().collect()));
        let (tasks, cancel) = (Tasks::new(mpsc::unbounded_channel().0), CancellationToken::new());
        let call = Call { tasks, cancel: cancel.clone(), ..Call::alone(workspace) };
        let begun = clock::monotonic();
        let input: Input = serde_json::from_value(json!({"command": "touch begun; sleep 60"})).unwrap();
        let (output, ()) = tokio::join!(Bash.run(input, call), async {
            while !bench.path("begun").exists() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert_eq!(output, Err(Trouble::Failed("The command was interrupted and killed.".into())));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn time_is_limited() {
        let bench = Bench::new(&[]);
        let millis = |asked| limit(asked, bench.workspace()).as_millis();
        assert_eq!(
            [millis(None), millis(Some(0)), millis(Some(800)), millis(Some(9_999_999))],
            [120_000, 120_000, 800, 600_000]
        );
        let settings = [("BASH_DEFAULT_TIMEOUT_MS", "5000"), ("BASH_MAX_TIMEOUT_MS", "9000")];
        bench.workspace().set_variables(settings.map(|(name, value)| (name.into(), value.into())).into());
        assert_eq!(
            [limit(None, bench.workspace()).as_millis(), limit(Some(99_999), bench.workspace()).as_millis()],
            [5000, 9000]
        );
    }

    #[test]
    fn a_long_command_is_described_by_its_first_line() {
        assert_eq!(shortened("ls\nrm x"), "ls");
        assert_eq!(shortened(&"ü".repeat(100)), format!("{}...", "ü".repeat(80)));
    }

    #[test]
    fn the_model_reads_little() {
        assert!(serde_json::to_string(&super::super::AnyTool::spec(&Bash)).unwrap().len() <= 900);
    }
}
