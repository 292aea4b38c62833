//! Deny rules that cannot be read: the session or the command does not run without them.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::options::{Options, SettingSource};

fn project_options() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

#[tokio::test]
async fn command_file_with_unreadable_deny_rules_is_not_run() {
    let rule = "---\ndescription: Greets\ndisallowed-tools: Bash(ls\n---\nSay hello.";
    let head = "---\ndescription: Greets\ndisallowed-tools: {a: b}\n---\nSay hello.";
    let (command, skill) = (".claude/commands/greet.md", ".claude/skills/greet/SKILL.md");
    let call = || Reply::tool("Skill", json!({"skill": "greet"}));
    // Invoked by the user and by the model; with an invalid rule and with an invalid front matter.
    for (path, text, expected) in [
        (command, rule, "/greet was not run. "),
        (skill, rule, "/greet was not run. "),
        (command, head, "greet.md cannot be read"),
        (skill, head, "SKILL.md cannot be read"),
    ] {
        let script = [call(), Reply::text("Done."), Reply::text("Done.")];
        let mut host =
            Host::with_script(script).options(project_options()).file(path, text).start().await.unwrap();
        host.run("/greet").await.unwrap();
        host.run("Greet.").await.unwrap();
        let frames: Vec<String> = host.received().iter().map(|received| received.json.to_string()).collect();
        assert!(frames.iter().any(|line| line.contains(expected)), "{path} {text}: {frames:#?}");
        assert!(frames.iter().any(|line| line.contains("disallowed-tools")), "{path} {text}: {frames:#?}");
        assert!(
            host.model_requests().iter().all(|request| !request.contains_text("Say hello.")),
            "{path} {text}"
        );
    }
}

#[tokio::test]
async fn settings_with_unreadable_deny_rules_prevent_the_start() {
    let rows = [
        ("a rule", r#"{"permissions":{"deny":["Bash(ls"]}}"#, "Bash(ls"),
        ("a rule that asks", "{\"permissions\":{\"ask\":[\n\"Read(a) b\"]}}", "settings.json, line 2"),
        ("a list", r#"{"permissions":{"deny":"Bash"}}"#, "permissions.deny"),
        ("a file", r#"{"permissions":{"deny":["Bash"]},}"#, "settings.json"),
    ];
    for (name, text, expected) in rows {
        let host = Host::with_script([Reply::text("Never said.")]).options(project_options());
        let mut host = host.file(".claude/settings.json", text).start().await.unwrap();
        host.send_prompt("Go.").await.unwrap();
        let result = host.next_result().await.unwrap();
        let result_text = serde_json::to_value(&result).unwrap().to_string();
        assert!(result.is_error && result_text.contains(expected), "{name}: {result_text}");
        assert_eq!((host.model_requests().len(), host.finish().await.unwrap().code), (0, 1), "{name}");
        let lenient = Options { tolerate_bad_settings: true, ..project_options() };
        let host = Host::with_script([Reply::text("Said.")]).options(lenient);
        let mut host = host.file(".claude/settings.json", text).start().await.unwrap();
        assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Said."), "{name}");
        let mut lines = host.received().iter().map(|received| &received.json);
        assert!(
            lines.any(|line| line["level"] == "warning" && line.to_string().contains(expected)),
            "{name}"
        );
    }
}
