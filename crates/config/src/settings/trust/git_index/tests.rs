//! Valid and invalid git indexes.

use std::fs;

use super::*;

const LOCAL: &str = ".claude/settings.local.json";

/// Builds an index of a version with some files.
fn index(version: u32, names: &[&str]) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
    let mut last = "";
    for name in names {
        let start = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(if name.ends_with('/') { 0o040_000_u32 } else { 0o100_644 }.to_be_bytes());
        bytes.extend([7; 32]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        if version == 4 {
            let shared = name.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
            bytes.push(u8::try_from(last.len() - shared).unwrap());
            bytes.extend(&name.as_bytes()[shared..]);
            bytes.push(0);
        } else {
            bytes.extend(name.as_bytes());
            let length = (bytes.len() + 1 - start).div_ceil(8) * 8;
            bytes.resize(start + length, 0);
        }
        last = name;
    }
    bytes.extend([9; 20]);
    bytes
}

#[test]
fn index_of_any_version_is_searched() {
    for version in [2, 3, 4] {
        let rows: [(&[&str], bool); 6] = [
            (&[], false),
            (&[".claude/settings.json", "a", "src/b"], false),
            (&[".claude/settings.json", LOCAL, "a"], true),
            (&[".CLAUDE/Settings.Local.json"], true),
            (&[".claude/", "a"], true),
            (&["sub/.claude/settings.local.json"], false),
        ];
        for (names, expected) in rows {
            assert_eq!(
                search_index(&index(version, names), LOCAL.as_bytes(), 20),
                Some(expected),
                "{version} {names:?}"
            );
        }
    }
}

#[test]
fn unparsable_index_counts_as_tracking() {
    let mut cut = index(2, &["a", "b"]);
    cut.truncate(60);
    let mut split = index(2, &["a"]);
    split.splice(split.len() - 20..split.len() - 20, *b"link\0\0\0\x04abcd");
    for bytes in [b"".to_vec(), b"something else".to_vec(), cut, split] {
        assert!(is_listed(&bytes, LOCAL.as_bytes()), "{bytes:?}");
    }
}

#[test]
fn repository_is_found_in_directory_or_gitdir_file() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir_all(root.join(".claude")).unwrap();
    assert!(!is_tracked(&root.join(LOCAL)));
    fs::create_dir(root.join(".git")).unwrap();
    assert!(!is_tracked(&root.join(LOCAL)));
    fs::write(root.join(".git/index"), index(2, &[LOCAL])).unwrap();
    assert!(is_tracked(&root.join(LOCAL)));
    assert!(!is_tracked(&root.join(".claude/settings.json")));
    fs::rename(root.join(".git"), dir.path().join("repository")).unwrap();
    assert!(!is_tracked(&root.join(LOCAL)));
    fs::write(root.join(".git"), "gitdir: ../repository\n").unwrap();
    assert!(is_tracked(&root.join(LOCAL)));
}
