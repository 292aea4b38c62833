//! Slash commands, from the prompt to the model and back.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, TestDirs};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{GetContextUsage, Initialize, Interrupt};
use whimbrel_wire::message::Outcome;
use whimbrel_wire::options::Options;

use crate::project_options;

/// A command file with an embedded shell command and an allow rule.
const COMMAND_WITH_ALLOW: &str =
    "---\nallowed-tools: Bash(touch *)\n---\nIt says !`touch made; echo hello` to $0.";

#[tokio::test]
async fn trusted_command_file_allows_tools_for_its_turn() {
    let script =
        [Reply::bash("touch again"), Reply::text("One."), Reply::bash("touch again"), Reply::text("Two.")];
    let mut host = Host::with_script(script)
        .options(project_options())
        .file(".claude/commands/mighty.md", COMMAND_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("/mighty Ann").await.unwrap();
    assert!(result.permission_denials.is_empty(), "{:?}", result.permission_denials);
    let requests = host.model_requests();
    assert!(requests[0].contains_text("It says hello to Ann."), "{:?}", requests[0].messages());
    assert!(requests[0].contains_text("<command-name>/mighty</command-name>"));
    assert_eq!(host.run("Once more.").await.unwrap().permission_denials.len(), 1);
}

#[tokio::test]
async fn untrusted_command_file_cannot_allow_tools() {
    let mut host = Host::with_script([Reply::text("Never said.")])
        .file(".claude/commands/mighty.md", COMMAND_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("/mighty Ann").await.unwrap();
    assert!(result.result.unwrap().contains("/mighty was not run. It needs `touch made; echo hello`."));
    assert_eq!((result.permission_denials.len(), host.model_requests().len()), (1, 0));
    assert!(
        host.received()
            .iter()
            .any(|received| received.json.to_string().contains("the project is not trusted: Bash(touch *)"))
    );
    assert!(!host.dirs().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn host_decides_on_embedded_shell_commands() {
    let mut host = Host::with_script([Reply::text("Done.")])
        .file(".claude/commands/mighty.md", COMMAND_WITH_ALLOW)
        .can_use_tool(|_| whimbrel_wire::permission::PermissionResult::allow())
        .start()
        .await
        .unwrap();
    assert_eq!(host.run("/mighty Ann").await.unwrap().result.as_deref(), Some("Done."));
    assert!(host.dirs().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn command_file_sets_the_model_of_its_turn() {
    let mut host = Host::with_script([Reply::text("One."), Reply::text("Two.")])
        .file(".claude/commands/quick.md", "---\nmodel: haiku\n---\nBe quick.")
        .start()
        .await
        .unwrap();
    host.run("/quick").await.unwrap();
    host.run("And now?").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[0].model().contains("haiku") && !requests[1].model().contains("haiku"));
    let models: Vec<String> = host
        .received()
        .iter()
        .filter(|received| received.json["subtype"] == "init")
        .map(|received| received.json["model"].as_str().unwrap().to_owned())
        .collect();
    assert!(models[0].contains("haiku") && !models[1].contains("haiku"), "{models:?}");
}

#[tokio::test]
async fn mentioned_files_are_attached_if_readable() {
    let dirs = TestDirs::new().unwrap();
    std::fs::write(dirs.home().join("secret.txt"), "SECRET").unwrap();
    let secret = dirs.home().join("secret.txt");
    let mut host = Host::with_script([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")])
        .dirs(dirs)
        .file("notes.txt", "NOTED")
        .file(".claude/commands/look.md", "Look at @notes.txt and !`echo @other.txt`.")
        .file("other.txt", "OTHER")
        .start()
        .await
        .unwrap();
    host.run(format!("Look at `@other.txt`, @notes.txt, @nothing and @{}.", secret.display())).await.unwrap();
    let requests = host.model_requests();
    assert_eq!(
        ["NOTED", "SECRET", "OTHER"].map(|text| requests[0].contains_text(text)),
        [true, false, false]
    );
    host.run("/clear").await.unwrap();
    host.run("/look").await.unwrap();
    let requests = host.model_requests();
    assert_eq!(["NOTED", "OTHER"].map(|text| requests[1].contains_text(text)), [true, false]);
    assert!(requests[1].contains_text("Look at @notes.txt and @other.txt."));
}

#[tokio::test]
async fn command_emits_frames_in_the_order_of_a_turn() {
    let hooks = json!({"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]});
    let kinds = |host: &Host| -> Vec<String> {
        let kind = |json: &serde_json::Value| match (&json["type"], &json["isReplay"], &json["subtype"]) {
            (kind, replay, _) if kind == "user" && replay == true => "replay".into(),
            (kind, _, subtype) if kind == "system" => subtype.as_str().unwrap_or_default().to_owned(),
            (kind, ..) => kind.as_str().unwrap_or_default().to_owned(),
        };
        let kinds = host.received().iter().map(|received| kind(&received.json)).collect::<Vec<_>>();
        kinds.into_iter().filter(|kind| !kind.starts_with("control")).collect()
    };
    for prompt in ["Hi.", "/cost", "/greet"] {
        let options = Options {
            settings: Some(json!({"hooks": hooks}).to_string()),
            replay_user_messages: true,
            ..Options::default()
        };
        let mut host = Host::with_script([Reply::text("Hello.")])
            .options(options)
            .file(".claude/commands/greet.md", "Greet.")
            .start()
            .await
            .unwrap();
        host.run(prompt).await.unwrap();
        let expected = ["hook_started", "hook_response", "init", "replay", "assistant", "result"];
        assert_eq!(kinds(&host), expected, "{prompt}");
    }
}

#[tokio::test]
async fn builtin_commands_need_no_model() {
    let script = [Reply::text("Hello."), Reply::text("Hello again.")];
    let mut host = Host::with_script(script).file("CLAUDE.md", "PROJECT-RULE").start().await.unwrap();
    let before = host.send_request(GetContextUsage::default()).await.unwrap();
    assert_eq!(before.memory_files.len(), 1);
    host.run("Hi.").await.unwrap();
    let rows = [
        ("/cost", "Total cost: $0."),
        ("/context", "| Messages |"),
        ("/help", "/compact"),
        ("/model", "The model is claude-opus-4-5"),
        ("/model scripted:/no/such/file", "The model is still claude-opus-4-5"),
        ("/model sonnet", "The model is now claude-sonnet"),
    ];
    for (prompt, expected) in rows {
        let result = host.run(prompt).await.unwrap();
        let text = result.result.unwrap();
        assert!(text.contains(expected), "{prompt}: {text}");
        let reply = host.frames().filter(|frame| matches!(frame, Frame::Assistant(_))).last();
        assert!(serde_json::to_string(reply.unwrap()).unwrap().contains("<synthetic>"), "{prompt}");
    }
    assert_eq!(host.model_requests().len(), 1);
    let usage = host.send_request(GetContextUsage::default()).await.unwrap();
    let parts: u64 = usage
        .categories
        .iter()
        .filter(|part| part.kind.as_deref() == Some("used"))
        .map(|part| part.tokens)
        .sum();
    assert_eq!(usage.total_tokens, parts);
    assert!(usage.max_tokens > usage.total_tokens && usage.api_usage.is_some());
    host.run("Hi again.").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[1].model().contains("sonnet") && !requests[1].contains_text("Total cost"));
}

#[tokio::test]
async fn builtin_prompts_become_turns_with_arguments_and_mentions() {
    let script = [Reply::text("Looks fine."), Reply::text("No vulnerability.")];
    let mut host = Host::with_script(script).file("a.txt", "MENTIONED").start().await.unwrap();
    let listed = host.send_request(Initialize::default()).await.unwrap().commands;
    assert_eq!(host.run("/review the part in @a.txt").await.unwrap().result.as_deref(), Some("Looks fine."));
    host.run("/security-review").await.unwrap();
    let requests = host.model_requests();
    for text in [
        "<command-name>/review</command-name>",
        "Review a change.",
        "The user added: the part in @a.txt",
        "MENTIONED",
    ] {
        assert!(requests[0].contains_text(text), "{text}");
    }
    assert!(requests[1].contains_text("Look for vulnerabilities"));
    let in_init = &host.init_frame().unwrap()["slash_commands"];
    for name in ["init", "pr-comments", "review", "security-review"] {
        assert!(listed.iter().any(|command| command.name == name && command.builtin == Some(true)), "{name}");
        assert!(in_init.as_array().unwrap().contains(&json!(name)), "{name}");
    }
}

#[tokio::test]
async fn command_files_replace_builtin_prompts() {
    for (file, options) in [
        (".claude/commands/review.md", Options::default()),
        (".claude/skills/review/SKILL.md", project_options()),
    ] {
        let text = "---\ndescription: Ours\n---\nLook at it our way.";
        let mut host = Host::with_script([Reply::text("Done.")])
            .options(options)
            .file(file, text)
            .start()
            .await
            .unwrap();
        host.run("/review 12").await.unwrap();
        let request = &host.model_requests()[0];
        assert_eq!(
            ["Look at it our way.", "Review a change."].map(|text| request.contains_text(text)),
            [true, false],
            "{file}"
        );
        let names = host.init_frame().unwrap()["slash_commands"].clone();
        assert_eq!(names.as_array().unwrap().iter().filter(|name| *name == "review").count(), 1, "{names}");
        assert!(!host.received().iter().any(|received| received.json.to_string().contains("is ignored")));
    }
}

#[tokio::test]
async fn clear_removes_the_history() {
    let script =
        [Reply::tool("Read", json!({"file_path": "a.txt"})), Reply::text("Before."), Reply::text("After.")];
    let mut host =
        Host::with_script(script).file("CLAUDE.md", "PROJECT-RULE").file("a.txt", "x").start().await.unwrap();
    host.run("FIRST").await.unwrap();
    host.run("/clear").await.unwrap();
    host.run("SECOND").await.unwrap();
    let request = &host.model_requests()[2];
    assert_eq!(request.messages().len(), 1);
    assert_eq!(
        ["FIRST", "SECOND", "PROJECT-RULE"].map(|text| request.contains_text(text)),
        [false, true, true]
    );
}

#[tokio::test]
async fn slash_commands_can_be_disabled() {
    let options =
        Options { extra_args: [("disable-slash-commands".to_owned(), None)].into(), ..Options::default() };
    let mut host = Host::with_script([Reply::text("Hello.")]).options(options).start().await.unwrap();
    assert_eq!(host.run("/cost").await.unwrap().result.as_deref(), Some("Hello."));
    assert!(host.model_requests()[0].contains_text("/cost"));
}

#[tokio::test]
async fn compaction_can_be_disabled() {
    for (variable, request_count) in [("DISABLE_COMPACT", 1), ("DISABLE_AUTO_COMPACT", 2)] {
        let script = [Reply::text("Hello."), Reply::text("We said hello.")];
        let mut host = Host::with_script(script).env(variable, "1").start().await.unwrap();
        host.run("Hello!").await.unwrap();
        let result = host.run("/compact").await.unwrap().result.unwrap_or_default();
        assert_eq!(
            (result.contains(variable), host.model_requests().len()),
            (request_count == 1, request_count),
            "{variable}: {result}"
        );
    }
}

#[tokio::test]
async fn embedded_shell_command_can_be_interrupted() {
    let script = [Reply::text("After.")];
    let slow = "---\nallowed-tools: Bash(sleep *)\n---\n!`sleep 600`";
    let mut host = Host::with_script(script)
        .options(project_options())
        .file(".claude/commands/slow.md", slow)
        .start()
        .await
        .unwrap();
    host.send_prompt("/slow").await.unwrap();
    host.next_matching(&json!({"subtype": "init"})).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::ErrorDuringExecution);
    assert_eq!(host.run("Still there?").await.unwrap().result.as_deref(), Some("After."));
    assert_eq!(host.finish().await.unwrap().code, 0);
}
