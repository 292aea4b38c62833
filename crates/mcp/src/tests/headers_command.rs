//! Tests of `headersHelper`. Browser logins are tested in `testkit/tests`.

use std::fs;

use serde_json::json;

use super::fixture::{TestServers, server_configs, test_deps};
use super::http_server::{HttpReply, HttpTestServer, ReceivedRequest, answer_request};
use crate::ServerRegistry;

/// Answers 401 without this token.
fn require_token(token: &'static str) -> impl Fn(&ReceivedRequest) -> HttpReply {
    move |request| match (request.headers.get("authorization"), answer_request(&request.body)) {
        (Some(header), _) if *header != format!("Bearer {token}") => HttpReply::status(401),
        (None, _) => HttpReply::status(401),
        (Some(_), Some(answer)) => HttpReply::json(&answer),
        (Some(_), None) => HttpReply::status(if request.method == "POST" { 202 } else { 405 }),
    }
}

#[tokio::test]
async fn headers_can_come_from_a_command() {
    let http_server = HttpTestServer::new(require_token("birds http")).await;
    let helper = r#"printf '{"Authorization": "Bearer %s %s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" "${CLAUDE_CODE_MCP_SERVER_URL%%:*}""#;
    let servers = TestServers::start(json!({"birds": {
        "type": "http", "url": http_server.url("/mcp"), "headersHelper": helper, "headers": {"Authorization": "Bearer old"},
    }}))
    .await;
    assert_eq!(servers.status_and_error("birds"), ("connected".into(), String::new()));
    assert_eq!(servers.call_text("mcp__birds__go", json!({})).await, "did {}");
    servers.registry.close().await;
}

#[tokio::test]
async fn the_command_runs_again_after_http_401() {
    for kind in ["http", "sse"] {
        let http_server = HttpTestServer::new(require_token("second")).await;
        let dir = tempfile::tempdir().unwrap();
        let helper = r#"echo x >> runs; if test $(wc -l < runs) = 1; then t=first; else t=second; fi; printf '{"Authorization": "Bearer %s"}' $t"#;
        let entries =
            json!({"birds": {"type": kind, "url": http_server.url("/mcp"), "headersHelper": helper}});
        let registry = ServerRegistry::start(server_configs(&entries), test_deps(dir.path()));
        registry.wait_ready(super::fixture::TEST_TIMEOUT).await;
        let state = serde_json::to_value(registry.status()).unwrap();
        registry.close().await;
        let requests = http_server.requests();
        let authorizations: Vec<&str> =
            requests.iter().map(|request| request.headers["authorization"].as_str()).collect();
        assert_eq!(authorizations[..2], ["Bearer first", "Bearer second"], "{kind}");
        assert_eq!(fs::read_to_string(dir.path().join("runs")).unwrap().lines().count() % 2, 0, "{kind}");
        if kind == "http" {
            assert_eq!(state[0]["status"], "connected");
        }
    }
}

#[tokio::test]
async fn a_failing_command_is_reported_without_its_output() {
    let http_server = HttpTestServer::new(require_token("never")).await;
    for (helper, state, expected) in [
        ("echo 'no network' >&2; exit 3", "failed", "exited with code 3: no network."),
        ("echo secret", "failed", "must print a JSON object"),
        ("printf '{\"Authorization\": \"Bearer secret\"}'", "needs-auth", "it rejected the headers"),
    ] {
        let servers = TestServers::start(
            json!({"birds": {"type": "http", "url": http_server.url("/"), "headersHelper": helper}}),
        )
        .await;
        let (status, error) = servers.status_and_error("birds");
        assert!(
            status == state && error.contains(expected) && !error.contains("secret"),
            "{helper}: {status}: {error}"
        );
        servers.registry.close().await;
    }
}
