//! Fallback models.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::options::Options;

const MODEL: &str = "claude-opus-4-5-20251101";
const FALLBACK_MODEL: &str = "claude-haiku-4-5-20251001";

fn host(fallback: &str, script: impl Into<Script>) -> HostBuilder {
    Host::with_script(script)
        .options(Options { fallback_model: Some(fallback.into()), ..Options::default() })
        .env("OPENAI_API_KEY", "sk-test-key")
}

fn overloaded_error() -> Reply {
    Reply::empty().status(529).error("overloaded_error", "full").retry_after("0")
}

/// A script in which all models but these are overloaded.
fn only_available(available: &'static [&'static str]) -> Script {
    Script::from_fn(move |request| match available.contains(&request.model()) {
        true => Reply::text(format!("I am {}.", request.model())),
        false => overloaded_error(),
    })
}

fn requested_models(host: &Host) -> Vec<String> {
    host.model_requests().iter().map(|request| request.model().to_owned()).collect()
}

fn fallback_frames(host: &Host) -> Vec<&Value> {
    let frames = host.received().iter().map(|received| &received.json);
    frames.filter(|frame| frame["subtype"] == "model_fallback").collect()
}

#[tokio::test]
async fn fallback_model_is_used_after_three_overloads() {
    let mut host = host(FALLBACK_MODEL, only_available(&[FALLBACK_MODEL])).start().await.unwrap();
    let result = host.run("Who are you?").await.unwrap();
    assert_eq!(result.result.as_deref(), Some(&*format!("I am {FALLBACK_MODEL}.")));
    assert_eq!(requested_models(&host), [MODEL, MODEL, MODEL, FALLBACK_MODEL]);
    assert_eq!(result.model_usage.keys().collect::<Vec<_>>(), [FALLBACK_MODEL]);
    let notices = fallback_frames(&host);
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0]["trigger"], "overloaded");
    assert_eq!(
        (&notices[0]["original_model"], &notices[0]["fallback_model"]),
        (&json!(MODEL), &json!(FALLBACK_MODEL))
    );
    assert!(notices[0]["content"].as_str().unwrap().contains("overloaded"));

    host.run("And now?").await.unwrap();
    assert_eq!(
        requested_models(&host)[4..],
        [MODEL, MODEL, MODEL, FALLBACK_MODEL],
        "every turn starts with the primary model"
    );
}

#[tokio::test]
async fn fallback_model_writes_the_summary() {
    let script = Script::from_fn(|request: &ModelRequest| match request.model() {
        MODEL if request.last_text().contains("summary that will replace this conversation") => {
            overloaded_error()
        }
        model => Reply::text(format!("I am {model}.")),
    });
    let mut host = host(FALLBACK_MODEL, script).start().await.unwrap();
    host.run("Who are you?").await.unwrap();
    assert!(!host.run("/compact").await.unwrap().is_error);
    assert_eq!(requested_models(&host), [MODEL, MODEL, MODEL, MODEL, FALLBACK_MODEL]);
    assert_eq!(fallback_frames(&host).len(), 1);
    let retries = host.received().iter().filter(|received| received.json["subtype"] == "api_retry");
    assert_eq!(retries.count(), 2, "every retry is reported");
}

#[tokio::test]
async fn fallback_models_are_tried_in_order_across_providers() {
    let list = format!("{FALLBACK_MODEL}, openai:kimi-k3,sonnet");
    let mut host = host(&list, only_available(&["kimi-k3"])).start().await.unwrap();
    assert_eq!(host.run("Who are you?").await.unwrap().result.as_deref(), Some("I am kimi-k3."));
    assert_eq!(
        requested_models(&host),
        [MODEL, MODEL, MODEL, FALLBACK_MODEL, FALLBACK_MODEL, FALLBACK_MODEL, "kimi-k3"]
    );
    assert_eq!(fallback_frames(&host).len(), 2);
}

#[tokio::test]
async fn primary_model_is_used_again_when_available() {
    let script = Script::from_fn(|request: &ModelRequest| {
        match (request.model(), request.contains_text("And now?")) {
            (MODEL, false) => overloaded_error(),
            (model, _) => Reply::text(format!("I am {model}.")),
        }
    });
    let mut host = host("openai:kimi-k3", script).start().await.unwrap();
    assert_eq!(host.run("Who are you?").await.unwrap().result.as_deref(), Some("I am kimi-k3."));
    let result = host.run("And now?").await.unwrap();
    assert_eq!(result.result.as_deref(), Some(&*format!("I am {MODEL}.")));
    assert_eq!(requested_models(&host), [MODEL, MODEL, MODEL, "kimi-k3", MODEL]);
    assert_eq!(fallback_frames(&host).len(), 1, "no fallback is used this time");
    assert!(host.model_requests()[4].contains_text("I am kimi-k3."), "it sees the replies of the fallback");
    assert_eq!(result.model_usage.len(), 2, "each model has its own usage");
}

#[tokio::test]
async fn model_is_not_its_own_fallback() {
    let mut host =
        host(MODEL, only_available(&[])).env("CLAUDE_CODE_MAX_RETRIES", "4").start().await.unwrap();
    let result = host.run("Who are you?").await.unwrap();
    assert!(result.is_error && result.result.unwrap().contains("full"));
    assert_eq!((requested_models(&host).len(), fallback_frames(&host).len()), (5, 0));
}

#[tokio::test]
async fn fallback_is_used_only_for_certain_errors() {
    let failed =
        |status: u16, kind: &'static str| Reply::empty().status(status).error(kind, "no").retry_after("0");
    let rows = [
        ("A6 overloaded", failed(529, "overloaded_error"), true),
        ("no such model", failed(404, "not_found_error"), true),
        ("the provider fails", failed(500, "api_error"), true),
        ("too many requests", failed(429, "rate_limit_error"), true),
        ("a bad request", failed(400, "invalid_request_error"), false),
        ("a bad key", failed(401, "authentication_error"), false),
    ];
    for (name, failure, uses_fallback) in rows {
        let script = Script::from_fn(move |request: &ModelRequest| match request.model() {
            MODEL => failure.clone(),
            _ => Reply::text("Here."),
        });
        let mut host =
            host(FALLBACK_MODEL, script).env("CLAUDE_CODE_MAX_RETRIES", "1").start().await.unwrap();
        let result = host.run("Hello?").await.unwrap();
        assert_eq!(
            (result.is_error, fallback_frames(&host).len()),
            (!uses_fallback, usize::from(uses_fallback)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn incomplete_call_is_dropped_before_fallback() {
    let write = json!({"file_path": "half.txt", "content": "x".repeat(200)});
    let script = Script::from_fn(move |request: &ModelRequest| match request.model() {
        MODEL => {
            Reply::tool("Write", write.clone()).chunk_size(10).error_event(6, "overloaded_error", "full")
        }
        _ => Reply::text("Here."),
    });
    let options = Options {
        fallback_model: Some(FALLBACK_MODEL.into()),
        allowed_tools: vec!["Write".into()],
        ..Options::default()
    };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    assert_eq!(host.run("Write.").await.unwrap().result.as_deref(), Some("Here."));
    assert!(host.dirs().files().unwrap().is_empty(), "the call did not run");
    let last = host.model_requests().pop().unwrap();
    assert_eq!(last.messages().len(), 1, "the dropped replies are not sent: {:?}", last.messages());
}

#[tokio::test]
async fn thinking_blocks_are_not_sent_to_another_model() {
    let script = Script::from_fn(|request: &ModelRequest| match (request.model(), request.number) {
        (MODEL, 0) => Reply::tool("Read", json!({"file_path": "a.txt"})).with_thinking("Let me see."),
        (MODEL, _) => overloaded_error(),
        _ => Reply::text("Here."),
    });
    let mut host = host(FALLBACK_MODEL, script).file("a.txt", "x").start().await.unwrap();
    assert_eq!(host.run("Read.").await.unwrap().result.as_deref(), Some("Here."));
    let has_thinking = |request: &ModelRequest| request.body["messages"].to_string().contains("Let me see.");
    assert_eq!(
        host.model_requests().iter().map(has_thinking).collect::<Vec<_>>(),
        [false, true, true, true, false]
    );
    // The provider rejects thinking for calls that no longer have their thinking block.
    let mode =
        |request: &ModelRequest| request.body["thinking"]["type"].as_str().unwrap_or("none").to_owned();
    assert_eq!(
        host.model_requests().iter().map(mode).collect::<Vec<_>>(),
        ["enabled", "enabled", "enabled", "enabled", "none"]
    );
    assert_eq!(host.run("And now?").await.unwrap().result.as_deref(), Some("Here."));
    assert_eq!(
        host.model_requests().last().map(mode).as_deref(),
        Some("enabled"),
        "thinking is enabled again with the next prompt"
    );
}

#[tokio::test]
async fn budget_requires_prices_of_all_fallback_models() {
    let options = Options {
        fallback_model: Some("openai:unknown-model".into()),
        max_budget_usd: Some(1.0),
        ..Options::default()
    };
    let mut host = Host::with_script([Reply::text("never")]).options(options).start().await.unwrap();
    let text = host.next_result().await.unwrap().errors.unwrap().join(" ");
    assert!(text.contains("openai:unknown-model"), "{text}");
}
