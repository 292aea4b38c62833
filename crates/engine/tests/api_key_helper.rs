//! `apiKeyHelper`: when the command runs, and the errors when it prints no key.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use serde_json::json;
use whimbrel_testkit::{Host, HostBuilder, Reply, Script};
use whimbrel_wire::options::Options;

/// A host without an API key whose settings name this key command.
fn host(script: impl Into<Script>, command: &str) -> HostBuilder {
    let settings = json!({"apiKeyHelper": command}).to_string();
    let options = Options { settings: Some(settings), ..Options::default() };
    Host::with_script(script).options(options).env("ANTHROPIC_API_KEY", "")
}

const COUNTING_COMMAND: &str = "echo x >> fetched; echo key-$(wc -l < fetched)";

/// The keys sent to the API, in order.
fn sent_keys(host: &Host) -> Vec<String> {
    let requests = host.api().unwrap().requests();
    requests.iter().map(|request| request.headers["x-api-key"].clone()).collect()
}

#[tokio::test]
async fn key_is_cached_until_expired_or_rejected() {
    let reply = || Reply::text("hi");
    let rows = [
        ("cached", [reply(), reply()], None, vec!["key-1", "key-1"]),
        ("expires at once", [reply(), reply()], Some("0"), vec!["key-1", "key-2"]),
        ("rejected", [reply().status(401), reply()], None, vec!["key-1", "key-2", "key-2"]),
    ];
    for (name, script, ttl, expected) in rows {
        let mut builder = host(script, COUNTING_COMMAND);
        if let Some(ttl) = ttl {
            builder = builder.env("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", ttl);
        }
        let mut host = builder.start().await.unwrap();
        for _ in 0..2 {
            let result = host.run("hello").await.unwrap();
            assert_eq!(result.result.as_deref(), Some("hi"), "{name}");
        }
        assert_eq!(sent_keys(&host), expected, "{name}");
        let init = host.init_frame().unwrap();
        assert_eq!(init["apiKeySource"], "apiKeyHelper", "{name}");
    }
}

#[tokio::test]
async fn environment_key_takes_precedence() {
    let mut host =
        host([Reply::text("hi")], COUNTING_COMMAND).env("ANTHROPIC_API_KEY", "own").start().await.unwrap();
    host.run("hello").await.unwrap();
    assert_eq!(sent_keys(&host), ["own"]);
    assert!(!host.dirs().files().unwrap().contains_key("fetched"));
}

#[tokio::test]
async fn missing_key_error_describes_the_command() {
    let rows = [
        ("true", "printed no key"),
        ("echo 'no vault here' >&2; exit 3", "exited with code 3: no vault here"),
        ("kill -9 $$", "was killed by signal 9"),
    ];
    for (command, part) in rows {
        let mut host = host([Reply::text("hi")], command).start().await.unwrap();
        let result = host.run("hello").await.unwrap();
        assert!(result.is_error, "{command}");
        let text = result.result.unwrap();
        assert!(text.contains(part) && text.contains("apiKeyHelper"), "{command}: {text}");
        assert!(sent_keys(&host).is_empty(), "{command}");
    }
}
