//! The WebSearch tool, which uses the provider's own search.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::permission::PermissionResult;

#[tokio::test]
async fn small_model_searches_and_returns_the_results() {
    let page = json!({"type": "web_search_result", "title": "Curlews", "url": "https://birds.example.org/", "encrypted_content": "x"});
    let found = Reply::empty()
        .and_block(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "curlew"}}))
        .and_block(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [page]}))
        .and_text("Curlews have long bills.");
    let input = json!({"query": "curlew", "blocked_domains": ["example.com"]});
    let script = [Reply::tool("WebSearch", input), found, Reply::text("Done.")];
    let mut host =
        Host::with_script(script).can_use_tool(|_| PermissionResult::allow()).start().await.unwrap();
    let result = host.run("Search.").await.unwrap();
    assert_eq!(result.result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    let tool = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5, "blocked_domains": ["example.com"]});
    assert_eq!(requests[1].body["tools"], json!([tool]));
    assert!(requests[1].last_text().contains("curlew"));
    assert!(
        requests[2].contains_text("Curlews have long bills.")
            && requests[2].contains_text("https://birds.example.org/")
    );
    let results =
        host.received().iter().find(|received| !received.json["tool_use_result"].is_null()).unwrap();
    assert_eq!(
        results.json["tool_use_result"]["results"],
        json!([{"tool_use_id": "s1", "content": [{"title": "Curlews", "url": "https://birds.example.org/"}]}, "Curlews have long bills."])
    );
}

#[tokio::test]
async fn web_search_needs_permission() {
    let script = [Reply::tool("WebSearch", json!({"query": "curlew"})), Reply::text("No.")];
    let mut host = Host::with_script(script)
        .can_use_tool(|_| PermissionResult::deny("stay here"))
        .start()
        .await
        .unwrap();
    host.run("Search.").await.unwrap();
    assert!(host.model_requests()[1].contains_text("stay here"));
}
