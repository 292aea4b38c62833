//! Tests of long-lived child processes.

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::test_support::{exits, read_pid};

fn shell_program(dir: &TempDir, script: &str) -> ChildProcessSpec {
    ChildProcessSpec {
        command: "sh".into(),
        args: vec!["-c".into(), script.into(), "it's".into()],
        cwd: dir.path().to_path_buf(),
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        prefix: None,
    }
}

#[tokio::test]
async fn prefix_runs_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let log = "printf %s \"$1\" >log; exec sh -c \"$1\"";
    std::fs::write(dir.path().join("log.sh"), log).unwrap();
    let program =
        ChildProcessSpec { prefix: Some("sh log.sh".into()), ..shell_program(&dir, "cat; echo \"$0\"") };
    let mut child = ChildProcess::spawn(&program).unwrap();
    child.take_stdin().unwrap().write_all(b"in ").await.unwrap();
    assert_eq!(read_all(&mut child).await, "in it's\n");
    let logged = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(logged, r#"exec 'sh' '-c' 'cat; echo "$0"' 'it'\''s'"#);
}

async fn read_all(child: &mut ChildProcess) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = child.read_stdout().await {
        all.extend_from_slice(bytes);
    }
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn stdin_stdout_stderr_and_exit_code_are_connected() {
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        ChildProcess::spawn(&shell_program(&dir, "read a; echo \"$0 $a\"; echo oh >&2; exit 3")).unwrap();
    child.take_stdin().unwrap().write_all(b"hello\n").await.unwrap();
    assert_eq!(read_all(&mut child).await, "it's hello\n");
    assert_eq!(child.wait_for_exit().await, Some(ProcessExit::Exited(3)));
    assert_eq!(child.stderr_tail().await, "oh");
}

#[tokio::test]
async fn endless_stderr_uses_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo last >&2; echo done";
    let mut child = ChildProcess::spawn(&shell_program(&dir, script)).unwrap();
    assert_eq!(read_all(&mut child).await, "done\n");
    assert_eq!(child.wait_for_exit().await, Some(ProcessExit::Exited(0)));
    let stderr = child.stderr_tail().await;
    assert!(stderr.ends_with("xlast") && stderr.len() <= MAX_STDERR_BYTES, "{}", stderr.len());
}

#[tokio::test]
async fn a_descendant_holding_stdout_does_not_block_reading() {
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        ChildProcess::spawn(&shell_program(&dir, "sleep 300 & echo $! > pid; echo started; exit 0")).unwrap();
    let kill_handle = child.kill_handle();
    assert_eq!(read_all(&mut child).await, "started\n");
    let left = read_pid(&dir.path().join("pid")).await;
    kill_handle.kill().await;
    assert!(exits(left).await);
}

#[tokio::test]
async fn kill_and_drop_end_all_descendants() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; setsid sh -c 'echo $$ > daemon; exec sleep 300' & echo $$ > pid; while :; do sleep 1; done";
    for dropped in [true, false] {
        let child = ChildProcess::spawn(&shell_program(&dir, script)).unwrap();
        let pids = [read_pid(&dir.path().join("pid")).await, read_pid(&dir.path().join("daemon")).await];
        if dropped {
            drop(child);
        } else {
            child.kill_handle().kill().await;
        }
        for pid in pids {
            assert!(exits(pid).await, "dropped: {dropped}");
        }
        for name in ["pid", "daemon"] {
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_missing_program_exits_with_127() {
    let dir = tempfile::tempdir().unwrap();
    let program = ChildProcessSpec { command: "no-such-program".into(), ..shell_program(&dir, "") };
    let mut child = ChildProcess::spawn(&program).unwrap();
    assert_eq!(read_all(&mut child).await, "");
    assert_eq!(child.wait_for_exit().await, Some(ProcessExit::Exited(127)));
    assert!(child.stderr_tail().await.contains("not found"));
}
