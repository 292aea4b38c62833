//! Runs every sample of `whimbrel permissions explain` in `docs/permissions.md` and compares the output.
//! `WHIMBREL_BLESS=1` writes the output of this build into the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::run_command;

/// The project of the page.
const DOCUMENTED_PROJECT: &str = "/home/me/shop";

/// The sample after this text shows a project that is not trusted.
const UNTRUSTED_SAMPLE: &str = "the decision for a trusted project is shown as well:";

/// The settings of the project follow this heading.
const SETTINGS_HEADING: &str = "## Ten examples";

/// The home directory and the project that the page describes.
struct Project {
    root: TempDir,
}

impl Project {
    fn new(settings: &str) -> Self {
        let project = Self { root: tempfile::tempdir().unwrap() };
        let (home, dir) = (project.home(), project.dir());
        for dir in [home.join(".claude"), dir.join(".claude"), dir.join("secrets"), dir.join(".git")] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(dir.join(".claude/settings.json"), settings).unwrap();
        fs::write(dir.join("secrets/key.txt"), "key").unwrap();
        std::os::unix::fs::symlink("secrets/key.txt", dir.join("link.txt")).unwrap();
        let user_settings = json!({"permissions": {"allow": ["Bash(git push *)"]}});
        fs::write(home.join(".claude/settings.json"), user_settings.to_string()).unwrap();
        project
    }

    fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("me")
    }

    fn dir(&self) -> PathBuf {
        self.home().join("shop")
    }

    fn set_trust(&self, is_trusted: bool) {
        let state =
            json!({"projects": {(self.dir().to_str().unwrap()): {"hasTrustDialogAccepted": is_trusted}}});
        fs::write(self.home().join(".claude.json"), state.to_string()).unwrap();
    }

    /// Runs a command line of the page in the project.
    fn run(&self, command_line: &str) -> String {
        let mut command = Command::new("sh");
        let line = command_line.replacen("whimbrel", env!("CARGO_BIN_EXE_whimbrel"), 1);
        command.args(["-c", &line]).env_clear().env("HOME", self.home()).current_dir(self.dir());
        // As root, `bypassPermissions` needs it.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("IS_SANDBOX", "1");
        let output = run_command(command, "");
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{command_line}");
        output.stdout.replace(self.dir().to_str().unwrap(), DOCUMENTED_PROJECT)
    }
}

/// The settings of the project: the first JSON block under the heading.
fn read_settings(page: &str) -> &str {
    let section = page.split_once(SETTINGS_HEADING).unwrap().1;
    section.split_once("```json\n").unwrap().1.split_once("```").unwrap().0
}

/// Returns the page with the output of all samples as this build prints it, and the number of samples.
fn render_page(page: &str) -> (String, usize) {
    let project = Project::new(read_settings(page));
    let (mut rendered, mut count) = (String::new(), 0);
    // Every second part is the inside of a fence.
    for (number, part) in page.split("```").enumerate() {
        if number > 0 {
            rendered += "```";
        }
        if number % 2 == 0 || !part.starts_with("\n$ whimbrel permissions explain ") {
            rendered += part;
            continue;
        }
        project.set_trust(!rendered.trim_end_matches('`').trim_end().ends_with(UNTRUSTED_SAMPLE));
        let commands = part.lines().filter_map(|line| line.strip_prefix("$ "));
        let samples: Vec<String> = commands
            .map(|command_line| format!("\n$ {command_line}\n{}", project.run(command_line)))
            .collect();
        count += samples.len();
        rendered += &samples.join("");
    }
    (rendered, count)
}

#[test]
fn samples_show_the_output_of_the_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
    let page = fs::read_to_string(&file).unwrap();
    let (current, count) = render_page(&page);
    assert!(count > 20, "only {count} samples found");
    if std::env::var_os("WHIMBREL_BLESS").is_some() {
        fs::write(&file, &current).unwrap();
        return;
    }
    for (stored, current) in page.lines().zip(current.lines()) {
        assert_eq!(stored, current, "run this test with WHIMBREL_BLESS=1 and read the difference");
    }
    assert_eq!(page.len(), current.len());
}
