//! Completions: the script for bash, run by bash.

use std::process::{Command, Stdio};

use crate::harness::{TestDir, run_command};

/// Completes the last of some words and prints the suggestions. bash gives `=` as a word of its own.
const COMPLETE: &str = r#"
    source "$1"; shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _whimbrel
    printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_suggests_flags_values_subcommands_and_files() {
    let test_dir = TestDir::new();
    let script = test_dir.temp_dir().join("whimbrel.bash");
    std::fs::write(&script, test_dir.run(&["completions", "bash"], "").stdout).unwrap();
    std::fs::create_dir(test_dir.work_dir().join("note dir")).unwrap();
    std::fs::write(test_dir.work_dir().join("notes.json"), "{}").unwrap();
    let rows: [(&[&str], &[&str]); 20] = [
        (
            &["--per"],
            &[
                "--permission-mode",
                "--permission-prompt-tool",
                "--permission-prompts",
                "--permission-timeout-ms",
            ],
        ),
        (&["--permission-mode", "p"], &["plan"]),
        (&["--permission-mode", "=", "a"], &["acceptEdits"]),
        (&["--output-format", "="], &["text", "json", "stream-json"]),
        (&["-p", "--effort", "hi"], &["high"]),
        (&["m"], &["mcp", "man"]),
        (&["-p", "m"], &[]),
        (&["mcp", "add"], &["add", "add-json"]),
        (&["mcp", "--tr"], &["--transport"]),
        (&["mcp", "add", "-t", "s"], &["stdio", "sse"]),
        (&["plugin", "marketplace", "re"], &["remove"]),
        (&["plugin", "validate", "notes"], &["notes.json"]),
        (&["config", "set", "--scope", "l"], &["local"]),
        (&["doctor", "--mode"], &["--model"]),
        (&["permissions", "explain", "--mode", "pl"], &["plan"]),
        (&["--tools", "Read,Ed"], &["Read,Edit"]),
        (&["--debug", "a"], &[]),
        (&["--debug", "=", "a"], &["api"]),
        (&["--settings", "note"], &["note dir", "notes.json"]),
        (&["--add-dir", "note"], &["note dir"]),
    ];
    for (words, expected) in rows {
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", COMPLETE, "bash"]).arg(&script).arg("whimbrel").args(words);
        command.current_dir(test_dir.work_dir()).stdin(Stdio::null());
        let out = run_command(command, "");
        let mut suggested: Vec<&str> = out.stdout.lines().filter(|line| !line.is_empty()).collect();
        let mut expected = expected.to_vec();
        suggested.sort_unstable();
        expected.sort_unstable();
        assert_eq!((suggested, out.code, out.stderr.as_str()), (expected, Some(0), ""), "{words:?}");
    }
}

#[test]
fn unknown_shell_and_surplus_arguments_are_refused() {
    let test_dir = TestDir::new();
    for (args, words) in [
        (&["completions", "tcsh"][..], "The shells are bash, zsh and fish."),
        (&["completions", "bash", "x"], "\"x\" is not expected here."),
        (&["man", "x"], "Usage: whimbrel man."),
    ] {
        let out = test_dir.run(args, "");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(out.stderr.contains(words), "{args:?}: {}", out.stderr);
    }
}
