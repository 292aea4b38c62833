//! Tests of commands with piped stdin.

use std::collections::BTreeMap;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::CommandSpec;
use crate::test_support::{exits, read_pid};

struct TestSession {
    groups: Arc<ProcessGroups>,
    dir: TempDir,
}

fn test_session() -> TestSession {
    TestSession { groups: Arc::new(ProcessGroups::new()), dir: tempfile::tempdir().unwrap() }
}

impl TestSession {
    fn spec(&self, command: &str) -> CommandSpec {
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        CommandSpec { command: command.into(), cwd: self.dir.path().into(), environment }
    }

    fn start(&self, command: &str, input: impl Into<Bytes>) -> PipedCommand {
        PipedCommand::spawn(&self.groups, &self.spec(command), input.into()).unwrap()
    }

    async fn run(&self, command: &str, input: impl Into<Bytes>) -> (ProcessExit, CommandOutput) {
        let mut command = self.start(command, input);
        let ended = async {
            loop {
                if let CommandEvent::Exited(exit) = command.next_event().await {
                    break exit;
                }
            }
        };
        let exit = timeout(Duration::from_secs(30), ended).await.unwrap();
        (exit, command.into_output())
    }
}

#[tokio::test]
async fn stdin_is_written_and_outputs_are_separate() {
    let (exit, output) =
        test_session().run("read x; echo \"got $x\"; echo oops >&2; exit 3", "hello\n").await;
    assert_eq!(exit, ProcessExit::Exited(3));
    assert_eq!((output.stdout.raw().as_ref(), output.stderr.text().as_str()), ("got hello\n", "oops\n"));
    assert_eq!(output.combined.shown_text().lines().count(), 2);
}

#[tokio::test]
async fn a_command_that_ignores_stdin_does_not_block() {
    let session = test_session();
    let input = "x".repeat(4 * 1024 * 1024);
    for (name, command, stdout) in [
        ("it ends at once", "true", ""),
        ("it closes its input", "exec 0<&-; echo closed", "closed\n"),
        ("it reads a little", "head -c 3; echo", "xxx\n"),
        ("it never reads", "echo busy", "busy\n"),
        ("it reads all", "wc -c | tr -d ' '", "4194304\n"),
    ] {
        let (exit, output) = session.run(command, input.clone()).await;
        assert_eq!(exit, ProcessExit::Exited(0), "{name}");
        assert_eq!(output.stdout.raw(), stdout, "{name}");
    }
}

#[tokio::test]
async fn excess_output_is_read_but_not_kept() {
    let (exit, output) = test_session().run("head -c 100000000 /dev/zero", "").await;
    assert_eq!(exit, ProcessExit::Exited(0));
    assert!(output.stdout.is_truncated());
    assert_eq!(output.stdout.size(), "100.0 MB");
    assert_eq!(output.stdout.bytes.len(), MAX_STDOUT_BYTES);
    assert!(output.combined.shown_text().len() < MAX_SHOWN_BYTES + 100);
}

#[tokio::test]
async fn leftover_processes_do_not_delay_the_output() {
    let session = test_session();
    let (exit, output) = session.run("sleep 300 & echo $! > left; echo done", "").await;
    assert_eq!((exit, output.stdout.raw().as_ref()), (ProcessExit::Exited(0), "done\n"));
    let left = read_pid(&session.dir.path().join("left")).await;
    session.groups.close().await;
    assert!(exits(left).await);
}

#[tokio::test]
async fn stop_and_drop_end_the_children() {
    let session = test_session();
    for (name, stop) in [("stopped", true), ("dropped", false)] {
        let command = format!("trap '' TERM; sh -c 'echo $$ > {name}; exec sleep 300'; true");
        let command = session.start(&command, "");
        let child = read_pid(&session.dir.path().join(name)).await;
        if stop {
            command.stop().await;
        } else {
            drop(command);
        }
        assert!(exits(child).await, "{name}");
    }
}

#[tokio::test]
async fn output_during_stop_is_read() {
    let session = test_session();
    let prints_much =
        "trap 'head -c 100000 /dev/zero; echo bye >&2; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let reads_stdin = "trap '' TERM; echo ready; cat >/dev/null; echo bye >&2";
    for (name, command, length) in
        [("more than a pipe holds", prints_much, 100_006), ("once its input ends", reads_stdin, 6)]
    {
        let mut command = session.start(command, "x".repeat(4 * 1024 * 1024));
        while command.output().stdout.first_line().is_none() {
            assert_eq!(command.next_event().await, CommandEvent::Output, "{name}");
        }
        let output = command.stop().await;
        assert_eq!(output.stdout.total, length, "{name}");
        assert!(output.stderr.raw().ends_with("bye\n"), "{name}: {}", output.stderr.raw());
    }
}

#[tokio::test]
async fn a_command_beyond_the_argument_limit_is_rejected() {
    let session = test_session();
    let with_length = |length: usize| format!("cat{}", " ".repeat(length - 3));
    let (exit, output) = session.run(&with_length(128 * 1024 - 1), "hello").await;
    assert_eq!((exit, output.stdout.raw().as_ref()), (ProcessExit::Exited(0), "hello"));
    let spec = session.spec(&with_length(128 * 1024));
    let error = PipedCommand::spawn(&session.groups, &spec, Bytes::new()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the command could not be started: it is longer than 128 KB; put it into a file and run the file"
    );
}

#[tokio::test]
async fn closing_the_session_ends_the_command() {
    let session = test_session();
    let mut command = session.start("echo $$ > pid; sleep 300", "");
    let pid = read_pid(&session.dir.path().join("pid")).await;
    let (event, ()) = tokio::join!(
        async {
            let event = command.next_event().await;
            drop(command);
            event
        },
        session.groups.close()
    );
    assert_eq!(event, CommandEvent::SessionClosing);
    assert!(exits(pid).await);
}

#[test]
fn the_first_line_is_found_across_pieces() {
    for pieces in
        [vec!["ab\ncd\n"], vec!["a", "b\n", "cd"], vec!["ab", "\n"], vec!["", "a", "", "b", "\ncd\n\n"]]
    {
        let mut head = OutputHead::with_limit(100);
        for piece in &pieces {
            head.push(piece.as_bytes());
        }
        assert_eq!(head.first_line().as_deref(), Some("ab"), "{pieces:?}");
    }
    let mut truncated = OutputHead::with_limit(2);
    truncated.push(b"ab\n");
    assert_eq!(truncated.first_line(), None, "a line whose end was not kept is not complete");
}
