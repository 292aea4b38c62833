//! Instruction files (CLAUDE.md), from the disk to the model.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, TestDirs};
use whimbrel_wire::options::{Options, SettingSource};

fn dirs_with_home_files(files: &[(&str, &str)]) -> TestDirs {
    let dirs = TestDirs::new().unwrap();
    for (path, text) in files {
        let path = dirs.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dirs
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
    for (request, index) in host.model_requests().iter().zip(0..) {
        let all: String = request.messages().iter().map(ToString::to_string).collect();
        let count = |rule: &str| all.matches(rule).count();
        assert_eq!((count("USER-RULE"), count("PROJECT-RULE")), (1, 1), "request {index}");
        assert!(!request.system_prompt().contains("RULE"), "request {index}");
    }
    assert!(host.info_texts().is_empty());
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
        let request = &host.model_requests()[0];
        let found = ["USER-RULE", "PROJECT-RULE"].map(|rule| request.contains_text(rule));
        assert_eq!(found, expected, "{:?}", options.setting_sources);
    }
}

#[tokio::test]
async fn nested_instructions_follow_the_first_read_in_their_directory() {
    let read = || Reply::tool("Read", json!({"file_path": "below/a.txt"}));
    let agent_input = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let script =
        [read(), Reply::tool("Agent", agent_input), read(), Reply::text("Looked."), Reply::text("Done.")];
    let mut host = Host::with_script(script)
        .file("CLAUDE.md", "TOP-RULE")
        .file("below/CLAUDE.md", "BELOW-RULE")
        .file("below/a.txt", "text")
        .start()
        .await
        .unwrap();
    host.run("Look.").await.unwrap();
    let requests = host.model_requests();
    let found: Vec<(bool, bool)> = requests
        .iter()
        .map(|request| (request.contains_text("TOP-RULE"), request.contains_text("BELOW-RULE")))
        .collect();
    // Main agent, subagent before and after it reads the file, main agent again.
    assert_eq!(found, [(true, false), (true, true), (true, false), (true, true), (true, true)]);
    // Tool results come first in a message, before any injected text.
    let last = requests[1].messages().last().unwrap()["content"].as_array().unwrap().clone();
    assert_eq!((&last[0]["type"], &last[1]["type"]), (&json!("tool_result"), &json!("text")));
}

#[tokio::test]
async fn unreadable_instruction_file_warns_once() {
    let dirs = TestDirs::new().unwrap();
    std::fs::create_dir(dirs.workspace().join("CLAUDE.md")).unwrap();
    let mut host =
        Host::with_script([Reply::text("One."), Reply::text("Two.")]).dirs(dirs).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.run("Hi again.").await.unwrap();
    let texts = host.info_texts();
    assert!(
        texts.len() == 1 && texts[0].contains("CLAUDE.md") && texts[0].contains("directory"),
        "{texts:?}"
    );
}

#[tokio::test]
async fn instructions_loaded_hook_runs_for_every_file() {
    let dirs = dirs_with_home_files(&[(".claude/CLAUDE.md", "USER-RULE")]);
    let hook_inputs = dirs.home().join("hook-inputs");
    let command = format!("cat >> {}", hook_inputs.display());
    let hook =
        json!({"hooks": {"InstructionsLoaded": [{"hooks": [{"type": "command", "command": command}]}]}});
    let options = Options { settings: Some(hook.to_string()), ..Options::default() };
    let read = Reply::tool("Read", json!({"file_path": "sub/a.txt"}));
    let mut host = Host::with_script([read, Reply::text("Done.")])
        .dirs(dirs)
        .options(options)
        .file("CLAUDE.md", "See @more.md.")
        .file("more.md", "See @CLAUDE.md, which says MORE.")
        .file("sub/AGENTS.md", "BELOW")
        .file("sub/a.txt", "x")
        .start()
        .await
        .unwrap();
    host.run("Read.").await.unwrap();
    let text = std::fs::read_to_string(hook_inputs).unwrap();
    let inputs: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = |input: &serde_json::Value| {
        let path = input["file_path"].as_str().unwrap().to_owned();
        let reason = input["load_reason"].as_str().unwrap_or_default().to_owned();
        (path.rsplit_once('/').unwrap().1.to_owned(), input["memory_type"].clone(), reason)
    };
    let names: Vec<_> = inputs.iter().map(name).collect();
    let row = |file: &str, memory_type: &str, load_reason: &str| {
        (file.to_owned(), json!(memory_type), load_reason.to_owned())
    };
    let expected = [
        row("CLAUDE.md", "User", "session_start"),
        row("CLAUDE.md", "Project", "session_start"),
        row("more.md", "Project", "include"),
        row("AGENTS.md", "Project", "nested_traversal"),
    ];
    assert_eq!(names, expected, "an import cycle ends");
    assert!(host.model_requests()[1].contains_text("BELOW"));
}
