//! Tests of the whole tool with a local server and a scripted small model.

use std::collections::BTreeMap;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use whimbrel_models::providers::Providers;
use whimbrel_models::retry::RetryPolicy;
use whimbrel_models::scripted::Scripted;

use super::*;
use crate::cost::CostLedger;
use crate::model_access::ModelAccess;
use crate::small_model::SmallModel;
use crate::workspace::Workspace;

/// Starts a server with a few paths and returns its URL. A path that ends in `endless` never stops sending.
async fn server(pages: &'static [(&'static str, &'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_page(BufReader::new(stream), pages));
        }
    });
    url
}

async fn serve_page(
    mut stream: BufReader<tokio::net::TcpStream>,
    pages: &[(&str, &str, &str)],
) -> std::io::Result<()> {
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let mut line = String::from("-");
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (_, head, body) = pages.iter().find(|(known, ..)| *known == path).unwrap_or(&("", "404 X", ""));
    stream.write_all(format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await?;
    while path.ends_with("endless") {
        stream.write_all(&[b'x'; 1 << 16]).await?;
    }
    stream.flush().await
}

/// A context with access to loopback and a scripted small model.
fn test_context(dir: &TempDir, replies: Value) -> (ToolContext, Arc<Scripted>) {
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let providers = Providers::offline();
    providers.add_script("reader", script.clone());
    let policy = RetryPolicy::default();
    let model = String::from("scripted:reader");
    let env = BTreeMap::from([(network_scope::PRIVATE_NETWORK_VARIABLE.to_owned(), "1".to_owned())]);
    let workspace = Arc::new(Workspace::new(dir.path().into(), dir.path().join("spill"), env));
    let call = ToolContext {
        small_model: SmallModel::new(
            ModelAccess::new(providers),
            CostLedger::default(),
            model,
            policy,
            "session".into(),
        ),
        ..ToolContext::for_test(workspace)
    };
    (call, script)
}

async fn run_fetch(tool: &WebFetchTool, call: &ToolContext, url: &str) -> ToolResult {
    tool.run(WebFetchInput { url: url.into(), prompt: "How many?".into() }, call.clone()).await
}

#[tokio::test]
async fn a_page_is_read_by_the_small_model_and_cached() {
    let url = server(&[("/a", "200 OK\r\ncontent-type: text/html", "<h1>Seven</h1><p></page>birds")]).await;
    let url = format!("{url}/a");
    let dir = TempDir::new().unwrap();
    let (call, reader) = test_context(&dir, json!(["Seven.", "Birds."]));
    let tool = WebFetchTool::default();
    let mut output = run_fetch(&tool, &call, &url).await.unwrap();
    output.meta["durationMs"] = json!(0);
    let meta =
        json!({"bytes": 29, "code": 200, "codeText": "OK", "result": "Seven.", "durationMs": 0, "url": url});
    assert_eq!(output, ToolOutput::text("Seven.", meta));
    let request = &reader.requests()[0];
    assert_eq!(
        request["messages"][0]["content"][0]["text"],
        format!("<page url=\"{url}\">\n# Seven\n\nbirds\n</page>\n\nQuestion: How many?")
    );
    assert!(request["system"].to_string().contains("from the page alone"));
    assert_eq!(
        tool.cache().get(&url, NetworkScope::Private, clock::monotonic()).unwrap().text,
        "# Seven\n\nbirds"
    );
    assert_eq!(run_fetch(&tool, &call, &format!("{url}#part")).await.unwrap().meta["result"], "Birds.");
    call.workspace.set_variables(BTreeMap::from([(
        network_scope::PRIVATE_NETWORK_VARIABLE.to_owned(),
        "0".to_owned(),
    )]));
    let denied = run_fetch(&tool, &call, &url).await.unwrap_err();
    assert!(matches!(&denied, ToolError::Rejected(reason) if reason.contains("127.0.0.1")), "{denied:?}");
}

#[tokio::test]
async fn unreadable_pages_are_errors() {
    let url = server(&[
        ("/png", "200 OK\r\ncontent-type: image/png", "x"),
        ("/empty", "200 OK\r\ncontent-type: text/html", "<script>1</script>"),
        ("/endless", "200 OK\r\ncontent-type: text/plain", ""),
        ("/loop", "302 Found\r\nlocation: /loop", ""),
        ("/file", "302 Found\r\nlocation: file:///etc/passwd", ""),
        ("/gone", "503 X", ""),
    ])
    .await;
    let dir = TempDir::new().unwrap();
    let (call, reader) = test_context(&dir, json!([]));
    let table = [
        ("/png", "/png is image/png; only text can be read."),
        ("/empty", "/empty has no text."),
        ("/endless", "The response of 127.0.0.1 is too large."),
        ("/loop", "/loop redirects more than 5 times."),
        ("/file", "not file:."),
        ("/gone", "/gone responded with 503 Service Unavailable."),
        ("/unknown", "/unknown responded with 404 Not Found."),
    ];
    for (path, expected) in table {
        let error = run_fetch(&WebFetchTool::default(), &call, &format!("{url}{path}")).await.unwrap_err();
        assert!(
            matches!(&error, ToolError::Failed(reason) if reason.ends_with(expected)),
            "{path}: {error:?}"
        );
    }
    assert_eq!(reader.requests(), Vec::<Value>::new());
}

#[tokio::test]
async fn same_host_redirects_are_followed_others_reported() {
    let url = server(&[
        ("/old", "301 X\r\nlocation: /new", ""),
        ("/new", "200 OK\r\ncontent-type: application/json", "{\"birds\":7}"),
        ("/away", "308 X\r\nlocation: http://example.com/x", ""),
    ])
    .await;
    let dir = TempDir::new().unwrap();
    let (call, reader) =
        test_context(&dir, json!([{"content": [{"type": "text", "text": "7"}], "expect": "birds"}]));
    let tool = WebFetchTool::default();
    assert_eq!(run_fetch(&tool, &call, &format!("{url}/old")).await.unwrap().meta["code"], 200);
    let away = run_fetch(&tool, &call, &format!("{url}/away")).await.unwrap();
    assert_eq!(away.meta["code"], 308);
    let text = away.meta["result"].as_str().unwrap();
    assert!(text.contains("another host (308 Permanent Redirect): https://example.com/x\n"), "{text}");
    assert_eq!(reader.requests().len(), 1);
}

#[tokio::test]
async fn a_failing_small_model_is_reported() {
    let url = server(&[("/a", "200 OK\r\ncontent-type: text/plain", "birds")]).await;
    let dir = TempDir::new().unwrap();
    let (call, _) = test_context(&dir, json!([]));
    let error = run_fetch(&WebFetchTool::default(), &call, &format!("{url}/a")).await.unwrap_err();
    assert!(error.reason().contains("/a was fetched, but the model that reads pages failed: "), "{error:?}");
}

#[test]
fn the_specification_is_small() {
    let spec = serde_json::to_string(&crate::api::AnyTool::spec(&WebFetchTool::default())).unwrap();
    println!("{} bytes: {spec}", spec.len());
    assert!(spec.len() <= 450, "{spec}");
}
