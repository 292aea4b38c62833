//! The engine under the faults of the mock: enough to show that each fault arrives as what it is.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::system::SystemEvent;

/// How often the model was asked, how many retries were announced, and the last text.
async fn story(script: impl Into<Script>) -> (usize, usize, String) {
    let mut host = Host::with(script).env("CLAUDE_CODE_MAX_RETRIES", "2").start().await.unwrap();
    let result = host.run("Hello?").await.unwrap();
    let is_retry = |frame: &&Frame| match frame {
        Frame::System(system) => matches!(system.event, SystemEvent::ApiRetry(_)),
        _ => false,
    };
    let retries = host.frames().filter(is_retry).count();
    (host.asked().len(), retries, result.result.unwrap_or_default())
}

#[tokio::test]
async fn faults_that_pass_are_overcome() {
    let reply = || Reply::text("At last.");
    let table = [
        ("overloaded", reply().status(529).retry_after("0")),
        ("cut before a block is complete", reply().cut_after(3)),
        ("an error before a block", reply().error_event(1, "overloaded_error", "full")),
        ("no answer at all", reply().hang_up()),
        ("an empty body", reply().empty_body()),
        ("a page of HTML", reply().html()),
        ("garbage between events", reply().garbage_event()),
        ("a body that is no stream", reply().raw_body("data: {\n\n")),
    ];
    for (name, reply) in table {
        let (asked, retries, text) = story([reply]).await;
        assert_eq!((asked, text.as_str()), (2, "At last."), "{name}");
        assert_eq!(retries, 1, "{name}");
    }
}

#[tokio::test]
async fn an_event_that_is_newer_than_we_are_does_no_harm() {
    let reply = Reply::text("Fine.").extra_event(1, "brand_new", r#"{"type":"brand_new"}"#);
    assert_eq!(story([reply]).await, (1, 0, "Fine.".into()));
}

#[tokio::test]
async fn what_never_passes_ends_in_an_error() {
    let (asked, retries, text) = story([Reply::nothing().status(529).retry_after("0").always()]).await;
    assert_eq!((asked, retries), (3, 2));
    assert!(text.starts_with("API Error: 529"), "{text}");
}

#[tokio::test]
async fn what_is_not_worth_repeating_is_not_repeated() {
    for status in [400, 403, 404] {
        assert_eq!(story([Reply::nothing().status(status)]).await.0, 1, "{status}");
    }
    let spoken = Reply::nothing().status(500).header("x-should-retry", "false");
    assert_eq!(story([spoken]).await.0, 1);
}

#[tokio::test]
async fn a_script_that_is_too_short_says_so() {
    let (asked, _, text) = story(Script::from([])).await;
    assert_eq!(asked, 1);
    assert!(text.contains("The script has only 0 replies"), "{text}");
}

#[tokio::test]
async fn input_that_is_no_json_becomes_an_error_for_the_model() {
    let script = [Reply::tool("Bash", json!({})).raw_tool_json("{bad"), Reply::text("Sorry.")];
    let mut host = Host::with(script).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Sorry."));
    assert!(host.asked()[1].last_text().contains("{bad"), "{}", host.asked()[1].last_text());
}

#[tokio::test]
async fn a_reply_takes_the_time_it_is_given() {
    let reply =
        Reply::text("slowly").chunk(1).after(Duration::from_millis(30)).pace(Duration::from_millis(5));
    let mut host = Host::with([reply]).start().await.unwrap();
    let began = tokio::time::Instant::now();
    host.run("Hello?").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(30 + 11 * 5));
}
