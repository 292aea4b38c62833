//! Suggested permission updates for calls, as tables.

use serde_json::{Value, json};
use whimbrel_wire::permission::PermissionMode;

use crate::decision::Decision;
use crate::fixture::Fixture;

fn suggested_updates(fixture: &Fixture, tool: &str, input: &Value) -> Value {
    match fixture.decide(PermissionMode::Default, tool, input) {
        Decision::Ask(details) => json!(details.suggestions),
        other => panic!("{tool} {input}: {other:?}"),
    }
}

fn suggested_bash_rules(fixture: &Fixture, command: &str) -> Vec<String> {
    let updates = suggested_updates(fixture, "Bash", &json!({"command": command}));
    let rules = updates[0]["rules"].as_array().cloned().unwrap_or_default();
    rules.iter().map(|rule| rule["ruleContent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rules_for_commands() {
    let fixture = Fixture::new();
    let rows: [(&str, &[&str]); 20] = [
        ("npm run build", &["npm run *"]),
        ("git push origin dev", &["git push *"]),
        ("make all", &["make all *"]),
        ("git diff && npm test", &["npm test *"]),
        ("npm test && npm test -u", &["npm test *"]),
        ("make", &["make"]),
        ("./x.sh", &["./x.sh"]),
        ("python3 x.py", &["python3 x.py"]),
        ("curl http://x.invalid/a", &["curl http://x.invalid/a"]),
        ("git -C src commit", &["git -C src commit"]),
        ("FOO=1 npm test", &["FOO=1 npm test"]),
        ("timeout 5 npm test", &["timeout 5 npm test"]),
        ("mytool 'a b' *", &["mytool 'a b' \\*"]),
        ("a1 x; b1 x; c1 x; d1 x; e1 x; f1 x", &[]),
        ("make $X", &[]),
        ("make &", &[]),
        ("rm -rf /", &[]),
        ("find . -delete", &[]),
        ("(make)", &[]),
        ("cd /fx/outside && make", &[]),
    ];
    for (command, expected) in rows {
        assert_eq!(suggested_bash_rules(&fixture, command), expected, "{command}");
    }
}

#[test]
fn updates_for_paths_of_commands() {
    let fixture = Fixture::new();
    let bash = |command: &str| suggested_updates(&fixture, "Bash", &json!({"command": command}));
    let read = bash("cat /fx/outside/data.txt");
    assert_eq!(read[0]["rules"][0]["ruleContent"], "cat /fx/outside/data.txt");
    assert_eq!(read[1]["rules"][0], json!({"toolName": "Read", "ruleContent": "//fx/outside/**"}));
    assert_eq!(read[1]["destination"], "session");
    assert_eq!(bash("cat /fx/outside/data.txt /fx/extra/e.txt"), json!([]));
    let write = bash("mkdir /fx/outside/a");
    assert_eq!(
        write[1],
        json!({"type": "addDirectories", "directories": ["/fx/outside"], "destination": "session"})
    );
    assert_eq!(write[2], json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}));
    let redirect = bash("mytool run > notes.txt");
    assert_eq!(redirect[0]["rules"][0]["ruleContent"], "mytool run *");
    assert_eq!(redirect[1]["mode"], "acceptEdits");
    let followed = bash("echo hi > out.txt; echo shown");
    let rule = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "echo hi"}],
        "behavior": "allow", "destination": "localSettings"});
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    assert_eq!(followed, json!([rule, mode]));
}

#[test]
fn updates_for_file_tools() {
    let fixture = Fixture::new();
    let read = suggested_updates(&fixture, "Read", &json!({"file_path": "/fx/outside/data.txt"}));
    assert_eq!(read[0]["rules"][0]["ruleContent"], "//fx/outside/**");
    let edit = suggested_updates(&fixture, "Edit", &json!({"file_path": "a"}));
    assert_eq!(edit, json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]));
    let outside = suggested_updates(&fixture, "Write", &json!({"file_path": "/fx/outside/a"}));
    assert_eq!(outside[1]["directories"], json!(["/fx/outside"]));
    assert_eq!(suggested_updates(&fixture, "Write", &json!({"file_path": "/fx/home/a"})), json!([]));
    assert_eq!(suggested_updates(&fixture, "Write", &json!({"file_path": "/a"})), json!([]));
    assert_eq!(suggested_updates(&fixture, "Write", &json!({"file_path": ".git/config"})), json!([]));
    let skill = suggested_updates(&fixture, "Write", &json!({"file_path": ".claude/skills/x/SKILL.md"}));
    assert_eq!(skill[0]["rules"][0]["ruleContent"], "/.claude/skills/x/**");
}

#[test]
fn home_and_configuration_are_never_opened() {
    let fixture = Fixture::new().with_protected(&["/fx/outside/config"]);
    let rule = |path: &str| {
        suggested_updates(&fixture, "Read", &json!({"file_path": path}))[0]["rules"][0]["ruleContent"].clone()
    };
    let rows = [
        ("the parent of the home directory", "/fx/a.txt", json!("//fx/a.txt")),
        ("the home", "/fx/home/a.txt", json!("//fx/home/a.txt")),
        ("a directory in it", "/fx/home/d/a.txt", json!("//fx/home/d/**")),
        ("the parent of the configuration directory", "/fx/outside/a.txt", json!("//fx/outside/a.txt")),
        ("a neighbor", "/fx/extra/e.txt", json!("//fx/extra/**")),
        ("the home directory itself", "/fx/home", json!(null)),
        ("the root itself", "/", json!(null)),
    ];
    for (name, path, expected) in rows {
        assert_eq!(rule(path), expected, "{name}");
    }
    for tool in ["Grep", "Glob"] {
        assert_eq!(
            suggested_updates(&fixture, tool, &json!({"path": "/fx", "pattern": "x"})),
            json!([]),
            "{tool}"
        );
    }
    for path in ["/fx/a.txt", "/fx/outside/a.txt"] {
        assert_eq!(suggested_updates(&fixture, "Write", &json!({"file_path": path})), json!([]), "{path}");
        let read = format!("cat {path}");
        assert_eq!(suggested_updates(&fixture, "Bash", &json!({"command": read})), json!([]), "{read}");
    }
    let mut linked = Fixture::new();
    linked.fs = linked.fs.with_link("/fx/away", "/fx/home");
    assert_eq!(suggested_updates(&linked, "Write", &json!({"file_path": "/fx/away/a"})), json!([]));
}

#[test]
fn updates_for_other_tools() {
    let fixture = Fixture::new();
    let fetch = suggested_updates(&fixture, "WebFetch", &json!({"url": "https://X.invalid:1/"}));
    assert_eq!(fetch[0]["rules"][0]["ruleContent"], "domain:x.invalid");
    let search = suggested_updates(&fixture, "WebSearch", &json!({"query": "x"}));
    assert_eq!(search[0]["rules"][0], json!({"toolName": "WebSearch"}));
    assert_eq!(search[0]["destination"], "localSettings");
    assert_eq!(suggested_updates(&fixture, "AskUserQuestion", &json!({})), json!([]));
}

#[test]
fn nothing_is_suggested_that_would_not_help() {
    let asking = Fixture::new().with_rules(&[], &["Bash(make *)"], &[]);
    assert_eq!(suggested_bash_rules(&asking, "make all"), Vec::<String>::new());
    let mut managed = Fixture::new();
    managed.rules.limit_to_managed();
    assert_eq!(suggested_updates(&managed, "WebSearch", &json!({"query": "x"})), json!([]));
}
