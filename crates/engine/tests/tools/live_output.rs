//! Live output of running commands, for a host that has subscribed.

use std::path::PathBuf;

use serde_json::{Value, json};
use whimbrel_process::test_support::eventually;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{BackgroundTasks, Interrupt, SubscribeToolOutput};
use whimbrel_wire::message::ToolOutputChunk;
use whimbrel_wire::permission::PermissionResult;

/// Prints a line, waits until the test writes to `gate`, and prints the line it reads.
const GATED: &str = "mkfifo gate; echo before; cat gate";

/// A host that allows every call.
async fn start_host(script: impl Into<Script>) -> Host {
    Host::with_script(script).can_use_tool(|_| PermissionResult::allow()).start().await.unwrap()
}

async fn start_subscribed(script: impl Into<Script>) -> Host {
    let mut host = start_host(script).await;
    host.send_request(SubscribeToolOutput { enabled: true }).await.unwrap();
    host
}

/// Waits for the next live output.
async fn next_chunk(host: &mut Host) -> ToolOutputChunk {
    match host.next_frame(|frame| matches!(frame, Frame::ToolOutput(_))).await.unwrap() {
        Frame::ToolOutput(chunk) => (**chunk).clone(),
        other => panic!("{other:?}"),
    }
}

/// Lets a gated command go on.
async fn open_gate(host: &Host) {
    let gate = host.dirs().workspace().join("gate");
    assert!(eventually(|| gate.exists()).await);
    std::fs::write(gate, "after\n").unwrap();
}

/// All live output so far.
fn chunks(host: &Host) -> Vec<ToolOutputChunk> {
    let chunks = host.frames().filter_map(|frame| match frame {
        Frame::ToolOutput(chunk) => Some((**chunk).clone()),
        _ => None,
    });
    chunks.collect()
}

/// The live text of all frames.
fn live_text(host: &Host) -> String {
    chunks(host).into_iter().map(|chunk| chunk.text).collect()
}

fn position(host: &Host, is_wanted: impl Fn(&Value) -> bool) -> usize {
    host.received().iter().position(|received| is_wanted(&received.json)).unwrap()
}

fn last_chunk_position(host: &Host) -> usize {
    host.received().iter().rposition(|received| received.json["type"] == "tool_output").unwrap()
}

fn is_result_of(frame: &Value, call: &str) -> bool {
    frame["message"]["content"][0]["tool_use_id"] == call
}

fn transcripts(host: &Host) -> Vec<PathBuf> {
    let projects = std::fs::read_dir(host.dirs().home().join(".claude/projects")).unwrap();
    let files = projects.flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).filter(|path| path.is_file()).collect()
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let script = [Reply::bash(GATED).tool_use_id("call_1"), Reply::text("Done.")];
    let mut host = start_subscribed(script).await;
    host.send_prompt("Go.").await.unwrap();
    let first = next_chunk(&mut host).await;
    let expected = ToolOutputChunk {
        tool_use_id: "call_1".into(),
        text: "before\n".into(),
        uuid: first.uuid.clone(),
        session_id: host.init_frame().unwrap()["session_id"].as_str().unwrap().to_owned(),
        ..ToolOutputChunk::default()
    };
    assert_eq!(first, expected);
    open_gate(&host).await;
    host.next_result().await.unwrap();
    assert_eq!(live_text(&host), "before\nafter\n");
    let result = position(&host, |frame| is_result_of(frame, "call_1"));
    assert!(last_chunk_position(&host) < result, "nothing follows the result");
    host.finish().await.unwrap();
    for transcript in transcripts(&host) {
        assert!(!std::fs::read_to_string(transcript).unwrap().contains("tool_output"));
    }
}

#[tokio::test]
async fn no_output_arrives_without_a_subscription() {
    let script =
        [Reply::bash("echo one"), Reply::text("Done."), Reply::bash("echo two"), Reply::text("Done.")];
    let mut host = start_host(script).await;
    host.run("Go.").await.unwrap();
    assert_eq!(chunks(&host), []);
    host.send_request(SubscribeToolOutput { enabled: true }).await.unwrap();
    host.send_request(SubscribeToolOutput { enabled: false }).await.unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(chunks(&host), []);
    host.finish().await.unwrap();
}

#[tokio::test]
async fn subscription_applies_to_a_running_command() {
    let mut host = start_host([Reply::bash(GATED), Reply::text("Done.")]).await;
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    host.send_request(SubscribeToolOutput { enabled: true }).await.unwrap();
    open_gate(&host).await;
    host.next_result().await.unwrap();
    assert!(live_text(&host).ends_with("after\n"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn background_command_names_its_task_and_ends_before_the_notice() {
    for at_end in ["stop", "detach"] {
        check_background_command(at_end).await;
    }
}

async fn check_background_command(at_end: &str) {
    let input = json!({"command": GATED, "run_in_background": true});
    let script =
        [Reply::tool("Bash", input).tool_use_id("call_1"), Reply::text("Started."), Reply::text("Noticed.")];
    let host = Host::with_script(script).env("WHIMBREL_BACKGROUND_AT_END", at_end);
    let mut host = host.can_use_tool(|_| PermissionResult::allow()).start().await.unwrap();
    host.send_request(SubscribeToolOutput { enabled: true }).await.unwrap();
    host.run("Go.").await.unwrap();
    open_gate(&host).await;
    host.next_result().await.unwrap();
    assert_eq!(live_text(&host), "before\nafter\n");
    let ended = &host.system_frames("task_notification")[0];
    for chunk in chunks(&host) {
        assert_eq!((chunk.tool_use_id.as_str(), json!(chunk.task_id)), ("call_1", ended["task_id"].clone()));
    }
    assert!(last_chunk_position(&host) < position(&host, |frame| frame["subtype"] == "task_notification"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn output_goes_on_in_the_background() {
    let script = [Reply::bash(GATED).tool_use_id("call_1"), Reply::text("Moved."), Reply::text("Noticed.")];
    let mut host = start_subscribed(script).await;
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(next_chunk(&mut host).await.task_id, None);
    host.send_request(BackgroundTasks { tool_use_id: Some("call_1".into()) }).await.unwrap();
    host.next_result().await.unwrap();
    open_gate(&host).await;
    let later = next_chunk(&mut host).await;
    assert_eq!((later.tool_use_id.as_str(), later.text.as_str()), ("call_1", "after\n"));
    host.next_result().await.unwrap();
    let ended = &host.system_frames("task_notification")[0];
    assert_eq!(json!(later.task_id), ended["task_id"]);
    host.finish().await.unwrap();
}

#[tokio::test]
async fn output_of_a_subagent_names_the_agent_and_its_call() {
    let agent = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let script = [
        Reply::tool("Agent", agent).tool_use_id("call_agent"),
        Reply::bash("echo inside").tool_use_id("call_bash"),
        Reply::text("Seen."),
        Reply::text("Done."),
    ];
    let mut host = start_subscribed(script).await;
    host.run("Go.").await.unwrap();
    let task = host.system_frames("task_started")[0]["task_id"].as_str().unwrap().to_owned();
    let chunks = chunks(&host);
    let [chunk] = &chunks[..] else { panic!("{chunks:?}") };
    assert_eq!(
        (chunk.tool_use_id.as_str(), chunk.parent_tool_use_id.as_deref(), chunk.agent_id.as_deref()),
        ("call_bash", Some("call_agent"), Some(task.as_str()))
    );
    assert_eq!((chunk.task_id.as_deref(), chunk.text.as_str()), (None, "inside\n"));
    host.finish().await.unwrap();
}

#[tokio::test]
async fn monitored_command_has_live_output() {
    let input = json!({"description": "events", "command": "echo event", "timeout_ms": 60_000});
    let script = Script::from_fn(move |request| match request.number {
        0 => Reply::tool("Monitor", input.clone()).tool_use_id("call_1"),
        _ => Reply::text("I see."),
    });
    let mut host = start_subscribed(script).await;
    host.send_prompt("Go.").await.unwrap();
    let chunk = next_chunk(&mut host).await;
    assert_eq!((chunk.tool_use_id.as_str(), chunk.text.as_str()), ("call_1", "event\n"));
    assert!(chunk.task_id.is_some());
    host.finish().await.unwrap();
}

#[tokio::test]
async fn interrupted_command_prints_nothing_after_its_result() {
    let script = [Reply::bash("while :; do echo x; done").tool_use_id("call_1")];
    let mut host = start_subscribed(script).await;
    host.send_prompt("Go.").await.unwrap();
    next_chunk(&mut host).await;
    host.send_request(Interrupt::default()).await.unwrap();
    host.next_result().await.unwrap();
    host.finish().await.unwrap();
    assert!(last_chunk_position(&host) < position(&host, |frame| is_result_of(frame, "call_1")));
}

#[tokio::test]
async fn flood_waits_for_no_host_and_is_counted() {
    let command = "head -c 50000000 /dev/zero | tr '\\0' x; touch done";
    let mut host = start_subscribed([Reply::bash(command), Reply::text("Done.")]).await;
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    // The host reads nothing until the command and the turn have gone on.
    let done = host.dirs().workspace().join("done");
    assert!(eventually(|| done.exists()).await);
    assert!(eventually(|| host.model_requests().len() == 2).await);
    host.next_result().await.unwrap();
    let total: u64 = chunks(&host).iter().map(|chunk| chunk.omitted_bytes + chunk.text.len() as u64).sum();
    assert_eq!(total, 50_000_000);
    let longest = chunks(&host).iter().map(|chunk| chunk.text.len()).max().unwrap();
    assert!(longest <= 32 * 1024, "{longest}");
    host.finish().await.unwrap();
}
