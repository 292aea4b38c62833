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
        find_marks(&policy, None, &mut RepositoryCache::default()).unwrap()
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
                find_marks(&policy, None, &mut RepositoryCache::default()),
                Err(ResolveError::ForbiddenRoot { .. })
            ),
            "{path}"
        );
    }
}
