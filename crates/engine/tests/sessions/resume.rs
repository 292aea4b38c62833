//! Resuming sessions: resume, continue, fork, rewind, mirror, and the errors.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, Script, SessionDirs};
use whimbrel_wire::control::{CancelAsyncMessage, GetSessionCost, RenameSession, Response, SeedReadState};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use super::fixture::{host_with_replies, joined_texts, resume_options, run_prompts, start_error};

/// The messages without cache marks, whose position changes.
fn without_cache_marks(request: &Value) -> String {
    request["messages"].to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[tokio::test]
async fn replies_carry_their_request_id() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = host_with_replies(&dirs, ["1", "2"], Options::default()).start().await.unwrap();
    host.run("a").await.unwrap();
    let session = host.run("b").await.unwrap().session_id;
    let replies = host.received().iter().filter(|received| received.json["type"] == "assistant");
    let ids: Vec<&Value> = replies.map(|received| &received.json["request_id"]).collect();
    assert_eq!(ids, ["req_1", "req_2"]);
    host.finish().await.unwrap();
    let lines = dirs.read_transcript(&session).unwrap();
    let stored: Vec<&Value> =
        lines.iter().filter(|line| line["type"] == "assistant").map(|line| &line["requestId"]).collect();
    assert_eq!(stored, ["req_1", "req_2"]);
}

#[tokio::test]
async fn errors_carry_their_request_id() {
    let table = [
        ("rejected", Reply::empty().status(403)),
        ("cut in the middle", Reply::text("Once upon a time").cut_after(3).always()),
    ];
    for (name, reply) in table {
        let mut host = Host::with_script([reply]).env("CLAUDE_CODE_MAX_RETRIES", "0").start().await.unwrap();
        assert!(host.run("a").await.unwrap().is_error, "{name}");
        let reply_frame =
            host.received().iter().find(|received| received.json["type"] == "assistant").unwrap();
        assert_eq!(reply_frame.json["request_id"], "req_1", "{name}: {}", reply_frame.json);
    }
}

#[tokio::test]
async fn resumed_session_keeps_history_and_cache_prefix() {
    let dirs = SessionDirs::new().unwrap();
    let (session, before) = run_prompts(&dirs, Options::default(), &["a", "b"]).await;
    let (same, after) = run_prompts(&dirs, resume_options(&session), &["c"]).await;
    assert_eq!((same.as_str(), joined_texts(&after).as_str()), (session.as_str(), "a 1 b 2 c"));
    let before = without_cache_marks(&before);
    let before = before.strip_suffix("]}]").unwrap();
    assert!(
        without_cache_marks(&after).starts_with(before),
        "the prompt cache is invalidated:\n{before}\n{after}"
    );
    let (same, last) =
        run_prompts(&dirs, Options { continue_conversation: true, ..Options::default() }, &["d"]).await;
    assert_eq!((same.as_str(), joined_texts(&last).as_str()), (session.as_str(), "a 1 b 2 c 1 d"));
    assert_eq!(dirs.transcript_paths().unwrap().len(), 1);
    let lines = dirs.read_transcript(&session).unwrap();
    let chain: Vec<&Value> = lines.iter().filter(|line| line.get("parentUuid").is_some()).collect();
    assert_eq!(chain[0]["parentUuid"], Value::Null);
    assert!(chain.windows(2).all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]));
    assert!(!dirs.transcript_paths().unwrap()[0].with_extension("lock").exists());
}

#[tokio::test]
async fn fork_leaves_the_original_unchanged() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a", "b"]).await;
    let before = dirs.read_transcript(&session).unwrap();
    let fork = Options { fork_session: true, ..resume_options(&session) };
    let (forked, request) = run_prompts(&dirs, fork.clone(), &["c"]).await;
    assert_ne!(forked, session);
    assert_eq!(joined_texts(&request), "a 1 b 2 c");
    assert_eq!(dirs.read_transcript(&session).unwrap(), before);
    let copied = dirs.read_transcript(&forked).unwrap();
    assert!(copied.iter().all(|line| line["sessionId"] == forked.as_str()));
    let messages = copied.iter().filter(|line| line.get("parentUuid").is_some());
    assert_eq!(messages.filter(|line| line["forkedFrom"]["sessionId"] == session.as_str()).count(), 4);
    let (_, resumed) = run_prompts(&dirs, resume_options(&forked), &["d"]).await;
    assert_eq!(joined_texts(&resumed), "a 1 b 2 c 1 d");
    let reply = before.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].as_str().unwrap();
    let fork_id = "12345678-2222-4333-8444-555555555555";
    let fork_at_reply =
        Options { resume_session_at: Some(reply.into()), session_id: Some(fork_id.into()), ..fork };
    let (forked, request) = run_prompts(&dirs, fork_at_reply, &["e"]).await;
    assert_eq!((forked.as_str(), joined_texts(&request).as_str()), (fork_id, "a 1 e"));
}

#[tokio::test]
async fn resume_at_an_earlier_message_drops_the_named_turn() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a", "b", "c"]).await;
    let lines = dirs.read_transcript(&session).unwrap();
    let uuid = |kind: &str, number: usize| {
        let found = lines.iter().filter(|line| line["type"] == kind).nth(number).unwrap();
        found["uuid"].as_str().unwrap().to_owned()
    };
    let rewind_options = |message: String, dropped_turn: String| Options {
        resume_session_at: Some(message),
        resume_drops_turn: Some(dropped_turn),
        ..resume_options(&session)
    };
    let error = start_error(&dirs, rewind_options(uuid("assistant", 0), uuid("user", 2))).await;
    assert!(error.starts_with("Resume rejected by --resume-drops-turn:"), "{error}");
    let (_, request) =
        run_prompts(&dirs, rewind_options(uuid("assistant", 1), uuid("user", 2)), &["d"]).await;
    assert_eq!(joined_texts(&request), "a 1 b 2 d");
    let (_, request) = run_prompts(&dirs, resume_options(&session), &["e"]).await;
    assert_eq!(joined_texts(&request), "a 1 b 2 d 1 e");
}

#[tokio::test]
async fn session_is_resumed_by_its_title() {
    let dirs = SessionDirs::new().unwrap();
    let titled = |title: &str| Options { title: Some(title.into()), ..Options::default() };
    let (session, _) = run_prompts(&dirs, titled("Count the Birds"), &["a"]).await;
    run_prompts(&dirs, titled("Something else"), &["b"]).await;
    let (resumed, request) = run_prompts(&dirs, resume_options("count the birds "), &["c"]).await;
    assert_eq!((resumed.as_str(), joined_texts(&request).as_str()), (session.as_str(), "a 1 c"));
    let (other, _) = run_prompts(&dirs, titled("COUNT THE BIRDS"), &["d"]).await;
    let error = start_error(&dirs, resume_options("count the birds")).await;
    assert!(
        error.starts_with("Several sessions")
            && [&session, &other].iter().all(|id| error.contains(id.as_str())),
        "{error}"
    );
    let error = start_error(&dirs, resume_options("count")).await;
    assert!(error.starts_with("No conversation found with the title \"count\""), "{error}");
}

#[tokio::test]
async fn failed_resume_names_the_reason() {
    let dirs = SessionDirs::new().unwrap();
    let unknown = "99999999-2222-4333-8444-555555555555";
    let (session, _) = run_prompts(&dirs, Options::default(), &["a"]).await;
    let id = Some(session.clone());
    let rows = [
        (resume_options(unknown), format!("No conversation found with session ID: {unknown}")),
        (resume_options("../x"), "No conversation found with the title \"../x\"".to_owned()),
        (Options { session_id: id.clone(), ..Options::default() }, "already exists".to_owned()),
        (Options { session_id: id, ..resume_options(&session) }, "--fork-session".to_owned()),
        (Options { resume_session_at: Some("x".into()), ..Options::default() }, "--resume".to_owned()),
        (
            Options { resume_session_at: Some("x".into()), ..resume_options(&session) },
            "No message found".to_owned(),
        ),
        (
            Options { resume_drops_turn: Some("x".into()), ..resume_options(&session) },
            "Resume rejected by --resume-drops-turn: the session has no message x.".to_owned(),
        ),
    ];
    for (options, expected) in rows {
        let error = start_error(&dirs, options).await;
        assert!(error.contains(&expected), "{expected}: {error}");
    }
    let continue_options = Options { continue_conversation: true, ..Options::default() };
    assert_eq!(
        joined_texts(&run_prompts(&SessionDirs::new().unwrap(), continue_options, &["a"]).await.1),
        "a"
    );
}

#[tokio::test]
async fn session_is_locked_by_one_process() {
    let dirs = SessionDirs::new().unwrap();
    let mut first = host_with_replies(&dirs, ["1", "2"], Options::default()).start().await.unwrap();
    let session = first.run("a").await.unwrap().session_id;
    let error = start_error(&dirs, resume_options(&session)).await;
    let owner = format!("in use by process {} (", std::process::id());
    assert!(error.contains(&owner) && error.contains("--fork-session"), "{error}");
    let (_, request) =
        run_prompts(&dirs, Options { fork_session: true, ..resume_options(&session) }, &["b"]).await;
    assert_eq!(joined_texts(&request), "a 1 b");
    assert_eq!(first.run("c").await.unwrap().result.as_deref(), Some("2"));
    first.finish().await.unwrap();
    assert_eq!(joined_texts(&run_prompts(&dirs, resume_options(&session), &["d"]).await.1), "a 1 c 2 d");
}

#[tokio::test]
async fn host_sets_the_session_title() {
    let dirs = SessionDirs::new().unwrap();
    let titles = |session: &str| -> Vec<String> {
        let lines = dirs.read_transcript(session).unwrap();
        lines.iter().filter_map(|line| line["customTitle"].as_str().map(str::to_owned)).collect()
    };
    let with_title = |title: &str| Options { title: Some(title.into()), ..Options::default() };
    let (session, _) = run_prompts(&dirs, with_title(" My\n title "), &["a", "b"]).await;
    assert_eq!(titles(&session), ["My title"]);
    assert_eq!(
        dirs.read_transcript(&session).unwrap().iter().position(|line| line["type"] == "custom-title"),
        {
            let lines = dirs.read_transcript(&session).unwrap();
            lines.iter().position(|line| line["type"] == "user").map(|index| index + 1)
        }
    );
    run_prompts(&dirs, Options { title: Some("Second".into()), ..resume_options(&session) }, &["c"]).await;
    assert_eq!(titles(&session), ["My title", "Second"]);
    let mut host = host_with_replies(&dirs, ["1"], resume_options(&session)).start().await.unwrap();
    host.run("d").await.unwrap();
    host.send_request(RenameSession { title: "Third".into(), ..RenameSession::default() }).await.unwrap();
    assert_eq!(titles(&session), ["My title", "Second", "Third"]);
    let other = json!({"subtype": "rename_session", "title": "x", "session_id": "another"});
    for bad in [json!({"subtype": "rename_session", "title": " "}), other] {
        assert!(matches!(host.send_raw_request(bad).await.unwrap(), Response::Error { .. }));
    }
    let (blank, _) = run_prompts(&dirs, with_title(" "), &["a"]).await;
    assert_eq!(titles(&blank), [""; 0]);
    let (long, _) = run_prompts(&dirs, with_title(&"x".repeat(100_000)), &["a"]).await;
    assert_eq!(titles(&long), ["x".repeat(1_000)]);
}

#[tokio::test]
async fn resumed_session_can_be_renamed_before_the_first_prompt() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) =
        run_prompts(&dirs, Options { title: Some("Old".into()), ..Options::default() }, &["a"]).await;
    let rename = |title: &str| RenameSession { title: title.into(), ..RenameSession::default() };
    let mirrored = Options { session_mirror: true, ..resume_options(&session) };
    let mut host = host_with_replies(&dirs, ["1"], mirrored).start().await.unwrap();
    for bad in [" ", "\u{200b}\u{200b}", &"x".repeat(100_000)] {
        let request = json!({"subtype": "rename_session", "title": bad});
        assert!(matches!(host.send_raw_request(request).await.unwrap(), Response::Error { .. }), "{bad:.20}");
    }
    host.send_request(rename("New")).await.unwrap();
    let last = |session: &str| dirs.read_transcript(session).unwrap().last().unwrap()["customTitle"].clone();
    assert_eq!(last(&session), "New", "at once");
    host.run("b").await.unwrap();
    host.finish().await.unwrap();
    let mirror = host.received().iter().filter(|received| received.json["type"] == "transcript_mirror");
    let copied: String = mirror.map(|received| received.json.to_string()).collect();
    assert_eq!(copied.matches("customTitle").count(), 1, "the line is mirrored to the host");
    let lines = dirs.read_transcript(&session).unwrap();
    let titles: Vec<&Value> = lines.iter().filter_map(|line| line.get("customTitle")).collect();
    assert_eq!(titles, ["Old", "New"]);
    assert_eq!(
        joined_texts(&run_prompts(&dirs, resume_options(&session), &["c"]).await.1),
        "a 1 b 1 c",
        "the history is intact"
    );

    let mut without_prompt = host_with_replies(&dirs, [], resume_options(&session)).start().await.unwrap();
    without_prompt.send_request(rename("Newer")).await.unwrap();
    without_prompt.finish().await.unwrap();
    assert_eq!(last(&session), "Newer", "also without a prompt");
}

#[tokio::test]
async fn session_start_hook_of_a_fork_gets_its_title() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) =
        run_prompts(&dirs, Options { title: Some("Mine".into()), ..Options::default() }, &["a"]).await;
    let hook_input = dirs.root().join("hook-input");
    let command = format!("cat > {}", hook_input.display());
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}});
    let fork = Options { fork_session: true, settings: Some(hook.to_string()), ..resume_options(&session) };
    let (forked, _) = run_prompts(&dirs, fork, &["b"]).await;
    let input: Value = serde_json::from_str(&std::fs::read_to_string(hook_input).unwrap()).unwrap();
    assert_eq!(input["session_title"], "Mine (fork)", "{input}");
    let lines = dirs.read_transcript(&forked).unwrap();
    assert_eq!(lines.iter().find_map(|line| line["customTitle"].as_str()), Some("Mine (fork)"));
}

#[tokio::test]
async fn host_reads_cost_and_cancels_queued_messages() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = host_with_replies(&dirs, ["1"], Options::default()).start().await.unwrap();
    assert_eq!(host.send_request(GetSessionCost {}).await.unwrap().text, "Total cost: $0.0000");
    host.run("a").await.unwrap();
    assert!(host.send_request(GetSessionCost {}).await.unwrap().text.contains(" input, "));
    let unknown = CancelAsyncMessage { message_uuid: "none".into() };
    assert!(!host.send_request(unknown).await.unwrap().cancelled);
}

#[tokio::test]
async fn seeded_read_state_permits_edits_of_unchanged_files() {
    let dirs = SessionDirs::new().unwrap();
    let work = dirs.work_dir();
    let edit = |name: &str| {
        let path = work.join(name).to_string_lossy().into_owned();
        Reply::tool("Edit", json!({"file_path": path, "old_string": "old", "new_string": "new"}))
    };
    let options = Options { permission_mode: Some(PermissionMode::AcceptEdits), ..Options::default() };
    // Offset of the host's time from the file's in milliseconds, and whether the file counts as read.
    let files =
        [("known", 0.0, true), ("rounded", 0.9, true), ("later", 5_000.0, true), ("stale", -5_000.0, false)];
    let edits = files.map(|(name, ..)| edit(name)).into_iter();
    let script: Vec<Reply> = edits.chain([Reply::text("Done.")]).collect();
    let mut host = dirs.host(script, options).start().await.unwrap();
    for (name, offset, is_seeded) in files {
        let path = work.join(name);
        std::fs::write(&path, "old").unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        let mtime = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as f64 + offset;
        let path = path.to_string_lossy().into_owned();
        assert_eq!(
            host.send_request(SeedReadState { path, mtime }).await.unwrap().seeded,
            is_seeded,
            "{name}"
        );
    }
    host.run("Edit.").await.unwrap();
    for (name, _, is_seeded) in files {
        let text = std::fs::read_to_string(work.join(name)).unwrap();
        assert_eq!(text == "new", is_seeded, "{name}");
    }
    let missing = json!({"subtype": "seed_read_state", "path": "gone", "mtime": 1});
    assert!(matches!(host.send_raw_request(missing).await.unwrap(), Response::Error { .. }));
}

#[tokio::test]
async fn nested_instructions_are_sent_once_across_resume() {
    let dirs = SessionDirs::new().unwrap();
    let work = dirs.work_dir();
    std::fs::create_dir_all(work.join("s/t")).unwrap();
    std::fs::write(work.join("s/CLAUDE.md"), "OUTER words").unwrap();
    std::fs::write(work.join("s/t/CLAUDE.md"), "INNER words").unwrap();
    std::fs::write(work.join("s/t/f"), "x").unwrap();
    std::fs::write(work.join("s/f"), "x").unwrap();
    let read = |name: &str| {
        let path = work.join(name).to_string_lossy().into_owned();
        [Reply::tool("Read", json!({"file_path": path})), Reply::text("Read.")]
    };
    let mut host = dirs.host(read("s/t/f"), Options::default()).start().await.unwrap();
    let session = host.run("a").await.unwrap().session_id;
    host.finish().await.unwrap();
    let mut host = dirs.host(read("s/f"), resume_options(&session)).start().await.unwrap();
    host.run("b").await.unwrap();
    let request = host.model_requests().last().unwrap().body.to_string();
    assert_eq!((request.matches("OUTER words").count(), request.matches("INNER words").count()), (1, 1));
}

#[tokio::test]
async fn fork_keeps_unknown_fields() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a"]).await;
    let with_unknown_fields = |mut line: Value| {
        line["brandNew"] = json!({"x": [1, null]});
        line["message"]["alsoNew"] = json!("y");
        line.to_string() + "\n"
    };
    let text: String = dirs.read_transcript(&session).unwrap().into_iter().map(with_unknown_fields).collect();
    std::fs::write(&dirs.transcript_paths().unwrap()[0], text).unwrap();
    let (forked_session, _) =
        run_prompts(&dirs, Options { fork_session: true, ..resume_options(&session) }, &["b"]).await;
    let forked = dirs
        .read_transcript(&forked_session)
        .unwrap()
        .into_iter()
        .filter(|line| line["forkedFrom"].is_object());
    let forked: Vec<Value> = forked.filter(|line| line.get("parentUuid").is_some()).collect();
    assert_eq!(forked.len(), 2);
    for line in forked {
        assert_eq!((&line["brandNew"], &line["message"]["alsoNew"]), (&json!({"x": [1, null]}), &json!("y")));
    }
}

#[tokio::test]
async fn resume_restores_permitted_modes_only() {
    let rows = [
        (PermissionMode::AcceptEdits, None, "acceptEdits"),
        (PermissionMode::AcceptEdits, Some(PermissionMode::Default), "default"),
        (PermissionMode::Plan, None, "default"),
        (PermissionMode::BypassPermissions, None, "default"),
    ];
    for (before, given, expected) in rows {
        let dirs = SessionDirs::new().unwrap();
        let (session, _) =
            run_prompts(&dirs, Options { permission_mode: Some(before), ..Options::default() }, &["a"]).await;
        let options = Options { permission_mode: given, ..resume_options(&session) };
        let mut host = host_with_replies(&dirs, ["1"], options).start().await.unwrap();
        host.send_prompt("b").await.unwrap();
        let init = host.next_matching(&json!({"subtype": "init"})).await.unwrap();
        assert_eq!(init["permissionMode"], expected, "{before:?} {given:?}");
    }
}

#[tokio::test]
async fn unsaved_session_can_resume_a_saved_one() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a"]).await;
    let before = dirs.read_transcript(&session).unwrap();
    let (_, request) =
        run_prompts(&dirs, Options { persist_session: Some(false), ..resume_options(&session) }, &["b"])
            .await;
    assert_eq!(joined_texts(&request), "a 1 b");
    assert_eq!(dirs.read_transcript(&session).unwrap(), before);
}

#[tokio::test]
async fn mirror_frames_carry_every_line_before_the_result() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a"]).await;
    for fork in [false, true] {
        let options = Options { session_mirror: true, fork_session: fork, ..resume_options(&session) };
        let stored_lines = if fork { 0 } else { dirs.read_transcript(&session).unwrap().len() };
        let mut host = host_with_replies(&dirs, ["1"], options).start().await.unwrap();
        let session = host.run("b").await.unwrap().session_id;
        let mirrors: Vec<Value> = host
            .received()
            .iter()
            .filter(|received| received.json["type"] == "transcript_mirror")
            .map(|received| received.json.clone())
            .collect();
        host.finish().await.unwrap();
        let lines: Vec<Value> =
            mirrors.iter().flat_map(|mirror| mirror["entries"].as_array().unwrap().clone()).collect();
        assert_eq!(lines, dirs.read_transcript(&session).unwrap()[stored_lines..], "fork: {fork}");
        assert!(
            mirrors
                .iter()
                .all(|mirror| mirror["filePath"].as_str().unwrap().ends_with(&format!("{session}.jsonl")))
        );
    }
}

#[tokio::test]
async fn corrupt_lines_are_skipped_with_a_warning() {
    let dirs = SessionDirs::new().unwrap();
    let (session, _) = run_prompts(&dirs, Options::default(), &["a", "b"]).await;
    let path = &dirs.transcript_paths().unwrap()[0];
    let text = std::fs::read_to_string(path).unwrap();
    // As if the engine had died while writing the second reply.
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| {
            !["last-prompt", "cost-state"].iter().any(|kind| line.contains(&format!(r#""type":"{kind}""#)))
        })
        .collect();
    lines.insert(2, "\0\0\0");
    let last = lines.pop().unwrap();
    std::fs::write(path, format!("{}\n{}", lines.join("\n"), &last[..40])).unwrap();
    let mut host = host_with_replies(&dirs, ["1"], resume_options(&session)).start().await.unwrap();
    host.run("c").await.unwrap();
    assert_eq!(joined_texts(&host.model_requests()[0].body), "a 1 b+c");
    let warned =
        |json: &Value| json["content"].as_str().is_some_and(|text| text.starts_with("2 unreadable lines"));
    assert!(host.received().iter().any(|received| warned(&received.json)));
    host.finish().await.unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let readable = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert_eq!(text.lines().filter(|line| !readable(line)).collect::<Vec<_>>(), ["\0\0\0"]);
}

/// A script that rejects every request containing the word with a 400 error.
fn script_rejecting(word: &'static str, message: &'static str) -> Script {
    Script::from_fn(move |request| match request.contains_text(word) {
        true => Reply::empty().status(400).error("invalid_request_error", message),
        false => Reply::text("Fine."),
    })
}

#[tokio::test]
async fn rejected_prompt_does_not_break_the_session() {
    for message in
        ["prompt is too long: 212345 tokens > 200000 maximum", "messages.0: Could not process image"]
    {
        let dirs = SessionDirs::new().unwrap();
        let mut host =
            dirs.host(script_rejecting("POISON", message), Options::default()).start().await.unwrap();
        let mut session = String::new();
        for (prompt, rejected) in [
            ("POISON first.", true),
            ("One.", false),
            ("POISON again.", true),
            ("Two.", false),
            ("/compact", false),
            ("Three.", false),
            ("POISON last.", true),
        ] {
            let result = host.run(prompt).await.unwrap();
            assert_eq!(result.is_error, rejected, "{message}: {prompt}: {:?}", result.result);
            session = result.session_id;
        }
        assert!(
            host.model_requests()
                .iter()
                .any(|request| request.contains_text("provider rejected") && request.contains_text("One."))
        );
        host.finish().await.unwrap();
        let text = std::fs::read_to_string(&dirs.transcript_paths().unwrap()[0]).unwrap();
        assert!(
            text.contains("POISON first.") && text.contains("POISON last."),
            "the transcript has the line"
        );
        for fork_session in [false, true] {
            let options = Options { resume: Some(session.clone()), fork_session, ..Options::default() };
            let mut host = dirs.host(script_rejecting("POISON", message), options).start().await.unwrap();
            assert!(!host.run("Four.").await.unwrap().is_error, "{message}");
            let requests = host.model_requests();
            assert!(
                requests[0].contains_text("Three.") && requests[0].contains_text("provider rejected"),
                "{message}"
            );
            host.finish().await.unwrap();
        }
    }
}

#[tokio::test]
async fn rejected_tool_result_does_not_break_the_session() {
    let dirs = SessionDirs::new().unwrap();
    std::fs::write(dirs.work_dir().join("a.txt"), "POISON").unwrap();
    let script = Script::from_fn(|request| match (request.contains_text("POISON"), request.number) {
        (true, _) => Reply::empty().status(400).error("invalid_request_error", "no"),
        (false, 0) => Reply::tool("Read", json!({"file_path": "a.txt"})),
        (false, _) => Reply::text("Fine."),
    });
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    assert!(host.run("Look.").await.unwrap().is_error);
    let result = host.run("And now?").await.unwrap();
    assert!(!result.is_error, "{:?}", result.result);
    let request = host.model_requests().last().unwrap().clone();
    assert!(request.contains_text("Look.") && request.contains_text("because the provider rejected it"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn invalid_blocks_are_dropped_from_a_prompt() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = host_with_replies(&dirs, ["1"], Options::default()).start().await.unwrap();
    let blocks = json!([
        {"type": "text", "text": "Look."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!!!"}},
        {"type": "tool_result", "tool_use_id": "t", "content": "stray"},
    ]);
    let content: whimbrel_wire::content::Content = serde_json::from_value(blocks).unwrap();
    assert!(!host.run(content).await.unwrap().is_error);
    let request = host.model_requests()[0].clone();
    assert!(
        request.contains_text("Look.") && !request.contains_text("!!!") && !request.contains_text("stray")
    );
    let warned = |part: &str| {
        host.received().iter().any(|received| received.json["content"].to_string().contains(part))
    };
    assert!(warned("image that is not valid base64") && warned("no tool call is pending"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn deleted_transcript_is_reported_and_rewritten() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = host_with_replies(&dirs, ["1", "2", "3"], Options::default()).start().await.unwrap();
    let session = host.run("First thing.").await.unwrap().session_id;
    std::fs::remove_dir_all(dirs.config_dir().join("projects")).unwrap();
    host.run("Second thing.").await.unwrap();
    let count_warnings = |host: &Host| {
        let frames = host.received().iter().map(|received| received.json["content"].to_string());
        frames.filter(|text| text.contains("removed or replaced")).count()
    };
    assert_eq!(count_warnings(&host), 1);
    host.run("Third thing.").await.unwrap();
    assert_eq!(count_warnings(&host), 1, "once");
    let other = start_error(&dirs, Options { resume: Some(session.clone()), ..Options::default() }).await;
    assert!(other.contains("in use"), "the lock is restored: {other}");
    host.finish().await.unwrap();
    let options = Options { resume: Some(session), ..Options::default() };
    let (_, request) = run_prompts(&dirs, options, &["Fourth thing."]).await;
    for prompt in ["First thing.", "Second thing.", "Third thing.", "Fourth thing."] {
        assert!(request.to_string().contains(prompt), "{prompt}");
    }
}

/// A transcript as the official engine writes it: entries without visible messages, entries off the branch, a
/// subagent's branch at the end, one line per block of a reply, and a call that was running when the engine ended.
fn official_transcript(session: &str, cwd: &str) -> Vec<Value> {
    let base = |kind: &str, uuid: &str, parent: Option<&str>| {
        json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": cwd, "sessionId": session,
            "version": "2.1.325", "gitBranch": "", "type": kind, "uuid": uuid, "timestamp": "2026-11-01T10:00:00.000Z"})
    };
    let user = |uuid: &str, parent: Option<&str>, content: Value| {
        let mut line = base("user", uuid, parent);
        line["message"] = json!({"role": "user", "content": content});
        line["promptId"] = "p1".into();
        line["permissionMode"] = "default".into();
        line
    };
    let block = |uuid: &str, parent: &str, reply: &str, block: Value| {
        let mut line = base("assistant", uuid, Some(parent));
        line["requestId"] = "req_011".into();
        line["message"] = json!({"id": reply, "type": "message", "role": "assistant", "model": "claude-opus-4-5-20251101",
            "content": [block], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}});
        line
    };
    let mut attachment = base("attachment", "at1", Some("u1"));
    attachment["attachment"] = json!({"type": "environment", "content": "Working directory: /x"});
    let mut result = user(
        "r1",
        Some("c1"),
        json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "one\ntwo"}]),
    );
    result["toolUseResult"] = json!({"stdout": "one\ntwo", "stderr": "", "interrupted": false});
    result["sourceToolAssistantUUID"] = "c1".into();
    let mut side = block("side", "c2", "msg_9", json!({"type": "text", "text": "SIDE BRANCH"}));
    side["isSidechain"] = true.into();
    side["agentId"] = "a1b2c3d".into();
    let queued = |operation: &str| {
        json!({"type": "queue-operation", "operation": operation, "timestamp": "2026-11-01T10:00:00.000Z",
            "sessionId": session, "content": "List."})
    };
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
    vec![
        queued("enqueue"),
        queued("dequeue"),
        user("u1", None, json!("List.")),
        attachment,
        json!({"type": "api-request", "sessionId": session, "requestId": "req_011"}),
        block("t1", "at1", "msg_1", json!({"type": "thinking", "thinking": "Look.", "signature": "sig"})),
        block("c1", "t1", "msg_1", call("toolu_1")),
        result,
        block("e1", "r1", "msg_2", json!({"type": "text", "text": "Two files."})),
        json!({"type": "cost-state", "sessionId": session, "totalCostUSD": 0.1}),
        json!({"type": "last-prompt", "lastPrompt": "List.", "leafUuid": "e1", "sessionId": session}),
        user("u2", Some("e1"), json!([{"type": "text", "text": "Again."}])),
        block("c2", "u2", "msg_3", call("toolu_2")),
        side,
    ]
}

#[tokio::test]
async fn session_of_the_official_engine_can_be_resumed() {
    let dirs = SessionDirs::new().unwrap();
    // A session of our own shows the directory in which transcripts are stored.
    let (our_session, _) = run_prompts(&dirs, Options::default(), &["x"]).await;
    let dir = dirs.transcript_paths().unwrap()[0].parent().unwrap().to_owned();
    let cwd = dirs
        .read_transcript(&our_session)
        .unwrap()
        .iter()
        .find_map(|line| line["cwd"].as_str().map(str::to_owned))
        .unwrap();
    let session = "0f0e0d0c-2222-4333-8444-555555555555";
    let before: String = official_transcript(session, &cwd).iter().map(|line| format!("{line}\n")).collect();
    let path = dir.join(format!("{session}.jsonl"));
    std::fs::write(&path, &before).unwrap();
    let (same, requests) = run_prompts(&dirs, resume_options(session), &["Go on."]).await;
    assert_eq!(same, session);
    let text = requests["messages"].to_string();
    for part in
        ["List.", "Look.", "toolu_1", "one\\ntwo", "Two files.", "Again.", "toolu_2", "unknown", "Go on."]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["SIDE BRANCH", "Working directory: /x", "cost-state"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before), "existing lines are unchanged");
    let appended: Vec<Value> =
        after[before.len()..].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = appended.iter().find(|line| line.get("parentUuid").is_some()).unwrap();
    assert_eq!(first["parentUuid"], "c2", "the branch of a subagent is not continued");
    let last = Options { continue_conversation: true, ..Options::default() };
    assert_eq!(run_prompts(&dirs, last, &["And on."]).await.0, session);
    let fork_at_reply =
        Options { resume_session_at: Some("e1".into()), fork_session: true, ..resume_options(session) };
    assert_eq!(
        joined_texts(&run_prompts(&dirs, fork_at_reply, &["Else."]).await.1),
        "List.   Two files. Else."
    );
}
