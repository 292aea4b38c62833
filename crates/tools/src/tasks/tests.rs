//! Tests of commands and background tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use whimbrel_process::test_support::{eventually, exits, process_state, read_pid};
use whimbrel_process::{CommandSpec, Leftover, SpawnError, track_daemons};

use super::*;
use crate::internal_events::{EventReceiver, InternalEvent, event_channel};

const LONG: Duration = Duration::from_secs(60);

/// Limit of a command that must time out, long enough for it to start on a busy machine.
const START_TIME: Duration = Duration::from_secs(3);

struct TestSession {
    tasks: TaskRegistry,
    events: EventReceiver,
    dir: TempDir,
}

fn test_session() -> TestSession {
    let (sender, events) = event_channel();
    TestSession { tasks: TaskRegistry::new(sender), events, dir: tempfile::tempdir().unwrap() }
}

impl TestSession {
    fn spec(&self, command: &str) -> CommandSpec {
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        CommandSpec { command: command.into(), cwd: self.dir.path().to_path_buf(), environment }
    }

    fn output_dir(&self) -> PathBuf {
        self.dir.path().join("spill")
    }

    async fn run_for(&self, command: &str, limit: Duration) -> FinishedCommand {
        self.tasks.run_command(&self.spec(command), &self.output_dir(), limit).await.unwrap()
    }

    async fn run(&self, command: &str) -> FinishedCommand {
        self.run_for(command, LONG).await
    }

    async fn run_to_text(&self, command: &str) -> (ProcessExit, String) {
        let finished = self.run(command).await;
        (finished.exit, finished.output.render_for_model())
    }

    fn start(&self, command: &str) -> TaskInfo {
        let start = NewTask { tool_use_id: "call".into(), owner: None, description: "work".into() };
        self.tasks.start_command(&self.spec(command), &self.output_dir(), start).unwrap()
    }

    /// Next event of a background task.
    async fn event(&mut self) -> TaskEvent {
        match self.events.recv().await.unwrap() {
            InternalEvent::Task(event) => *event,
            other => panic!("{other:?}"),
        }
    }

    async fn pid(&self, name: &str) -> i32 {
        read_pid(&self.dir.path().join(name)).await
    }
}

fn agent_info(id: &str, kind: TaskKind, name: &str) -> TaskInfo {
    TaskInfo {
        task_id: id.into(),
        tool_use_id: "call".into(),
        kind,
        description: "work".into(),
        command: String::new(),
        agent_type: None,
        name: Some(name.into()),
        owner: None,
        output_file: PathBuf::new(),
    }
}

#[tokio::test]
async fn an_agent_is_found_by_name_preferring_running_ones() {
    let tasks = TaskRegistry::new(event_channel().0);
    let register = |id, kind, name| tasks.register_agent(agent_info(id, kind, name), true);
    let _old = register("a1", TaskKind::Agent, "scout");
    register("a2", TaskKind::Agent, "scout").finish(TaskStatus::Completed);
    register("a3", TaskKind::Agent, "gone").finish(TaskStatus::Completed);
    let _mate = register("t1", TaskKind::Teammate, "ann");
    let rows = [
        ("a2", Some("a2"), "an id counts before all"),
        ("scout", Some("a1"), "the one that runs"),
        ("gone", Some("a3"), "one that has ended"),
        ("ann", Some("t1"), "a teammate"),
        ("ann@crew", Some("t1"), "a teammate with its team"),
        ("scout@crew", None, "an agent has no team"),
        ("unknown", None, "an unknown name"),
    ];
    for (name, expected, title) in rows {
        let found = tasks.read_output(name, TaskScope::Main, Duration::ZERO).await.ok();
        assert_eq!(found.map(|report| report.task.info.task_id).as_deref(), expected, "{title}");
    }
}

fn own_zombies() -> usize {
    let me = format!(" {} ", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap();
    let stats =
        processes.filter_map(|process| std::fs::read_to_string(process.ok()?.path().join("stat")).ok());
    stats
        .filter(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest[1..].starts_with(&me) && rest.starts_with('Z'))
        })
        .count()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn peak_memory_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn exit_status_and_output_are_reported() {
    let session = test_session();
    for (command, exit, text) in [
        ("echo hello", ProcessExit::Exited(0), "hello"),
        ("true", ProcessExit::Exited(0), ""),
        ("echo before; exit 3", ProcessExit::Exited(3), "before"),
        ("kill -9 $$", ProcessExit::Killed(9), ""),
        ("exec sh -c 'kill -15 $$'", ProcessExit::Killed(15), ""),
        (
            "for i in 1 2 3; do echo out $i; echo err $i >&2; done",
            ProcessExit::Exited(0),
            "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3",
        ),
        ("cat", ProcessExit::Exited(0), ""),
        ("read -r answer || echo no answer", ProcessExit::Exited(0), "no answer"),
        ("[[ a == a ]] && echo bash", ProcessExit::Exited(0), "bash"),
        (": </dev/tty", ProcessExit::Exited(1), "/bin/bash: line 1: /dev/tty: No such device or address"),
        ("printf 'a\\xffb\\0c\\033[31md\\033[0m'", ProcessExit::Exited(0), "a\u{fffd}bcd"),
        (
            "echo 'half a quote",
            ProcessExit::Exited(2),
            "/bin/bash: -c: line 1: unexpected EOF while looking for matching `''",
        ),
        ("-x", ProcessExit::Exited(127), "/bin/bash: line 1: -x: command not found"),
    ] {
        assert_eq!(session.run_to_text(command).await, (exit, text.to_owned()), "{command}");
    }
}

#[tokio::test]
async fn a_command_gets_its_directory_and_environment() {
    let session = test_session();
    let mut spec = session.spec("pwd; env | grep -v -e ^_= -e ^SHLVL= -e ^PWD= | sed 's/=.*//' | sort");
    spec.environment.insert("SECRET_OF_MINE".into(), "x".into());
    let finished = session.tasks.run_command(&spec, &session.output_dir(), LONG).await.unwrap();
    let dir = session.dir.path().canonicalize().unwrap();
    assert_eq!(
        finished.output.render_for_model(),
        format!("{}\nPATH\nSECRET_OF_MINE\nWHIMBREL_SESSION", dir.display())
    );
}

#[tokio::test]
async fn a_timeout_kills_grandchildren_and_keeps_output() {
    let session = test_session();
    let command = "echo early; sh -c 'sh -c \"echo \\$\\$ > pid; exec sleep 300\"; true'; true";
    let finished = session.run_for(command, START_TIME).await;
    assert_eq!((finished.exit, finished.output.render_for_model()), (ProcessExit::TimedOut, "early".into()));
    assert!(exits(session.pid("pid").await).await);
}

#[tokio::test]
async fn a_command_ignoring_sigterm_is_killed() {
    let session = test_session();
    let command = "trap '' TERM; echo $$ > pid; while :; do sleep 300; done";
    assert_eq!(session.run_for(command, START_TIME).await.exit, ProcessExit::TimedOut);
    assert!(exits(session.pid("pid").await).await);
}

#[tokio::test]
async fn a_command_may_clean_up_after_a_timeout() {
    let session = test_session();
    let command = "sh -c 'trap \"echo cleaned; exit\" TERM; while :; do sleep 0.01; done'; true";
    let finished = session.run_for(command, START_TIME).await;
    assert!(finished.output.render_for_model().ends_with("cleaned"));
}

#[tokio::test]
async fn dropping_the_call_kills_the_process_tree() {
    let session = test_session();
    let command = "sh -c 'echo $$ > child; exec sleep 300' & echo $$ > parent; wait";
    let spec = session.spec(command);
    let output_dir = session.output_dir();
    let call = session.tasks.run_command(&spec, &output_dir, LONG);
    let (parent, child) = tokio::select! {
        _ = call => panic!("the command ended by itself"),
        ids = async { (session.pid("parent").await, session.pid("child").await) } => ids,
    };
    assert!(exits(parent).await && exits(child).await);
    assert!(eventually(|| own_zombies() == 0).await);
}

#[test]
fn dropping_the_runtime_kills_commands() {
    let session = test_session();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tasks, spec, output_dir) =
        (session.tasks.clone(), session.spec("echo $$ > pid; exec sleep 300"), session.output_dir());
    runtime.spawn(async move { tasks.run_command(&spec, &output_dir, LONG).await });
    let id = runtime.block_on(session.pid("pid"));
    drop(runtime);
    let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(after.block_on(exits(id)));
}

#[tokio::test]
async fn a_daemon_ends_with_the_session() {
    let session = test_session();
    let command = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 300' >/dev/null 2>&1 & while [ ! -s pid ]; \
        do :; done";
    assert_eq!(session.run(command).await.leftover, Leftover::Nothing);
    let id = session.pid("pid").await;
    assert_eq!(session.run("true").await.exit, ProcessExit::Exited(0));
    assert!(process_state(id).is_some(), "the next command ended it");
    session.tasks.shutdown().await;
    assert!(exits(id).await);
    let result = session.tasks.run_command(&session.spec("true"), &session.output_dir(), LONG).await;
    assert!(matches!(result, Err(SpawnError::SessionEnded)));
}

#[tokio::test]
async fn closing_one_session_leaves_others_running() {
    track_daemons();
    for prefix in ["", "env -i"] {
        let (ending, staying) = (test_session(), test_session());
        let command = format!("{prefix} setsid sh -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1 &");
        ending.run(&command).await;
        staying.run(&command).await;
        let (ended, stayed) = (ending.pid("pid").await, staying.pid("pid").await);
        ending.tasks.shutdown().await;
        assert!(exits(ended).await, "{command}");
        assert!(process_state(stayed).is_some(), "{command}");
        drop(staying.tasks);
        assert!(exits(stayed).await, "dropping the last handle ends a session too: {command}");
    }
}

#[tokio::test]
async fn a_daemon_without_environment_ends_with_the_session() {
    track_daemons();
    let session = test_session();
    let daemon = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; exec sleep 300' &)";
    let command = format!("exec env -i sh -c '{}' >/dev/null 2>&1", daemon.replace('\'', "'\\''"));
    assert_eq!(session.run(&command).await.exit, ProcessExit::Exited(0));
    let id = session.pid("pid").await;
    assert!(process_state(id).is_some());
    session.tasks.shutdown().await;
    assert!(exits(id).await);
}

#[tokio::test]
async fn a_leftover_process_neither_blocks_nor_dies_of_printing() {
    let session = test_session();
    let command =
        "(echo $BASHPID > pid; while :; do sleep 0.02; echo tick; echo >> ticks; done) & echo started";
    let finished = session.run(command).await;
    assert_eq!((finished.exit, finished.leftover), (ProcessExit::Exited(0), Leftover::Running));
    assert!(finished.output.render_for_model().contains("started"));
    let ticks = || std::fs::read(session.dir.path().join("ticks")).map_or(0, |ticks| ticks.len());
    let so_far = ticks();
    assert!(eventually(|| ticks() > so_far + 3).await);
    session.tasks.shutdown().await;
    assert!(exits(session.pid("pid").await).await);
}

#[tokio::test]
async fn a_flood_is_bounded_in_memory_and_on_disk() {
    let session = test_session();
    // Program pages count as memory too: a small flood loads them before measuring.
    session.run("yes | head -c 9000000; head -c 9000000 /dev/zero | tr '\\0' x").await;
    for (name, command) in
        [("many lines", "yes | head -c 300000000"), ("one line", "head -c 200000000 /dev/zero | tr '\\0' x")]
    {
        let before = peak_memory_kb();
        let finished = session.run(command).await;
        assert_eq!(finished.exit, ProcessExit::Exited(0));
        assert!(finished.output.total() >= 200_000_000);
        assert!(
            finished.output.render_for_model().len() < 20_000
                && finished.output.render_for_host().len() < 401_000
        );
        let file = std::fs::metadata(finished.output.file().unwrap()).unwrap().len();
        assert!(file < 65 * 1024 * 1024, "{name}: {file} bytes on disk");
        // A tenth of the output: what the allocator keeps depends on how the output arrives.
        let growth = peak_memory_kb() - before;
        assert!(growth < 20 * 1024, "{name}: {growth} kB more memory");
    }
}

#[tokio::test]
async fn the_output_file_holds_the_exact_bytes() {
    let session = test_session();
    let finished = session.run("for i in $(seq 10000); do printf 'a\\xff\\0\\033[0m\\n'; done").await;
    let file = std::fs::read(finished.output.file().unwrap()).unwrap();
    assert_eq!(file, b"a\xff\0\x1b[0m\n".repeat(10_000));
    assert!(finished.output.render_for_model().contains("\na\u{fffd}\na\u{fffd}\n"));
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let session = test_session();
    let mut spec = session.spec("true");
    spec.cwd = session.dir.path().join("gone");
    let error = session.tasks.run_command(&spec, &session.output_dir(), LONG).await.unwrap_err();
    assert!(matches!(&error, SpawnError::MissingDir(dir) if *dir == spec.cwd), "{error}");
}

#[tokio::test]
async fn many_commands_leak_nothing() {
    let session = test_session();
    session.run("true").await;
    let before = open_files();
    for _ in 0..200 {
        assert_eq!(session.run("true").await.exit, ProcessExit::Exited(0));
        assert_eq!(own_zombies(), 0);
    }
    assert_eq!(open_files(), before);
    session.tasks.shutdown().await;
    assert!(open_files() < before, "the reaper's pipes are closed too");
}

#[tokio::test]
async fn many_commands_run_at_once() {
    let session = test_session();
    let runs = (0..100).map(|number| {
        let session = &session;
        async move {
            session.run_to_text(&format!("echo {number}")).await
                == (ProcessExit::Exited(0), number.to_string())
        }
    });
    assert!(futures::future::join_all(runs).await.into_iter().all(|right| right));
}

#[tokio::test]
async fn background_tasks_report_start_and_end() {
    for (command, status, exit_code) in [
        ("echo one; echo two >&2", TaskStatus::Completed, Some(0)),
        ("echo one; echo two; exit 4", TaskStatus::Failed, Some(4)),
        ("echo one; echo two; kill -9 $$", TaskStatus::Failed, None),
    ] {
        let mut session = test_session();
        let info = session.start(command);
        assert_eq!(session.event().await, info.started_event());
        assert_eq!(session.event().await, info.ended_event(status, exit_code, NotifyModel::Now));
        assert_eq!(std::fs::read_to_string(&info.output_file).unwrap(), "one\ntwo\n");
        let report = session.tasks.read_output(&info.task_id, TaskScope::Host, Duration::ZERO).await.unwrap();
        assert_eq!(report.output, "one\ntwo\n");
        assert_eq!(
            report.task,
            TaskSnapshot { info, state: TaskState::Ended { status, exit_code }, background: true }
        );
        assert_eq!(session.tasks.list(), [report.task]);
    }
}

#[tokio::test]
async fn a_background_task_can_be_read_and_awaited() {
    let session = test_session();
    let id = session.start("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two").task_id;
    let output = session.dir.path().join(format!("spill/tasks/{id}.output"));
    assert!(eventually(|| std::fs::read_to_string(&output).is_ok_and(|text| text == "one\n")).await);
    let early = session.tasks.read_output(&id, TaskScope::Main, Duration::from_millis(10)).await.unwrap();
    assert_eq!(
        (early.task.state, early.output.as_str(), session.tasks.running_commands()),
        (TaskState::Running, "one\n", 1)
    );
    std::fs::write(session.dir.path().join("go"), "").unwrap();
    let late = session.tasks.read_output(&id, TaskScope::Main, LONG).await.unwrap();
    assert_eq!(
        (late.task.state.as_str(), late.output.as_str(), session.tasks.running_commands()),
        ("completed", "one\ntwo\n", 0)
    );
}

#[tokio::test]
async fn a_background_task_can_be_stopped_once() {
    for (scope, expected) in
        [(TaskScope::Main, NotifyModel::Never), (TaskScope::Host, NotifyModel::WithNextInput)]
    {
        let mut session = test_session();
        let info = session.start("sh -c 'echo $$ > pid; exec sleep 300'; true");
        let id = session.pid("pid").await;
        let stopped = session.tasks.stop(&info.task_id, scope).await.unwrap();
        assert_eq!(stopped.state, TaskState::Ended { status: TaskStatus::Stopped, exit_code: None });
        assert!(exits(id).await);
        assert_eq!(session.event().await, info.started_event());
        assert_eq!(session.event().await, info.ended_event(TaskStatus::Stopped, None, expected));
        let again = session.tasks.stop(&info.task_id, scope).await.unwrap_err();
        assert_eq!(
            again.to_string(),
            format!("the background task {} is not running: stopped", info.task_id)
        );
        let unknown = session.tasks.stop("b0", scope).await.unwrap_err();
        assert_eq!(unknown, TaskError::Unknown { id: "b0".into(), known: vec![info.task_id] });
    }
}

#[tokio::test]
async fn an_agent_accesses_only_its_own_tasks() {
    let session = test_session();
    let start = |owner: Option<&str>| {
        let start =
            NewTask { tool_use_id: "call".into(), owner: owner.map(Into::into), description: "work".into() };
        let spec = session.spec("sleep 300");
        session.tasks.start_command(&spec, &session.output_dir(), start).unwrap().task_id
    };
    let (main, one, two) = (start(None), start(Some("a1")), start(Some("a2")));
    let rows = [
        (TaskScope::Agent("a1"), vec![&one]),
        (TaskScope::Agent("a3"), vec![]),
        (TaskScope::Main, vec![&main, &one, &two]),
        (TaskScope::Host, vec![&main, &one, &two]),
    ];
    for (scope, expected) in rows {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        let TaskError::Unknown { known, .. } = session.tasks.stop("b0", scope).await.unwrap_err() else {
            panic!("{scope:?}")
        };
        assert_eq!(known, expected, "{scope:?}");
        for id in [&main, &one, &two] {
            let seen = session.tasks.read_output(id, scope, Duration::ZERO).await;
            assert_eq!(seen.is_ok(), expected.contains(id), "{scope:?} at {id}: {seen:?}");
        }
    }
    let foreign = session.tasks.stop(&two, TaskScope::Agent("a1")).await.unwrap_err();
    assert_eq!(foreign, TaskError::OtherAgent { id: two.clone() });
    assert!(session.tasks.stop(&one, TaskScope::Agent("a1")).await.is_ok());
    assert_eq!(session.tasks.running_commands(), 2, "the other tasks keep running");
}

#[tokio::test]
async fn only_work_of_the_main_turn_moves_to_background() {
    let session = test_session();
    let register = |id: &str, owner: Option<&str>| {
        let info = TaskInfo {
            task_id: id.into(),
            tool_use_id: format!("call of {id}"),
            owner: owner.map(Into::into),
            kind: TaskKind::Agent,
            description: "work".into(),
            command: String::new(),
            agent_type: None,
            name: None,
            output_file: session.dir.path().join(id),
        };
        session.tasks.register_agent(info, false)
    };
    let (outer, inner) = (register("a1", None), register("a2", Some("a1")));
    let move_to_background = |call| -> Vec<String> {
        session.tasks.move_to_background(call).into_iter().map(|task| task.info.task_id).collect()
    };
    assert_eq!(move_to_background(Some("call of a2")), [""; 0], "a subagent waits for it");
    assert_eq!(move_to_background(None), ["a1"]);
    assert_eq!(move_to_background(None), [""; 0], "it already runs in the background");
    assert_eq!((*outer.watch_background().borrow(), *inner.watch_background().borrow()), (true, false));
}

#[tokio::test]
async fn an_agent_can_clean_up_when_the_session_ends() {
    let session = test_session();
    let info = TaskInfo {
        task_id: "a1".into(),
        tool_use_id: "call".into(),
        owner: None,
        kind: TaskKind::Agent,
        description: "work".into(),
        command: String::new(),
        agent_type: None,
        name: None,
        output_file: session.dir.path().join("a1"),
    };
    let entry = session.tasks.register_agent(info, true);
    let (tasks, spec, output_dir) = (session.tasks.clone(), session.spec("touch tidy"), session.output_dir());
    tokio::spawn(async move {
        entry.stop.cancelled().await;
        let _ = tasks.run_command(&spec, &output_dir, LONG).await;
        entry.finish(TaskStatus::Stopped);
    });
    session.tasks.shutdown().await;
    assert!(session.dir.path().join("tidy").exists());
}

#[tokio::test]
async fn closing_the_session_stops_and_reports_tasks() {
    let mut session = test_session();
    let info = session.start("echo $$ > pid; exec sleep 300");
    let id = session.pid("pid").await;
    session.tasks.shutdown().await;
    assert!(process_state(id).is_none_or(|state| state == 'Z'));
    assert_eq!(session.event().await, info.started_event());
    assert_eq!(session.event().await, info.ended_event(TaskStatus::Stopped, None, NotifyModel::Never));
    assert_eq!(session.tasks.running_commands(), 0);
}

#[tokio::test]
async fn closing_the_session_releases_a_waiting_call() {
    let session = test_session();
    let spec = session.spec("echo $$ > pid; exec sleep 300");
    let output_dir = session.output_dir();
    let (end, ()) = tokio::join!(session.tasks.run_command(&spec, &output_dir, LONG), async {
        session.pid("pid").await;
        session.tasks.shutdown().await;
    });
    assert!(matches!(end, Err(SpawnError::SessionEnded)));
    assert!(exits(session.pid("pid").await).await);
}

#[tokio::test]
async fn a_command_has_no_stdin_and_no_terminal() {
    let session = test_session();
    let script = "read answer; echo \"code $?\"; tty; (: > /dev/tty) 2>/dev/null || echo none";
    assert_eq!(session.run_to_text(script).await, (ProcessExit::Exited(0), "code 1\nnot a tty\nnone".into()));
}

#[tokio::test]
async fn hundreds_of_children_are_killed() {
    let session = test_session();
    let spec = session.spec("for i in $(seq 300); do sleep 600 & echo $! >> pids; done; echo $$ > pid; wait");
    let output_dir = session.output_dir();
    let (end, ()) = tokio::join!(session.tasks.run_command(&spec, &output_dir, LONG), async {
        session.pid("pid").await;
        session.tasks.shutdown().await;
    });
    assert!(matches!(end, Err(SpawnError::SessionEnded)));
    let pids = std::fs::read_to_string(session.dir.path().join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 300);
    for pid in pids.lines() {
        assert!(exits(pid.parse().unwrap()).await, "{pid} still runs");
    }
}

#[tokio::test]
async fn a_failed_exec_falls_back_to_the_shell() {
    use std::os::unix::fs::PermissionsExt;
    let session = test_session();
    let dir = session.dir.path();
    for (name, text) in [("untitled", "echo by the shell $1"), ("orphan", "#!/no/such/interpreter\n")] {
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut spec = session.spec("");
    spec.environment.insert("PATH".into(), format!("{}:/usr/bin:/bin", dir.display()));
    for (command, endings, text) in [
        ("untitled twice", &[ProcessExit::Exited(0)][..], "by the shell twice"),
        // Depends on the version of bash.
        ("orphan", &[ProcessExit::Exited(126), ProcessExit::Exited(127)], "orphan: "),
        ("no-such-program", &[ProcessExit::Exited(127)], "no-such-program: command not found"),
        ("sh -c 'kill -9 $$'", &[ProcessExit::Killed(9)], ""),
    ] {
        let spec = CommandSpec { command: command.into(), ..spec.clone() };
        let finished = session.tasks.run_command(&spec, &session.output_dir(), LONG).await.unwrap();
        let shown = finished.output.render_for_model();
        assert!(endings.contains(&finished.exit), "{command}: {shown}");
        assert!(shown.contains(text), "{command}: {shown}");
    }
}

const TEST_DIR_VARIABLE: &str = "WHIMBREL_TEST_FOLDER";
const COMMANDS: &[(&str, &str)] = &[
    ("running", "echo $$ > running; exec sleep 300"),
    ("grandchild", "sh -c 'echo $$ > grandchild; exec sleep 300'; true"),
    ("daemon", "setsid sh -c 'echo $$ > daemon; exec sleep 300' >/dev/null 2>&1 & sleep 300"),
    ("stranger", "env -i setsid sh -c 'echo $$ > stranger; exec sleep 300' >/dev/null 2>&1 & sleep 300"),
    ("unmarked", "exec env -i sh -c 'echo $$ > unmarked; exec sleep 300'"),
    ("stubborn", "trap '' TERM HUP INT; echo $$ > stubborn; while :; do sleep 300; done"),
];

/// Not a test: the engine process that the next test kills.
#[tokio::test]
async fn an_engine_to_be_killed() {
    let Some(dir) = std::env::var_os(TEST_DIR_VARIABLE).map(PathBuf::from) else { return };
    track_daemons();
    let tasks = TaskRegistry::new(event_channel().0);
    let runs = COMMANDS.iter().map(|(_, command)| {
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let spec = CommandSpec { command: (*command).into(), cwd: dir.clone(), environment };
        let (tasks, dir) = (tasks.clone(), dir.clone());
        async move { tasks.run_command(&spec, &dir, Duration::from_secs(300)).await }
    });
    futures::future::join_all(runs).await;
}

#[expect(clippy::disallowed_methods, reason = "the test kills another process")]
async fn kill_an_engine(dir: &Path) -> Vec<(&'static str, i32)> {
    let mut engine = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tasks::tests::an_engine_to_be_killed"])
        .env(TEST_DIR_VARIABLE, dir)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut ids = Vec::new();
    for (name, _) in COMMANDS {
        ids.push((*name, read_pid(&dir.join(name)).await));
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
    ids
}

#[tokio::test]
async fn a_killed_engine_leaves_no_command() {
    let dir = tempfile::tempdir().unwrap();
    for (name, id) in kill_an_engine(dir.path()).await {
        assert!(exits(id).await, "{name} survived");
    }
}
