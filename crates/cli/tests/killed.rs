//! The program is killed again and again, at any moment, and goes on each time with all that it had said.

#![expect(clippy::unwrap_used, reason = "this is all tests")]

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

/// How often it is killed.
const KILLS: u64 = 25;

/// Calls one after the other and side by side, with words between.
fn script() -> Script {
    let bash = |number: usize| json!({"command": format!("echo {number} >> log.txt")});
    let mut replies = Vec::new();
    for number in 0..6 {
        replies.push(
            Reply::text(format!("Step {number}."))
                .and_tool("Bash", bash(number))
                .and_tool("Bash", bash(number + 100)),
        );
    }
    replies.push(Reply::text("All done."));
    Script::from(replies)
}

/// Whether a provider would take it: roles alternate, and each call has its result in the next message.
fn assert_well_formed(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<&str> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], if number % 2 == 0 { "user" } else { "assistant" }, "{body}");
        let blocks = message["content"].as_array().unwrap();
        let of = |kind: &str, field: &str| -> Vec<&str> {
            blocks
                .iter()
                .filter(|block| block["type"] == kind)
                .filter_map(|block| block[field].as_str())
                .collect()
        };
        assert_eq!(of("tool_result", "tool_use_id"), open, "{body}");
        open = of("tool_use", "id");
    }
    assert!(open.is_empty(), "{body}");
}

fn uuids(transcript: &Path) -> HashSet<String> {
    let text = std::fs::read_to_string(transcript).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| Some(line["uuid"].as_str()?.to_owned())).collect()
}

fn transcript(config: &Path, session: &str) -> Option<std::path::PathBuf> {
    let folder = std::fs::read_dir(config.join("projects")).ok()?.next()?.ok()?.path();
    Some(folder.join(format!("{session}.jsonl"))).filter(|path| path.exists())
}

#[tokio::test]
async fn whatever_was_said_is_there_after_every_kill() {
    let root = tempfile::tempdir().unwrap();
    let (config, work) = (root.path().join("config"), root.path().join("work"));
    std::fs::create_dir(&work).unwrap();
    let session = "12345678-2222-4333-8444-555555555555".to_owned();
    let mut seen: HashSet<String> = HashSet::new();
    let mut random = 0x2545_f491_u64;
    for kill in 0..=KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let known = transcript(&config, &session).is_some();
        let options = Options {
            cwd: Some(work.to_string_lossy().into_owned()),
            permission_mode: Some(PermissionMode::BypassPermissions),
            replay_user_messages: true,
            resume: known.then(|| session.clone()),
            session_id: (!known).then(|| session.clone()),
            ..Options::default()
        };
        let mut host = Host::with(script())
            .program(env!("CARGO_BIN_EXE_whimbrel"))
            .options(options)
            .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
            .start()
            .await
            .unwrap();
        host.say(format!("Go {kill}.")).await.unwrap();
        if kill == KILLS {
            let result = host.result().await.unwrap();
            assert_eq!(result.result.as_deref(), Some("All done."), "{result:?}");
            host.finish().await.unwrap();
        } else {
            for _ in 0..(random >> 33) % 28 {
                let frame = host.next_like(&json!({})).await.unwrap();
                if frame["type"] == "result" {
                    assert_eq!(frame["is_error"], false, "{frame}");
                    break;
                }
            }
            // Not only right after a frame, but also somewhere between two.
            tokio::time::sleep(Duration::from_micros((random >> 20) % 3_000)).await;
        }
        for heard in host.heard() {
            let said = matches!(heard.json["type"].as_str(), Some("user" | "assistant"));
            seen.extend(heard.json["uuid"].as_str().filter(|_| said).map(str::to_owned));
        }
        host.asked().iter().for_each(|asked| assert_well_formed(&asked.body));
        // The program is killed with its host.
        drop(host);
        let kept = transcript(&config, &session).map(|path| uuids(&path)).unwrap_or_default();
        let lost: Vec<&String> = seen.difference(&kept).collect();
        assert!(lost.is_empty(), "kill {kill}: {lost:?}");
    }
    assert!(seen.len() > KILLS as usize, "only {} messages were seen", seen.len());
}

#[tokio::test]
async fn mcp_servers_are_gone_when_the_program_is_killed() {
    let script = r#"echo $$ > pid; (setsid sleep 600 & echo $! > daemon)
        while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
                *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
            esac
        done"#;
    let server = serde_json::from_value(json!({"command": "sh", "args": ["-c", script]})).unwrap();
    let work = tempfile::tempdir().unwrap();
    let options = Options {
        cwd: Some(work.path().to_string_lossy().into_owned()),
        mcp_servers: [("s".to_owned(), server)].into(),
        ..Options::default()
    };
    let mut host = Host::with([Reply::text("Hi.")])
        .program(env!("CARGO_BIN_EXE_whimbrel"))
        .options(options)
        .start()
        .await
        .unwrap();
    host.run("Hi.").await.unwrap();
    let pid = |name: &str| std::fs::read_to_string(work.path().join(name)).unwrap().trim().to_owned();
    let left = [pid("pid"), pid("daemon")];
    // The program is killed with its host.
    drop(host);
    let gone = async {
        while left.iter().any(|pid| Path::new("/proc").join(pid).join("cwd").exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}
