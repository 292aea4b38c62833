//! The files and directories that the documentation names exist.

#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Directories of the repository that paths in the documentation begin with.
const ROOTS: [&str; 7] = ["crates/", "docs/", "xtask/", "conformance/", "examples/", "schema/", ".github/"];

fn pages(root: &Path) -> Vec<PathBuf> {
    let in_dir = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let pages = in_dir(root.to_path_buf()).chain(in_dir(root.join("docs")));
    pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Paths in backticks and targets of links.
fn named_paths(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let paths =
        quoted.chain(linked).map(|path| path.split('#').next().unwrap_or_default().trim_end_matches('/'));
    let is_path = |path: &&str| {
        ROOTS.iter().any(|root| path.starts_with(root)) && !path.contains([' ', '*', '<', '{', '\n'])
    };
    paths.filter(is_path).map(str::to_owned).collect()
}

#[test]
fn documented_paths_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = 0;
    for page in pages(root) {
        for path in named_paths(&fs::read_to_string(&page).unwrap()) {
            found += 1;
            let exists = root.join(&path).exists() || page.parent().unwrap().join(&path).exists();
            assert!(exists, "{} names {path}, which does not exist", page.display());
        }
    }
    assert!(found > 20, "only {found} paths found");
}
