//! Skills of a session: listing, calls, permissions, reload.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::control::{Interrupt, ReloadSkills};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionResult;

use crate::{GREET_SKILL, call_skill, project_options};

/// A skill with an allow rule and an embedded shell command.
const SKILL_WITH_ALLOW: &str =
    "---\ndescription: Does things\nallowed-tools: Bash(touch *)\n---\nIt says !`touch made; echo hello`.";

#[tokio::test]
async fn skills_are_listed_and_their_text_follows_the_call() {
    let mut host = Host::with_script([call_skill("greet"), Reply::text("Hello.")])
        .options(project_options())
        .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
        .file(".claude/commands/fix.md", "Fix it.")
        .start()
        .await
        .unwrap();
    host.run("Greet Ann.").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[0].tool_names().contains(&"Skill"));
    assert!(
        requests[0].contains_text("- fix: Fix it.\n- greet: Greets people\n"),
        "{:?}",
        requests[0].messages()
    );
    assert!(!requests[0].system_prompt().contains("Greets people"));
    let dir = host.dirs().workspace().join(".claude/skills/greet");
    let expected = format!("Base directory for this skill: {}\n\nSay hello to Ann.", dir.display());
    assert!(requests[1].last_text().contains(&expected), "{}", requests[1].last_text());
    let synthetic = host.received().iter().find(|received| received.json["isSynthetic"] == true).unwrap();
    assert_eq!(synthetic.json["message"]["content"][0]["text"], expected);
    let result =
        host.received().iter().find(|received| received.json["tool_use_result"].is_object()).unwrap();
    assert_eq!(result.json["tool_use_result"], json!({"success": true, "commandName": "greet"}));
    let init = host.init_frame().unwrap();
    assert_eq!(init["skills"], json!(["greet"]));
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("greet")));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Skill")));
}

#[tokio::test]
async fn user_invokes_a_skill_as_slash_command() {
    let mut host = Host::with_script([Reply::text("Hello.")])
        .options(project_options())
        .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
        .start()
        .await
        .unwrap();
    host.run("/greet Bob").await.unwrap();
    let requests = host.model_requests();
    assert!(
        requests[0].contains_text("<command-name>/greet</command-name>")
            && requests[0].contains_text("Say hello to Bob.")
    );
    assert!(requests[0].contains_text("Base directory for this skill: "));
}

#[tokio::test]
async fn skill_tool_is_absent_without_skills() {
    let rows = [
        ("no skills", project_options(), "notes.txt"),
        (
            "other tools only",
            Options { tools: Some(serde_json::from_value(json!(["Bash"])).unwrap()), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "denied",
            Options { disallowed_tools: vec!["Skill".into()], ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "none allowed",
            Options { skills: Some(vec![]), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "source disabled",
            Options { setting_sources: Some(vec![]), ..Options::default() },
            ".claude/skills/greet/SKILL.md",
        ),
        (
            "commands disabled",
            Options { extra_args: [("disable-slash-commands".to_owned(), None)].into(), ..project_options() },
            ".claude/skills/greet/SKILL.md",
        ),
    ];
    for (name, options, file) in rows {
        let mut host = Host::with_script([Reply::text("Hello.")])
            .options(options)
            .file(file, GREET_SKILL)
            .start()
            .await
            .unwrap();
        host.run("Hi.").await.unwrap();
        let request = &host.model_requests()[0];
        assert!(
            !request.tool_names().contains(&"Skill") && !request.contains_text("Greets people"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn skill_allow_rules_last_until_the_turn_ends() {
    let script = [
        call_skill("mighty"),
        Reply::bash("touch again"),
        Reply::text("One."),
        Reply::bash("touch again"),
        Reply::text("Two."),
    ];
    let mut host = Host::with_script(script)
        .options(Options { skills: Some(vec!["mighty".into()]), ..project_options() })
        .file(".claude/skills/mighty/SKILL.md", SKILL_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert!(result.permission_denials.is_empty(), "{:?}", result.permission_denials);
    assert!(
        host.model_requests()[1].last_text().contains("It says hello."),
        "{}",
        host.model_requests()[1].last_text()
    );
    assert!(host.dirs().files().unwrap().contains_key("again"));
    assert_eq!(host.run("Once more.").await.unwrap().permission_denials.len(), 1);
}

#[tokio::test]
async fn skill_with_allow_rules_needs_permission() {
    for (file, requests) in [(SKILL_WITH_ALLOW, 1), (GREET_SKILL, 0)] {
        let mut host = Host::with_script([call_skill("it"), Reply::text("Done.")])
            .options(project_options())
            .file(".claude/skills/it/SKILL.md", file)
            .can_use_tool(|_| PermissionResult::allow())
            .start()
            .await
            .unwrap();
        host.run("Do it.").await.unwrap();
        let tools: Vec<&Value> =
            host.permission_requests().into_iter().map(|request| &request["tool_name"]).collect();
        assert_eq!(tools, vec![&json!("Skill"); requests]);
    }
}

#[tokio::test]
async fn untrusted_skill_cannot_allow_tools() {
    let mut host = Host::with_script([call_skill("mighty"), Reply::text("Done.")])
        .file(".claude/skills/mighty/SKILL.md", SKILL_WITH_ALLOW)
        .start()
        .await
        .unwrap();
    let result = host.run("Do things.").await.unwrap();
    assert_eq!(result.permission_denials.len(), 1, "{:?}", result.permission_denials);
    let text = host.model_requests()[1].last_text();
    assert!(
        text.contains("The skill mighty could not be loaded. It needs `touch made; echo hello`"),
        "{text}"
    );
    assert!(!host.dirs().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn deny_rules_match_skills_under_both_tool_names() {
    let by_command = Reply::tool("SlashCommand", json!({"command": "/greet Ann"}));
    let rows = [
        ("Skill(greet)", call_skill("greet"), 1),
        ("Skill(greet)", Reply::tool("Skill", json!({"skill": "/greet Ann"})), 1),
        ("SlashCommand(/greet:*)", by_command.clone(), 1),
        ("Skill(other)", by_command, 0),
    ];
    for (rule, call, denials) in rows {
        let mut host = Host::with_script([call, Reply::text("Done.")])
            .options(Options { disallowed_tools: vec![rule.into()], ..project_options() })
            .file(".claude/skills/greet/SKILL.md", GREET_SKILL)
            .start()
            .await
            .unwrap();
        let result = host.run("Greet Ann.").await.unwrap();
        assert_eq!(result.permission_denials.len(), denials, "{rule}");
        assert_eq!(host.model_requests()[1].contains_text("Say hello to Ann."), denials == 0, "{rule}");
    }
}

#[tokio::test]
async fn new_skill_is_available_after_reload() {
    let script = [Reply::text("One."), call_skill("greet"), Reply::text("Two.")];
    let mut host = Host::with_script(script).options(project_options()).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.dirs().write_file(".claude/skills/greet/SKILL.md", GREET_SKILL).unwrap();
    let reply = host.send_request(ReloadSkills {}).await.unwrap();
    assert_eq!(reply.skills[0]["name"], "greet");
    host.next_matching(&json!({"subtype": "commands_changed"})).await.unwrap();
    host.run("Greet Ann.").await.unwrap();
    let requests = host.model_requests();
    assert!(!requests[0].tool_names().contains(&"Skill"));
    assert!(
        requests[1].tool_names().contains(&"Skill") && requests[1].contains_text("- greet: Greets people")
    );
    assert!(requests[2].contains_text("Say hello to Ann."));
}

#[tokio::test]
async fn interrupted_skill_call_leaves_valid_history() {
    let slow = "---\ndescription: Slow\nallowed-tools: Bash(sleep *)\n---\n!`sleep 600`";
    let mut host = Host::with_script([call_skill("slow"), Reply::text("After.")])
        .options(Options { skills: Some(vec!["slow".into()]), ..project_options() })
        .file(".claude/skills/slow/SKILL.md", slow)
        .start()
        .await
        .unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"tool_use_result": {"commandName": "slow"}})).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    assert_eq!(host.run("Still there?").await.unwrap().result.as_deref(), Some("After."));
    assert!(
        host.model_requests()[1].contains_text("The skill slow was not loaded: the turn was interrupted.")
    );
    assert_eq!(host.finish().await.unwrap().code, 0);
}
