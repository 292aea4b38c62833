use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use whimbrel_wire::Block;

use super::*;
use crate::api::AnyTool;
use crate::workspace::Workspace;

/// Starts a server that answers one request, and returns its URL.
async fn server(body: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/search", listener.local_addr().unwrap());
    let request_line = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 8192];
        let length = stream.read(&mut request).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..length]).lines().next().unwrap_or_default().to_owned()
    });
    (url, request_line)
}

async fn search(url: &str, input: Value) -> ToolResult {
    let dir = TempDir::new().unwrap();
    let env = BTreeMap::from([(searxng::SEARCH_URL_VARIABLE.to_owned(), url.to_owned())]);
    let workspace = Arc::new(Workspace::new(dir.path().into(), dir.path().join("spill"), env));
    AnyTool::run(&WebSearchTool, input, ToolContext::for_test(workspace)).await
}

#[tokio::test]
async fn the_users_server_is_queried() {
    let (url, request) = server(
        r#"{"results": [
            {"title": "Curlews", "url": "https://birds.example.org/c", "content": "Long  bills.\nBrown."},
            {"title": "Elsewhere", "url": "https://example.com/", "content": null},
            {"title": "Odd", "url": "javascript:alert(1)"}
        ]}"#,
    )
    .await;
    let input = json!({"query": "curlew & whimbrel", "allowed_domains": ["example.org"]});
    let mut output = search(&url, input).await.unwrap();
    assert!(request.await.unwrap().starts_with("GET /search?q=curlew+%26+whimbrel&format=json "));
    output.meta["durationSeconds"] = 0.into();
    let page =
        json!({"title": "Curlews", "url": "https://birds.example.org/c", "snippet": "Long bills. Brown."});
    let results = json!([{"tool_use_id": "toolu_1", "content": [page]}]);
    let meta =
        json!({"query": "curlew & whimbrel", "results": results, "durationSeconds": 0, "searchCount": 1});
    assert_eq!(output.meta, meta);
    let whimbrel_wire::content::ResultContent::Text(text) = output.content else { panic!("no text") };
    assert!(text.contains("- Curlews <https://birds.example.org/c>\n  Long bills. Brown."), "{text}");
}

#[tokio::test]
async fn errors_of_the_server_are_reported() {
    let (url, _request) = server("<html>").await;
    let error = search(&url, json!({"query": "birds"})).await.unwrap_err();
    assert!(error.reason().contains("did not return SearXNG JSON"), "{error:?}");
    let error = search("nowhere", json!({"query": "birds"})).await.unwrap_err();
    assert!(error.reason().contains("WHIMBREL_SEARCH_URL is not a valid URL"), "{error:?}");
}

#[test]
fn the_reply_of_a_provider_is_parsed() {
    let block = |value: Value| serde_json::from_value::<Block>(value).unwrap();
    let blocks = [
        block(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}})),
        block(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
            {"type": "web_search_result", "title": "T", "url": "https://a.org", "encrypted_content": "e"},
        ]})),
        block(json!({"type": "text", "text": "It is "})),
        block(json!({"type": "text", "text": "so."})),
    ];
    let found = provider::parse_reply(&blocks).unwrap();
    assert_eq!(found.searches, 1);
    let pages = json!({"tool_use_id": "s1", "content": [{"title": "T", "url": "https://a.org"}]});
    assert_eq!(found.to_host_json(), json!([pages, "It is so."]));
    let error = block(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content":
        {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}));
    assert!(provider::parse_reply(&[error]).unwrap_err().reason().contains("max_uses_exceeded"));
}
