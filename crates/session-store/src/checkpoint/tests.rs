use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

/// A working directory and its checkpoint directory.
struct Fixture {
    dir: TempDir,
    checkpoints: Checkpoints,
}

impl Fixture {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self { checkpoints: Checkpoints::new(dir.path().join("history/s")), dir }
    }

    fn checkpoint_dir(&self) -> PathBuf {
        self.dir.path().join("history/s")
    }

    fn work_path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work").join(name)
    }

    /// Changes a file as a tool does.
    fn change_file(&self, name: &str, text: &str) {
        self.checkpoints.snapshot_before_change(&self.work_path(name));
        fs::create_dir_all(self.work_path(name).parent().unwrap()).unwrap();
        fs::write(self.work_path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.work_path(name)).ok()
    }

    /// Reopens the checkpoints as another process does.
    fn resumed(mut self) -> Self {
        self.checkpoints = Checkpoints::new(self.checkpoint_dir());
        self
    }

    fn names(&self, report: &RewindReport) -> Vec<String> {
        let root = self.work_path("");
        report.changed.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[track_caller]
    fn rewind(&self, prompt: &str) -> RewindReport {
        self.checkpoints.rewind(prompt, RewindMode::Restore).unwrap()
    }
}

/// Two prompts: `a` is changed by both, `new/n` is created by the first.
fn edited_fixture() -> Fixture {
    let fixture = Fixture::new();
    fs::write(fixture.work_path("a"), "v0\nsame\n").unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("a", "v1\nsame\n");
    fixture.change_file("new/n", "n\nm\n");
    fixture.checkpoints.record_prompt("two");
    fixture.change_file("a", "v2\nsame\n");
    fixture
}

#[test]
fn rewind_to_any_prompt_and_forward_again() {
    let fixture = edited_fixture();
    let dry_run = fixture.checkpoints.rewind("one", RewindMode::DryRun).unwrap();
    assert_eq!(fixture.names(&dry_run), ["a", "new/n"]);
    assert_eq!((dry_run.insertions, dry_run.deletions), (1, 3));
    assert_eq!(fixture.read("a").as_deref(), Some("v2\nsame\n"), "looking changes nothing");

    assert_eq!(fixture.names(&fixture.rewind("two")), ["a"]);
    assert_eq!(fixture.read("a").as_deref(), Some("v1\nsame\n"));
    assert_eq!(fixture.rewind("one"), RewindReport { changed: dry_run.changed.clone(), ..dry_run });
    assert_eq!((fixture.read("a").as_deref(), fixture.read("new/n")), (Some("v0\nsame\n"), None));
    fixture.rewind("two");
    assert_eq!(
        (fixture.read("a").as_deref(), fixture.read("new/n").as_deref()),
        (Some("v1\nsame\n"), Some("n\nm\n"))
    );
    assert_eq!(fixture.rewind("two"), RewindReport::default());
    assert_eq!(fixture.checkpoints.rewind("never", RewindMode::DryRun), None);
}

#[test]
fn rewind_removes_created_directory_with_later_files() {
    let fixture = Fixture::new();
    for (prompt, file) in [("one", "d/e/1"), ("two", "d/e/2"), ("three", "d/3")] {
        fixture.checkpoints.record_prompt(prompt);
        fixture.change_file(file, "x");
    }
    fixture.rewind("two");
    assert!(fixture.work_path("d/e/1").exists() && !fixture.work_path("d/e/2").exists());
    fixture.change_file("d/e/2", "x");
    fixture.rewind("one");
    assert!(!fixture.work_path("d").exists(), "all of it was made since");
    assert_eq!(fixture.rewind("one"), RewindReport::default(), "and once is enough");
}

#[test]
fn foreign_changes_before_a_prompt_are_kept() {
    let fixture = edited_fixture();
    fs::write(fixture.work_path("a"), "theirs\n").unwrap();
    fixture.checkpoints.record_prompt("three");
    fixture.change_file("a", "mine\n");
    fixture.rewind("three");
    assert_eq!(fixture.read("a").as_deref(), Some("theirs\n"));
    // Foreign changes after the prompt are undone with the rest.
    fs::write(fixture.work_path("a"), "theirs again\n").unwrap();
    fixture.rewind("two");
    assert_eq!(fixture.read("a").as_deref(), Some("v1\nsame\n"));
}

#[test]
fn rewind_restores_deleted_file_with_directory_and_mode() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.work_path("bin")).unwrap();
    fs::write(fixture.work_path("bin/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(fixture.work_path("bin/run"), Permissions::from_mode(0o750)).unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("bin/run", "changed");
    fs::remove_dir_all(fixture.work_path("bin")).unwrap();
    let report = fixture.rewind("one");
    assert_eq!((report.insertions, report.deletions), (1, 0));
    assert_eq!(fixture.read("bin/run").as_deref(), Some("#!/bin/sh\n"));
    assert_eq!(fs::metadata(fixture.work_path("bin/run")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn resumed_session_reads_log_of_killed_writer() {
    let fixture = edited_fixture();
    let log_path = record_log::log_path(&fixture.checkpoint_dir());
    let whole = fs::read(&log_path).unwrap();
    // Truncates the last record at several offsets; earlier records must still apply.
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let mut fixture = fixture;
    for end in (last..whole.len()).step_by(11).chain([whole.len() - 1, whole.len()]) {
        fs::write(&log_path, &whole[..end]).unwrap();
        fixture = fixture.resumed();
        fs::write(fixture.work_path("a"), "later\n").unwrap();
        fixture.checkpoints.record_prompt("three");
        fixture.change_file("a", "changed\n");
        fixture = fixture.resumed();
        fixture.rewind("three");
        assert_eq!(fixture.read("a").as_deref(), Some("later\n"), "{end}");
        fixture.rewind("one");
        assert_eq!(
            (fixture.read("a").as_deref(), fixture.read("new/n")),
            (Some("v0\nsame\n"), None),
            "{end}"
        );
    }
}

#[test]
fn equal_contents_are_stored_once_and_private() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.work_path(name), "same").unwrap();
    }
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("a", "x");
    fixture.change_file("b", "x");
    fixture.checkpoints.record_prompt("two");
    fixture.change_file("a", "same");
    fixture.checkpoints.record_prompt("three");
    let mut modes: Vec<u32> = fs::read_dir(fixture.checkpoint_dir())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    modes.push(fs::metadata(fixture.checkpoint_dir()).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o600, 0o600, 0o700], "two copies and the journal");
}

#[test]
fn rewind_skips_symlinks() {
    let fixture = Fixture::new();
    for name in ["a", "dir/b"] {
        fs::create_dir_all(fixture.work_path(name).parent().unwrap()).unwrap();
        fs::write(fixture.work_path(name), "v0").unwrap();
    }
    fs::write(fixture.work_path("precious"), "p").unwrap();
    fs::create_dir(fixture.work_path("elsewhere")).unwrap();
    fs::write(fixture.work_path("elsewhere/b"), "p").unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("a", "v1");
    fixture.change_file("dir/b", "v1");
    fs::remove_file(fixture.work_path("a")).unwrap();
    symlink("precious", fixture.work_path("a")).unwrap();
    fs::remove_dir_all(fixture.work_path("dir")).unwrap();
    symlink("elsewhere", fixture.work_path("dir")).unwrap();
    assert_eq!(fixture.rewind("one"), RewindReport { skipped_links: 2, ..RewindReport::default() });
    assert_eq!((fixture.read("precious"), fixture.read("elsewhere/b")), (Some("p".into()), Some("p".into())));
}

#[test]
fn paths_through_symlinks_are_one_file() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.work_path("real")).unwrap();
    fs::write(fixture.work_path("real/a"), "v0").unwrap();
    symlink("real", fixture.work_path("dir")).unwrap();
    symlink("real/a", fixture.work_path("link")).unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("real/a", "v1");
    fixture.change_file("dir/a", "v2");
    fixture.change_file("link", "v3");
    assert_eq!(fixture.names(&fixture.rewind("one")), ["real/a"]);
    assert_eq!(fixture.read("real/a").as_deref(), Some("v0"));
    assert!(fixture.work_path("link").is_symlink());
}

#[test]
fn large_file_is_reported_when_skipped_and_when_not_restored() {
    let fixture = Fixture::new();
    let large = fs::File::create(fixture.work_path("large")).unwrap();
    large.set_len(blobs::MAX_FILE_SIZE + 1).unwrap();
    fs::write(fixture.work_path("small"), "v0").unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.checkpoints.snapshot_before_change(&fixture.work_path("large"));
    assert!(fixture.checkpoints.take_loss_report().unwrap().contains("larger than 32 MB"));
    assert_eq!(fixture.checkpoints.take_loss_report(), None);
    assert_eq!(fixture.rewind("one"), RewindReport::default(), "it has not changed");
    fixture.change_file("large", "gone");
    fixture.change_file("small", "v1");
    let fixture = fixture.resumed();
    let report = fixture.rewind("one");
    assert_eq!(fixture.names(&report), ["small"]);
    assert!(
        matches!(report.failures.as_slice(), [only] if only.contains("large: it was not saved")),
        "{report:?}"
    );
}

#[test]
fn unwritable_checkpoint_directory_is_reported_and_tolerated() {
    let fixture = Fixture::new();
    // A file in place of the directory simulates a full disk.
    fs::write(fixture.dir.path().join("history"), "").unwrap();
    fs::write(fixture.work_path("a"), "v0").unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("a", "v1");
    fixture.change_file("new", "n");
    let report = fixture.checkpoints.take_loss_report().unwrap();
    assert!(report.contains("cannot be saved") && report.contains("was not saved"), "{report}");
    let report = fixture.rewind("one");
    assert_eq!(fixture.names(&report), ["new"], "to remove what is new needs no copy");
    assert_eq!((report.failures.len(), fixture.read("a").as_deref()), (1, Some("v1")));
    // The next prompt is saved once writing works.
    fs::remove_file(fixture.dir.path().join("history")).unwrap();
    fixture.checkpoints.record_prompt("two");
    fixture.change_file("a", "v2");
    fixture.rewind("two");
    assert_eq!(fixture.read("a").as_deref(), Some("v1"));
}

#[test]
fn session_rewinds_without_a_writable_log() {
    let fixture = Fixture::new();
    fs::write(fixture.work_path("a"), "v0").unwrap();
    // A symlink to /dev/full simulates a full disk.
    fs::create_dir_all(fixture.checkpoint_dir()).unwrap();
    symlink("/dev/full", record_log::log_path(&fixture.checkpoint_dir())).unwrap();
    fixture.checkpoints.record_prompt("one");
    fixture.change_file("a", "v1");
    assert!(fixture.checkpoints.take_loss_report().unwrap().contains("Checkpoints cannot be saved"));
    fixture.rewind("one");
    assert_eq!(fixture.read("a").as_deref(), Some("v0"), "as long as the session lives it knows");
}

#[test]
fn damaged_copy_is_not_restored() {
    let fixture = edited_fixture();
    for entry in fs::read_dir(fixture.checkpoint_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path != record_log::log_path(&fixture.checkpoint_dir()) {
            fs::write(path, "v9\nsame\n").unwrap();
        }
    }
    let report = fixture.rewind("one");
    assert!(matches!(report.failures.as_slice(), [only] if only.contains("damaged")), "{report:?}");
    assert_eq!(fixture.read("a").as_deref(), Some("v2\nsame\n"));
}

#[test]
fn log_cannot_name_a_copy_outside_the_directory() {
    let fixture = Fixture::new();
    let secret = fixture.dir.path().join("secret");
    fs::write(&secret, "s").unwrap();
    fs::create_dir_all(fixture.checkpoint_dir()).unwrap();
    let path = fixture.work_path("a").display().to_string();
    let lines = format!(
        "{{\"type\":\"prompt\",\"id\":\"one\"}}\n{{\"type\":\"file\",\"path\":\"{path}\",\"place\":\"{path}\",\"state\":{{\"was\":\"kept\",\"hash\":\"../../secret\",\"size\":1,\"mode\":420}}}}\n"
    );
    fs::write(record_log::log_path(&fixture.checkpoint_dir()), lines).unwrap();
    assert_eq!(fixture.rewind("one").failures.len(), 1);
    assert_eq!(fixture.read("a"), None);
}

#[test]
fn directory_and_read_only_file_are_reported() {
    let fixture = edited_fixture();
    fs::remove_file(fixture.work_path("new/n")).unwrap();
    fs::create_dir(fixture.work_path("new/n")).unwrap();
    fs::set_permissions(fixture.work_path("a"), Permissions::from_mode(0o444)).unwrap();
    let report = fixture.rewind("one");
    assert_eq!((report.changed.len(), report.failures.len()), (0, 2), "{report:?}");
    assert!(fixture.work_path("new/n").is_dir());
}

#[test]
fn fork_inherits_checkpoints_and_adds_its_own() {
    let fixture = edited_fixture();
    let fork = Checkpoints::new(fixture.dir.path().join("history/fork"));
    fork.inherit(&fixture.checkpoint_dir()).unwrap();
    fork.record_prompt("three");
    assert!(fork.rewind("two", RewindMode::DryRun).is_some_and(|report| report.changed.len() == 1));
    assert_eq!(fixture.checkpoints.rewind("three", RewindMode::DryRun), None);
    let none = Checkpoints::new(fixture.dir.path().join("history/none"));
    none.inherit(&fixture.dir.path().join("history/gone")).unwrap();
    assert_eq!(none.rewind("one", RewindMode::DryRun), None);
}

#[test]
fn nothing_is_saved_before_the_first_prompt() {
    let fixture = Fixture::new();
    fixture.change_file("a", "x");
    assert!(!fixture.checkpoint_dir().exists());
}
