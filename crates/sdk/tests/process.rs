//! The SDK with engine processes that misbehave.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tempfile::TempDir;
use whimbrel::wire::message::User;
use whimbrel::wire::permission::PermissionResult;
use whimbrel::{Agent, Environment, Error, Event, Frame, OpenError, Session, Transport, query};

/// An agent whose engine runs this shell code in a directory of its own.
fn agent_with_engine(play: &str) -> (Agent, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.sh");
    let agent = Agent::new().transport(Transport::process(engine)).cwd(dir.path()).env("PLAY", play);
    (agent, dir)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

/// Polls until there is a value.
async fn poll_until_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    with_timeout(async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Waits for a line that the engine writes to a file.
async fn wait_for_line(file: PathBuf) -> String {
    poll_until_some(|| std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'))).await
}

/// Returns the engine's `/proc` directory, which disappears with it.
async fn engine_proc_dir(dir: &TempDir) -> PathBuf {
    Path::new("/proc").join(wait_for_line(dir.path().join("pid")).await.trim())
}

async fn wait_for_cleanup(engine: &Path) {
    poll_until_some(|| (!engine.exists()).then_some(())).await;
    poll_until_some(|| (tokio::runtime::Handle::current().metrics().num_alive_tasks() == 0).then_some(()))
        .await;
}

fn to_json(frame: &Frame) -> Value {
    serde_json::to_value(frame).unwrap()
}

#[tokio::test]
async fn permission_request_passes_while_frames_are_unread() {
    let ask = r#"{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}"#;
    let (agent, dir) = agent_with_engine(&format!(
        "accept; yes '{{\"type\":\"word\"}}' | head -n 20000; echo '{ask}'; read -r line; echo \"$line\" > answer; cat > /dev/null"
    ));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let (controls, frames) = Session::open(&agent).await.unwrap().split();
    let answer = wait_for_line(dir.path().join("answer")).await;
    assert!(answer.contains(r#""behavior":"allow""#) && answer.contains(r#""command":"ls""#), "{answer}");
    controls.finish_input();
    let frames: Vec<_> = with_timeout(frames.collect()).await;
    assert_eq!(frames.len(), 20000);
}

#[tokio::test]
async fn input_stays_open_for_a_prompt_not_yet_read() {
    let state = |state: &str| {
        format!(
            r#"echo '{{"type":"system","subtype":"session_state_changed","state":"{state}","sdk_host_only":true}}'"#
        )
    };
    let (running, idle) = (state("running"), state("idle"));
    let result = r#"echo '{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"session_id":"s","total_cost_usd":0,"usage":{}}'"#;
    let ask = r#"echo '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'"#;
    let (agent, dir) = agent_with_engine(&format!(
        "accept; read -r first; {running}; {result}; read -r second; {idle}; \
         until [ -e finished ]; do sleep 0.02; done; {running}; {ask}; read -r line; echo \"$line\" > answer; \
         {result}; {idle}; cat > rest; echo > closed"
    ));
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("one").await.unwrap();
    with_timeout(session.result()).await.unwrap();
    session.send("two").await.unwrap();
    session.finish_input();
    assert!(matches!(session.send("three").await, Err(Error::InputFinished)));
    std::fs::write(dir.path().join("finished"), "").unwrap();
    with_timeout(session.result()).await.unwrap();
    let answer = wait_for_line(dir.path().join("answer")).await;
    assert!(answer.contains(r#""behavior":"allow""#), "{answer}");
    assert!(with_timeout(session.next()).await.is_none(), "the input is closed in the end");
    assert!(dir.path().join("closed").exists());
}

#[tokio::test]
async fn initialize_reply_is_cached() {
    let (agent, _dir) = agent_with_engine("accept; read -r line; echo '{\"type\":\"asked_again\"}'");
    let mut session = Session::open(&agent).await.unwrap();
    assert_eq!(with_timeout(session.info()).await.unwrap().pid, Some(7));
    assert_eq!(with_timeout(session.info()).await.unwrap().pid, Some(7));
    session.finish_input();
    assert!(
        with_timeout(session.next())
            .await
            .is_some_and(|frame| to_json(&frame.unwrap())["type"] == "asked_again")
    );
}

#[tokio::test]
async fn rejected_initialize_is_an_error_and_ends_the_engine() {
    let (agent, dir) = agent_with_engine(
        r#"opening; printf '{"type":"control_response","response":{"subtype":"error","request_id":"%s","error":"no hooks here"}}\n{"type":"word"}\n' "$id"; exec sleep 60"#,
    );
    let mut running = query("go", &agent);
    let first = with_timeout(running.next()).await.unwrap();
    let engine = engine_proc_dir(&dir).await;
    assert!(matches!(&first, Err(Error::Rejected(text)) if text == "no hooks here"), "{first:?}");
    assert!(with_timeout(running.next()).await.is_none());
    wait_for_cleanup(&engine).await;
}

#[tokio::test]
async fn crashed_engine_is_an_error_with_its_stderr() {
    let (agent, _dir) =
        agent_with_engine("accept; echo '{\"type\":\"word\"}'; echo 'out of luck' >&2; exit 3");
    let frames: Vec<_> = with_timeout(query("go", &agent).collect()).await;
    let [Ok(word), Err(Error::Engine { status, stderr })] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!(to_json(word)["type"], "word");
    assert_eq!(status.code(), Some(3));
    assert_eq!(stderr.trim(), "out of luck");
}

#[tokio::test]
async fn run_ends_although_a_child_holds_the_output() {
    let (agent, dir) = agent_with_engine(
        "accept; echo '{\"type\":\"word\"}'; { until [ -e ended ]; do sleep 0.1; done; } & exit 0",
    );
    let mut session = Session::open(&agent).await.unwrap();
    assert!(with_timeout(session.next()).await.is_some_and(|word| word.is_ok()));
    assert!(with_timeout(session.next()).await.is_none());
    // The child has held the output until now.
    std::fs::write(dir.path().join("ended"), "").unwrap();
}

#[tokio::test]
async fn request_fails_when_the_engine_exits_without_a_reply() {
    let (agent, _dir) = agent_with_engine("accept; read -r line; exit 3");
    let session = Session::open(&agent).await.unwrap();
    assert!(matches!(with_timeout(session.interrupt()).await, Err(Error::SessionEnded)));
}

#[tokio::test]
async fn missing_program_is_an_error() {
    let agent = Agent::new().transport(Transport::process("/nowhere/engine"));
    let frames: Vec<_> = with_timeout(query("go", &agent).collect()).await;
    assert!(matches!(frames.as_slice(), [Err(Error::Spawn { program, .. })] if program == "/nowhere/engine"));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the command is not started here")]
async fn command_has_leading_arguments_variables_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.sh");
    let play = r#"accept; printf '{"type":"seen","one":"%s","own":"%s","both":"%s","home":"%s","flag":"%s","dir":"%s"}\n' "$ONE" "$OWN" "$BOTH" "$HOME" "$1" "$(pwd -P)""#;
    let mut command = std::process::Command::new("sh");
    command.arg(&engine).env("OWN", "2").env("BOTH", "command").env_remove("HOME").current_dir(dir.path());
    let variables = [("PATH", "/usr/bin:/bin"), ("ONE", "1"), ("BOTH", "environment"), ("HOME", "/nowhere")];
    let agent = Agent::new()
        .environment(Environment::from_iter(variables))
        .transport(Transport::command(&command))
        .cwd("/")
        .env("BOTH", "agent")
        .env("PLAY", play);
    let mut session = Session::open(&agent).await.unwrap();
    let seen = to_json(&with_timeout(session.next()).await.unwrap().unwrap());
    let texts: Vec<&str> =
        ["one", "own", "both", "home"].iter().map(|name| seen[name].as_str().unwrap()).collect();
    assert_eq!(texts, ["1", "2", "agent", ""]);
    assert!(seen["flag"].as_str().unwrap().starts_with("--"), "the engine's own arguments follow: {seen}");
    assert_eq!(seen["dir"].as_str().unwrap(), dir.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn missing_directory_is_named_and_not_the_program() {
    let agent = Agent::new().transport(Transport::process("true")).cwd("/nowhere/at/all");
    let frames: Vec<_> = with_timeout(query("go", &agent).collect()).await;
    assert!(
        matches!(frames.as_slice(), [Err(Error::Open(OpenError::NoSuchDirectory(dir)))] if dir == Path::new("/nowhere/at/all")),
        "{frames:?}"
    );
}

#[tokio::test]
async fn stopped_engine_may_still_send_frames() {
    let (agent, dir) = agent_with_engine(
        "accept; trap 'echo \"{\\\"type\\\":\\\"bye\\\"}\"; exit 0' TERM; echo ready > ready; while :; do sleep 0.02; done",
    );
    let (controls, frames) = Session::open(&agent).await.unwrap().split();
    let engine = engine_proc_dir(&dir).await;
    wait_for_line(dir.path().join("ready")).await;
    controls.close();
    let frames: Vec<_> = with_timeout(frames.collect()).await;
    let [Ok(bye)] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!(to_json(bye)["type"], "bye");
    wait_for_cleanup(&engine).await;
}

#[tokio::test]
async fn dropping_kills_an_engine_that_ignores_signals() {
    let (agent, dir) =
        agent_with_engine("accept; trap '' TERM; echo ready > ready; while :; do sleep 0.1; done");
    let session = Session::open(&agent).await.unwrap();
    let engine = engine_proc_dir(&dir).await;
    wait_for_line(dir.path().join("ready")).await;
    drop(session);
    wait_for_cleanup(&engine).await;
}

#[tokio::test]
async fn dropping_kills_an_engine_that_waits_for_a_reader() {
    let (agent, dir) = agent_with_engine("accept; yes '{\"type\":\"word\"}'");
    let session = Session::open(&agent.unread_limit(1000)).await.unwrap();
    let engine = engine_proc_dir(&dir).await;
    with_timeout(session.info()).await.unwrap();
    drop(session);
    wait_for_cleanup(&engine).await;
}

#[tokio::test]
async fn dropping_kills_an_engine_that_is_being_opened() {
    let (agent, dir) = agent_with_engine("cat > /dev/null");
    let opening = tokio::spawn(async move { Session::open(&agent).await.map(drop) });
    let engine = engine_proc_dir(&dir).await;
    opening.abort();
    wait_for_cleanup(&engine).await;
}

#[tokio::test]
async fn engine_sees_only_the_given_environment() {
    let (agent, _dir) = agent_with_engine(
        r#"accept; printf '{"type":"seen","given":"%s","added":"%s","cargo":"%s"}\n' "$GIVEN" "$ADDED" "$CARGO_MANIFEST_DIR""#,
    );
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin"), ("GIVEN", "1")]);
    let agent = agent.environment(environment).env("ADDED", "2");
    let mut session = Session::open(&agent).await.unwrap();
    let seen = to_json(&with_timeout(session.next()).await.unwrap().unwrap());
    assert_eq!((&seen["given"], &seen["added"], &seen["cargo"]), (&"1".into(), &"2".into(), &"".into()));
}

#[tokio::test]
async fn malformed_line_does_not_end_a_turn() {
    let replay = r#"{"type":"user","uuid":"p","isReplay":true,"message":{"role":"user","content":"hi"}}"#;
    let said = |id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":null,"message":{{"id":"{id}","model":"x","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let result = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"said","user_message_uuid":"p"}"#;
    let lines = [replay, &said("m1", "one"), r#"{"type":"#, &said("m2", "two"), result];
    let play = format!("accept; printf '%s\\n' '{}'; cat > /dev/null", lines.join("' '"));
    let prompt = || User { uuid: Some("p".into()), ..User::prompt("hi") };

    let (agent, _dir) = agent_with_engine(&play);
    let mut session = Session::open(&agent).await.unwrap();
    let text: Vec<_> = with_timeout(session.ask(prompt()).text_stream().collect()).await;
    let text: String = text.into_iter().map(Result::unwrap).collect();
    assert_eq!(text, "one\n\ntwo");

    let (agent, _dir) = agent_with_engine(&play);
    let mut session = Session::open(&agent).await.unwrap();
    let events: Vec<_> = with_timeout(session.ask(prompt()).events().collect()).await;
    let events: Vec<Event> = events.into_iter().map(Result::unwrap).collect();
    let [Event::Text(one), Event::Warning(warning), Event::Text(two), Event::Done(answer)] =
        events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!((one.as_str(), two.as_str(), answer.text()), ("one", "two", "said"));
    assert!(warning.contains("invalid line"), "{warning}");

    let (agent, _dir) = agent_with_engine(&play);
    let text: Vec<_> = with_timeout(query("hi", &agent).text_stream().collect()).await;
    let text: String = text.into_iter().map(Result::unwrap).collect();
    assert_eq!(text, "one\n\ntwo");
}
