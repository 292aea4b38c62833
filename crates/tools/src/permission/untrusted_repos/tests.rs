//! Tests of repository inspection on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\
    \turl = https://x.invalid/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn write_executable(file: &Path) {
    write(file, "#!/bin/sh\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Index file with one entry.
fn index_bytes(name: &str, mode: u32) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
    bytes.extend([0; 24]);
    bytes.extend(mode.to_be_bytes());
    bytes.extend([7; 32]);
    bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
    bytes.extend(name.as_bytes());
    let length = (bytes.len() + 1 - 12).div_ceil(8) * 8;
    bytes.resize(12 + length, 0);
    bytes.extend([9; 20]);
    bytes
}

/// Worktree with an ordinary repository.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().canonicalize().unwrap().join("tree");
    write(&tree.join(".git/config"), PLAIN);
    write_executable(&tree.join(".git/hooks/pre-commit.sample"));
    write_executable(&tree.join(".git/hooks/pre-commit"));
    fs::write(tree.join(".git/index"), index_bytes("a", 0o100_644)).unwrap();
    (dir, tree)
}

fn program_key(tree: &Path) -> Option<String> {
    UntrustedRepos::default().configured_program(tree).map(|program| program.key)
}

#[test]
fn an_ordinary_repository_runs_nothing() {
    let (_dir, tree) = repository();
    assert_eq!(program_key(&tree), None);
    fs::remove_file(tree.join(".git/config")).unwrap();
    fs::remove_file(tree.join(".git/index")).unwrap();
    assert_eq!(program_key(&tree), None, "an empty directory");
}

#[test]
fn settings_that_name_programs_are_found() {
    let rows = [
        ("[core]\nfsmonitor = x\n", "core.fsmonitor"),
        ("[diff \"x\"]\ntextconv = x\n", "diff.x.textconv"),
        ("[include]\npath = other\n", "include.path"),
        ("[core]\nhooksPath = hk\n", "core.hooksPath"),
        ("[core]\nworktree = /\n", "core.worktree"),
        ("[core\n", "unrecognized content"),
    ];
    for (text, expected) in rows {
        let (_dir, tree) = repository();
        write(&tree.join(".git/config"), &format!("{PLAIN}{text}"));
        assert_eq!(program_key(&tree).as_deref(), Some(expected), "{text}");
        write(&tree.join(".git/config"), PLAIN);
        write(&tree.join(".git/config.worktree"), text);
        assert_eq!(program_key(&tree).as_deref(), Some(expected), "{text} for the worktree");
    }
    let (_dir, tree) = repository();
    fs::remove_file(tree.join(".git/config")).unwrap();
    nix::unistd::mkfifo(&tree.join(".git/config"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(program_key(&tree).as_deref(), Some("unrecognized content"), "a pipe");
}

#[test]
fn a_hook_of_read_only_commands_is_found() {
    let (_dir, tree) = repository();
    write_executable(&tree.join(".git/hooks/post-index-change"));
    assert_eq!(program_key(&tree).as_deref(), Some("a hook"));
    fs::set_permissions(tree.join(".git/hooks/post-index-change"), fs::Permissions::from_mode(0o644))
        .unwrap();
    assert_eq!(program_key(&tree), None, "not executable");
    // Hooks in a protected directory cannot be written without a prompt.
    write(&tree.join(".git/config"), &format!("{PLAIN}[core]\nhooksPath = .husky/_\n"));
    write_executable(&tree.join(".husky/_/pre-commit"));
    assert_eq!(program_key(&tree), None);
    write_executable(&tree.join(".husky/_/post-index-change"));
    assert_eq!(program_key(&tree).as_deref(), Some("a hook"));
}

#[test]
fn a_linked_worktree_is_inspected() {
    let (dir, tree) = repository();
    let other = dir.path().canonicalize().unwrap().join("other");
    write(&other.join(".git"), &format!("gitdir: {}\n", tree.join(".git/worktrees/one").display()));
    write(&tree.join(".git/worktrees/one/commondir"), "../..\n");
    assert_eq!(program_key(&other), None);
    write(&tree.join(".git/config"), &format!("{PLAIN}[core]\nfsmonitor = x\n"));
    assert_eq!(program_key(&other).as_deref(), Some("core.fsmonitor"));
    write(&other.join(".git"), "something else\n");
    assert_eq!(program_key(&other).as_deref(), Some("unrecognized content"));
}

#[test]
fn a_submodule_is_inspected_if_present() {
    let (_dir, tree) = repository();
    write(&tree.join("sub/.git/config"), "[core]\nfsmonitor = x\n");
    let inspector = UntrustedRepos::default();
    let program_of = |inspector: &UntrustedRepos| {
        inspector.configured_program(&tree).map(|program| (program.key, program.file))
    };
    assert_eq!(program_of(&inspector), None, "a repository that is not a submodule");
    fs::write(tree.join(".git/index"), index_bytes("sub", 0o160_000)).unwrap();
    let expected = Some(("core.fsmonitor".to_owned(), tree.join("sub/.git/config")));
    assert_eq!(program_of(&UntrustedRepos::default()), expected);
    fs::write(tree.join(".git/index"), index_bytes("another", 0o160_000)).unwrap();
    assert_eq!(program_of(&inspector), None, "a submodule that was never fetched");
    fs::write(tree.join(".git/index"), "no index").unwrap();
    assert_eq!(program_of(&inspector).map(|(key, _)| key).as_deref(), Some("unrecognized content"));
}
