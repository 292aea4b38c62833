//! Tests of `headersHelper`. Browser logins are tested in `testkit/tests`.

use std::fs;

use serde_json::json;

use super::fixture::{TestServers, server_configs, test_deps};
use super::http_server::{HttpReply, HttpTestServer, ReceivedRequest, answer_request};
use crate::mcp::ServerRegistry;

/// Answers 401 without this token.
fn require_token(token: &'static str) -> impl Fn(&ReceivedRequest) -> HttpReply {
    move |heard| match (heard.headers.get("authorization"), answer_request(&heard.body)) {
        (Some(shown), _) if *shown != format!("Bearer {token}") => HttpReply::status(401),
        (None, _) => HttpReply::status(401),
        (Some(_), Some(answer)) => HttpReply::json(&answer),
        (Some(_), None) => HttpReply::status(if heard.method == "POST" { 202 } else { 405 }),
    }
}

#[tokio::test]
async fn headers_can_come_from_a_command() {
    let web = HttpTestServer::new(require_token("birds http")).await;
    let helper = r#"printf '{"Authorization": "Bearer %s %s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" "${CLAUDE_CODE_MCP_SERVER_URL%%:*}""#;
    let stage = TestServers::start(json!({"birds": {
        "type": "http", "url": web.url("/mcp"), "headersHelper": helper, "headers": {"Authorization": "Bearer old"},
    }}))
    .await;
    assert_eq!(stage.status_and_error("birds"), ("connected".into(), String::new()));
    assert_eq!(stage.call_text("mcp__birds__go", json!({})).await, "did {}");
    stage.registry.close().await;
}

#[tokio::test]
async fn the_command_runs_again_after_http_401() {
    for kind in ["http", "sse"] {
        let web = HttpTestServer::new(require_token("second")).await;
        let folder = tempfile::tempdir().unwrap();
        let helper = r#"echo x >> asked; if test $(wc -l < asked) = 1; then t=first; else t=second; fi; printf '{"Authorization": "Bearer %s"}' $t"#;
        let entries = json!({"birds": {"type": kind, "url": web.url("/mcp"), "headersHelper": helper}});
        let roster = ServerRegistry::start(server_configs(&entries), test_deps(folder.path()));
        roster.wait_ready(super::fixture::TEST_TIMEOUT).await;
        let state = serde_json::to_value(roster.status()).unwrap();
        roster.close().await;
        let heard = web.requests();
        let shown: Vec<&str> = heard.iter().map(|heard| heard.headers["authorization"].as_str()).collect();
        assert_eq!(shown[..2], ["Bearer first", "Bearer second"], "{kind}");
        assert_eq!(fs::read_to_string(folder.path().join("asked")).unwrap().lines().count() % 2, 0, "{kind}");
        if kind == "http" {
            assert_eq!(state[0]["status"], "connected");
        }
    }
}

#[tokio::test]
async fn a_failing_command_is_reported_without_its_output() {
    let web = HttpTestServer::new(require_token("never")).await;
    for (helper, state, words) in [
        ("echo 'no network' >&2; exit 3", "failed", "ended with code 3 and says: no network."),
        ("echo secret", "failed", "must print a JSON object"),
        (
            "printf '{\"Authorization\": \"Bearer secret\"}'",
            "needs-auth",
            "it does not take what the command",
        ),
    ] {
        let stage = TestServers::start(
            json!({"birds": {"type": "http", "url": web.url("/"), "headersHelper": helper}}),
        )
        .await;
        let (found, error) = stage.status_and_error("birds");
        assert!(
            found == state && error.contains(words) && !error.contains("secret"),
            "{helper}: {found}: {error}"
        );
        stage.registry.close().await;
    }
}
