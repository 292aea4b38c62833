//! The interactive terminal in a real tmux: what stays in the scrollback, and what a stop leaves.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::harness::{TestDir, wait_until};

/// A tmux server of its own with one window that runs a shell.
struct Tmux {
    test_dir: TestDir,
    socket: PathBuf,
}

impl Tmux {
    fn start(columns: u16, rows: u16) -> Self {
        let test_dir = TestDir::new();
        let tmux = Self { socket: test_dir.temp_dir().join("tmux"), test_dir };
        let config = tmux.test_dir.temp_dir().join("tmux.conf");
        std::fs::write(&config, "set -g history-limit 20000\nset -g default-terminal tmux-256color\n")
            .unwrap();
        let size = [columns.to_string(), rows.to_string()];
        let config = config.display().to_string();
        tmux.run(&["-f", &config, "new-session", "-d", "-x", &size[0], "-y", &size[1], "PS1='$ ' exec sh"]);
        tmux
    }

    /// Runs a command of tmux and returns what it printed.
    fn run(&self, arguments: &[&str]) -> String {
        // The server and its shell get the environment of a test.
        let mut clean = self.test_dir.command(&[]);
        clean.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        let mut command = Command::new("tmux");
        command.env_clear().envs(clean.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.test_dir.work_dir()).arg("-S").arg(&self.socket).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn type_line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.run(&["send-keys", "Enter"]);
    }

    /// The logical lines of the scrollback and of the screen.
    fn lines(&self) -> Vec<String> {
        let text = self.run(&["capture-pane", "-p", "-J", "-S", "-"]);
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&[String]) -> bool) {
        wait_until(what, || {
            let lines = self.lines();
            is_there(&lines).then_some(())
        });
    }

    fn wait_for_line(&self, part: &str) {
        self.wait_for(part, |lines| lines.iter().any(|line| line.contains(part)));
    }

    fn variable(&self, name: &str) -> String {
        self.run(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
    }

    /// Starts the program with a script below a line of the shell.
    fn start_program(&self, script: &serde_json::Value) {
        let model = self.test_dir.write_script(script);
        self.type_line("echo SHELL-$((40+2))");
        self.type_line(&format!("{} --model {model}", env!("CARGO_BIN_EXE_whimbrel")));
        self.wait_for_line("what is to be done?");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// An answer of 500 lines below five headings.
fn long_answer() -> String {
    let mut text = String::new();
    for number in 0..500 {
        if number % 100 == 0 {
            let _ = writeln!(text, "# HEADING-{}\n", number / 100);
        }
        let _ =
            writeln!(text, "line-{number:03} with some words that make it rather long, so that it wraps\n");
    }
    text + "THE-END\n"
}

/// Checks that each line of the answer stands there once and in order, and that the line of the shell is kept.
fn check_history(lines: &[String]) {
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("HEADING-"), 5, "headings");
    assert_eq!(lines.iter().filter(|line| *line == "SHELL-42").count(), 1, "the line of the shell");
    let shown: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("line-")))
        .collect();
    let expected: Vec<String> = (0..500).map(|number| format!("line-{number:03}")).collect();
    assert_eq!(shown, expected);
    assert_eq!(count("THE-END"), 1);
    assert_eq!(count("? for keys"), 1, "status lines");
    // Each line is one logical line.
    assert_eq!(count("so that it wraps"), 500);
}

#[test]
fn scrollback_keeps_every_line_once_through_resizes() {
    let tmux = Tmux::start(120, 40);
    tmux.start_program(&json!([long_answer()]));
    tmux.type_line("go");
    tmux.wait_for("the answer", |lines| lines.iter().any(|line| line.contains("THE-END")));
    for columns in ["100", "80", "60", "90", "120"] {
        tmux.run(&["resize-window", "-x", columns, "-y", "40"]);
        tmux.wait_for("the new width", |lines| {
            lines.iter().any(|line| line.chars().count().to_string() == columns && line.starts_with("──"))
        });
    }
    check_history(&tmux.lines());
    tmux.run(&["send-keys", "C-d"]);
    tmux.wait_for("the end", |lines| lines.iter().all(|line| !line.contains("? for keys")));
}

#[test]
fn stop_by_another_process_ends_with_a_whole_screen() {
    let tmux = Tmux::start(80, 24);
    tmux.start_program(&json!(["an answer"]));
    let shell = tmux.variable("pane_pid");
    let stop = format!("kill -STOP $(ps -o pid= --ppid {shell})");
    assert!(Command::new("sh").arg("-c").arg(stop).status().unwrap().success());
    tmux.wait_for("the shell", |lines| lines.iter().any(|line| line.contains("Stopped")));
    tmux.run(&["send-keys", "-l", "fg"]);
    tmux.run(&["send-keys", "C-j"]);
    tmux.wait_for("the input line below the shell", |lines| {
        let stopped = lines.iter().position(|line| line.contains("Stopped"));
        let input = lines.iter().rposition(|line| line.contains("what is to be done?"));
        stopped < input
    });
    tmux.type_line("go");
    tmux.wait_for_line("an answer");
}
