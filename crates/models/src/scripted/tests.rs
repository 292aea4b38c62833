//! Playback of scripts.

use whimbrel_wire::Role;

use super::*;
use crate::assemble::ReplyAssembler;
use crate::history::History;
use crate::request::RequestPrefix;

fn request(text: &str) -> Arc<Request> {
    let mut history = History::new();
    history.push(Role::User, &Block::text(text));
    Arc::new(Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), history.snapshot()))
}

/// Returns the blocks of the next reply, or the error that ended it.
async fn next_reply(model: &Scripted) -> Result<(Vec<Block>, Option<StopReason>), ModelError> {
    let mut assembler = ReplyAssembler::default();
    let mut blocks = Vec::new();
    let mut stream = model.stream_reply(request("hello"));
    while let Some(delta) = stream.next().await {
        blocks.extend(assembler.push_event(&delta?.event)?.map(|finished| finished.block));
    }
    Ok((blocks, assembler.stop_reason))
}

#[tokio::test]
async fn replies_are_played_in_order_and_in_every_form() {
    let model = Scripted::replies(json!([
        "a text that is longer than one piece",
        [{"type": "tool_use", "name": "Bash", "input": {"command": "true"}}, {"type": "tool_use", "name": "Read"}],
        {"content": ["cut"], "stop_reason": "max_tokens"},
    ]))
    .unwrap();
    let blocks = |text: &str| vec![Block::text(text)];
    let call = |id: &str, name: &str, input| Block::ToolUse { id: id.into(), name: name.into(), input };
    let text = (blocks("a text that is longer than one piece"), Some(StopReason::EndTurn));
    assert_eq!(next_reply(&model).await, Ok(text));
    let calls = vec![
        call("toolu_0002_01", "Bash", json!({"command": "true"})),
        call("toolu_0002_02", "Read", json!({})),
    ];
    assert_eq!(next_reply(&model).await, Ok((calls, Some(StopReason::ToolUse))));
    assert_eq!(next_reply(&model).await, Ok((blocks("cut"), Some(StopReason::MaxTokens))));
    assert_eq!(model.requests().len(), 3);
    assert_eq!(model.requests()[0]["messages"][0]["content"][0]["text"], "hello");
    let error = next_reply(&model).await.unwrap_err();
    assert_eq!(
        (error.kind, &*error.message),
        (ModelErrorKind::Script, "The script has 3 replies, but request 4 was made.")
    );
}

#[tokio::test]
async fn text_is_streamed_in_small_pieces() {
    let model = Scripted::replies(json!(["twelve chars and twelve more and a rest"])).unwrap();
    let stream = model.stream_reply(request("hi"));
    let deltas = stream.filter(|item| {
        std::future::ready(
            matches!(item, Ok(delta) if matches!(delta.event, crate::ReplyEvent::BlockDelta { .. })),
        )
    });
    assert_eq!(deltas.count().await, 4);
}

#[tokio::test]
async fn string_input_is_streamed_literally() {
    let model =
        Scripted::replies(json!([[{"type": "tool_use", "name": "Bash", "input": "{\"command\": tru"}]]))
            .unwrap();
    let mut assembler = ReplyAssembler::default();
    let mut stream = model.stream_reply(request("hi"));
    let mut bad = None;
    while let Some(delta) = stream.next().await {
        bad = bad
            .or(assembler.push_event(&delta.unwrap().event).unwrap().and_then(|finished| finished.bad_input));
    }
    assert!(bad.unwrap().contains("{\"command\": tru"));
}

#[tokio::test(start_paused = true)]
async fn errors_and_delays_are_played() {
    let model = Scripted::replies(json!([
        {"fault": {"kind": "overloaded", "status": 529, "message": "full", "retry_after_ms": 100}},
        {"content": ["never complete"], "fault": {"kind": "cut", "after": 3}, "delay_ms": 5000},
    ]))
    .unwrap();
    let error = next_reply(&model).await.unwrap_err();
    let expected = ModelError {
        status: Some(529),
        retry_after: Some(Duration::from_millis(100)),
        ..ModelError::new(ModelErrorKind::Overloaded, "full")
    };
    assert_eq!(error, expected);
    let started_at = tokio::time::Instant::now();
    let items = model.stream_reply(request("hi")).collect::<Vec<_>>().await;
    assert_eq!((items.len(), items.last().unwrap().is_err()), (4, true));
    assert_eq!(started_at.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn reply_can_require_text_in_its_request() {
    let model =
        Scripted::replies(json!([{"expect": "hello", "content": ["yes"]}, {"expect": "goodbye"}])).unwrap();
    assert!(next_reply(&model).await.is_ok());
    let error = next_reply(&model).await.unwrap_err();
    assert_eq!(error.message, "Reply 2 of the script expects \"goodbye\" in the request.");
}

#[test]
fn invalid_script_names_the_cause() {
    for (text, why) in
        [("{", "EOF"), ("[{\"contents\": []}]", "contents"), ("[{\"fault\": {\"kind\": \"odd\"}}]", "odd")]
    {
        let error = Scripted::parse(text).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Script);
        assert!(error.message.contains(why), "{}", error.message);
    }
    let missing = Scripted::from_file(Path::new("/nowhere/script.json")).unwrap_err();
    assert!(missing.message.starts_with("Script /nowhere/script.json: "), "{}", missing.message);
}

#[test]
fn script_must_be_a_regular_file_of_limited_size() {
    let dir = tempfile::tempdir().unwrap();
    let huge = dir.path().join("huge.json");
    std::fs::File::create(&huge).unwrap().set_len(MAX_SCRIPT_BYTES + 1).unwrap();
    let binary = dir.path().join("binary.json");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket"));
    assert!(socket.is_ok());
    for (path, why) in [
        (Path::new("/dev/zero"), "a device"),
        (dir.path(), "a directory"),
        (&dir.path().join("socket"), "pipe or socket"),
        (&huge, "larger than 64 MB"),
        (&binary, "UTF-8"),
        (Path::new("/nowhere/script.json"), "No such file"),
    ] {
        let message = Scripted::from_file(path).unwrap_err().message;
        assert!(message.contains(why) && message.contains(&*path.to_string_lossy()), "{message}");
    }
}
