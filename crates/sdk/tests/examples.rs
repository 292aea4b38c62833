//! Runs the programs of `examples/` as a user would. None of them needs a key: scripted models answer.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

#[cfg(feature = "in-process")]
use std::io::Write;
#[cfg(feature = "sqlite")]
use std::io::{BufRead, Read};
#[cfg(feature = "in-process")]
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the path of an example that was built beside the tests.
fn example_path(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not there: build it with cargo build -p whimbrel --examples",
        path.display()
    );
    path
}

#[cfg(not(feature = "in-process"))]
#[test]
fn process_example_drives_the_built_program() {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("whimbrel");
    assert!(program.is_file(), "{} is not there: build it with cargo build", program.display());
    let dir = tempfile::tempdir().unwrap();
    let call = r#"[{"type":"tool_use","name":"Bash","input":{"command":"touch made"}}]"#;
    std::fs::write(dir.path().join("script.json"), format!(r#"[{call}, "I may not."]"#)).unwrap();
    let output = Command::new(example_path("drive_binary"))
        .arg("Make a file.")
        .arg(&program)
        .args(["--model", "scripted:script.json"])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.path())
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for part in ["[Bash]", "[Bash is refused]", "I may not."] {
        assert!(printed.contains(part), "{part}: {printed}{stderr}");
    }
    assert!(!dir.path().join("made").exists());
}

/// Runs an example in a directory of its own, without a key in its environment, and returns its output.
#[cfg(feature = "in-process")]
fn run_example(name: &str, args: &[&str], input: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(example_path(name))
        .args(args)
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.path())
        .env("TMPDIR", dir.path())
        .env("PLAY", r#"accept; read -r line; echo '{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"From a process."}'"#)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let (printed, stderr) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{name}: {stderr}");
    printed.into_owned()
}

/// The web service; it is killed when it is dropped.
#[cfg(feature = "sqlite")]
struct Service {
    child: std::process::Child,
    address: String,
}

#[cfg(feature = "sqlite")]
impl Service {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(example_path("service"))
            .current_dir(dir)
            .env_clear()
            .env("HOME", dir)
            .env("TMPDIR", dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").to_owned();
        Self { child, address }
    }

    /// Sends a prompt of a user; returns the whole answer.
    fn ask(&self, user: &str, prompt: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let length = prompt.len();
        let request = format!(
            "POST /{user} HTTP/1.1\r\nhost: service\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{prompt}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

#[cfg(feature = "sqlite")]
impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn users_of_the_service_go_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start(dir.path());
    let answers = [service.ask("ann", "Hello."), service.ask("ann", "And?")];
    assert!(answers[0].contains("data: Hello.") && answers[1].contains("data: Hello again."), "{answers:?}");
    drop(service);
    let service = Service::start(dir.path());
    let answer = service.ask("ann", "Still there?");
    assert!(answer.contains("text/event-stream") && answer.contains("data: Hello."), "{answer}");
}

#[cfg(feature = "in-process")]
#[test]
fn every_example_prints_what_it_promises() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.sh").display().to_string();
    let rows: [(&str, &[&str], &str, &[&str]); 12] = [
        ("chat", &[], "Hello.\nAnd?\n", &["Hello. I am scripted.", "I have nothing more to say."]),
        (
            "coding_agent",
            &[],
            "",
            &["[Write ", "done: Bash", "one issue is open.", "issues: [\"No greeting for nobody (Low)\"]"],
        ),
        ("drive_binary", &["What is here?", &engine], "", &["From a process."]),
        ("extract", &[], "", &["Ann pays 1250 cents"]),
        ("many_sessions", &["3"], "", &["3 sessions have finished; the last one said: agent 2 is done"]),
        ("one_shot", &[], "", &["A scripted model.", "($0.0000)"]),
        (
            "opentelemetry",
            &[],
            "",
            &["POST /ask", "\n  invoke_agent main {", "\n    chat sdk {", "\n    execute_tool Bash {"],
        ),
        ("permission", &[], "", &["I looked, and left the rest alone.", "refused: Bash", "rm -rf build"]),
        ("session_store", &[], "", &["Hello, Ann.", "You are Ann.", "user: \"I am Ann.\""]),
        ("swarm", &[], "", &["whimbrel"]),
        ("team", &[], "", &["A whimbrel is a wader"]),
        ("tools", &[], "", &["I wrote it down.", "notes: [\"The key is under the mat.\"]"]),
    ];
    for (name, args, input, parts) in rows {
        let printed = run_example(name, args, input);
        for part in parts {
            assert!(printed.contains(part), "{name} does not say {part:?}: {printed}");
        }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names: Vec<_> = std::fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "shared" && name != "service")
        .collect();
    names.sort();
    assert_eq!(names, rows.map(|(name, ..)| name), "each is run");
}
