//! What a program that we talk with promises.

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::tasks::tests::{gone, pid_from};

fn shell(folder: &TempDir, script: &str) -> Program {
    Program {
        command: "sh".into(),
        args: vec!["-c".into(), script.into(), "it's".into()],
        cwd: folder.path().to_path_buf(),
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
    }
}

async fn all(dialogue: &mut Dialogue) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = dialogue.hear().await {
        all.extend_from_slice(bytes);
    }
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn it_hears_what_is_said_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut dialogue =
        Dialogue::start(&shell(&folder, "read a; echo \"$0 $a\"; echo oh >&2; exit 3")).unwrap();
    dialogue.input().unwrap().write_all(b"hello\n").await.unwrap();
    assert_eq!(all(&mut dialogue).await, "it's hello\n");
    assert_eq!(dialogue.ending().await, Some(Ending::Exited(3)));
    assert_eq!(dialogue.complaints().await, "oh");
}

#[tokio::test]
async fn complaints_without_end_take_little_room() {
    let folder = tempfile::tempdir().unwrap();
    let script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo last >&2; echo done";
    let mut dialogue = Dialogue::start(&shell(&folder, script)).unwrap();
    assert_eq!(all(&mut dialogue).await, "done\n");
    assert_eq!(dialogue.ending().await, Some(Ending::Exited(0)));
    let complaints = dialogue.complaints().await;
    assert!(complaints.ends_with("xlast") && complaints.len() <= COMPLAINTS, "{}", complaints.len());
}

#[tokio::test]
async fn something_that_holds_the_output_open_does_not_keep_us() {
    let folder = tempfile::tempdir().unwrap();
    let mut dialogue =
        Dialogue::start(&shell(&folder, "sleep 300 & echo $! > pid; echo started; exit 0")).unwrap();
    let leash = dialogue.leash();
    assert_eq!(all(&mut dialogue).await, "started\n");
    let left = pid_from(&folder.path().join("pid")).await;
    leash.end().await;
    assert!(gone(left).await);
}

#[tokio::test]
async fn whoever_ends_it_ends_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; setsid sh -c 'echo $$ > daemon; exec sleep 300' & echo $$ > pid; while :; do sleep 1; done";
    for dropped in [true, false] {
        let dialogue = Dialogue::start(&shell(&folder, script)).unwrap();
        let pids =
            [pid_from(&folder.path().join("pid")).await, pid_from(&folder.path().join("daemon")).await];
        if dropped {
            drop(dialogue);
        } else {
            dialogue.leash().end().await;
        }
        for pid in pids {
            assert!(gone(pid).await, "dropped: {dropped}");
        }
        for name in ["pid", "daemon"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program { command: "no-such-program".into(), ..shell(&folder, "") };
    let mut dialogue = Dialogue::start(&program).unwrap();
    assert_eq!(all(&mut dialogue).await, "");
    assert_eq!(dialogue.ending().await, Some(Ending::Exited(127)));
    assert!(dialogue.complaints().await.contains("not found"));
}
