//! The public surface of the crates that users name in their programs, recorded in `public-api.txt` beside their
//! sources, so that a change of it is seen in review.
//!
//! The list is made from rustdoc's JSON, which only an unstable option of rustdoc prints. `rustdoc-json.sh` allows it
//! for rustdoc alone: for the whole build it would compile every dependency again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use public_api::Builder;

use crate::command::{run_args, target_dir, workspace_root};

/// Package, folder, and name of the library.
const CRATES: [(&str, &str, &str); 2] =
    [("whimbrel", "crates/sdk", "whimbrel"), ("whimbrel-wire", "crates/wire", "whimbrel_wire")];

/// Packages of which the SDK exports items, and the names of their libraries. Of these only such items are recorded.
const EXPORTED_CRATES: [(&str, &str); 6] = [
    ("whimbrel-engine", "whimbrel_engine"),
    ("whimbrel-macros", "whimbrel_macros"),
    ("whimbrel-models", "whimbrel_models"),
    ("whimbrel-session-store", "whimbrel_session_store"),
    ("whimbrel-store-sqlite", "whimbrel_store_sqlite"),
    ("whimbrel-tools", "whimbrel_tools"),
];

/// Record of the items that the SDK exports from other crates, beside its own record.
const EXPORTED_RECORD: &str = "crates/sdk/public-api-exported.txt";

/// Compares the public surface with the record, or writes the record if the argument is `--bless`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_blessed = match args.as_slice() {
        [] => false,
        ["--bless"] => true,
        _ => bail!("unknown argument; known: --bless"),
    };
    let mut problems = Vec::new();
    let mut check = |package: &str, file: &Path, actual: &str| -> Result<()> {
        if is_blessed {
            return fs::write(file, actual).with_context(|| format!("cannot write {}", file.display()));
        }
        let recorded = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        if let Some(difference) = describe_difference(&recorded, actual) {
            problems.push(format!("the public surface of {package} has changed:\n{difference}"));
        }
        Ok(())
    };
    let mut exported = BTreeSet::new();
    for (package, dir, library) in CRATES {
        let actual = list_items(package, library)?;
        exported.extend(exported_names(&actual));
        check(package, &workspace_root().join(dir).join("public-api.txt"), &actual)?;
    }
    let mut actual = String::new();
    for (package, library) in EXPORTED_CRATES {
        actual += &select_items(&list_items(package, library)?, library, &exported);
    }
    check("the crates that whimbrel exports", &workspace_root().join(EXPORTED_RECORD), &actual)?;
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

/// Names of the items that a list of public items exports from other crates.
fn exported_names(list: &str) -> BTreeSet<String> {
    let paths = list.lines().filter_map(|line| line.strip_prefix("pub use "));
    paths.filter_map(|path| path.rsplit("::").next()).map(str::to_owned).collect()
}

/// The lines of a list that belong to one of these items.
fn select_items(list: &str, library: &str, names: &BTreeSet<String>) -> String {
    let is_selected = |line: &&str| item_path(line, library).split("::").any(|part| names.contains(part));
    list.lines().filter(is_selected).map(|line| format!("{line}\n")).collect()
}

/// The path of the item that a line is about: the first one of its library, or the type that a trait is implemented for.
fn item_path<'a>(line: &'a str, library: &str) -> &'a str {
    let subject = match line.strip_prefix("impl").and_then(|line| line.split_once(" for ")) {
        Some((_, subject)) => subject,
        None => line,
    };
    let Some(start) = subject.find(&format!("{library}::")) else { return "" };
    let path = &subject[start..];
    let is_outside = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | ':'));
    path.split(is_outside).next().unwrap_or(path).trim_end_matches(':')
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
    fn items_that_another_crate_exports_are_selected() {
        let names = exported_names("pub mod a\npub use a::Model\npub use a::store::Sessions\n");
        assert_eq!(names, BTreeSet::from(["Model", "Sessions"].map(str::to_owned)));
        let kept = [
            "pub trait m::model::Model",
            "pub fn m::model::Model::ask(&self, m::Request) -> m::Reply",
            "impl core::fmt::Debug for m::Model",
            "impl m::Sessions<T>",
        ];
        let dropped =
            ["pub struct m::Request", "pub m::Request::model: m::Model", "impl m::Model for m::Request"];
        let list = [&kept[..], &dropped[..]].concat().join("\n");
        assert_eq!(select_items(&list, "m", &names), kept.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn difference_names_added_and_removed_items() {
        assert_eq!(describe_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(describe_difference("a\nb\n", "a\nc\n").as_deref(), Some("- b\n+ c"));
    }
}
