//! Tests of directory walks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

use super::*;
use crate::test_support::TestWorkspace;

#[test]
fn a_cancelled_walk_visits_nothing() {
    struct Never;
    impl FileVisitor for Never {
        fn visit_file(&mut self, file: DirEntry) {
            panic!("visited {}", file.path().display());
        }
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let stop = CancelFlag::default();
    stop.cancel();
    DirWalk {
        root: dir.path(),
        name_filter: Arc::default(),
        read_filter: SearchFilter::default(),
        max_depth: None,
        stop: &stop,
    }
    .run(|| Never);
}

/// All files that Glob finds, sorted, and its notes.
async fn glob_all(fixture: &TestWorkspace) -> (Vec<String>, String) {
    let text = fixture.run_to_text("Glob", json!({"pattern": "**/*"})).await;
    let (mut names, notes): (Vec<String>, Vec<String>) =
        text.lines().map(str::to_owned).partition(|line| !line.starts_with('('));
    names.sort();
    (names, notes.join("\n"))
}

#[tokio::test]
async fn every_ignore_file_applies_and_the_nearest_rule_wins() {
    let fixture = TestWorkspace::new(&[
        (".gitignore", "*.log\n/top\nbuild/\n\\#odd\n"),
        (".ignore", "!kept.log\n"),
        (".git/info/exclude", "private\n"),
        (".git/config", ""),
        ("a.log", ""),
        ("kept.log", ""),
        ("private", ""),
        ("top/x", ""),
        ("#odd", ""),
        ("sub/top/x", ""),
        ("sub/build/x", ""),
        ("sub/.gitignore", "!b.log\n*.tmp\n!.shown\n"),
        ("sub/b.log", ""),
        ("sub/c.tmp", ""),
        ("sub/.shown", ""),
        ("sub/.hidden", ""),
        ("all/.gitignore", "!.*\n"),
        ("all/.git/config", ""),
        ("all/.x", ""),
        ("c.tmp", ""),
        ("sub/deep/build", ""),
    ]);
    let expected = [
        "all/.gitignore",
        "all/.x",
        "c.tmp",
        "kept.log",
        "sub/.shown",
        "sub/b.log",
        "sub/deep/build",
        "sub/top/x",
    ];
    assert_eq!(glob_all(&fixture).await, (expected.map(str::to_owned).to_vec(), String::new()));
    let below = fixture.run_to_text("Glob", json!({"pattern": "**/*", "path": "sub/deep"})).await;
    assert_eq!(below, "sub/deep/build");
    symlink("sub", fixture.path("link")).unwrap();
    let linked = fixture.run_to_text("Grep", json!({"pattern": "^", "path": "link", "glob": "*.log"})).await;
    assert_eq!(linked, "No files found", "empty files have no lines");
}

#[tokio::test]
async fn ignore_rules_apply_behind_a_symlink() {
    let fixture = TestWorkspace::new(&[(".gitignore", "/sub/no\n"), ("sub/no", "x"), ("sub/yes", "x")]);
    symlink("sub", fixture.path("link")).unwrap();
    assert_eq!(
        fixture.run_to_text("Grep", json!({"pattern": "x", "path": "link"})).await,
        "Found 1 file\nlink/yes"
    );
}

#[tokio::test]
async fn a_linked_worktree_uses_the_excludes_of_its_repository() {
    let fixture = TestWorkspace::new(&[
        ("repo/.git/info/exclude", "secret\n"),
        ("repo/.git/worktrees/w/commondir", "../..\n"),
        ("w/secret", ""),
        ("w/open", ""),
    ]);
    let git = format!("gitdir: {}\n", fixture.path("repo/.git/worktrees/w").display());
    fs::write(fixture.path("w/.git"), git).unwrap();
    assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "**/*", "path": "w"})).await, "w/open");
}

#[tokio::test]
async fn git_rules_end_at_the_repository_root() {
    let all = ["inner/deep/a.log", "inner/deep/a.txt"];
    for (name, files, expected) in [
        ("an outer .gitignore, no repository within", vec![("inner/.gitignore", "")], [].as_slice()),
        ("a repository", vec![("inner/.git/HEAD", "")], &all),
        ("one with rules", vec![("inner/.git/HEAD", ""), ("inner/.gitignore", "*.log\n")], &all[1..]),
        (
            "one whose directory has rules",
            vec![("inner/.git/HEAD", ""), ("inner/deep/.gitignore", "*.log\n")],
            &all[1..],
        ),
        ("a submodule", vec![("inner/.git", "gitdir: ../.git/modules/inner\n")], &all),
        (
            "a submodule with exclusions",
            vec![
                ("inner/.git", "gitdir: ../.git/modules/inner\n"),
                (".git/modules/inner/info/exclude", "*.log\n"),
            ],
            &all[1..],
        ),
        ("a repository of Jujutsu", vec![("inner/.jj/repo/x", "")], &all),
        ("an outer .ignore goes on", vec![("inner/.git/HEAD", ""), (".ignore", "*.log\n")], &all[1..]),
    ] {
        let mut row = vec![
            (".git/info/exclude", "*.txt\n"),
            (".gitignore", "*\n"),
            ("inner/deep/a.log", "x"),
            ("inner/deep/a.txt", "x"),
        ];
        row.extend(files);
        let fixture = TestWorkspace::new(&row);
        for path in ["inner", "inner/deep"] {
            let mut text: Vec<String> = fixture
                .run_to_text("Glob", json!({"pattern": "**/*", "path": path}))
                .await
                .lines()
                .map(str::to_owned)
                .collect();
            text.sort();
            let expected = if expected.is_empty() { &["No files found"] } else { expected };
            assert_eq!(text, expected, "{name}: {path}");
        }
    }
}

#[tokio::test]
async fn nested_repositories_use_their_own_rules() {
    let fixture = TestWorkspace::new(&[
        (".git/info/exclude", "*.txt\n"),
        (".gitignore", "*.log\n"),
        ("a.log", ""),
        ("inner/.git/HEAD", ""),
        ("inner/a.log", ""),
        ("inner/a.txt", ""),
        ("plain/a.log", ""),
        ("plain/a.md", ""),
    ]);
    assert_eq!(glob_all(&fixture).await.0, ["inner/a.log", "inner/a.txt", "plain/a.md"]);
}

#[tokio::test]
async fn irregular_and_huge_ignore_files_are_skipped_with_a_note() {
    let fixture = TestWorkspace::new(&[
        ("p/a", "x"),
        ("z/a", "x"),
        ("d/.gitignore/a", "x"),
        ("d/b", "x"),
        ("h/a", "x"),
    ]);
    mkfifo(&fixture.path("p/.gitignore"), Mode::S_IRWXU).unwrap();
    fs::create_dir_all(fixture.path("p/.git/info")).unwrap();
    mkfifo(&fixture.path("p/.git/info/exclude"), Mode::S_IRWXU).unwrap();
    mkfifo(&fixture.path("d/.git"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", fixture.path("z/.ignore")).unwrap();
    fs::write(fixture.path("h/.gitignore"), "a\n".repeat(200_000)).unwrap();
    let (names, note) = glob_all(&fixture).await;
    assert_eq!(names, ["d/b", "h/a", "p/a", "z/a"]);
    assert!(note.starts_with("(Skipped ignore files") && note.contains(" and 2 more.)"), "{note}");
    let text = fixture.run_to_text("Grep", json!({"pattern": "x", "path": "p"})).await;
    assert!(text.starts_with("Found 1 file\np/a\n(Skipped ignore files"), "{text}");
    assert!(text.contains("p/.gitignore") && text.contains("p/.git/info/exclude"), "{text}");
}

#[test]
fn the_total_size_of_ignore_files_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..20 {
        let below = dir.path().join(number.to_string());
        fs::create_dir(&below).unwrap();
        fs::write(below.join(".gitignore"), format!("{}\n", "# remark\n".repeat(25_000))).unwrap();
    }
    let walk = DirWalk {
        root: dir.path(),
        name_filter: Arc::default(),
        read_filter: SearchFilter::default(),
        max_depth: None,
        stop: &CancelFlag::default(),
    };
    let skipped = walk.run(|| IgnoreAllFiles).skipped.skipped_ignore_files.len();
    assert!((5..20).contains(&skipped), "{skipped}");
}

struct IgnoreAllFiles;

impl FileVisitor for IgnoreAllFiles {
    fn visit_file(&mut self, _: DirEntry) {}
}

#[tokio::test]
async fn symlink_cycles_end() {
    let fixture = TestWorkspace::new(&[("a/x.txt", "x")]);
    symlink("..", fixture.path("a/up")).unwrap();
    symlink(".", fixture.path("a/here")).unwrap();
    symlink("self", fixture.path("self")).unwrap();
    assert_eq!(glob_all(&fixture).await.0, ["a/x.txt"]);
    assert_eq!(fixture.run_to_text("Grep", json!({"pattern": "x"})).await, "Found 1 file\na/x.txt");
    assert_eq!(
        fixture.run_to_text("Glob", json!({"pattern": "*.txt", "path": "a/up/a/here"})).await,
        "a/up/a/here/x.txt"
    );
    for tool in ["Grep", "Glob"] {
        let text = fixture.run_to_text(tool, json!({"pattern": "x", "path": "self"})).await;
        assert!(text.contains("form a loop (ELOOP)"), "{text}");
    }
}

#[tokio::test]
async fn pipes_and_devices_are_never_searched() {
    let fixture = TestWorkspace::new(&[("a.txt", "x")]);
    mkfifo(&fixture.path("pipe"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", fixture.path("zero")).unwrap();
    symlink("pipe", fixture.path("link")).unwrap();
    assert_eq!(fixture.run_to_text("Grep", json!({"pattern": "x"})).await, "Found 1 file\na.txt");
    assert_eq!(glob_all(&fixture).await.0, ["a.txt"]);
    for (path, expected) in [("pipe", "named pipe"), ("link", "named pipe"), ("zero", "is a device")] {
        let text = fixture.run_to_text("Grep", json!({"pattern": "x", "path": path})).await;
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn special_paths_are_not_searched() {
    let fixture = TestWorkspace::new(&[]);
    symlink("/proc/self", fixture.path("me")).unwrap();
    for path in ["/proc/self/environ", "/proc", "/dev", "me", "me/environ"] {
        let text = fixture.run_to_text("Grep", json!({"pattern": "PATH", "path": path})).await;
        assert!(text.contains("is a device or system file"), "{path}: {text}");
    }
    assert!(files::is_virtual_file_system(Path::new("/proc")));
}

#[tokio::test]
async fn an_invalid_start_is_explained() {
    let fixture = TestWorkspace::new(&[("file", "")]);
    symlink("nowhere", fixture.path("dangling")).unwrap();
    for tool in ["Grep", "Glob"] {
        for (path, expected) in [
            ("file/below", "file is a file, not a directory. Correct the path."),
            ("dangling", "a symbolic link to nowhere"),
            (&"n".repeat(300), "the name is too long"),
            ("none", "does not exist. The current directory is"),
        ] {
            let text = fixture.run_to_text(tool, json!({"pattern": "x", "path": path})).await;
            assert!(text.contains(expected), "{tool} {path}: {text}");
        }
    }
}

#[test]
fn gaps_are_reported() {
    let cwd = Path::new("/w");
    assert_eq!(render_skipped(&SkippedFiles::default(), false, cwd), "");
    let some = SkippedFiles {
        unreadable: 2,
        skipped_ignore_files: vec!["/w/.ignore".into(), "/etc/x".into()],
        denied: false,
    };
    assert_eq!(
        render_skipped(&some, true, cwd),
        "\n(Could not read: 2.)\n(Skipped ignore files that are too large, unreadable or not regular files: .ignore, \
         /etc/x.)\n(Stopped at the time limit; there may be more results. Search a smaller directory.)"
    );
}

/// A directory tree in which some files and a directory may not be read.
fn workspace_with_secrets() -> TestWorkspace {
    let fixture = TestWorkspace::new(&[
        ("a.txt", "needle"),
        ("secrets/key.txt", "needle"),
        ("sub/secrets/key.txt", "needle"),
        ("sub/b.txt", "needle"),
        ("SUB/Key.pem", "needle"),
    ]);
    symlink("secrets/key.txt", fixture.path("link.txt")).unwrap();
    symlink("sub", fixture.path("way")).unwrap();
    fixture.with_deny_rules(&["Read(secrets/**)", "Read(*.pem)"])
}

const DENIED_NOTE: &str = "(Some files were skipped because a permission rule denies reading them.)";

#[tokio::test]
async fn glob_skips_denied_files() {
    let fixture = workspace_with_secrets();
    let (names, notes) = glob_all(&fixture).await;
    assert_eq!((names, notes.as_str()), (vec!["a.txt".to_owned(), "sub/b.txt".to_owned()], DENIED_NOTE));
    for named in ["secrets/key.txt", "link.txt", "{secrets,x}/*", "SUB/*", "SUB/Key.pem"] {
        let text = fixture.run_to_text("Glob", json!({"pattern": named})).await;
        assert_eq!(text, format!("No files found\n{DENIED_NOTE}"), "{named}");
    }
    // Without an affected path there is no note.
    assert_eq!(fixture.run_to_text("Glob", json!({"pattern": "*.t?t", "path": "sub"})).await, "sub/b.txt");
}

#[tokio::test]
async fn grep_skips_denied_files() {
    let fixture = workspace_with_secrets();
    let text = fixture.run_to_text("Grep", json!({"pattern": "needle", "output_mode": "content"})).await;
    assert_eq!(text, format!("a.txt:1:needle\nsub/b.txt:1:needle\n{DENIED_NOTE}"));
    let text = fixture
        .run_to_text("Grep", json!({"pattern": "needle", "output_mode": "content", "path": "way"}))
        .await;
    assert_eq!(text, format!("way/b.txt:1:needle\n{DENIED_NOTE}"));
    for path in ["secrets/key.txt", "link.txt"] {
        let text = fixture
            .run_to_text("Grep", json!({"pattern": "needle", "output_mode": "content", "path": path}))
            .await;
        assert!(text.ends_with(DENIED_NOTE) && !text.contains("needle"), "{text}");
    }
}

#[test]
fn denied_files_are_not_visited() {
    struct Watch;
    impl FileVisitor for Watch {
        fn visit_file(&mut self, file: DirEntry) {
            let path = file.path().to_string_lossy().into_owned();
            assert!(["a.txt", "b.txt", "way"].iter().any(|name| path.ends_with(name)), "visited {path}");
        }
    }
    let fixture = workspace_with_secrets();
    let (stop, read_filter) = (CancelFlag::default(), fixture.read_filter());
    let walk = DirWalk {
        root: fixture.root(),
        name_filter: Arc::default(),
        read_filter,
        max_depth: None,
        stop: &stop,
    };
    assert!(walk.run(|| Watch).skipped.denied);
}
