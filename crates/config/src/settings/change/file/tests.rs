//! Changes to files, and concurrent writers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel_wire::permission::PermissionBehavior;

use super::*;
use crate::settings::change::edit::{ListAction, PermissionList};

fn temp_dir() -> TempDir {
    TempDir::new().unwrap()
}

fn local_path(dir: &TempDir) -> PathBuf {
    dir.path().join(".claude/settings.local.json")
}

fn add_rule(rule: &str) -> SettingsChange {
    let list = PermissionList::Rules(PermissionBehavior::Allow);
    SettingsChange::List { list, action: ListAction::Add, entries: vec![rule.into()] }
}

fn file_mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn allow_rules(path: &Path) -> Vec<String> {
    let value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    serde_json::from_value(value["permissions"]["allow"].clone()).unwrap()
}

fn dir_names(path: &Path) -> Vec<String> {
    let mut names = files::entry_names(path.parent().unwrap(), 99);
    names.sort();
    names
}

#[test]
fn new_file_is_created_private_with_directory() {
    let dir = temp_dir();
    let path = local_path(&dir);
    let replaced =
        change_file(&path, FileOwnership::UserInProject, &add_rule("Bash(m1 *)")).unwrap().unwrap();
    let expected = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(m1 *)\"\n    ]\n  }\n}\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(replaced, ReplacedText { old: None, new: expected.into() });
    assert_eq!((file_mode(&path), dir_names(&path)), (0o600, vec!["settings.local.json".to_owned()]));
    assert_eq!(change_file(&path, FileOwnership::UserInProject, &add_rule("Bash(m1 *)")).unwrap(), None);
}

#[test]
fn configuration_directory_is_created_with_parents() {
    let dir = temp_dir();
    let path = dir.path().join("home/.claude/settings.json");
    change_file(&path, FileOwnership::User, &add_rule("A")).unwrap();
    assert_eq!((file_mode(&path), file_mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn project_file_keeps_mode_and_users_becomes_private() {
    let dir = temp_dir();
    let path = local_path(&dir);
    fs::create_dir(path.parent().unwrap()).unwrap();
    for (access, expected) in [(FileOwnership::Project, 0o664), (FileOwnership::UserInProject, 0o600)] {
        fs::write(&path, "\u{feff}{\"model\":\"m\"}").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        change_file(&path, access, &SettingsChange::Value { key: "model".into(), value: json!("n") })
            .unwrap();
        assert_eq!(file_mode(&path), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}{\"model\":\"n\"}");
    }
}

#[test]
fn symlink_is_rejected_and_target_unchanged() {
    let dir = temp_dir();
    let path = local_path(&dir);
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("settings.local.json"), "{}").unwrap();
    let assert_rejected = |what: &str| {
        let error = change_file(&path, FileOwnership::UserInProject, &add_rule("A")).unwrap_err().to_string();
        assert!(error.contains("link") && error.contains("settings.local.json"), "{what}: {error}");
        assert_eq!(fs::read(outside.join("settings.local.json")).unwrap(), b"{}", "{what}");
    };
    symlink(&outside, dir.path().join(".claude")).unwrap();
    assert_rejected("the folder is a link");
    fs::remove_file(dir.path().join(".claude")).unwrap();
    fs::create_dir(dir.path().join(".claude")).unwrap();
    symlink(outside.join("settings.local.json"), &path).unwrap();
    assert_rejected("the file is a link");
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert_rejected("the file is a link that leads nowhere");
    assert_eq!(dir_names(&path), ["settings.local.json"]);
}

#[test]
fn invalid_file_is_left_unchanged() {
    let dir = temp_dir();
    let path = local_path(&dir);
    fs::create_dir(path.parent().unwrap()).unwrap();
    for text in ["", "{\"a\":1,}", "[]", "{\"permissions\":{\"allow\":{}}}", "{\"a\":1,\"a\":2}"] {
        fs::write(&path, text).unwrap();
        let error = change_file(&path, FileOwnership::UserInProject, &add_rule("A")).unwrap_err().to_string();
        assert!(error.contains("settings.local.json"), "{error}");
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), dir_names(&path).len()),
            (text, 1),
            "{error}"
        );
    }
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(change_file(&path, FileOwnership::UserInProject, &add_rule("A")).is_err());
}

#[test]
fn file_never_exceeds_the_size_limit() {
    let dir = temp_dir();
    let path = local_path(&dir);
    fs::create_dir(path.parent().unwrap()).unwrap();
    let text = json!({"x": "y".repeat(2 * 1024 * 1024 - 20)}).to_string();
    fs::write(&path, &text).unwrap();
    let error = change_file(&path, FileOwnership::UserInProject, &add_rule("a rule that is too much"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("2 MiB"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn files_of_killed_writers_are_removed() {
    let dir = temp_dir();
    let path = local_path(&dir);
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(path.with_file_name(format!("{TEMP_PREFIX}old")), "half").unwrap();
    fs::write(path.with_file_name("notes.tmp"), "mine").unwrap();
    change_file(&path, FileOwnership::UserInProject, &add_rule("A")).unwrap();
    assert_eq!(dir_names(&path), ["notes.tmp", "settings.local.json"]);
}

#[test]
fn concurrent_threads_lose_nothing() {
    let dir = temp_dir();
    let path = local_path(&dir);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for rule in 0..10 {
                    change_file(path, FileOwnership::UserInProject, &add_rule(&format!("R{writer}x{rule}")))
                        .unwrap();
                }
            });
        }
    });
    let mut found = allow_rules(&path);
    found.sort();
    let mut expected: Vec<String> = (0..80).map(|n| format!("R{}x{}", n / 10, n % 10)).collect();
    expected.sort();
    assert_eq!((found, dir_names(&path).len()), (expected, 1));
}

#[test]
fn change_by_program_without_lock_is_not_lost() {
    let dir = temp_dir();
    let path = local_path(&dir);
    fs::create_dir(path.parent().unwrap()).unwrap();
    let target = TargetFile {
        dir: open_dir(path.parent().unwrap(), FileOwnership::UserInProject).unwrap(),
        name: "settings.local.json",
        access: FileOwnership::UserInProject,
    };
    let read = target.read().unwrap();
    fs::write(&path, "{\"theirs\":1}").unwrap();
    assert!(!target.replace(read.as_ref(), b"{\"ours\":1}").unwrap());
    assert_eq!(
        (fs::read(&path).unwrap().as_slice(), dir_names(&path).len()),
        (b"{\"theirs\":1}".as_slice(), 1)
    );
    let read = target.read().unwrap();
    assert!(target.replace(read.as_ref(), b"{\"ours\":1}").unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"{\"ours\":1}");
}

/// Writes rules as a separate process and prints each: the tests below run this test in child processes.
#[test]
fn writer_process() {
    let variable = |name: &str| std::env::var(format!("WHIMBREL_TEST_{name}"));
    let (Ok(path), Ok(name), Ok(count)) = (variable("SETTINGS"), variable("WRITER"), variable("COUNT"))
    else {
        return;
    };
    for rule in 0..count.parse::<u32>().unwrap() {
        let rule = format!("{name}x{rule}");
        change_file(Path::new(&path), FileOwnership::UserInProject, &add_rule(&rule)).unwrap();
        println!("wrote {rule}");
    }
}

fn spawn_writer(path: &Path, name: &str, count: u32) -> Child {
    #[expect(clippy::disallowed_methods, reason = "these tests are about several processes")]
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settings::change::file::tests::writer_process", "--nocapture"])
        .env("WHIMBREL_TEST_SETTINGS", path)
        .env("WHIMBREL_TEST_WRITER", name)
        .env("WHIMBREL_TEST_COUNT", count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn concurrent_processes_lose_nothing() {
    let dir = temp_dir();
    let path = local_path(&dir);
    let writers: Vec<Child> = (0..4).map(|number| spawn_writer(&path, &format!("W{number}"), 10)).collect();
    for writer in writers {
        assert!(writer.wait_with_output().unwrap().status.success());
    }
    let mut found = allow_rules(&path);
    found.sort();
    let mut expected: Vec<String> = (0..40).map(|n| format!("W{}x{}", n / 10, n % 10)).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn killed_writer_leaves_valid_file_with_reported_rules() {
    let dir = temp_dir();
    let path = local_path(&dir);
    let mut reported = Vec::new();
    for round in 0..5 {
        let mut writer = spawn_writer(&path, &format!("K{round}"), u32::MAX);
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        let wrote = lines.filter_map(|line| line.split_once("wrote ").map(|(_, rule)| rule.to_owned()));
        reported.extend(wrote.take(3 + round));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let found = allow_rules(&path);
        assert!(reported.iter().all(|rule| found.contains(rule)), "{reported:?} {found:?}");
    }
    change_file(&path, FileOwnership::UserInProject, &add_rule("last")).unwrap();
    assert_eq!(dir_names(&path), ["settings.local.json"]);
}

#[test]
fn waiting_writer_gets_the_lock_after_close() {
    let dir = temp_dir();
    let first = open_dir(dir.path(), FileOwnership::User).unwrap();
    assert_eq!(lock_dir(&first).unwrap(), LockState::Held);
    let second = open_dir(dir.path(), FileOwnership::User).unwrap();
    assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock_dir(&second).unwrap());
        drop(first);
        assert_eq!(waiter.join().unwrap(), LockState::Held);
    });
}
