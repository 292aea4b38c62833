use std::os::unix::fs::symlink;

use super::*;
use crate::plan::{View, ViewKind};
use crate::policy::PathRule;

struct Fixture {
    _folder: tempfile::TempDir,
    work: PathBuf,
    scratch: PathBuf,
}

impl Fixture {
    /// Not below `/tmp`, which is fresh inside.
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["work", "scratch"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        Self { _folder: folder, work: base.join("work"), scratch: base.join("scratch") }
    }

    fn marks(&self, rules: FileRules) -> Marks {
        let policy = Policy { files: FileLayer::Confined(rules), ..Policy::new(&self.work, &self.scratch) };
        let roots = find_roots(&policy).unwrap();
        find_marks(&policy, &roots, Variables::default(), &mut RepositoryCache::default()).unwrap()
    }

    fn views(&self, rules: FileRules) -> Vec<(String, ViewKind)> {
        let relative = |View { path, kind, .. }: View| {
            let path = path.strip_prefix(&self.work).ok()?;
            Some((path.display().to_string(), kind))
        };
        self.marks(rules).into_plan().views.into_iter().filter_map(relative).collect()
    }
}

#[test]
fn protected_link_stays_and_its_target_is_protected() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work.join("real")).unwrap();
    symlink("real", fixture.work.join(".claude")).unwrap();
    assert_eq!(
        fixture.views(FileRules::default()),
        [
            (String::new(), ViewKind::Root { pins: vec![] }),
            (".claude".into(), ViewKind::ReadOnlyLink),
            ("real".into(), ViewKind::ReadOnly),
        ]
    );
}

#[test]
fn repository_files_are_protected_and_pinned() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.work.join(".git/hooks")).unwrap();
    std::fs::write(fixture.work.join(".git/config"), "[core]\nhooksPath = my/hooks\n").unwrap();
    std::fs::create_dir_all(fixture.work.join("my/hooks")).unwrap();
    let pins = [".git", "my"].map(PathBuf::from).to_vec();
    assert_eq!(
        fixture.views(FileRules::default()),
        [
            (String::new(), ViewKind::Root { pins }),
            (".git/config".into(), ViewKind::ReadOnly),
            (".git/hooks".into(), ViewKind::ReadOnly),
            ("my/hooks".into(), ViewKind::ReadOnly),
        ]
    );
}

#[test]
fn missing_names_are_listed_where_they_can_be_made() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work.join(".git")).unwrap();
    let rules = FileRules { protected_names: vec![".vscode".into()], ..FileRules::default() };
    let missing = fixture.marks(rules).missing_names();
    let name = |path: &str, kind| MissingName { path: fixture.work.join(path), kind };
    assert_eq!(
        missing,
        [
            name(".git/config", CoverKind::File),
            name(".git/hooks", CoverKind::Folder),
            name(".vscode", CoverKind::Folder),
        ]
    );
}

#[test]
fn hidden_entries_that_do_not_exist_are_left_out() {
    let fixture = Fixture::new();
    std::fs::write(fixture.work.join("key"), "").unwrap();
    symlink("key", fixture.work.join("link")).unwrap();
    symlink("/nonexistent/there", fixture.work.join("dangling")).unwrap();
    let deny_read = ["link", "dangling", "no/such"].map(|name| PathRule::Literal(fixture.work.join(name)));
    let rules = FileRules { deny_read: deny_read.to_vec(), ..FileRules::default() };
    assert_eq!(
        fixture.views(rules),
        [(String::new(), ViewKind::Root { pins: vec![] }), ("key".into(), ViewKind::HiddenFile),]
    );
}

#[test]
fn writable_root_must_not_be_the_whole_machine() {
    let fixture = Fixture::new();
    for path in ["/", "/proc", "/dev/shm"] {
        let rules = FileRules { allow_write: vec![path.into()], ..FileRules::default() };
        let policy =
            Policy { files: FileLayer::Confined(rules), ..Policy::new(&fixture.work, &fixture.scratch) };
        assert!(
            matches!(
                find_marks(
                    &policy,
                    &find_roots(&policy).unwrap(),
                    Variables::default(),
                    &mut RepositoryCache::default()
                ),
                Err(ResolveError::Rule(RuleError::ForbiddenRoot { .. }))
            ),
            "{path}"
        );
    }
}

/// Names in the working directory that are missing and covered, or present and read-only.
fn protected_in_tree(fixture: &Fixture, variables: Variables<'_>) -> Vec<(String, Option<CoverKind>)> {
    let rules = FileRules { protected_names: Vec::new(), ..FileRules::default() };
    let policy = Policy { files: FileLayer::Confined(rules), ..Policy::new(&fixture.work, &fixture.scratch) };
    let roots = find_roots(&policy).unwrap();
    let marks = find_marks(&policy, &roots, variables, &mut RepositoryCache::default()).unwrap();
    let relative = |path: &Path| path.strip_prefix(&fixture.work).map(|path| path.display().to_string());
    let missing = marks.missing_names();
    let mut names: Vec<_> =
        missing.iter().filter_map(|name| Some((relative(&name.path).ok()?, Some(name.kind)))).collect();
    names.extend(marks.into_plan().views.iter().filter_map(|view| {
        let is_read_only = matches!(view.kind, ViewKind::ReadOnly | ViewKind::ReadOnlyLink);
        Some((relative(&view.path).ok()?, None)).filter(|_| is_read_only)
    }));
    names.retain(|(name, _)| !matches!(name.as_str(), ".git/hooks" | ".git/config"));
    names.sort();
    names
}

#[test]
fn paths_that_git_configurations_name_are_protected_or_covered() {
    let (file, folder) = (Some(CoverKind::File), Some(CoverKind::Folder));
    let own = |name: &str, kind| (name.to_owned(), kind);
    type Row = (&'static str, &'static str, &'static [&'static str], Vec<(String, Option<CoverKind>)>);
    let rows: [Row; 8] = [
        ("missing folder", "[core]\nhooksPath = .githooks # note\n", &[], vec![own(".githooks", folder)]),
        ("missing folder, deep", "[core]\nhooksPath = a/b/c\n", &[], vec![own("a", folder)]),
        ("home directory", "[core]\nhooksPath = ~/work/mine\n", &["mine/"], vec![own("mine", None)]),
        ("missing included file", "[include]\npath = ../.gitconfig\n", &[], vec![own(".gitconfig", file)]),
        (
            "included file",
            "[includeIf \"gitdir:x]\"]\npath = ../team.cfg\n",
            &["team.cfg=[core]\nhooksPath = tools/hooks\n[include]\npath = more.cfg\n", "more.cfg="],
            vec![own("more.cfg", None), own("team.cfg", None), own("tools", folder)],
        ),
        ("loop", "[include]\npath = config\n", &[], vec![]),
        (
            "submodule",
            "",
            &[
                ".git/modules/m/HEAD=",
                ".git/modules/m/config=[core]\nworktree = ../../../m\nhooksPath = h\n",
                "m/h/",
            ],
            vec![own(".git/modules/m/config", None), own(".git/modules/m/hooks", folder), own("m/h", None)],
        ),
        (
            "linked worktree",
            "[extensions]\nworktreeConfig = true\n",
            &[".git/worktrees/w/commondir=../..\n", ".git/worktrees/w/gitdir=/w/.git\n"],
            vec![
                own(".git/config.worktree", file),
                own(".git/worktrees/w/commondir", None),
                own(".git/worktrees/w/config.worktree", file),
                own(".git/worktrees/w/gitdir", None),
            ],
        ),
    ];
    for (name, config, entries, expected) in rows {
        let fixture = Fixture::new();
        std::fs::create_dir_all(fixture.work.join(".git/hooks")).unwrap();
        std::fs::write(fixture.work.join(".git/config"), config).unwrap();
        for entry in entries {
            let (path, text) = entry.split_once('=').unwrap_or((entry, ""));
            let path = fixture.work.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match entry.ends_with('/') {
                true => std::fs::create_dir_all(path).unwrap(),
                false => std::fs::write(path, text).unwrap(),
            }
        }
        let variables = Variables { home: fixture.work.parent(), ..Variables::default() };
        assert_eq!(protected_in_tree(&fixture, variables), expected, "{name}");
    }
}

#[test]
fn hooks_of_the_user_and_of_an_enclosing_repository_are_covered() {
    let fixture = Fixture::new();
    let home = fixture.work.parent().unwrap().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(fixture.work.join(".git")).unwrap();
    std::fs::write(home.join(".gitconfig"), "[core]\nhooksPath = .hooks\n").unwrap();
    let variables = Variables { home: Some(&home), ..Variables::default() };
    assert_eq!(protected_in_tree(&fixture, variables), [(".hooks".into(), Some(CoverKind::Folder))]);

    std::fs::remove_dir_all(fixture.work.join(".git")).unwrap();
    std::fs::create_dir(home.parent().unwrap().join(".git")).unwrap();
    let config = home.parent().unwrap().join(".git/config");
    std::fs::write(config, "[core]\nhooksPath = work/other\n").unwrap();
    assert_eq!(
        protected_in_tree(&fixture, Variables::default()),
        [("other".into(), Some(CoverKind::Folder))]
    );
}
