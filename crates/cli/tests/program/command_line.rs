//! Command line and text output, as a user sees them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{TestDir, wait_for_exit};

#[test]
fn version_begins_with_that_of_the_official_program() {
    for args in [["--version"], ["-v"], ["version"]] {
        let out = TestDir::new().run(&args, "");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
        assert_eq!(out.stdout, "2.1.325 (Whimbrel 0.1.0)\n");
    }
}

#[test]
fn official_subcommand_is_refused_with_what_to_do() {
    let test_dir = TestDir::new();
    for (args, words) in [
        (&["update"][..], "`update` is not supported by whimbrel"),
        (&["upgrade"], "`upgrade`"),
        (&["install", "latest"], "the way it was installed"),
        (&["setup-token"], "ANTHROPIC_API_KEY"),
        (&["import"], "whimbrel config set"),
        (&["purge"], "whimbrel sessions delete"),
        (&["auth", "login"], "`auth login` is not supported"),
        (&["mcp", "reset-project-choices"], "enabledMcpjsonServers"),
        (&["--model", "scripted:/none", "update"], "must be the first argument"),
    ] {
        let out = test_dir.run(args, "");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(out.stderr.contains(words), "{args:?}: {}", out.stderr);
    }
}

#[test]
fn flag_without_effect_is_noted() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["hello"]));
    let out = test_dir.run(&["-p", "--ide", "--model", &model, "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "hello\n"));
    assert!(
        out.stderr.contains("--ide has no effect: there is no connection to an editor."),
        "{}",
        out.stderr
    );
}

#[test]
fn the_help_page_goes_to_stdout() {
    let out = TestDir::new().run(&["--help"], "");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    assert!(out.stdout.contains("--model NAME") && out.stdout.contains("whimbrel demo"), "{}", out.stdout);
}

#[test]
fn unknown_flag_gets_a_suggestion() {
    let out = TestDir::new().run(&["-p", "--modle", "x", "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("--modle") && out.stderr.contains("--model?"), "{}", out.stderr);
}

#[test]
fn missing_key_shows_the_ways_to_configure_a_model() {
    let out = TestDir::new().run(&["-p", "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    for way in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL", "ollama", "whimbrel demo"] {
        assert!(out.stderr.contains(way), "{way}: {}", out.stderr);
    }
}

#[test]
fn empty_prompt_is_rejected() {
    for args in [&["-p"][..], &["-p", ""], &[]] {
        let out = TestDir::new().run(args, " \n");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(out.stderr.contains("The prompt is missing"), "{}", out.stderr);
    }
}

#[test]
fn frames_for_a_prompt_need_verbose() {
    let out = TestDir::new().run(&["-p", "--output-format", "stream-json", "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("--verbose"), "{}", out.stderr);
}

#[test]
fn demo_needs_nothing_and_leaves_nothing() {
    let out = TestDir::new().run(&["demo"], "");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    for part in ["✓ Write", "✓ Read", "✓ Edit", "allowed by the demo", "2 curlews", "no cost"] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
    let dir = out.stdout.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap();
    assert!(dir.contains("whimbrel-demo-") && !Path::new(dir).exists(), "{dir}");
}

#[test]
fn pipe_gets_only_the_answer() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["plain words"]));
    let out = test_dir.run(&["-p", "--model", &model, "hi"], "");
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "plain words\n", ""));
}

#[test]
fn json_output_is_one_result_object() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["in json"]));
    let out = test_dir.run(&["-p", "--model", &model, "--output-format", "json", "hi"], "");
    let result: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        (out.code, &result["type"], &result["result"]),
        (Some(0), &json!("result"), &json!("in json"))
    );
    assert_eq!(out.stdout.lines().count(), 1);
}

#[test]
fn frames_can_be_printed_for_a_prompt() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["lines"]));
    let out =
        test_dir.run(&["-p", "--verbose", "--model", &model, "--output-format", "stream-json", "hi"], "");
    let frames: Vec<Value> = out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((out.code, &frames[0]["subtype"]), (Some(0), &json!("init")));
    assert_eq!(frames.last().unwrap()["result"], "lines");
}

#[test]
fn piped_text_comes_after_the_argument() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!([{"expect": "what is it?\\na log", "content": ["a log"]}]));
    let out = test_dir.run(&["-p", "--model", &model, "what is it?"], "a log\n");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "a log\n"), "{}", out.stderr);
    let model = test_dir.write_script(&json!([{"expect": "only piped", "content": ["yes"]}]));
    let out = test_dir.run(&["--model", &model], "only piped\n");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "yes\n"), "{}", out.stderr);
}

#[test]
fn failed_run_reports_its_error_on_stdout() {
    let test_dir = TestDir::new();
    let model = test_dir
        .write_script(&json!([{"fault": {"kind": "forbidden", "status": 403, "message": "not for you"}}]));
    let out = test_dir.run(&["-p", "--model", &model, "hi"], "");
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), ""));
    assert!(out.stdout.contains("not for you"), "{}", out.stdout);
}

#[test]
fn failed_start_is_reported_once() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["never"]));
    let out = test_dir.run(&["-p", "--model", &model, "--session-id", "nonsense", "hi"], "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert_eq!(out.stderr.matches("nonsense").count(), 1, "{}", out.stderr);
}

#[test]
fn invalid_values_are_rejected() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["never"]));
    let rows = [
        (["--tools", "Nope"], "there is no tool Nope"),
        (["--add-dir", "/no/such/folder"], "/no/such/folder is not a directory"),
        (["--add-dir", "/dev/null"], "/dev/null is not a directory"),
        (["--max-turns", "0"], "1 or more"),
        (["--max-turns", "-1"], "1 or more"),
        (["--max-thinking-tokens", "x"], "0 or more"),
        (["--permission-mode", "yolo"], "acceptEdits"),
        (["--input-format", "xml"], "stream-json"),
        (["--output-format", "xml"], "stream-json"),
    ];
    for (flag, part) in rows {
        let out = test_dir.run(&["-p", "--model", &model, "hi", flag[0], flag[1]], "");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{flag:?}");
        assert!(out.stderr.contains(flag[0]) && out.stderr.contains(part), "{flag:?}: {}", out.stderr);
    }
}

#[test]
fn overlong_prompt_is_rejected() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["never"]));
    let out = test_dir.run(&["-p", "--model", &model], &"x".repeat(65 << 20));
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.contains("more than 64 MiB"), "{}", out.stderr);
}

#[test]
fn demo_ends_quietly_when_its_pipe_is_closed() {
    let mut command = TestDir::new().command(&["demo"]);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("whimbrel-demo-"), "{first}");
    assert_eq!(wait_for_exit(&mut child).code(), Some(1));
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    let dir = first.trim_end().rsplit(' ').next().unwrap();
    assert!(!Path::new(dir).exists(), "{dir} is left");
}
