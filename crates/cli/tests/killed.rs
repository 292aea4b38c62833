//! Kills the program repeatedly at arbitrary moments; each time it resumes with all messages and tool results.
//! `cargo xtask bench killed` does the same more often.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use whimbrel_testkit::{Host, KillTest, Reply};
use whimbrel_wire::options::Options;

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
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}
