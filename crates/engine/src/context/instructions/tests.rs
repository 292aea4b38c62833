//! Tests of instruction files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use tempfile::TempDir;
use whimbrel_config::locations::SharedDirs;
use whimbrel_config::settings::Trust;
use whimbrel_wire::options::SettingSource;

use super::*;

/// A home with a configuration directory, and a repository elsewhere.
struct InstructionsFixture {
    root: PathBuf,
    trust: Trust,
    sources: BTreeSet<SettingSource>,
    instruction_dirs: Vec<&'static str>,
    _temp_dir: TempDir,
}

impl InstructionsFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let sources = [SettingSource::User, SettingSource::Project, SettingSource::Local].into();
        let instruction_dirs = Vec::new();
        let project = Self { root, trust: Trust::Untrusted, sources, instruction_dirs, _temp_dir: dir };
        fs::create_dir_all(project.path("home/.claude")).unwrap();
        fs::create_dir_all(project.path("code/.git")).unwrap();
        project
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn with_files(self, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self
    }

    fn instructions(&self) -> Instructions {
        let locations = ConfigLocations {
            user_dir: Some(self.path("home/.claude")),
            working_dir: self.path("code"),
            project_dir: self.path("code"),
            sources: self.sources.clone(),
            trust: self.trust,
            instruction_dirs: self.instruction_dirs.iter().map(|dir| self.path(dir)).collect(),
            skill_dirs: SharedDirs::default(),
            named_skill_dirs: Vec::new(),
        };
        let instructions = Instructions::new(Arc::new(locations), Some(&self.path("home")));
        // The administrator's files of this machine are excluded.
        Instructions { managed: [].into(), ..instructions }
    }

    /// The initial files, as relative paths, and the warnings.
    fn load_initial(&self) -> (Vec<String>, Vec<String>) {
        let mut instructions = self.instructions();
        instructions.load_initial();
        let names = instructions.files().iter().map(|file| self.relative(&file.path)).collect();
        (names, instructions.take_updates().warnings)
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap().display().to_string()
    }
}

#[test]
fn files_are_ordered_and_limited_to_enabled_sources() {
    let files = [
        ("home/.claude/CLAUDE.md", "user"),
        ("CLAUDE.md", "parent"),
        ("code/AGENTS.md", "agents"),
        ("code/CLAUDE.md", "project"),
        ("code/.claude/CLAUDE.md", "hidden"),
        ("code/CLAUDE.local.md", "local"),
        ("code/below/CLAUDE.md", "below"),
    ];
    let mut fixture = InstructionsFixture::new().with_files(&files);
    let user = ["home/.claude/CLAUDE.md"];
    let project = ["CLAUDE.md", "code/AGENTS.md", "code/CLAUDE.md", "code/.claude/CLAUDE.md"];
    let local = ["code/CLAUDE.local.md"];
    let rows = [
        (vec![SettingSource::User], user.to_vec()),
        (vec![SettingSource::Project], project.to_vec()),
        (vec![SettingSource::Local], local.to_vec()),
        (vec![], vec![]),
        (
            vec![SettingSource::User, SettingSource::Project, SettingSource::Local],
            [&user[..], &project, &local].concat(),
        ),
    ];
    for (sources, expected) in rows {
        fixture.sources = sources.into_iter().collect();
        let (found, warnings) = fixture.load_initial();
        assert_eq!(
            (found, warnings),
            (expected.into_iter().map(String::from).collect(), vec![]),
            "{:?}",
            fixture.sources
        );
    }
}

#[test]
fn files_of_additional_directories_come_last() {
    let files = [
        ("code/CLAUDE.md", "project"),
        ("more/CLAUDE.md", "@inside.md @../outside.md"),
        ("more/inside.md", "inside"),
        ("outside.md", "outside"),
        ("more/.claude/CLAUDE.md", "hidden"),
        ("more/below/CLAUDE.md", "below"),
    ];
    let mut fixture = InstructionsFixture::new().with_files(&files);
    assert_eq!(fixture.load_initial().0, ["code/CLAUDE.md"]);
    fixture.instruction_dirs = vec!["more", "code", "gone"];
    let expected = ["code/CLAUDE.md", "more/CLAUDE.md", "more/inside.md", "more/.claude/CLAUDE.md"];
    let (mut found, warnings) = fixture.load_initial();
    found.sort_unstable();
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("outside.md")), "{warnings:?}");
}

#[test]
fn user_files_are_not_project_files_of_home() {
    let mut project = InstructionsFixture::new()
        .with_files(&[("home/.claude/CLAUDE.md", "user"), ("home/CLAUDE.md", "home")]);
    project.sources = [SettingSource::Project].into();
    let mut instructions = project.instructions();
    instructions.config_locations = Arc::new(ConfigLocations {
        working_dir: project.path("home"),
        ..(*instructions.config_locations).clone()
    });
    assert!(
        instructions.load_initial().is_some_and(|text| text.contains("home\n") && !text.contains("\nuser"))
    );
}

#[test]
fn rendered_text_names_owner_of_each_file() {
    let project = InstructionsFixture::new().with_files(&[
        ("home/.claude/CLAUDE.md", "Be kind.\n"),
        ("code/CLAUDE.md", "@docs/x.md\n"),
        ("code/docs/x.md", "Use tabs."),
    ]);
    let text = project.instructions().load_initial().unwrap();
    let at = |path: &str| project.path(path).display().to_string();
    let expected = format!(
        "<system-reminder>\nInstructions from the user and the project, for every task here. Follow them where they apply; they override your defaults.\n\n{} (from the user, for all projects):\nBe kind.\n\n{} (from the project):\n@docs/x.md\n\n{} (from the project, imported by {}):\nUse tabs.\n</system-reminder>",
        at("home/.claude/CLAUDE.md"),
        at("code/CLAUDE.md"),
        at("code/docs/x.md"),
        at("code/CLAUDE.md")
    );
    assert_eq!(text, expected);
}

#[test]
fn import_depth_is_limited() {
    let chain: Vec<(String, String)> =
        (0..8).map(|n| (format!("code/{n}.md"), format!("number {n} @{}.md", n + 1))).collect();
    let files: Vec<(&str, &str)> = chain.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = InstructionsFixture::new().with_files(&files).with_files(&[("code/CLAUDE.md", "@0.md")]);
    let (found, warnings) = project.load_initial();
    assert_eq!(found, ["code/CLAUDE.md", "code/0.md", "code/1.md", "code/2.md", "code/3.md", "code/4.md"]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("5.md") && warnings[0].contains("more than 5 deep"), "{warnings:?}");
}

#[test]
fn each_file_is_loaded_once() {
    let project = InstructionsFixture::new().with_files(&[
        ("code/CLAUDE.md", "one @a.md @./a.md"),
        ("code/a.md", "two @CLAUDE.md @a.md"),
        ("code/.claude/CLAUDE.md", "one @a.md @./a.md"),
    ]);
    symlink("CLAUDE.md", project.path("code/AGENTS.md")).unwrap();
    let (found, warnings) = project.load_initial();
    assert_eq!((found, warnings), (vec!["code/AGENTS.md".to_owned(), "code/a.md".to_owned()], vec![]));
}

#[test]
fn project_imports_outside_files_only_if_trusted() {
    let files = [
        ("home/secret.md", "secret"),
        ("code/CLAUDE.md", "@../home/secret.md @~/secret.md"),
        ("home/.claude/CLAUDE.md", "mine"),
    ];
    let mut project = InstructionsFixture::new().with_files(&files);
    symlink(project.path("home/secret.md"), project.path("code/AGENTS.md")).unwrap();
    symlink(project.path("home/secret.md"), project.path("code/CLAUDE.local.md")).unwrap();
    let (found, warnings) = project.load_initial();
    assert_eq!(found, ["home/.claude/CLAUDE.md", "code/CLAUDE.md"]);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("outside the project")), "{warnings:?}");
    project.trust = Trust::Full;
    assert_eq!(
        project.load_initial(),
        (vec!["home/.claude/CLAUDE.md".into(), "code/AGENTS.md".into(), "code/CLAUDE.md".into()], vec![])
    );
}

#[test]
fn user_files_may_import_from_anywhere() {
    let mut project = InstructionsFixture::new().with_files(&[
        ("home/.claude/CLAUDE.md", "@~/notes.md"),
        ("home/notes.md", "notes"),
        ("code/CLAUDE.local.md", "@~/more.md"),
        ("home/more.md", "more"),
    ]);
    let expected = ["home/.claude/CLAUDE.md", "home/notes.md", "code/CLAUDE.local.md", "home/more.md"];
    // In an untrusted project, the local file may have come with it.
    assert_eq!(
        project.load_initial().0,
        expected[..3].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    );
    project.trust = Trust::Full;
    assert_eq!(project.load_initial(), (expected.map(String::from).to_vec(), vec![]));
}

#[test]
fn non_text_files_are_reported_without_blocking() {
    let project = InstructionsFixture::new();
    nix::unistd::mkfifo(&project.path("code/CLAUDE.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(project.path("code/AGENTS.md")).unwrap();
    fs::write(project.path("code/CLAUDE.local.md"), b"caf\xe9").unwrap();
    symlink("/dev/zero", project.path("home/.claude/CLAUDE.md")).unwrap();
    symlink("nowhere", project.path("home/.claude/AGENTS.md")).unwrap();
    let (found, warnings) = project.load_initial();
    assert!(found.is_empty());
    let expected = [
        ("home/.claude/CLAUDE.md", "device"),
        ("code/AGENTS.md", "directory"),
        ("code/CLAUDE.md", "pipe"),
        ("code/CLAUDE.local.md", "UTF-8"),
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, (path, reason)) in warnings.iter().zip(expected) {
        assert!(warning.contains(path) && warning.contains(reason), "{warning}");
    }
}

#[test]
fn other_mentions_are_not_imports() {
    let text = "Ask @somebody about @scope/package and @/etc, not `@code.md`. But @missing.md is missing.";
    let project =
        InstructionsFixture::new().with_files(&[("code/CLAUDE.md", text), ("code/code.md", "code")]);
    let (found, warnings) = project.load_initial();
    assert_eq!(found, ["code/CLAUDE.md"]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("missing.md, which does not exist"), "{warnings:?}");
}

#[test]
fn long_files_are_truncated_with_warning() {
    let long = "ä".repeat(40 * 1024);
    let project = InstructionsFixture::new().with_files(&[("code/CLAUDE.md", &format!("x{long}"))]);
    let mut instructions = project.instructions();
    let text = instructions.load_initial().unwrap();
    assert!(text.contains("(Truncated: the file has 81921 bytes."), "{}", &text[text.len() - 200..]);
    let warnings = instructions.take_updates().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("81921 bytes"), "{warnings:?}");
}

#[test]
fn total_size_is_limited() {
    let big = "x".repeat(60 * 1024);
    let files: Vec<(String, String)> =
        (0..6).map(|n| (format!("code/{n}.md"), format!("{n}{big}"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = InstructionsFixture::new()
        .with_files(&files)
        .with_files(&[("code/CLAUDE.md", "@0.md @1.md @2.md @3.md @4.md @5.md")]);
    let (found, warnings) = project.load_initial();
    assert_eq!((found.len(), warnings.len()), (5, 2));
    assert!(warnings[0].contains("4.md is left out") && warnings[1].contains("5.md is left out"));
}

#[test]
fn nested_files_are_loaded_when_a_file_is_accessed() {
    let project = InstructionsFixture::new().with_files(&[
        ("code/CLAUDE.md", "top"),
        ("code/a/CLAUDE.md", "of a @more.md"),
        ("code/a/more.md", "more of a"),
        ("code/a/b/CLAUDE.local.md", "of b"),
        ("code/a/b/c.rs", ""),
        ("code/a/d.rs", ""),
        ("home/x.rs", ""),
    ]);
    let mut instructions = project.instructions();
    instructions.load_initial();
    instructions.take_updates();
    let text = instructions.load_nested(&project.path("code/a/b/c.rs")).concat();
    assert!(text.contains("of a") && text.contains("of b") && !text.contains("top"), "{text}");
    let loaded = instructions.take_updates().loaded;
    let loaded_files: Vec<_> = loaded
        .iter()
        .map(|file| {
            (project.relative(&file.path), file.reason, file.trigger.is_some(), file.parent.is_some())
        })
        .collect();
    assert_eq!(
        loaded_files,
        [
            ("code/a/CLAUDE.md".into(), LoadReason::Nested, true, false),
            ("code/a/more.md".into(), LoadReason::Include, true, true),
            ("code/a/b/CLAUDE.local.md".into(), LoadReason::Nested, true, false),
        ]
    );
    for file in ["code/a/b/c.rs", "code/a/d.rs", "home/x.rs", "code/gone.rs"] {
        assert_eq!(instructions.load_nested(&project.path(file)), [""; 0], "{file}");
    }
    // A compaction resets everything.
    instructions.load_initial();
    assert_eq!(instructions.take_updates().loaded[0].reason, LoadReason::Compact);
    assert!(!instructions.load_nested(&project.path("code/a/d.rs")).is_empty());
}

#[test]
fn worktree_skips_project_files_of_main_checkout() {
    let project = InstructionsFixture::new().with_files(&[
        ("code/CLAUDE.md", "main checkout"),
        ("code/CLAUDE.local.md", "mine"),
        ("code/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
        ("code/trees/w/.git", "gitdir: ../../.git/worktrees/w\n"),
        ("code/trees/w/CLAUDE.md", "worktree"),
        ("CLAUDE.md", "above both"),
    ]);
    let mut instructions = project.instructions();
    instructions.config_locations = Arc::new(ConfigLocations {
        working_dir: project.path("code/trees/w"),
        ..(*instructions.config_locations).clone()
    });
    instructions.load_initial();
    let found: Vec<String> = instructions.files().iter().map(|file| project.relative(&file.path)).collect();
    assert_eq!(found, ["CLAUDE.md", "code/CLAUDE.local.md", "code/trees/w/CLAUDE.md"]);
}

#[test]
fn only_calls_that_access_files_are_watched() {
    let mut instructions = InstructionsFixture::new().instructions();
    instructions.watch_call("Read", &json!({"file_path": "a"}));
    instructions.watch_call("NotebookEdit", &json!({"notebook_path": "b"}));
    instructions.watch_call("Bash", &json!({"file_path": "c"}));
    instructions.watch_call("Read", &json!({"file_path": 5}));
    assert_eq!(instructions.take_watched_paths(), ["a", "b"]);
    assert!(instructions.take_watched_paths().is_empty());
}

#[test]
fn warning_is_sent_once_per_session() {
    let project = InstructionsFixture::new();
    fs::create_dir(project.path("code/CLAUDE.md")).unwrap();
    let mut first = project.instructions();
    let mut second = first.for_new_agent();
    first.load_initial();
    second.load_initial();
    assert_eq!((first.take_updates().warnings.len(), second.take_updates().warnings.len()), (1, 0));
}

#[test]
fn files_of_another_user_above_project_are_skipped() {
    // Only root can change the owner of a file.
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let project =
        InstructionsFixture::new().with_files(&[("CLAUDE.md", "above"), ("code/CLAUDE.md", "inside")]);
    for path in ["CLAUDE.md", "code/CLAUDE.md"] {
        nix::unistd::chown(&project.path(path), Some(12_345.into()), None).unwrap();
    }
    let (found, warnings) = project.load_initial();
    assert_eq!(found, ["code/CLAUDE.md"]);
    assert!(warnings.len() == 1 && warnings[0].contains("another user"), "{warnings:?}");
}
