//! Servers that ask, and servers that are asked.

use serde_json::{Value, json};
use whimbrel_testkit::{Answer, Host, Reply};
use whimbrel_wire::control::Request;
use whimbrel_wire::options::{Options, PermissionPromptTool};

use crate::rig::{call, host, options};

/// What the server was answered when it asked the person, with these hooks.
async fn answered(hooks: Value, reply: Value) -> String {
    let mut host = host([call("mcp__sh__ask", ""), Reply::text("Done.")])
        .answer(move |request| match request {
            Request::Elicitation(asked) => {
                assert_eq!((asked.mcp_server_name.as_str(), asked.message.as_str()), ("sh", "Who?"));
                Answer::Reply(reply.clone())
            }
            other => Answer::Error(format!("no answer to {}", other.subtype())),
        })
        .change(|options| options.settings = Some(json!({"hooks": hooks}).to_string()))
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    host.asked()[1].last_text()
}

#[tokio::test]
async fn a_servers_question_goes_to_hooks_and_host() {
    let said = |text: &str| json!([{"hooks": [{"type": "command", "command": format!("echo '{text}'")}]}]);
    let by_hook = |event: &str, name: &str| {
        json!({"hookSpecificOutput": {"hookEventName": event, "action": "accept", "content": {"name": name}}})
            .to_string()
    };
    let accept = json!({"action": "accept", "content": {"name": "Ann"}});
    let rows = [
        ("the host answers", json!({}), accept.clone(), "name:Ann"),
        ("the host declines", json!({}), json!({"action": "decline"}), "action:decline"),
        (
            "a hook answers",
            json!({"Elicitation": said(&by_hook("Elicitation", "Bob"))}),
            accept.clone(),
            "name:Bob",
        ),
        (
            "a hook changes the answer",
            json!({"ElicitationResult": said(&by_hook("ElicitationResult", "Cy"))}),
            accept.clone(),
            "name:Cy",
        ),
        (
            "a hook blocks",
            json!({"Elicitation": said(r#"{"decision":"block","reason":"no"}"#)}),
            accept,
            "action:decline",
        ),
    ];
    for (name, hooks, reply, expected) in rows {
        let text = answered(hooks, reply).await;
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[tokio::test]
async fn a_host_that_cannot_answer_cancels_the_question() {
    let mut host = host([call("mcp__sh__ask", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(host.asked()[1].says("action:cancel"), "{}", host.asked()[1].last_text());
}

#[tokio::test]
async fn progress_of_a_call_reaches_the_host() {
    let mut host = host([call("mcp__sh__step", ""), Reply::text("Done.")]).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let progress = host.heard().iter().find(|heard| heard.json["type"] == "tool_progress").unwrap();
    assert_eq!(progress.json["tool_name"], "mcp__sh__step");
    assert!(host.asked()[1].says("stepped"));
}

#[tokio::test]
async fn a_tool_of_a_server_may_be_asked_for_permissions() {
    let rows = [
        ("mcp__sh__allow", None, true),
        ("mcp__sh__deny", Some("the tool says no"), false),
        ("mcp__sh__echo", Some("must answer with"), false),
        ("mcp__sh__nosuch", Some("Tool not found: mcp__sh__nosuch"), false),
    ];
    for (tool, expected, made) in rows {
        let prompt_tool = Some(PermissionPromptTool::Mcp(tool.into()));
        let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
        let mut host = Host::with(script)
            .options(Options { permission_prompt_tool: prompt_tool, ..options() })
            .start()
            .await
            .unwrap();
        let result = host.run("Go.").await.unwrap();
        assert_eq!(host.stage().workspace().join("made").exists(), made, "{tool}");
        assert_eq!(result.permission_denials.len(), usize::from(!made), "{tool}");
        let asked = host.asked();
        assert!(expected.is_none_or(|text| asked[1].says(text)), "{tool}: {}", asked[1].last_text());
        assert!(!asked[0].tools().contains(&tool), "{tool} is not for the model");
    }
}
