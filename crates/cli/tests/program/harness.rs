//! Starts the program with a home and working directory of its own and a clean environment, and waits with timeouts.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Timeout of every wait.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until a condition holds.
pub(crate) fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Temporary home, working and scratch directories.
pub(crate) struct TestDir {
    root: TempDir,
}

/// Output of a finished run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn work_dir(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn temp_dir(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Reads the only transcript.
    pub(crate) fn read_transcript(&self) -> String {
        let projects = self.work_dir().join("../home/.claude/projects");
        let dir = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let path = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    /// Writes a script and returns the name of its model.
    pub(crate) fn write_script(&self, replies: &Value) -> String {
        let path = self.root.path().join("script.json");
        std::fs::write(&path, replies.to_string()).unwrap();
        format!("scripted:{}", path.display())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .current_dir(self.work_dir());
        command
    }

    /// Runs to the end with this input.
    pub(crate) fn run(&self, args: &[&str], stdin: &str) -> RunOutput {
        run_command(self.command(args), stdin)
    }

    /// Starts a session over stdin and stdout with a script.
    pub(crate) fn start_session(&self, replies: &Value, more: &[&str]) -> TestSession {
        TestSession::start(self.session_command(replies, more))
    }

    /// The command of such a session.
    pub(crate) fn session_command(&self, replies: &Value, more: &[&str]) -> Command {
        let model = self.write_script(replies);
        let args = [
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            &model,
        ];
        self.command(&[&args[..], more].concat())
    }
}

/// Runs a command to its end.
pub(crate) fn run_command(mut command: Command, stdin: &str) -> RunOutput {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input may exit before all of it is written.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let (out, err) =
        (read_in_thread(child.stdout.take().unwrap()), read_in_thread(child.stderr.take().unwrap()));
    let code = wait_for_exit(&mut child).code();
    RunOutput { code, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// Waits for a child to exit.
pub(crate) fn wait_for_exit(child: &mut Child) -> ExitStatus {
    wait_until("the end of the program", || child.try_wait().unwrap())
}

fn read_in_thread(mut source: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

/// A running program that exchanges frames.
pub(crate) struct TestSession {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    frames: Receiver<Value>,
    stderr: JoinHandle<String>,
}

impl TestSession {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, frames) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let frame =
                    serde_json::from_str(&line).unwrap_or_else(|_| panic!("no frame on stdout: {line}"));
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let stderr = read_in_thread(child.stderr.take().unwrap());
        Self { stdin: child.stdin.take(), child, frames, stderr }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    pub(crate) fn send_prompt(&mut self, prompt: &str) {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        self.write(format!("{line}\n").as_bytes());
    }

    /// Returns the next frame of a type or subtype; skips others.
    pub(crate) fn next_frame(&self, kind: &str) -> Value {
        self.find_frame(kind, |frame| frame["type"] == kind || frame["subtype"] == kind)
    }

    /// Returns the next matching frame; skips others.
    pub(crate) fn find_frame(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame =
                self.frames.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|error| panic!("no {what}: {error}"));
            if wanted(&frame) {
                return frame;
            }
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes the input; returns the exit code, the frames that were not read yet, and stderr.
    pub(crate) fn finish(mut self) -> (Option<i32>, Vec<Value>, String) {
        self.close_input();
        let code = wait_for_exit(&mut self.child).code();
        (code, self.frames.iter().collect(), self.stderr.join().unwrap())
    }
}

/// A reply with one tool call.
pub(crate) fn tool_call(name: &str, input: &Value) -> Value {
    json!([{"type": "tool_use", "name": name, "input": input}])
}

/// Waits until a file contains a number.
pub(crate) fn wait_for_number(path: &Path) -> i32 {
    wait_until("a number in a file", || std::fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// Returns whether a process has exited, reaped or not.
pub(crate) fn has_exited(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    }
}
