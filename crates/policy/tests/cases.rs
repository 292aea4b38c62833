//! Public permission cases: a call with rules and context, and the accepted decisions.
//!
//! An allow that is not accepted fails the test; of the calls that should be allowed, nearly all must be.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whimbrel_policy::fs::RealFs;
use whimbrel_policy::mode::deny_if_never_asking;
use whimbrel_policy::{
    Call, CallContext, Decision, RuleLayer, RuleSet, RuleSource, ToolProperties, WorkDirs, decide,
};
use whimbrel_wire::permission::PermissionMode;

const CASES: &str = include_str!("fixtures/permission-cases.jsonl");

/// Tools of the fixture and the fields of their inputs.
const TOOLS: [(&str, &[&str]); 12] = [
    ("Bash", &["command", "timeout", "description", "run_in_background", "dangerouslyDisableSandbox"]),
    ("Read", &["file_path", "offset", "limit", "pages"]),
    ("Grep", &["pattern", "path", "glob", "output_mode", "type"]),
    ("Glob", &["pattern", "path"]),
    ("Edit", &["file_path", "old_string", "new_string", "replace_all"]),
    ("Write", &["file_path", "content"]),
    ("NotebookEdit", &["notebook_path", "new_source", "cell_id", "cell_type", "edit_mode"]),
    ("WebFetch", &["url", "prompt"]),
    ("WebSearch", &["query"]),
    ("Agent", &["description", "prompt", "subagent_type", "model", "isolation", "run_in_background"]),
    ("Skill", &["skill", "args"]),
    ("TodoWrite", &["todos"]),
];

const SERVERS: [&str; 3] = ["github", "githubevil", "evil"];
const SERVER_TOOLS: [&str; 3] = ["get_issue", "create_issue", "Bash"];

#[test]
fn public_cases_have_accepted_decisions() {
    let mut wrongly_allowed = Vec::new();
    let mut missed = Vec::new();
    let (mut decided, mut should_allow, mut allowed) = (0, 0, 0);
    // Nothing is executed, so all cases share one tree.
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    build_tree(&root);
    for line in CASES.lines() {
        let Ok(case) = serde_json::from_str::<Value>(&line.replace("/fx", root.to_str().unwrap())) else {
            // An unpaired surrogate is not valid text; the codec rejects such a call earlier.
            assert!(line.contains("\\ud800"), "{line}");
            continue;
        };
        if case["layer"] != "permission" {
            continue;
        }
        decided += 1;
        set_up(&case);
        let decision = decide_case(&case, &root);
        let behavior = match &decision {
            Decision::Allow(_) => "allow",
            Decision::Deny(_) => "deny",
            Decision::Ask(_) => "ask",
        };
        let expected = case["expect"].as_str().unwrap();
        let accepted = case["accept"].as_array();
        let passes = behavior == expected
            || accepted.is_some_and(|accepted| accepted.iter().any(|one| one == behavior));
        if expected == "allow" {
            should_allow += 1;
            allowed += usize::from(behavior == "allow");
        }
        if !passes {
            let failure = format!(
                "{}: {behavior} ({}) instead of {expected}\n    {} {} {}\n    {}",
                case["id"],
                decision.reason().text(),
                case["mode"],
                case["rules"],
                case["input"],
                case["why"]
            );
            if behavior == "allow" { wrongly_allowed.push(failure) } else { missed.push(failure) }
        }
    }
    println!("{decided} cases, {allowed} of {should_allow} expected allow decisions");
    println!("wrongly allowed:\n{}\nmissed:\n{}", wrongly_allowed.join("\n"), missed.join("\n"));
    assert!(wrongly_allowed.is_empty(), "{} calls are wrongly allowed", wrongly_allowed.len());
    assert!(allowed * 100 >= should_allow * 98, "only {allowed} of {should_allow} calls are allowed");
    assert!(missed.is_empty(), "{} calls have another decision", missed.len());
}

fn decide_case(case: &Value, root: &Path) -> Decision {
    let home = root.join("home");
    let cwd = case["cwd"].as_str().map_or_else(|| root.join("proj"), PathBuf::from);
    let mode: PermissionMode = case["mode"].as_str().unwrap().parse().unwrap();
    let texts = |name: &str| {
        let list = case["rules"][name].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut rules = RuleSet::new(&home, &cwd);
    let layer = RuleLayer {
        allow: texts("allow"),
        ask: texts("ask"),
        deny: texts("deny"),
        ..RuleLayer::new(RuleSource::ProjectSettings, &root.join("proj"))
    };
    rules.add_layer(&layer, &RealFs);
    let mut dirs = WorkDirs::new(&cwd, &RealFs);
    for extra in case["additional_dirs"].as_array().into_iter().flatten() {
        dirs.add(Path::new(extra.as_str().unwrap()), RuleSource::ProjectSettings, &RealFs);
    }
    let tool = case["tool"].as_str().unwrap();
    let context = CallContext::new(&cwd, &home, &RealFs, tool_properties(tool));
    let call = Call { tool, input: &case["input"] };
    deny_if_never_asking(decide(&call, &rules, mode, &dirs, &context), mode)
}

fn tool_properties(name: &str) -> ToolProperties {
    let fields = TOOLS.iter().find(|(tool, _)| *tool == name).map(|(_, fields)| *fields);
    let of_server =
        SERVERS.iter().any(|server| SERVER_TOOLS.iter().any(|tool| name == format!("mcp__{server}__{tool}")));
    ToolProperties {
        known: fields.is_some() || of_server,
        ..ToolProperties::for_tool(name, fields.unwrap_or(&["q"]))
    }
}

fn build_tree(root: &Path) {
    let files = [
        ("proj/src/app.ts", "a"),
        ("proj/docs/x.md", "a"),
        ("proj/notes.txt", "a"),
        ("proj/vendor/pkg/src/lib.js", "a"),
        ("proj/[x].txt", "a"),
        ("proj/secrets/key.txt", "k"),
        ("proj/sub/secrets/k2.txt", "k"),
        ("proj/.env", "E=1"),
        ("proj/sub/.env", "E=1"),
        ("proj/package.json", "{}"),
        ("proj/.claude/settings.json", "{}"),
        ("proj/.git/HEAD", "ref: refs/heads/main"),
        ("proj/.git/config", ""),
        ("outside/data.txt", "d"),
        ("outside/.env", "E=1"),
        ("extra/e.txt", "e"),
        ("proj-evil/loot.txt", "l"),
        ("extra-evil/e.txt", "e"),
        ("home/.ssh/id_rsa", "key"),
        ("home/.bashrc", ""),
    ];
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for directory in ["proj/.git/objects", "proj/.git/refs/heads", "proj/.git/hooks"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    symlink(root.join("outside"), root.join("proj/link_out")).unwrap();
    symlink("secrets/key.txt", root.join("proj/link_secret")).unwrap();
    symlink("/etc/passwd", root.join("proj/link_etc")).unwrap();
}

/// Runs the setup commands of a case.
fn set_up(case: &Value) {
    for command in case["setup"].as_array().into_iter().flatten() {
        let words: Vec<&str> = command.as_str().unwrap().split(' ').collect();
        match words.as_slice() {
            // The type of a special file does not affect decisions.
            ["mkfifo", path] => drop(std::os::unix::net::UnixListener::bind(path)),
            ["mkdir", "-p", path] => fs::create_dir_all(path).unwrap(),
            ["ln", "-s", target, path] => symlink(target, path).unwrap(),
            other => panic!("cannot set up {other:?}"),
        }
    }
}
