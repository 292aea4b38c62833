//! Claims about checkpoints.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

/// A workspace and the folder of its checkpoints.
struct Scene {
    home: TempDir,
    checkpoints: Checkpoints,
}

impl Scene {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        Self { checkpoints: Checkpoints::new(home.path().join("history/s")), home }
    }

    fn copies(&self) -> PathBuf {
        self.home.path().join("history/s")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("work").join(name)
    }

    /// Changes a file as a tool does.
    fn change(&self, name: &str, text: &str) {
        self.checkpoints.before_change(&self.at(name));
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    /// Another process takes the session up.
    fn resumed(mut self) -> Self {
        self.checkpoints = Checkpoints::new(self.copies());
        self
    }

    fn names(&self, rewound: &Rewound) -> Vec<String> {
        let root = self.at("");
        rewound.changed.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[track_caller]
    fn rewind(&self, prompt: &str) -> Rewound {
        self.checkpoints.rewind(prompt, Wish::PutBack).unwrap()
    }
}

/// A session with two prompts: `a` is changed twice, `new/n` is made by the first.
fn edited() -> Scene {
    let scene = Scene::new();
    fs::write(scene.at("a"), "v0\nsame\n").unwrap();
    scene.checkpoints.begin("one");
    scene.change("a", "v1\nsame\n");
    scene.change("new/n", "n\nm\n");
    scene.checkpoints.begin("two");
    scene.change("a", "v2\nsame\n");
    scene
}

#[test]
fn files_go_back_to_any_prompt_and_forth_again() {
    let scene = edited();
    let looked = scene.checkpoints.rewind("one", Wish::Look).unwrap();
    assert_eq!(scene.names(&looked), ["a", "new/n"]);
    assert_eq!((looked.insertions, looked.deletions), (1, 3));
    assert_eq!(scene.read("a").as_deref(), Some("v2\nsame\n"), "looking changes nothing");

    assert_eq!(scene.names(&scene.rewind("two")), ["a"]);
    assert_eq!(scene.read("a").as_deref(), Some("v1\nsame\n"));
    assert_eq!(scene.rewind("one"), Rewound { changed: looked.changed.clone(), ..looked });
    assert_eq!((scene.read("a").as_deref(), scene.read("new/n")), (Some("v0\nsame\n"), None));
    scene.rewind("two");
    assert_eq!(
        (scene.read("a").as_deref(), scene.read("new/n").as_deref()),
        (Some("v1\nsame\n"), Some("n\nm\n"))
    );
    assert_eq!(scene.rewind("two"), Rewound::default());
    assert_eq!(scene.checkpoints.rewind("never", Wish::Look), None);
}

#[test]
fn a_folder_that_was_made_goes_although_later_prompts_have_put_more_into_it() {
    let scene = Scene::new();
    for (prompt, file) in [("one", "d/e/1"), ("two", "d/e/2"), ("three", "d/3")] {
        scene.checkpoints.begin(prompt);
        scene.change(file, "x");
    }
    scene.rewind("two");
    assert!(scene.at("d/e/1").exists() && !scene.at("d/e/2").exists());
    scene.change("d/e/2", "x");
    scene.rewind("one");
    assert!(!scene.at("d").exists(), "all of it was made since");
    assert_eq!(scene.rewind("one"), Rewound::default(), "and once is enough");
}

#[test]
fn what_somebody_else_did_before_a_prompt_is_part_of_it() {
    let scene = edited();
    fs::write(scene.at("a"), "theirs\n").unwrap();
    scene.checkpoints.begin("three");
    scene.change("a", "mine\n");
    scene.rewind("three");
    assert_eq!(scene.read("a").as_deref(), Some("theirs\n"));
    // What they do after it is undone with the rest.
    fs::write(scene.at("a"), "theirs again\n").unwrap();
    scene.rewind("two");
    assert_eq!(scene.read("a").as_deref(), Some("v1\nsame\n"));
}

#[test]
fn what_was_deleted_comes_back_with_its_folder_and_mode() {
    let scene = Scene::new();
    fs::create_dir(scene.at("bin")).unwrap();
    fs::write(scene.at("bin/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(scene.at("bin/run"), Permissions::from_mode(0o750)).unwrap();
    scene.checkpoints.begin("one");
    scene.change("bin/run", "changed");
    fs::remove_dir_all(scene.at("bin")).unwrap();
    let rewound = scene.rewind("one");
    assert_eq!((rewound.insertions, rewound.deletions), (1, 0));
    assert_eq!(scene.read("bin/run").as_deref(), Some("#!/bin/sh\n"));
    assert_eq!(fs::metadata(scene.at("bin/run")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_resumed_session_knows_its_prompts_also_if_its_writer_was_killed() {
    let scene = edited();
    let journal = journal::path(&scene.copies());
    let whole = fs::read(&journal).unwrap();
    // The last line is torn here and there; what stands before it counts.
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let mut scene = scene;
    for end in (last..whole.len()).step_by(11).chain([whole.len() - 1, whole.len()]) {
        fs::write(&journal, &whole[..end]).unwrap();
        scene = scene.resumed();
        fs::write(scene.at("a"), "later\n").unwrap();
        scene.checkpoints.begin("three");
        scene.change("a", "changed\n");
        scene = scene.resumed();
        scene.rewind("three");
        assert_eq!(scene.read("a").as_deref(), Some("later\n"), "{end}");
        scene.rewind("one");
        assert_eq!((scene.read("a").as_deref(), scene.read("new/n")), (Some("v0\nsame\n"), None), "{end}");
    }
}

#[test]
fn the_same_bytes_are_kept_once_and_only_for_the_owner() {
    let scene = Scene::new();
    for name in ["a", "b"] {
        fs::write(scene.at(name), "same").unwrap();
    }
    scene.checkpoints.begin("one");
    scene.change("a", "x");
    scene.change("b", "x");
    scene.checkpoints.begin("two");
    scene.change("a", "same");
    scene.checkpoints.begin("three");
    let mut modes: Vec<u32> = fs::read_dir(scene.copies())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    modes.push(fs::metadata(scene.copies()).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o600, 0o600, 0o700], "two copies and the journal");
}

#[test]
fn links_are_left_alone() {
    let scene = Scene::new();
    for name in ["a", "dir/b"] {
        fs::create_dir_all(scene.at(name).parent().unwrap()).unwrap();
        fs::write(scene.at(name), "v0").unwrap();
    }
    fs::write(scene.at("precious"), "p").unwrap();
    fs::create_dir(scene.at("elsewhere")).unwrap();
    fs::write(scene.at("elsewhere/b"), "p").unwrap();
    scene.checkpoints.begin("one");
    scene.change("a", "v1");
    scene.change("dir/b", "v1");
    fs::remove_file(scene.at("a")).unwrap();
    symlink("precious", scene.at("a")).unwrap();
    fs::remove_dir_all(scene.at("dir")).unwrap();
    symlink("elsewhere", scene.at("dir")).unwrap();
    assert_eq!(scene.rewind("one"), Rewound { skipped_links: 2, ..Rewound::default() });
    assert_eq!((scene.read("precious"), scene.read("elsewhere/b")), (Some("p".into()), Some("p".into())));
}

#[test]
fn a_file_is_one_however_it_is_named() {
    let scene = Scene::new();
    fs::create_dir(scene.at("real")).unwrap();
    fs::write(scene.at("real/a"), "v0").unwrap();
    symlink("real", scene.at("dir")).unwrap();
    symlink("real/a", scene.at("link")).unwrap();
    scene.checkpoints.begin("one");
    scene.change("real/a", "v1");
    scene.change("dir/a", "v2");
    scene.change("link", "v3");
    assert_eq!(scene.names(&scene.rewind("one")), ["real/a"]);
    assert_eq!(scene.read("real/a").as_deref(), Some("v0"));
    assert!(scene.at("link").is_symlink());
}

#[test]
fn what_is_too_large_is_told_at_once_and_named_when_it_cannot_come_back() {
    let scene = Scene::new();
    let large = fs::File::create(scene.at("large")).unwrap();
    large.set_len(copies::LARGEST + 1).unwrap();
    fs::write(scene.at("small"), "v0").unwrap();
    scene.checkpoints.begin("one");
    scene.checkpoints.before_change(&scene.at("large"));
    assert!(scene.checkpoints.take_losses().unwrap().contains("larger than 32 MB"));
    assert_eq!(scene.checkpoints.take_losses(), None);
    assert_eq!(scene.rewind("one"), Rewound::default(), "it has not changed");
    scene.change("large", "gone");
    scene.change("small", "v1");
    let scene = scene.resumed();
    let rewound = scene.rewind("one");
    assert_eq!(scene.names(&rewound), ["small"]);
    assert!(
        matches!(rewound.left.as_slice(), [only] if only.contains("large: no copy was kept")),
        "{rewound:?}"
    );
}

#[test]
fn a_place_that_cannot_be_written_is_told_and_the_session_goes_on() {
    let scene = Scene::new();
    // A file where the folder should be: as good as a disk that is full.
    fs::write(scene.home.path().join("history"), "").unwrap();
    fs::write(scene.at("a"), "v0").unwrap();
    scene.checkpoints.begin("one");
    scene.change("a", "v1");
    scene.change("new", "n");
    let told = scene.checkpoints.take_losses().unwrap();
    assert!(told.contains("cannot be written down") && told.contains("No copy of"), "{told}");
    let rewound = scene.rewind("one");
    assert_eq!(scene.names(&rewound), ["new"], "to remove what is new needs no copy");
    assert_eq!((rewound.left.len(), scene.read("a").as_deref()), (1, Some("v1")));
    // Once there is room, the next prompt is kept.
    fs::remove_file(scene.home.path().join("history")).unwrap();
    scene.checkpoints.begin("two");
    scene.change("a", "v2");
    scene.rewind("two");
    assert_eq!(scene.read("a").as_deref(), Some("v1"));
}

#[test]
fn without_a_journal_a_session_still_knows_its_own_prompts() {
    let scene = Scene::new();
    fs::write(scene.at("a"), "v0").unwrap();
    // A journal that cannot be written: as good as a full disk.
    fs::create_dir_all(scene.copies()).unwrap();
    symlink("/dev/full", journal::path(&scene.copies())).unwrap();
    scene.checkpoints.begin("one");
    scene.change("a", "v1");
    assert!(scene.checkpoints.take_losses().unwrap().contains("cannot be written down"));
    scene.rewind("one");
    assert_eq!(scene.read("a").as_deref(), Some("v0"), "as long as the session lives it knows");
}

#[test]
fn a_damaged_copy_is_put_nowhere() {
    let scene = edited();
    for entry in fs::read_dir(scene.copies()).unwrap() {
        let path = entry.unwrap().path();
        if path != journal::path(&scene.copies()) {
            fs::write(path, "v9\nsame\n").unwrap();
        }
    }
    let rewound = scene.rewind("one");
    assert!(matches!(rewound.left.as_slice(), [only] if only.contains("damaged")), "{rewound:?}");
    assert_eq!(scene.read("a").as_deref(), Some("v2\nsame\n"));
}

#[test]
fn a_journal_cannot_name_a_copy_outside_the_folder() {
    let scene = Scene::new();
    let secret = scene.home.path().join("secret");
    fs::write(&secret, "s").unwrap();
    fs::create_dir_all(scene.copies()).unwrap();
    let place = scene.at("a").display().to_string();
    let lines = format!(
        "{{\"type\":\"prompt\",\"id\":\"one\"}}\n{{\"type\":\"file\",\"path\":\"{place}\",\"place\":\"{place}\",\"state\":{{\"was\":\"kept\",\"hash\":\"../../secret\",\"size\":1,\"mode\":420}}}}\n"
    );
    fs::write(journal::path(&scene.copies()), lines).unwrap();
    assert_eq!(scene.rewind("one").left.len(), 1);
    assert_eq!(scene.read("a"), None);
}

#[test]
fn a_folder_in_the_place_of_a_file_stays_and_a_read_only_file_is_named() {
    let scene = edited();
    fs::remove_file(scene.at("new/n")).unwrap();
    fs::create_dir(scene.at("new/n")).unwrap();
    fs::set_permissions(scene.at("a"), Permissions::from_mode(0o444)).unwrap();
    let rewound = scene.rewind("one");
    assert_eq!((rewound.changed.len(), rewound.left.len()), (0, 2), "{rewound:?}");
    assert!(scene.at("new/n").is_dir());
}

#[test]
fn a_fork_has_the_checkpoints_of_its_origin_and_adds_its_own() {
    let scene = edited();
    let fork = Checkpoints::new(scene.home.path().join("history/fork"));
    fork.inherit(&scene.copies()).unwrap();
    fork.begin("three");
    assert!(fork.rewind("two", Wish::Look).is_some_and(|rewound| rewound.changed.len() == 1));
    assert_eq!(scene.checkpoints.rewind("three", Wish::Look), None);
    let none = Checkpoints::new(scene.home.path().join("history/none"));
    none.inherit(&scene.home.path().join("history/gone")).unwrap();
    assert_eq!(none.rewind("one", Wish::Look), None);
}

#[test]
fn before_the_first_prompt_nothing_is_kept() {
    let scene = Scene::new();
    scene.change("a", "x");
    assert!(!scene.copies().exists());
}
