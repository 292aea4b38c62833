//! Checks `docs/faults.md`: every row exists once, and every test that it names exists.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The rows of the table: the id, and the tests that show it.
fn table_rows() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(workspace_root().join("docs/faults.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let id = cells.first()?;
        let is_id = id.starts_with(['A', 'P', 'D']) && id[1..].parse::<u32>().is_ok();
        let tests = cells.last()?.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        is_id.then(|| ((*id).to_owned(), tests))
    });
    rows.collect()
}

/// Collects the names of all functions and scenarios in the sources.
fn collect_function_names(dir: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_function_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().map(str::trim_start) {
                let line = line.trim_start_matches("pub(crate) ").trim_start_matches("async ");
                let function = line.strip_prefix("fn ").or(line.strip_prefix("def "));
                let name = match (function, line.split_once(" => \"")) {
                    (Some(rest), _) => rest.split(['(', '<']).next(),
                    (None, Some((scenario, _))) => Some(scenario),
                    (None, None) => None,
                };
                names.extend(name.map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_row_exists_once() {
    let ids: Vec<String> = table_rows().into_iter().map(|(id, _)| id).collect();
    let numbered = |letter: char, count: usize| (1..=count).map(move |number| format!("{letter}{number}"));
    let expected: Vec<String> = numbered('A', 40).chain(numbered('P', 34)).chain(numbered('D', 17)).collect();
    assert_eq!(ids, expected);
}

#[test]
fn every_row_names_existing_tests() {
    let mut known = BTreeSet::new();
    for dir in ["crates", "conformance"] {
        collect_function_names(&workspace_root().join(dir), &mut known);
    }
    for (id, tests) in table_rows() {
        assert!(!tests.is_empty(), "{id} names no test");
        for name in tests {
            assert!(known.contains(&name), "{id} names {name}, which does not exist");
        }
    }
}
