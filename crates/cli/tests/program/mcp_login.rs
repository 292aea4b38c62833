//! `whimbrel mcp login`, end to end with a browser.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::mpsc;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use whimbrel_testkit::OauthMock;
use whimbrel_testkit::oauth_mock::{ClientRegistration, complete_login};

use crate::harness::{RunOutput, TestDir, wait_for_exit};

/// A server with OAuth login, in a thread of its own.
struct OAuthServer {
    url: String,
    _end: oneshot::Sender<()>,
}

impl OAuthServer {
    fn start() -> Self {
        let (tell, url) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let guarded = OauthMock::start(ClientRegistration::Dynamic).await.unwrap();
                tell.send(guarded.url()).unwrap();
                let _ = ended.await;
            });
        });
        Self { url: url.recv().unwrap(), _end: end }
    }
}

#[track_caller]
fn run_mcp(test_dir: &TestDir, args: &[&str], code: i32) -> String {
    let RunOutput { code: ended, stdout, stderr } = test_dir.run(&[&["mcp"], args].concat(), "");
    assert_eq!(ended, Some(code), "{args:?}: {stdout}{stderr}");
    stdout + &stderr
}

#[test]
fn user_logs_in_and_out() {
    let (test_dir, server) = (TestDir::new(), OAuthServer::start());
    run_mcp(&test_dir, &["add", "birds", "--scope", "user", &server.url], 0);
    assert!(
        run_mcp(&test_dir, &["list", "--long"], 0).contains("requires a login: whimbrel mcp login birds")
    );
    assert!(run_mcp(&test_dir, &["test", "birds"], 1).contains("whimbrel mcp login birds"));

    let mut child = test_dir
        .command(&["mcp", "login", "birds"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "no address was printed");
        if line.trim().starts_with("http://") {
            break line.trim().to_owned();
        }
    };
    let browser = Builder::new_current_thread().enable_all().build().unwrap();
    browser.block_on(complete_login(&address)).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(wait_for_exit(&mut child).code(), Some(0), "{rest}");
    assert!(rest.contains("Logged in to birds.") && rest.contains("1 tool\n  count  Counts birds"), "{rest}");
    let credentials = test_dir.work_dir().join("../home/.claude/mcp-logins.json");
    assert_eq!(credentials.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(run_mcp(&test_dir, &["list"], 0).ends_with(" (HTTP) - ✓ Connected\n"));

    assert!(run_mcp(&test_dir, &["logout", "birds"], 0).contains("were deleted"));
    assert!(run_mcp(&test_dir, &["logout", "birds"], 0).contains("There are no stored credentials"));
    assert!(run_mcp(&test_dir, &["list"], 0).ends_with(" (HTTP) - ⚠ Needs authentication\n"));
}

#[test]
fn impossible_login_is_reported() {
    let test_dir = TestDir::new();
    run_mcp(&test_dir, &["add", "prog", "--", "true"], 0);
    run_mcp(&test_dir, &["add", "offline", "http://127.0.0.1:1/mcp"], 0);
    for (args, words) in [
        (&["login", "prog"][..], "prog is a program"),
        (&["login", "porg"][..], "Did you mean prog?"),
        (&["login", "offline"][..], "MCP server offline: "),
        (&["login"][..], "Usage: whimbrel mcp login NAME"),
    ] {
        let output = run_mcp(&test_dir, args, 1);
        assert!(output.contains(words), "{output}");
    }
}
