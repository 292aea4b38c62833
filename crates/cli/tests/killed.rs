//! Kills the program repeatedly at arbitrary moments; each time it resumes with all messages and tool results.
//! `cargo xtask bench killed` does the same more often.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use whimbrel_testkit::{Host, HostBuilder, HostResponse, KillTest, Reply, SessionDirs};
use whimbrel_wire::control::{Initialize, Request, ResumePendingCalls};
use whimbrel_wire::options::{Options, PermissionPromptTool};

#[tokio::test]
async fn nothing_is_lost_by_repeated_kills() {
    let borne = KillTest::new(env!("CARGO_BIN_EXE_whimbrel")).kills(25).run(|_| {}).await.unwrap();
    assert_eq!(borne.kills, 25);
    assert!(borne.messages > 25 && borne.commands > 25, "too little happened: {borne:?}");
}

#[tokio::test]
async fn mcp_servers_end_when_the_program_is_killed() {
    let script = r#"echo $$ > pid; (setsid sleep 600 & echo $! > daemon)
        while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
                *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
            esac
        done"#;
    let server = serde_json::from_value(json!({"command": "sh", "args": ["-c", script]})).unwrap();
    let work = tempfile::tempdir().unwrap();
    let options = Options {
        cwd: Some(work.path().to_string_lossy().into_owned()),
        mcp_servers: [("s".to_owned(), server)].into(),
        ..Options::default()
    };
    let mut host = Host::with_script([Reply::text("Hi.")])
        .program(env!("CARGO_BIN_EXE_whimbrel"))
        .options(options)
        .start()
        .await
        .unwrap();
    host.run("Hi.").await.unwrap();
    let pid = |name: &str| std::fs::read_to_string(work.path().join(name)).unwrap().trim().to_owned();
    let left = [pid("pid"), pid("daemon")];
    // Dropping the host kills the program.
    drop(host);
    let gone = async {
        while left.iter().any(|pid| Path::new("/proc").join(pid).join("cwd").exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), gone).await.unwrap();
}

/// A host that allows calls whose input contains one of these texts, and leaves other questions open.
fn host_allowing(
    dirs: &SessionDirs,
    options: Options,
    replies: Vec<Reply>,
    allowed: &'static [&str],
) -> HostBuilder {
    let options = Options { permission_prompt_tool: Some(PermissionPromptTool::Stdio), ..options };
    let answer = move |request: &Request| match request {
        Request::CanUseTool(call)
            if allowed.iter().any(|text| json!(call.input).to_string().contains(text)) =>
        {
            HostResponse::Success(json!({"behavior": "allow"}))
        }
        _ => HostResponse::NoResponse,
    };
    dirs.host(replies, options).program(env!("CARGO_BIN_EXE_whimbrel")).on_request(answer)
}

/// Kills the program before its pipes are closed, from which it would learn that the host is gone.
fn kill_program(host: Host, pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    assert!(pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()), "cannot kill the program");
    drop(host);
}

#[tokio::test]
async fn question_survives_a_kill_and_running_call_does_not() {
    let dirs = SessionDirs::new().unwrap();
    let bash = |command: &str| json!({"command": command, "description": "Work"});
    let commands = Reply::text("I begin.")
        .and_tool("Bash", bash("echo one >> log; exec sleep 600"))
        .tool_use_id("call_1")
        .and_tool("Bash", bash("echo two >> log"))
        .tool_use_id("call_2");
    let log = || std::fs::read_to_string(dirs.work_dir().join("log")).unwrap_or_default();
    let session = "12345678-2222-4333-8444-555555555555";

    let new = Options { session_id: Some(session.into()), ..Options::default() };
    let mut host = host_allowing(&dirs, new, vec![commands], &["log"]).start().await.unwrap();
    let pid = host.send_request(Initialize::default()).await.unwrap().pid.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    let runs = async {
        while log().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), runs).await.unwrap();
    // The first call runs, the second waits behind it.
    kill_program(host, pid);

    let resumed = || Options { resume: Some(session.into()), ..Options::default() };
    let mut host = host_allowing(&dirs, resumed(), Vec::new(), &[]).start().await.unwrap();
    let pid = host.send_request(Initialize::default()).await.unwrap().pid.unwrap();
    let calls = host.send_request(ResumePendingCalls {}).await.unwrap().calls;
    assert_eq!(calls.iter().map(|call| call.tool_use_id.as_str()).collect::<Vec<_>>(), ["call_2"]);
    let question =
        json!({"type": "control_request", "request": {"subtype": "can_use_tool", "tool_use_id": "call_2"}});
    host.next_matching(&question).await.unwrap();
    // Now the program is killed while the question is open.
    kill_program(host, pid);

    let mut host =
        host_allowing(&dirs, resumed(), vec![Reply::text("Done.")], &["log"]).start().await.unwrap();
    assert_eq!(host.send_request(ResumePendingCalls {}).await.unwrap().calls, calls);
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Done."));
    assert_eq!(log(), "one\ntwo\n", "each command ran once");
    let request = host.model_requests()[0].body["messages"].to_string();
    assert!(request.contains("Outcome unknown"), "{request}");
}
