//! Limit on the crates that a program compiles which only drives engine processes: the SDK without default features.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::command::stdout;

/// Limit on the crates, the SDK included.
const MAX_PROCESS_ONLY_CRATES: usize = 60;

/// Fails if the SDK without default features depends on more crates than the limit.
pub(crate) fn check() -> Result<()> {
    let tree = stdout(&[
        "cargo",
        "tree",
        "--package",
        "whimbrel",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
    ])?;
    let count = count_crates(&tree);
    if count > MAX_PROCESS_ONLY_CRATES {
        bail!(
            "the SDK without default features depends on {count} crates, more than {MAX_PROCESS_ONLY_CRATES}: make the new \
             dependency optional (cargo tree --package whimbrel --no-default-features --edges normal)"
        );
    }
    Ok(())
}

/// Counts the crates in the output of `cargo tree`, which repeats them with a mark.
fn count_crates(tree: &str) -> usize {
    let crates = tree.lines().map(|line| line.trim_end_matches("(*)").trim());
    crates.filter(|line| !line.is_empty()).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_crates_count_once() {
        assert_eq!(count_crates("a v1.0.0\nb v2.0.0\nb v3.0.0\nb v2.0.0 (*)\n\n"), 3);
    }
}
