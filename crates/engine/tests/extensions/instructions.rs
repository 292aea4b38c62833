//! Instruction files (CLAUDE.md), from the disk to the model.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, TestDirs};
use whimbrel_wire::options::{Options, SettingSource};

/// The texts of all informational frames so far.
fn warnings(host: &Host) -> Vec<String> {
    let told = host.received().iter().filter(|heard| heard.json["subtype"] == "informational");
    told.map(|heard| heard.json["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn dirs_with_home_files(files: &[(&str, &str)]) -> TestDirs {
    let stage = TestDirs::new().unwrap();
    for (path, text) in files {
        let path = stage.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    stage
}

#[tokio::test]
async fn instructions_are_sent_once_and_again_after_compaction() {
    let script = ["One.", "Two.", "Summary.", "Three."].map(Reply::text);
    let mut host = Host::with_script(script)
        .dirs(dirs_with_home_files(&[(".claude/CLAUDE.md", "USER-RULE")]))
        .file("CLAUDE.md", "PROJECT-RULE")
        .start()
        .await
        .unwrap();
    for prompt in ["Hi.", "Hi again.", "/compact", "And now?"] {
        host.run(prompt).await.unwrap();
    }
    for (asked, at) in host.model_requests().iter().zip(0..) {
        let all: String = asked.messages().iter().map(ToString::to_string).collect();
        let told = |rule: &str| all.matches(rule).count();
        assert_eq!((told("USER-RULE"), told("PROJECT-RULE")), (1, 1), "request {at}");
        assert!(!asked.system_prompt().contains("RULE"), "request {at}");
    }
    assert!(warnings(&host).is_empty());
}

#[tokio::test]
async fn only_enabled_sources_are_read() {
    let rows = [
        (Some(vec![]), [false, false]),
        (Some(vec![SettingSource::User]), [true, false]),
        (Some(vec![SettingSource::Project]), [false, true]),
        (None, [true, true]),
    ];
    for (setting_sources, expected) in rows {
        let options = Options { setting_sources, ..Options::default() };
        let mut host = Host::with_script([Reply::text("Done.")])
            .dirs(dirs_with_home_files(&[(".claude/CLAUDE.md", "USER-RULE")]))
            .file("CLAUDE.md", "PROJECT-RULE")
            .options(options.clone())
            .start()
            .await
            .unwrap();
        host.run("Hi.").await.unwrap();
        let asked = &host.model_requests()[0];
        let told = ["USER-RULE", "PROJECT-RULE"].map(|rule| asked.contains_text(rule));
        assert_eq!(told, expected, "{:?}", options.setting_sources);
    }
}

#[tokio::test]
async fn nested_instructions_follow_the_first_read_in_their_directory() {
    let read = || Reply::tool("Read", json!({"file_path": "below/a.txt"}));
    let errand = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let script = [read(), Reply::tool("Agent", errand), read(), Reply::text("Looked."), Reply::text("Done.")];
    let mut host = Host::with_script(script)
        .file("CLAUDE.md", "TOP-RULE")
        .file("below/CLAUDE.md", "BELOW-RULE")
        .file("below/a.txt", "text")
        .start()
        .await
        .unwrap();
    host.run("Look.").await.unwrap();
    let asked = host.model_requests();
    let says: Vec<(bool, bool)> = asked
        .iter()
        .map(|asked| (asked.contains_text("TOP-RULE"), asked.contains_text("BELOW-RULE")))
        .collect();
    // Main agent, subagent before and after it reads the file, main agent again.
    assert_eq!(says, [(true, false), (true, true), (true, false), (true, true), (true, true)]);
    // Tool results come first in a message, before any injected text.
    let last = asked[1].messages().last().unwrap()["content"].as_array().unwrap().clone();
    assert_eq!((&last[0]["type"], &last[1]["type"]), (&json!("tool_result"), &json!("text")));
}

#[tokio::test]
async fn unreadable_instruction_file_warns_once() {
    let stage = TestDirs::new().unwrap();
    std::fs::create_dir(stage.workspace().join("CLAUDE.md")).unwrap();
    let mut host =
        Host::with_script([Reply::text("One."), Reply::text("Two.")]).dirs(stage).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.run("Hi again.").await.unwrap();
    let told = warnings(&host);
    assert!(told.len() == 1 && told[0].contains("CLAUDE.md") && told[0].contains("folder"), "{told:?}");
}

#[tokio::test]
async fn instructions_loaded_hook_runs_for_every_file() {
    let stage = dirs_with_home_files(&[(".claude/CLAUDE.md", "USER-RULE")]);
    let heard = stage.home().join("heard");
    let command = format!("cat >> {}", heard.display());
    let hook =
        json!({"hooks": {"InstructionsLoaded": [{"hooks": [{"type": "command", "command": command}]}]}});
    let options = Options { settings: Some(hook.to_string()), ..Options::default() };
    let read = Reply::tool("Read", json!({"file_path": "sub/a.txt"}));
    let mut host = Host::with_script([read, Reply::text("Done.")])
        .dirs(stage)
        .options(options)
        .file("CLAUDE.md", "See @more.md.")
        .file("more.md", "See @CLAUDE.md, which says MORE.")
        .file("sub/AGENTS.md", "BELOW")
        .file("sub/a.txt", "x")
        .start()
        .await
        .unwrap();
    host.run("Read.").await.unwrap();
    let text = std::fs::read_to_string(heard).unwrap();
    let told: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = |told: &serde_json::Value| {
        let path = told["file_path"].as_str().unwrap().to_owned();
        let reason = told["load_reason"].as_str().unwrap_or_default().to_owned();
        (path.rsplit_once('/').unwrap().1.to_owned(), told["memory_type"].clone(), reason)
    };
    let names: Vec<_> = told.iter().map(name).collect();
    let row = |file: &str, kind: &str, why: &str| (file.to_owned(), json!(kind), why.to_owned());
    let expected = [
        row("CLAUDE.md", "User", "session_start"),
        row("CLAUDE.md", "Project", "session_start"),
        row("more.md", "Project", "include"),
        row("AGENTS.md", "Project", "nested_traversal"),
    ];
    assert_eq!(names, expected, "a circle of imports ends");
    assert!(host.model_requests()[1].contains_text("BELOW"));
}
