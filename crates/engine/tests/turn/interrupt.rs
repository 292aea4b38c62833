//! Interrupts of a turn, and its connection to the provider.

use serde_json::json;
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::message::{Outcome, TerminalReason, User};
use whimbrel_wire::options::Options;

/// Marks a turn that was interrupted before the model replied.
const WITHOUT_CONTENT: &str = "[ede_diagnostic] result_type=user last_content_type=n/a ";

const PROMPT_UUID: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test]
async fn interrupt_within_a_reply_is_not_marked_as_without_content() {
    let options = Options { include_partial_messages: true, ..Options::default() };
    let script = [Reply::text("Once upon a time").stall_after(3)];
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Tell me.").await.unwrap();
    let delta = json!({"type": "stream_event", "event": {"type": "content_block_delta"}});
    host.next_matching(&delta).await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    let errors = host.next_result().await.unwrap().errors.unwrap();
    assert!(!errors.iter().any(|error| error.starts_with(WITHOUT_CONTENT)), "{errors:?}");
}

#[tokio::test]
async fn interrupt_after_a_prompt_ends_the_turn_before_any_request() {
    for cancel_queued in [None, Some(true)] {
        let mut host = Host::with_script([Reply::text("Later.")]).start().await.unwrap();
        let prompt = User { uuid: Some(PROMPT_UUID.into()), ..User::prompt("Never mind.") };
        host.send_frame(prompt).await.unwrap();
        let reply = host.send_request(Interrupt { cancel_queued, ..Interrupt::default() }).await.unwrap();
        let cancelled = cancel_queued.map(|_| json!([]));
        // Its result is still to come, so hosts must not take it for dropped.
        assert_eq!((reply.still_queued, reply.cancelled), (vec![PROMPT_UUID.to_owned()], cancelled));
        let result = host.next_result().await.unwrap();
        assert_eq!(result.subtype, Outcome::ErrorDuringExecution);
        assert_eq!(result.terminal_reason, Some(TerminalReason::AbortedStreaming));
        assert!(result.errors.unwrap().iter().any(|error| error.starts_with(WITHOUT_CONTENT)));
        assert!(host.model_requests().is_empty());
        assert_eq!(host.run("Go on.").await.unwrap().result.as_deref(), Some("Later."));
        assert!(
            host.model_requests()[0].contains_text("Never mind.")
                && host.model_requests()[0].contains_text("interrupted")
        );
    }
}

#[tokio::test]
async fn prompt_without_a_turn_is_not_reported_as_queued() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    let prompt = User { uuid: Some(PROMPT_UUID.into()), should_query: Some(false), ..User::prompt("Note.") };
    host.send_frame(prompt).await.unwrap();
    assert_eq!(host.send_request(Interrupt::default()).await.unwrap().still_queued, Vec::<String>::new());
    assert_eq!(host.run("Hi.").await.unwrap().result.as_deref(), Some("Hello."));
}

#[tokio::test]
async fn interrupt_before_any_prompt_has_no_effect() {
    let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.run("Hi.").await.unwrap().result.as_deref(), Some("Hello."));
}

#[tokio::test]
async fn session_reuses_one_connection() {
    let read = || Reply::tool("Read", json!({"file_path": "a.txt"}));
    let script = [read(), read(), read(), Reply::text("one"), Reply::text("two"), Reply::text("three")];
    let mut host = Host::with_script(script).file("a.txt", "text").start().await.unwrap();
    for _ in 0..3 {
        host.run("Go.").await.unwrap();
    }
    assert_eq!(host.model_requests().len(), 6);
    assert_eq!(host.api().unwrap().connections(), 1);
}
