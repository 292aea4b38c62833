//! The public surface of the crates that users name in their programs, recorded in `public-api.txt` beside their
//! sources, so that a change of it is seen in review.
//!
//! The list is made from rustdoc's JSON, which only an unstable option of rustdoc prints. `rustdoc-json.sh` allows it
//! for rustdoc alone: for the whole build it would compile every dependency again.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use public_api::Builder;

use crate::command::{run_args, target_dir, workspace_root};

/// Package, folder, and name of the library.
const CRATES: [(&str, &str, &str); 2] =
    [("whimbrel", "crates/sdk", "whimbrel"), ("whimbrel-wire", "crates/wire", "whimbrel_wire")];

/// Compares the public surface with the record, or writes the record if the argument is `--bless`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_blessed = match args.as_slice() {
        [] => false,
        ["--bless"] => true,
        _ => bail!("unknown argument; known: --bless"),
    };
    let mut problems = Vec::new();
    for (package, dir, library) in CRATES {
        let file = workspace_root().join(dir).join("public-api.txt");
        let actual = list_items(package, library)?;
        if is_blessed {
            fs::write(&file, actual).with_context(|| format!("cannot write {}", file.display()))?;
            continue;
        }
        let recorded =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if let Some(difference) = describe_difference(&recorded, &actual) {
            problems.push(format!("the public surface of {package} has changed:\n{difference}"));
        }
    }
    if !problems.is_empty() {
        bail!(
            "{}\nIf it is meant to change, run `cargo xtask public-api --bless`, and describe the change in CHANGELOG.md.",
            problems.join("\n")
        );
    }
    Ok(())
}

/// Returns the public items of a crate, one per line.
fn list_items(package: &str, library: &str) -> Result<String> {
    let rustdoc = workspace_root().join("xtask/rustdoc-json.sh");
    let rustdoc = rustdoc.to_str().context("the path of the workspace is not UTF-8")?;
    let words = ["cargo", "rustdoc", "--package", package, "--lib", "--all-features", "--locked", "--"];
    let json = ["-Z", "unstable-options", "--output-format", "json"];
    run_args(&[&words[..], &json[..]].concat(), &[("RUSTDOC", rustdoc)])?;
    let json = target_dir().join("doc").join(format!("{library}.json"));
    let api = Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", json.display()))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Returns the lines that were added and removed, or `None` if the lists are equal.
fn describe_difference(recorded: &str, actual: &str) -> Option<String> {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) =
        (recorded.lines().collect(), actual.lines().collect());
    let removed = before.difference(&after).map(|line| format!("- {line}"));
    let added = after.difference(&before).map(|line| format!("+ {line}"));
    let lines: Vec<String> = removed.chain(added).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_added_and_removed_items() {
        assert_eq!(describe_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(describe_difference("a\nb\n", "a\nc\n").as_deref(), Some("- b\n+ c"));
    }
}
