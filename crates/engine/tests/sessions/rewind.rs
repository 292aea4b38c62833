//! `rewind_session`: conversation and files go back to before a prompt, in the running session and for later ones.

use serde_json::{Value, json};
use whimbrel_session_store::sessions::{ForkOptions, Sessions};
use whimbrel_session_store::transcript_reader::Message;
use whimbrel_testkit::{Host, Reply, SessionDirs};
use whimbrel_wire::control::{
    PromptText, Response, RewindScope, RewindSession, RewindSessionReply, StoppedTask,
};
use whimbrel_wire::message::User;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use super::fixture::{host_with_replies, joined_texts, resume_options, run_prompts};

/// A uuid for a prompt.
fn uuid(number: usize) -> String {
    format!("aaaaaaaa-2222-4333-8444-{number:012}")
}

/// Runs a prompt with this number.
async fn run_numbered(host: &mut Host, number: usize, text: &str) -> String {
    host.send_frame(User { uuid: Some(uuid(number)), ..User::prompt(text) }).await.unwrap();
    host.next_result().await.unwrap().session_id
}

/// A host that has had three turns, each with one reply, and the id of its session.
async fn host_after_three_turns(dirs: &SessionDirs, options: Options) -> (Host, String) {
    let mut host = host_with_replies(dirs, ["1", "2", "3", "4", "5", "6"], options).start().await.unwrap();
    let mut session = String::new();
    for (number, text) in ["a", "b", "c"].into_iter().enumerate() {
        session = run_numbered(&mut host, number, text).await;
    }
    (host, session)
}

fn request(target: impl Into<String>, restore: RewindScope) -> RewindSession {
    RewindSession { user_message_id: target.into(), restore, dry_run: None }
}

async fn rewind_conversation(host: &mut Host, target: impl Into<String>) -> RewindSessionReply {
    host.send_request(request(target, RewindScope::Conversation)).await.unwrap()
}

async fn rewind_error(host: &mut Host, request: RewindSession) -> (String, Option<String>) {
    let mut request = serde_json::to_value(request).unwrap();
    request["subtype"] = "rewind_session".into();
    match host.send_raw_request(request).await.unwrap() {
        Response::Error { error, error_code, .. } => (error, error_code),
        response @ Response::Success { .. } => panic!("{response:?}"),
    }
}

/// Prompts and replies of the last model request.
fn last_request_texts(host: &Host) -> String {
    joined_texts(&host.model_requests().last().unwrap().body)
}

/// What a resumed session sends to the model.
async fn resumed_texts(dirs: &SessionDirs, session: &str) -> String {
    let options = Options { persist_session: Some(false), ..resume_options(session) };
    joined_texts(&run_prompts(dirs, options, &["x"]).await.1)
}

#[tokio::test]
async fn conversation_goes_back_to_before_a_prompt() {
    let dirs = SessionDirs::new().unwrap();
    let (mut host, session) = host_after_three_turns(&dirs, Options::default()).await;
    let before = dirs.read_transcript(&session).unwrap();
    let dry_run = RewindSession { dry_run: Some(true), ..request(uuid(1), RewindScope::Conversation) };
    let planned = host.send_request(dry_run).await.unwrap();
    let last_reply =
        before.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].as_str().unwrap();
    let expected = RewindSessionReply {
        prompt: Some(PromptText {
            text: "b".into(),
            attachments: 0,
            permission_mode: Some("default".into()),
        }),
        messages_dropped: 4,
        prompts_dropped: 2,
        last_message_id: Some(last_reply.into()),
        ..RewindSessionReply::default()
    };
    assert_eq!(planned, expected);
    assert_eq!(dirs.read_transcript(&session).unwrap(), before, "a dry run changes nothing");

    let reply = rewind_conversation(&mut host, uuid(1)).await;
    let undo_id = reply.undo_id.clone().unwrap();
    assert_eq!(RewindSessionReply { undo_id: None, ..reply }, planned);
    let notice = host.system_frames("conversation_rewound")[0].clone();
    assert_eq!(
        (&notice["uuid"], &notice["user_message_id"], &notice["last_message_id"]),
        (&json!(undo_id), &json!(uuid(1)), &json!(last_reply))
    );
    assert_eq!(dirs.read_transcript(&session).unwrap()[..before.len()], before, "nothing is edited");
    assert_eq!(resumed_texts(&dirs, &session).await, "a 1 x", "also before the next prompt");
    let result = host.run("d").await.unwrap();
    assert_eq!((result.session_id.as_str(), last_request_texts(&host).as_str()), (session.as_str(), "a 1 d"));
    host.finish().await.unwrap();
    assert_eq!(resumed_texts(&dirs, &session).await, "a 1 d 4 x");
    let fork = Options { fork_session: true, ..resume_options(&session) };
    assert_eq!(joined_texts(&run_prompts(&dirs, fork, &["y"]).await.1), "a 1 d 4 y");
}

#[tokio::test]
async fn readers_see_the_rewound_conversation() {
    let dirs = SessionDirs::new().unwrap();
    let (mut host, session) = host_after_three_turns(&dirs, Options::default()).await;
    rewind_conversation(&mut host, uuid(2)).await;
    host.finish().await.unwrap();
    let sessions = Sessions::on_disk(dirs.config_dir(), Some(&dirs.work_dir()));
    let texts = |messages: Vec<Message>| {
        let text = |content: &Value| content.as_str().or(content[0]["text"].as_str()).unwrap().to_owned();
        messages.iter().map(|message| text(&message.message["content"])).collect::<Vec<_>>()
    };
    assert_eq!(texts(sessions.messages(&session).await.unwrap()), ["a", "1", "b", "2"]);
    assert_eq!(sessions.list().await.unwrap()[0].summary, "b");
    assert_eq!(sessions.search("c", 9).await.unwrap(), []);
    assert_eq!(sessions.search("b", 9).await.unwrap()[0].hits.len(), 1);
    let forked = sessions.fork(&session, ForkOptions::default()).await.unwrap();
    assert_eq!(texts(sessions.messages(&forked).await.unwrap()), ["a", "1", "b", "2"]);
}

#[tokio::test]
async fn rewind_is_undone_and_repeated() {
    let dirs = SessionDirs::new().unwrap();
    let (mut host, session) = host_after_three_turns(&dirs, Options::default()).await;
    let rewound = rewind_conversation(&mut host, uuid(0)).await;
    assert_eq!((rewound.messages_dropped, rewound.last_message_id), (6, None));
    host.run("d").await.unwrap();
    assert_eq!(last_request_texts(&host), "d");
    let undone = rewind_conversation(&mut host, rewound.undo_id.unwrap()).await;
    let counts = (undone.messages_dropped, undone.prompts_dropped, undone.messages_restored);
    assert_eq!((counts, undone.prompt), ((2, 1, 6), None));
    host.run("e").await.unwrap();
    assert_eq!(last_request_texts(&host), "a 1 b 2 c 3 e");
    let again = rewind_conversation(&mut host, undone.undo_id.unwrap()).await;
    assert_eq!((again.messages_dropped, again.messages_restored), (8, 2));
    host.run("f").await.unwrap();
    assert_eq!(last_request_texts(&host), "d 4 f");
    host.finish().await.unwrap();
    assert_eq!(resumed_texts(&dirs, &session).await, "d 4 f 6 x");
}

#[tokio::test]
async fn resumed_session_is_rewound_before_its_first_prompt() {
    let dirs = SessionDirs::new().unwrap();
    let (mut host, session) = host_after_three_turns(&dirs, Options::default()).await;
    host.finish().await.unwrap();
    let mut host = host_with_replies(&dirs, ["4"], resume_options(&session)).start().await.unwrap();
    let reply = rewind_conversation(&mut host, uuid(2)).await;
    assert_eq!((reply.messages_dropped, reply.prompt.clone().unwrap().text.as_str()), (2, "c"));
    host.run("d").await.unwrap();
    assert_eq!(last_request_texts(&host), "a 1 b 2 d");
    host.finish().await.unwrap();
    let mut host = host_with_replies(&dirs, ["5"], resume_options(&session)).start().await.unwrap();
    rewind_conversation(&mut host, reply.undo_id.unwrap()).await;
    host.run("e").await.unwrap();
    assert_eq!(last_request_texts(&host), "a 1 b 2 c 3 e", "undone in a later run");
}

#[tokio::test]
async fn rewind_reaches_across_a_compaction_and_not_across_clear() {
    let dirs = SessionDirs::new().unwrap();
    let script = ["1", "2", "SUMMARY", "3", "4", "5"];
    let mut host = host_with_replies(&dirs, script, Options::default()).start().await.unwrap();
    for (number, text) in ["a", "b", "/compact", "c"].into_iter().enumerate() {
        run_numbered(&mut host, number, text).await;
    }
    let reply = rewind_conversation(&mut host, uuid(3)).await;
    assert_eq!((reply.messages_dropped, reply.prompts_dropped), (2, 1));
    host.run("d").await.unwrap();
    let summarized = last_request_texts(&host);
    assert!(summarized.contains("SUMMARY") && summarized.ends_with("+d"), "{summarized}");
    let (error, _) = rewind_error(&mut host, request(uuid(2), RewindScope::Conversation)).await;
    assert!(error.starts_with(&format!("{} is not a prompt that the model got.", uuid(2))), "{error}");
    let reply = rewind_conversation(&mut host, uuid(1)).await;
    assert_eq!((reply.messages_dropped, reply.prompts_dropped), (4, 2), "b and d with their replies");
    host.run("e").await.unwrap();
    assert_eq!(last_request_texts(&host), "a 1 e");

    run_numbered(&mut host, 4, "/clear").await;
    let (error, _) = rewind_error(&mut host, request(uuid(0), RewindScope::Conversation)).await;
    assert!(error.contains("/clear"), "{error}");
}

#[tokio::test]
async fn rewind_is_refused_while_a_turn_runs() {
    let dirs = SessionDirs::new().unwrap();
    let script = [Reply::text("1"), Reply::text("2").hold_until("go")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    let (error, _) = rewind_error(&mut host, request(uuid(0), RewindScope::Conversation)).await;
    assert_eq!(error, "The session has no prompt yet.");
    run_numbered(&mut host, 0, "a").await;
    host.send_prompt("b").await.unwrap();
    let (error, code) = rewind_error(&mut host, request(uuid(0), RewindScope::Both)).await;
    assert!(error.contains("while a turn runs"), "{error}");
    assert_eq!(code.as_deref(), Some("turn_running"));
    host.api().unwrap().release("go");
    host.next_result().await.unwrap();
    assert_eq!(rewind_conversation(&mut host, uuid(0)).await.messages_dropped, 4);
}

#[tokio::test]
async fn unstored_conversation_is_not_rewound() {
    let dirs = SessionDirs::new().unwrap();
    let options = Options { persist_session: Some(false), ..Options::default() };
    let (mut host, _) = host_after_three_turns(&dirs, options).await;
    let (error, _) = rewind_error(&mut host, request(uuid(1), RewindScope::Conversation)).await;
    assert!(error.starts_with("This session is not stored"), "{error}");
}

#[tokio::test]
async fn files_go_back_with_the_conversation_and_forward_again() {
    let dirs = SessionDirs::new().unwrap();
    let path = |name: &str| dirs.work_dir().join(name);
    let write = |name: &str, content: &str| {
        Reply::tool("Write", json!({"file_path": path(name), "content": content}))
    };
    let edit =
        || Reply::tool("Edit", json!({"file_path": path("a"), "old_string": "one", "new_string": "two"}));
    let script = [
        write("a", "one\n"),
        Reply::text("1"),
        edit(),
        write("b", "b\n"),
        Reply::text("2"),
        edit(),
        Reply::text("3"),
    ];
    let options = Options {
        enable_file_checkpointing: true,
        permission_mode: Some(PermissionMode::AcceptEdits),
        ..Options::default()
    };
    let mut host = dirs.host(script, options).start().await.unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).ok();
    run_numbered(&mut host, 0, "Write.").await;
    run_numbered(&mut host, 1, "Edit.").await;
    let dry_run = RewindSession { dry_run: Some(true), ..request(uuid(1), RewindScope::Both) };
    let files = host.send_request(dry_run).await.unwrap().files.unwrap();
    assert_eq!((files.can_rewind, files.insertions, files.deletions), (true, Some(1), Some(2)));
    let rewound = host.send_request(request(uuid(1), RewindScope::Both)).await.unwrap();
    assert_eq!(rewound.files.unwrap().files_changed.unwrap().len(), 2);
    assert_eq!((read("a").as_deref(), read("b")), (Some("one\n"), None));
    let undo = |restore| request(rewound.undo_id.clone().unwrap(), restore);
    let undone = host.send_request(undo(RewindScope::Both)).await.unwrap();
    assert_eq!((read("a").as_deref(), read("b").as_deref()), (Some("two\n"), Some("b\n")), "bytes are equal");
    assert_eq!((undone.messages_restored, undone.prompt), (6, None));
    let only_files = host.send_request(request(uuid(1), RewindScope::Files)).await.unwrap();
    assert_eq!((only_files.messages_dropped, only_files.prompt.unwrap().text.as_str()), (0, "Edit."));
    assert_eq!(read("a").as_deref(), Some("one\n"));
    rewind_conversation(&mut host, uuid(1)).await;
    run_numbered(&mut host, 2, "Edit it once more.").await;
    assert_eq!(read("a").as_deref(), Some("one\n"), "the model must read the file again");
    let (error, _) = rewind_error(&mut host, request(uuid(9), RewindScope::Files)).await;
    assert_eq!(error, "No file checkpoint found for this message.");
}

#[tokio::test]
async fn both_needs_checkpoints_before_anything_changes() {
    let dirs = SessionDirs::new().unwrap();
    let (mut host, session) = host_after_three_turns(&dirs, Options::default()).await;
    let before = dirs.read_transcript(&session).unwrap();
    let dry_run = RewindSession { dry_run: Some(true), ..request(uuid(1), RewindScope::Both) };
    let planned = host.send_request(dry_run).await.unwrap();
    let files = planned.files.unwrap();
    assert_eq!((planned.messages_dropped, files.can_rewind), (4, false));
    let (error, _) = rewind_error(&mut host, request(uuid(1), RewindScope::Both)).await;
    assert_eq!((Some(error), dirs.read_transcript(&session).unwrap()), (files.error, before));
}

#[tokio::test]
async fn background_work_of_dropped_messages_is_stopped() {
    let dirs = SessionDirs::new().unwrap();
    let start = |command: &str, name: &str| {
        Reply::tool("Bash", json!({"command": command, "run_in_background": true, "description": name}))
    };
    let script = [
        start("sleep 600", "kept"),
        Reply::text("1"),
        start("sleep 601", "dropped"),
        Reply::tool("ScheduleWakeup", json!({"delaySeconds": 3600, "prompt": "Look.", "reason": "r"})),
        Reply::text("2"),
        Reply::text("3"),
        Reply::text("4"),
    ];
    let options = Options { permission_mode: Some(PermissionMode::BypassPermissions), ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    run_numbered(&mut host, 0, "a").await;
    run_numbered(&mut host, 1, "b").await;
    let dry_run = RewindSession { dry_run: Some(true), ..request(uuid(1), RewindScope::Conversation) };
    let planned = host.send_request(dry_run).await.unwrap().stopped_tasks;
    let descriptions: Vec<&str> = planned.iter().map(|task| task.description.as_str()).collect();
    assert_eq!(descriptions, ["dropped", "Look."]);
    let rewound = rewind_conversation(&mut host, uuid(1)).await;
    assert_eq!(rewound.stopped_tasks, planned);
    let StoppedTask { task_id, .. } = &planned[0];
    let ended = json!({"subtype": "task_notification", "task_id": task_id, "status": "stopped"});
    host.next_matching(&ended).await.unwrap();
    host.run("c").await.unwrap();
    let request_body = host.model_requests().last().unwrap().body.to_string();
    assert!(!request_body.contains(task_id.as_str()), "the model does not know of it: {request_body}");
    let tasks = host.system_frames("background_tasks_changed").pop().unwrap();
    assert_eq!(tasks["tasks"][0]["description"], "kept");

    rewind_conversation(&mut host, rewound.undo_id.unwrap()).await;
    host.run("d").await.unwrap();
    assert!(host.model_requests().last().unwrap().contains_text(&format!("{task_id} (stopped)")));
}
