//! Runs the programs of `examples/` as a user would. None of them needs a key: scripted models answer.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the path of an example that was built beside the tests.
fn example_path(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not there: build it with cargo build -p whimbrel --examples",
        path.display()
    );
    path
}

/// Runs an example in a directory of its own, without a key in its environment, and returns its output.
fn run_example(name: &str, args: &[&str], input: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(example_path(name))
        .args(args)
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.path())
        .env("TMPDIR", dir.path())
        .env("PLAY", r#"accept; read -r line; echo '{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"From a process."}'"#)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let (printed, stderr) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{name}: {stderr}");
    printed.into_owned()
}

#[test]
fn every_example_prints_what_it_promises() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.sh").display().to_string();
    let rows: [(&str, &[&str], &str, &[&str]); 8] = [
        ("chat", &[], "Hello.\nAnd?\n", &["Hello. I am scripted.", "I have nothing more to say."]),
        ("drive_binary", &[&engine, "What is here?"], "", &["From a process."]),
        ("many_sessions", &["3"], "", &["3 sessions have finished; the last one said: agent 2 is done"]),
        ("one_shot", &[], "", &["A scripted model.", "(1 turns, $0.0000)"]),
        ("permission", &[], "", &["I looked, and left the rest alone.", "refused: Bash", "rm -rf build"]),
        ("session_store", &[], "", &["Hello, Ann.", "You are Ann.", "user: \"I am Ann.\""]),
        ("swarm", &[], "", &["whimbrel"]),
        ("tools", &[], "", &["I wrote it down.", "notes: [\"The key is under the mat.\"]"]),
    ];
    for (name, args, input, parts) in rows {
        let printed = run_example(name, args, input);
        for part in parts {
            assert!(printed.contains(part), "{name} does not say {part:?}: {printed}");
        }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names: Vec<_> = std::fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "shared")
        .collect();
    names.sort();
    assert_eq!(names, rows.map(|(name, ..)| name), "each is run");
}
