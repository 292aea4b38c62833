//! Tests of commands with piped stdin.

use std::collections::BTreeMap;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
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
        let mut exchange = self.start(command, input);
        let ended = async {
            loop {
                if let CommandEvent::Exited(ending) = exchange.next_event().await {
                    break ending;
                }
            }
        };
        let ending = timeout(Duration::from_secs(30), ended).await.unwrap();
        (ending, exchange.into_output())
    }
}

#[tokio::test]
async fn stdin_is_written_and_outputs_are_separate() {
    let (ending, heard) =
        test_session().run("read x; echo \"got $x\"; echo oops >&2; exit 3", "hello\n").await;
    assert_eq!(ending, ProcessExit::Exited(3));
    assert_eq!((heard.stdout.raw().as_ref(), heard.stderr.text().as_str()), ("got hello\n", "oops\n"));
    assert_eq!(heard.combined.shown_text().lines().count(), 2);
}

#[tokio::test]
async fn a_command_that_ignores_stdin_does_not_block() {
    let place = test_session();
    let much = "x".repeat(4 * 1024 * 1024);
    for (name, command, said) in [
        ("it ends at once", "true", ""),
        ("it closes its input", "exec 0<&-; echo closed", "closed\n"),
        ("it reads a little", "head -c 3; echo", "xxx\n"),
        ("it never reads", "echo busy", "busy\n"),
        ("it reads all", "wc -c | tr -d ' '", "4194304\n"),
    ] {
        let (ending, heard) = place.run(command, much.clone()).await;
        assert_eq!(ending, ProcessExit::Exited(0), "{name}");
        assert_eq!(heard.stdout.raw(), said, "{name}");
    }
}

#[tokio::test]
async fn excess_output_is_read_but_not_kept() {
    let (ending, heard) = test_session().run("head -c 100000000 /dev/zero", "").await;
    assert_eq!(ending, ProcessExit::Exited(0));
    assert!(heard.stdout.is_truncated());
    assert_eq!(heard.stdout.size(), "100.0 MB");
    assert_eq!(heard.stdout.bytes.len(), MAX_STDOUT_BYTES);
    assert!(heard.combined.shown_text().len() < MAX_SHOWN_BYTES + 100);
}

#[tokio::test]
async fn leftover_processes_do_not_delay_the_output() {
    let place = test_session();
    let (ending, heard) = place.run("sleep 300 & echo $! > left; echo done", "").await;
    assert_eq!((ending, heard.stdout.raw().as_ref()), (ProcessExit::Exited(0), "done\n"));
    let left = read_pid(&place.dir.path().join("left")).await;
    place.groups.close().await;
    assert!(exits(left).await);
}

#[tokio::test]
async fn stop_and_drop_end_the_children() {
    let place = test_session();
    for (name, stop) in [("stopped", true), ("dropped", false)] {
        let command = format!("trap '' TERM; sh -c 'echo $$ > {name}; exec sleep 300'; true");
        let exchange = place.start(&command, "");
        let child = read_pid(&place.dir.path().join(name)).await;
        if stop {
            exchange.stop().await;
        } else {
            drop(exchange);
        }
        assert!(exits(child).await, "{name}");
    }
}

#[tokio::test]
async fn output_during_stop_is_read() {
    let place = test_session();
    let floods =
        "trap 'head -c 100000 /dev/zero; echo bye >&2; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let waits = "trap '' TERM; echo ready; cat >/dev/null; echo bye >&2";
    for (name, command, length) in
        [("more than a pipe holds", floods, 100_006), ("once its input ends", waits, 6)]
    {
        let mut exchange = place.start(command, "x".repeat(4 * 1024 * 1024));
        while exchange.output().stdout.first_line().is_none() {
            assert_eq!(exchange.next_event().await, CommandEvent::Output, "{name}");
        }
        let heard = exchange.stop().await;
        assert_eq!(heard.stdout.total, length, "{name}");
        assert!(heard.stderr.raw().ends_with("bye\n"), "{name}: {}", heard.stderr.raw());
    }
}

#[tokio::test]
async fn a_command_beyond_the_argument_limit_is_rejected() {
    let place = test_session();
    let of_length = |length: usize| format!("cat{}", " ".repeat(length - 3));
    let (ending, heard) = place.run(&of_length(128 * 1024 - 1), "hello").await;
    assert_eq!((ending, heard.stdout.raw().as_ref()), (ProcessExit::Exited(0), "hello"));
    let order = place.spec(&of_length(128 * 1024));
    let fault = PipedCommand::spawn(&place.groups, &order, Bytes::new()).err().unwrap();
    assert_eq!(
        fault.to_string(),
        "the command could not be started: it is longer than 128 KB; put it into a file and run that"
    );
}

#[tokio::test]
async fn closing_the_session_ends_the_command() {
    let place = test_session();
    let mut exchange = place.start("echo $$ > pid; sleep 300", "");
    let pid = read_pid(&place.dir.path().join("pid")).await;
    let (step, ()) = tokio::join!(
        async {
            let step = exchange.next_event().await;
            drop(exchange);
            step
        },
        place.groups.close()
    );
    assert_eq!(step, CommandEvent::SessionClosing);
    assert!(exits(pid).await);
}

#[test]
fn the_first_line_is_found_across_pieces() {
    for pieces in
        [vec!["ab\ncd\n"], vec!["a", "b\n", "cd"], vec!["ab", "\n"], vec!["", "a", "", "b", "\ncd\n\n"]]
    {
        let mut kept = OutputHead::with_limit(100);
        for piece in &pieces {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.first_line().as_deref(), Some("ab"), "{pieces:?}");
    }
    let mut cut = OutputHead::with_limit(2);
    cut.push(b"ab\n");
    assert_eq!(cut.first_line(), None, "a line whose end was not kept is not complete");
}
