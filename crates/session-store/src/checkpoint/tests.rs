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

    fn names(&self, rewound: &RewindReport) -> Vec<String> {
        let root = self.work_path("");
        rewound.changed.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[track_caller]
    fn rewind(&self, prompt: &str) -> RewindReport {
        self.checkpoints.rewind(prompt, RewindMode::Restore).unwrap()
    }
}

/// Two prompts: `a` is changed by both, `new/n` is created by the first.
fn edited_fixture() -> Fixture {
    let scene = Fixture::new();
    fs::write(scene.work_path("a"), "v0\nsame\n").unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("a", "v1\nsame\n");
    scene.change_file("new/n", "n\nm\n");
    scene.checkpoints.record_prompt("two");
    scene.change_file("a", "v2\nsame\n");
    scene
}

#[test]
fn rewind_to_any_prompt_and_forward_again() {
    let scene = edited_fixture();
    let looked = scene.checkpoints.rewind("one", RewindMode::DryRun).unwrap();
    assert_eq!(scene.names(&looked), ["a", "new/n"]);
    assert_eq!((looked.insertions, looked.deletions), (1, 3));
    assert_eq!(scene.read("a").as_deref(), Some("v2\nsame\n"), "looking changes nothing");

    assert_eq!(scene.names(&scene.rewind("two")), ["a"]);
    assert_eq!(scene.read("a").as_deref(), Some("v1\nsame\n"));
    assert_eq!(scene.rewind("one"), RewindReport { changed: looked.changed.clone(), ..looked });
    assert_eq!((scene.read("a").as_deref(), scene.read("new/n")), (Some("v0\nsame\n"), None));
    scene.rewind("two");
    assert_eq!(
        (scene.read("a").as_deref(), scene.read("new/n").as_deref()),
        (Some("v1\nsame\n"), Some("n\nm\n"))
    );
    assert_eq!(scene.rewind("two"), RewindReport::default());
    assert_eq!(scene.checkpoints.rewind("never", RewindMode::DryRun), None);
}

#[test]
fn rewind_removes_created_directory_with_later_files() {
    let scene = Fixture::new();
    for (prompt, file) in [("one", "d/e/1"), ("two", "d/e/2"), ("three", "d/3")] {
        scene.checkpoints.record_prompt(prompt);
        scene.change_file(file, "x");
    }
    scene.rewind("two");
    assert!(scene.work_path("d/e/1").exists() && !scene.work_path("d/e/2").exists());
    scene.change_file("d/e/2", "x");
    scene.rewind("one");
    assert!(!scene.work_path("d").exists(), "all of it was made since");
    assert_eq!(scene.rewind("one"), RewindReport::default(), "and once is enough");
}

#[test]
fn foreign_changes_before_a_prompt_are_kept() {
    let scene = edited_fixture();
    fs::write(scene.work_path("a"), "theirs\n").unwrap();
    scene.checkpoints.record_prompt("three");
    scene.change_file("a", "mine\n");
    scene.rewind("three");
    assert_eq!(scene.read("a").as_deref(), Some("theirs\n"));
    // Foreign changes after the prompt are undone with the rest.
    fs::write(scene.work_path("a"), "theirs again\n").unwrap();
    scene.rewind("two");
    assert_eq!(scene.read("a").as_deref(), Some("v1\nsame\n"));
}

#[test]
fn rewind_restores_deleted_file_with_directory_and_mode() {
    let scene = Fixture::new();
    fs::create_dir(scene.work_path("bin")).unwrap();
    fs::write(scene.work_path("bin/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(scene.work_path("bin/run"), Permissions::from_mode(0o750)).unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("bin/run", "changed");
    fs::remove_dir_all(scene.work_path("bin")).unwrap();
    let rewound = scene.rewind("one");
    assert_eq!((rewound.insertions, rewound.deletions), (1, 0));
    assert_eq!(scene.read("bin/run").as_deref(), Some("#!/bin/sh\n"));
    assert_eq!(fs::metadata(scene.work_path("bin/run")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn resumed_session_reads_log_of_killed_writer() {
    let scene = edited_fixture();
    let journal = record_log::log_path(&scene.checkpoint_dir());
    let whole = fs::read(&journal).unwrap();
    // Truncates the last record at several offsets; earlier records must still apply.
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let mut scene = scene;
    for end in (last..whole.len()).step_by(11).chain([whole.len() - 1, whole.len()]) {
        fs::write(&journal, &whole[..end]).unwrap();
        scene = scene.resumed();
        fs::write(scene.work_path("a"), "later\n").unwrap();
        scene.checkpoints.record_prompt("three");
        scene.change_file("a", "changed\n");
        scene = scene.resumed();
        scene.rewind("three");
        assert_eq!(scene.read("a").as_deref(), Some("later\n"), "{end}");
        scene.rewind("one");
        assert_eq!((scene.read("a").as_deref(), scene.read("new/n")), (Some("v0\nsame\n"), None), "{end}");
    }
}

#[test]
fn equal_contents_are_stored_once_and_private() {
    let scene = Fixture::new();
    for name in ["a", "b"] {
        fs::write(scene.work_path(name), "same").unwrap();
    }
    scene.checkpoints.record_prompt("one");
    scene.change_file("a", "x");
    scene.change_file("b", "x");
    scene.checkpoints.record_prompt("two");
    scene.change_file("a", "same");
    scene.checkpoints.record_prompt("three");
    let mut modes: Vec<u32> = fs::read_dir(scene.checkpoint_dir())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    modes.push(fs::metadata(scene.checkpoint_dir()).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o600, 0o600, 0o700], "two copies and the journal");
}

#[test]
fn rewind_skips_symlinks() {
    let scene = Fixture::new();
    for name in ["a", "dir/b"] {
        fs::create_dir_all(scene.work_path(name).parent().unwrap()).unwrap();
        fs::write(scene.work_path(name), "v0").unwrap();
    }
    fs::write(scene.work_path("precious"), "p").unwrap();
    fs::create_dir(scene.work_path("elsewhere")).unwrap();
    fs::write(scene.work_path("elsewhere/b"), "p").unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("a", "v1");
    scene.change_file("dir/b", "v1");
    fs::remove_file(scene.work_path("a")).unwrap();
    symlink("precious", scene.work_path("a")).unwrap();
    fs::remove_dir_all(scene.work_path("dir")).unwrap();
    symlink("elsewhere", scene.work_path("dir")).unwrap();
    assert_eq!(scene.rewind("one"), RewindReport { skipped_links: 2, ..RewindReport::default() });
    assert_eq!((scene.read("precious"), scene.read("elsewhere/b")), (Some("p".into()), Some("p".into())));
}

#[test]
fn paths_through_symlinks_are_one_file() {
    let scene = Fixture::new();
    fs::create_dir(scene.work_path("real")).unwrap();
    fs::write(scene.work_path("real/a"), "v0").unwrap();
    symlink("real", scene.work_path("dir")).unwrap();
    symlink("real/a", scene.work_path("link")).unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("real/a", "v1");
    scene.change_file("dir/a", "v2");
    scene.change_file("link", "v3");
    assert_eq!(scene.names(&scene.rewind("one")), ["real/a"]);
    assert_eq!(scene.read("real/a").as_deref(), Some("v0"));
    assert!(scene.work_path("link").is_symlink());
}

#[test]
fn large_file_is_reported_when_skipped_and_when_not_restored() {
    let scene = Fixture::new();
    let large = fs::File::create(scene.work_path("large")).unwrap();
    large.set_len(blobs::MAX_FILE_SIZE + 1).unwrap();
    fs::write(scene.work_path("small"), "v0").unwrap();
    scene.checkpoints.record_prompt("one");
    scene.checkpoints.snapshot_before_change(&scene.work_path("large"));
    assert!(scene.checkpoints.take_loss_report().unwrap().contains("larger than 32 MB"));
    assert_eq!(scene.checkpoints.take_loss_report(), None);
    assert_eq!(scene.rewind("one"), RewindReport::default(), "it has not changed");
    scene.change_file("large", "gone");
    scene.change_file("small", "v1");
    let scene = scene.resumed();
    let rewound = scene.rewind("one");
    assert_eq!(scene.names(&rewound), ["small"]);
    assert!(
        matches!(rewound.failures.as_slice(), [only] if only.contains("large: no copy was kept")),
        "{rewound:?}"
    );
}

#[test]
fn unwritable_checkpoint_directory_is_reported_and_tolerated() {
    let scene = Fixture::new();
    // A file in place of the directory simulates a full disk.
    fs::write(scene.dir.path().join("history"), "").unwrap();
    fs::write(scene.work_path("a"), "v0").unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("a", "v1");
    scene.change_file("new", "n");
    let told = scene.checkpoints.take_loss_report().unwrap();
    assert!(told.contains("cannot be written down") && told.contains("No copy of"), "{told}");
    let rewound = scene.rewind("one");
    assert_eq!(scene.names(&rewound), ["new"], "to remove what is new needs no copy");
    assert_eq!((rewound.failures.len(), scene.read("a").as_deref()), (1, Some("v1")));
    // The next prompt is saved once writing works.
    fs::remove_file(scene.dir.path().join("history")).unwrap();
    scene.checkpoints.record_prompt("two");
    scene.change_file("a", "v2");
    scene.rewind("two");
    assert_eq!(scene.read("a").as_deref(), Some("v1"));
}

#[test]
fn session_rewinds_without_a_writable_log() {
    let scene = Fixture::new();
    fs::write(scene.work_path("a"), "v0").unwrap();
    // A symlink to /dev/full simulates a full disk.
    fs::create_dir_all(scene.checkpoint_dir()).unwrap();
    symlink("/dev/full", record_log::log_path(&scene.checkpoint_dir())).unwrap();
    scene.checkpoints.record_prompt("one");
    scene.change_file("a", "v1");
    assert!(scene.checkpoints.take_loss_report().unwrap().contains("cannot be written down"));
    scene.rewind("one");
    assert_eq!(scene.read("a").as_deref(), Some("v0"), "as long as the session lives it knows");
}

#[test]
fn damaged_copy_is_not_restored() {
    let scene = edited_fixture();
    for entry in fs::read_dir(scene.checkpoint_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path != record_log::log_path(&scene.checkpoint_dir()) {
            fs::write(path, "v9\nsame\n").unwrap();
        }
    }
    let rewound = scene.rewind("one");
    assert!(matches!(rewound.failures.as_slice(), [only] if only.contains("damaged")), "{rewound:?}");
    assert_eq!(scene.read("a").as_deref(), Some("v2\nsame\n"));
}

#[test]
fn log_cannot_name_a_copy_outside_the_directory() {
    let scene = Fixture::new();
    let secret = scene.dir.path().join("secret");
    fs::write(&secret, "s").unwrap();
    fs::create_dir_all(scene.checkpoint_dir()).unwrap();
    let place = scene.work_path("a").display().to_string();
    let lines = format!(
        "{{\"type\":\"prompt\",\"id\":\"one\"}}\n{{\"type\":\"file\",\"path\":\"{place}\",\"place\":\"{place}\",\"state\":{{\"was\":\"kept\",\"hash\":\"../../secret\",\"size\":1,\"mode\":420}}}}\n"
    );
    fs::write(record_log::log_path(&scene.checkpoint_dir()), lines).unwrap();
    assert_eq!(scene.rewind("one").failures.len(), 1);
    assert_eq!(scene.read("a"), None);
}

#[test]
fn directory_and_read_only_file_are_reported() {
    let scene = edited_fixture();
    fs::remove_file(scene.work_path("new/n")).unwrap();
    fs::create_dir(scene.work_path("new/n")).unwrap();
    fs::set_permissions(scene.work_path("a"), Permissions::from_mode(0o444)).unwrap();
    let rewound = scene.rewind("one");
    assert_eq!((rewound.changed.len(), rewound.failures.len()), (0, 2), "{rewound:?}");
    assert!(scene.work_path("new/n").is_dir());
}

#[test]
fn fork_inherits_checkpoints_and_adds_its_own() {
    let scene = edited_fixture();
    let fork = Checkpoints::new(scene.dir.path().join("history/fork"));
    fork.inherit(&scene.checkpoint_dir()).unwrap();
    fork.record_prompt("three");
    assert!(fork.rewind("two", RewindMode::DryRun).is_some_and(|rewound| rewound.changed.len() == 1));
    assert_eq!(scene.checkpoints.rewind("three", RewindMode::DryRun), None);
    let none = Checkpoints::new(scene.dir.path().join("history/none"));
    none.inherit(&scene.dir.path().join("history/gone")).unwrap();
    assert_eq!(none.rewind("one", RewindMode::DryRun), None);
}

#[test]
fn nothing_is_saved_before_the_first_prompt() {
    let scene = Fixture::new();
    scene.change_file("a", "x");
    assert!(!scene.checkpoint_dir().exists());
}
