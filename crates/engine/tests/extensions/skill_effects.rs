//! Effects of skills: fork into a subagent, model override, hooks.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, ModelRequest, Reply, SessionDirs};
use whimbrel_wire::control::{Interrupt, SetModel};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use crate::project_options;

fn bypass_options() -> Options {
    let permission_mode = Some(PermissionMode::BypassPermissions);
    Options { permission_mode, allow_dangerously_skip_permissions: true, ..project_options() }
}

async fn host(skill: &str, options: Options, script: Vec<Reply>) -> Host {
    let host = Host::with_script(script).options(options);
    host.file(".claude/skills/it/SKILL.md", skill).start().await.unwrap()
}

fn call_skill() -> Reply {
    Reply::tool("Skill", json!({"skill": "it", "args": "Ann Bob"}))
}

const FORKED_SKILL: &str = "---\ndescription: d\ncontext: fork\nagent: Explore\nmodel: haiku\n---\nGreet $1, then $0. In ${CLAUDE_SESSION_ID}: !`echo now`";

#[tokio::test]
async fn forked_skill_runs_in_a_subagent() {
    let mut host = host(
        FORKED_SKILL,
        project_options(),
        vec![call_skill(), Reply::text("Greeted."), Reply::text("Done.")],
    )
    .await;
    let result = host.run("Greet them.").await.unwrap();
    assert_eq!(result.result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    let session = &result.session_id;
    assert!(requests[1].model().contains("haiku") && !requests[2].model().contains("haiku"));
    assert!(
        requests[1].contains_text(&format!("Greet Bob, then Ann. In {session}: now")),
        "{:?}",
        requests[1].messages()
    );
    assert!(!requests[1].contains_text("Greet them.") && !requests[1].tool_names().contains(&"Write"));
    assert!(
        !requests[2].contains_text("Greet Bob") && requests[2].contains_text("Greeted."),
        "{:?}",
        requests[2].messages()
    );
    let result_frame =
        host.received().iter().find(|received| received.json["tool_use_result"].is_object()).unwrap();
    let meta = &result_frame.json["tool_use_result"];
    assert_eq!(
        (&meta["status"], &meta["commandName"], &meta["result"]),
        (&json!("forked"), &json!("it"), &json!("Greeted."))
    );
}

#[tokio::test]
async fn user_invokes_a_forked_skill() {
    let script = vec![Reply::text("Greeted."), Reply::text("Two.")];
    let mut host = host(FORKED_SKILL, project_options(), script).await;
    let result = host.run("/it Ann Bob").await.unwrap();
    assert_eq!(result.result.as_deref(), Some("Greeted."));
    host.run("And now?").await.unwrap();
    let requests = host.model_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].contains_text("Greet Bob, then Ann.") && requests[0].model().contains("haiku"));
    assert!(!requests[1].model().contains("haiku") && !requests[1].contains_text("Greet Bob"));
}

#[tokio::test]
async fn forked_skill_result_is_kept_across_resume() {
    let dirs = SessionDirs::new().unwrap();
    let skill_dir = dirs.work_dir().join(".claude/skills/it");
    std::fs::create_dir_all(&skill_dir).unwrap();
    std::fs::write(skill_dir.join("SKILL.md"), FORKED_SKILL).unwrap();
    let expected = "<command-name>/it</command-name>\n<command-args>Ann Bob</command-args>|<local-command-stdout>Greeted.</local-command-stdout>|And now?";
    let relevant_texts = |request: &ModelRequest| {
        let blocks = request.messages()[0]["content"].as_array().unwrap().iter();
        let texts: Vec<&str> = blocks.map(|block| block["text"].as_str().unwrap()).collect();
        let from = texts.iter().position(|text| text.starts_with("<command-name>")).unwrap();
        texts[from..].join("|")
    };

    let script = vec![Reply::text("Greeted."), Reply::text("Fine.")];
    let start =
        |script: Vec<Reply>, resume| dirs.host(script, Options { resume, ..project_options() }).start();
    let mut first = start(script, None).await.unwrap();
    first.run("/it Ann Bob").await.unwrap();
    let session = first.run("And now?").await.unwrap().session_id;
    assert_eq!(relevant_texts(&first.model_requests()[1]), expected);
    first.finish().await.unwrap();
    let mut second = start(vec![Reply::text("Still.")], Some(session)).await.unwrap();
    second.run("And then?").await.unwrap();
    assert_eq!(relevant_texts(&second.model_requests()[0]), expected);
}

#[tokio::test]
async fn fork_to_an_unknown_agent_fails() {
    let skill = "---\ndescription: d\ncontext: fork\nagent: missing\n---\nGo.";
    let mut host = host(skill, project_options(), vec![call_skill(), Reply::text("Done.")]).await;
    host.run("Go.").await.unwrap();
    assert!(
        host.model_requests()[1].contains_text("Unknown agent type 'missing'"),
        "{:?}",
        host.model_requests()[1].messages()
    );
    let result = host.run("/it").await.unwrap();
    assert!(result.result.unwrap().contains("Unknown agent type 'missing'"));
}

#[tokio::test]
async fn skill_overrides_the_model_until_the_turn_ends() {
    let skill = "---\ndescription: d\nmodel: haiku\n---\nBe quick.";
    let script = vec![call_skill(), Reply::text("One."), Reply::text("Two.")];
    let mut host = host(skill, project_options(), script).await;
    host.run("Go.").await.unwrap();
    host.run("And now?").await.unwrap();
    let models: Vec<bool> =
        host.model_requests().iter().map(|request| request.model().contains("haiku")).collect();
    assert_eq!(models, [false, true, false]);
}

#[tokio::test]
async fn model_override_ends_with_an_interrupted_turn() {
    let skill = "---\ndescription: d\nmodel: haiku\n---\nBe quick.";
    for (name, prompt, mut script) in [("a skill", "Go.", vec![call_skill()]), ("a command", "/it", vec![])] {
        script.extend([Reply::text("A long story.").stall_after(2), Reply::text("Two.")]);
        let override_index = script.len() - 2;
        let options = Options { include_partial_messages: true, ..project_options() };
        let mut host = host(skill, options, script).await;
        host.send_prompt(prompt).await.unwrap();
        let block_start =
            json!({"event": {"type": "content_block_start", "content_block": {"type": "text"}}});
        host.next_matching(&block_start).await.unwrap();
        host.send_request(Interrupt::default()).await.unwrap();
        host.next_result().await.unwrap();
        host.run("And now?").await.unwrap();
        let models: Vec<bool> =
            host.model_requests().iter().map(|request| request.model().contains("haiku")).collect();
        assert_eq!(models[override_index..], [true, false], "{name}");
    }
}

#[tokio::test]
async fn set_model_replaces_a_model_override() {
    let skill = "---\ndescription: d\nmodel: haiku\neffort: low\n---\nBe quick.";
    for (name, prompt, first) in [("a skill", "Go.", call_skill()), ("a command", "/it", Reply::bash("true"))]
    {
        let script = vec![
            Reply::bash("mkfifo gate"),
            first,
            Reply::bash("cat gate"),
            Reply::text("One."),
            Reply::text("Two."),
        ];
        let mut host =
            host(skill, Options { model: Some("sonnet".into()), ..bypass_options() }, script).await;
        host.send_prompt(prompt).await.unwrap();
        let cat_call = json!({"message": {"content": [{"input": {"command": "cat gate"}}]}});
        host.next_matching(&cat_call).await.unwrap();
        host.send_request(SetModel { model: Some("opus".into()) }).await.unwrap();
        // Opening the FIFO blocks until the command opens it too.
        let gate = host.dirs().workspace().join("gate");
        tokio::task::spawn_blocking(move || std::fs::write(gate, "go")).await.unwrap().unwrap();
        host.next_result().await.unwrap();
        host.run("And now?").await.unwrap();
        let requests = host.model_requests();
        let models: Vec<&str> = requests.iter().map(ModelRequest::model).collect();
        assert!(models[2].contains("haiku"), "{name}: {models:?}");
        assert!(models[3].contains("opus") && models[4].contains("opus"), "{name}: {models:?}");
        let effort = |index: usize| requests[index].body["output_config"]["effort"].clone();
        assert_eq!((effort(3), effort(4)), (json!("low"), Value::Null), "{name}");
    }
}

/// A skill with hooks that append to a trace file.
const SKILL_WITH_HOOKS: &str = r#"---
description: d
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: echo "pre in $(basename "$CLAUDE_SKILL_DIR")" >> trace
        - type: command
          command: echo once >> trace
          once: true
  Stop:
    - hooks:
        - type: command
          command: echo stop >> trace
---
Use Bash."#;

/// Trace lines after the first `before`, sorted because hooks of one event run in parallel.
fn trace_since(host: &Host, before: usize) -> Vec<String> {
    let files = host.dirs().files().unwrap();
    let text = String::from_utf8(files.get("trace").cloned().unwrap_or_default()).unwrap();
    let mut lines: Vec<String> = text.lines().skip(before).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn skill_hooks_run_after_its_call() {
    let script = vec![
        Reply::bash("true"),
        Reply::text("Before."),
        call_skill(),
        Reply::bash("true"),
        Reply::text("With it."),
        Reply::bash("true"),
        Reply::text("After."),
        call_skill(),
        call_skill(),
        Reply::bash("true"),
        Reply::text("Again."),
    ];
    let mut host = host(SKILL_WITH_HOOKS, bypass_options(), script).await;
    let mut seen = 0;
    let with_hooks: &[&str] = &["once", "pre in it", "stop"];
    for (prompt, expected) in
        [("One.", &[][..]), ("Two.", with_hooks), ("Three.", &with_hooks[1..]), ("Four.", with_hooks)]
    {
        host.run(prompt).await.unwrap();
        let new = trace_since(&host, seen);
        seen += new.len();
        assert_eq!(new, expected, "{prompt}");
    }
    assert!(host.info_texts().is_empty(), "{:?}", host.info_texts());
}

#[tokio::test]
async fn skill_hooks_run_in_their_agent() {
    let script = vec![Reply::text("One.")];
    let mut by_user = host(SKILL_WITH_HOOKS, bypass_options(), script).await;
    by_user.run("/it").await.unwrap();
    assert_eq!(trace_since(&by_user, 0), ["stop"]);
    let forked = SKILL_WITH_HOOKS.replace("description: d", "description: d\ncontext: fork");
    let script = vec![
        call_skill(),
        Reply::bash("true"),
        Reply::text("There."),
        Reply::bash("true"),
        Reply::text("Here."),
    ];
    let mut forked = host(&forked, bypass_options(), script).await;
    forked.run("Go.").await.unwrap();
    assert_eq!(trace_since(&forked, 0), ["once", "pre in it", "stop"]);
}

#[tokio::test]
async fn skill_hooks_need_trust_and_permission() {
    let script = || vec![call_skill(), Reply::bash("true"), Reply::text("Done.")];
    let untrusted = Options {
        setting_sources: None,
        permission_mode: Some(PermissionMode::BypassPermissions),
        allow_dangerously_skip_permissions: true,
        ..Options::default()
    };
    let mut untrusted = host(SKILL_WITH_HOOKS, untrusted, script()).await;
    untrusted.run("Go.").await.unwrap();
    assert!(trace_since(&untrusted, 0).is_empty());
    let warnings = untrusted.info_texts().join("\n");
    assert!(warnings.contains("its hooks do not run"), "{warnings}");
    let mut trusted = host(SKILL_WITH_HOOKS, project_options(), script()).await;
    let result = trusted.run("Go.").await.unwrap();
    let denied: Vec<&Value> = result.permission_denials.iter().map(|denial| &denial.tool_input).collect();
    assert_eq!(denied.first().map(|input| &input["skill"]), Some(&json!("it")), "{denied:?}");
    assert!(trace_since(&trusted, 0).is_empty());
}
