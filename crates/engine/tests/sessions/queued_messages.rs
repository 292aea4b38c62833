//! Taking back queued messages (`cancel_async_message`).

use serde_json::{Value, json};
use whimbrel_testkit::{Reply, SessionDirs};
use whimbrel_wire::content::{Block, Content, Source};
use whimbrel_wire::control::{CancelAsyncMessage, CancelAsyncMessageReply, PromptText};
use whimbrel_wire::message::User;
use whimbrel_wire::options::Options;

use super::fixture::joined_texts;

fn uuid(name: char) -> String {
    format!("aaaaaaaa-2222-4333-8444-00000000000{name}")
}

fn prompt(name: char) -> User {
    User { uuid: Some(uuid(name)), ..User::prompt(name.to_string()) }
}

fn cancel(name: char) -> CancelAsyncMessage {
    CancelAsyncMessage { message_uuid: uuid(name) }
}

fn not_cancelled(still_queued: &[char]) -> CancelAsyncMessageReply {
    let still_queued = still_queued.iter().copied().map(uuid).collect();
    CancelAsyncMessageReply { still_queued, ..CancelAsyncMessageReply::default() }
}

#[tokio::test]
async fn queued_messages_are_taken_back_until_their_turn() {
    let dirs = SessionDirs::new().unwrap();
    let script = [Reply::text("1").hold_until("go"), Reply::text("2")];
    let options = Options { replay_user_messages: true, ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    host.send_frame(prompt('a')).await.unwrap();
    host.next_matching(&json!({"subtype": "init"})).await.unwrap();
    for name in ['b', 'c', 'd'] {
        host.send_frame(prompt(name)).await.unwrap();
    }
    let taken = host.send_request(cancel('c')).await.unwrap();
    let expected = CancelAsyncMessageReply {
        cancelled: true,
        prompt: Some(PromptText { text: "c".into(), ..PromptText::default() }),
        still_queued: vec![uuid('b'), uuid('d')],
    };
    assert_eq!(taken, expected);
    assert_eq!(host.send_request(cancel('c')).await.unwrap(), not_cancelled(&['b', 'd']), "only once");
    assert_eq!(host.send_request(cancel('a')).await.unwrap(), not_cancelled(&['b', 'd']), "its turn runs");
    host.api().unwrap().release("go");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("1"));
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("2"));
    assert_eq!(host.send_request(cancel('b')).await.unwrap(), not_cancelled(&[]), "its turn has ended");
    assert_eq!(joined_texts(&host.model_requests()[1].body), "a 1 b+d");
    let replays = host.received().iter().filter(|received| received.json["isReplay"] == true);
    let replayed: Vec<Value> = replays.map(|received| received.json["uuid"].clone()).collect();
    assert_eq!(replayed, ['a', 'b', 'd'].map(uuid));
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn taking_back_the_last_message_starts_no_turn() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = dirs.host([Reply::text("1").hold_until("go")], Options::default()).start().await.unwrap();
    host.send_frame(prompt('a')).await.unwrap();
    host.next_matching(&json!({"subtype": "init"})).await.unwrap();
    let source = Source::Base64 { media_type: "image/png".into(), data: "aGk=".into() };
    let content = Content::Blocks(vec![Block::text("See:"), Block::Image { source }]);
    host.send_frame(User { uuid: Some(uuid('b')), ..User::prompt(content) }).await.unwrap();
    let taken = host.send_request(cancel('b')).await.unwrap();
    let text = PromptText { text: "See:".into(), attachments: 1, permission_mode: None };
    assert_eq!((taken.prompt, taken.still_queued), (Some(text), Vec::new()));
    host.api().unwrap().release("go");
    host.next_result().await.unwrap();
    host.finish().await.unwrap();
    assert_eq!(host.model_requests().len(), 1);
}
