//! `cargo xtask awake`: writes the functions that a typical session executes to `crates/cli/awake.txt`.
//!
//! The linker places these functions side by side (`crates/cli/build.rs`), so that a process touches few pages of the
//! program. Regenerate the list after large changes; an outdated list costs memory only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::bench;
use crate::command::{self, run_args, succeeds, workspace_root};

/// Benchmark scenarios of a typical session: prompts, streaming, commands, file reads, permission requests.
const TYPICAL_SCENARIOS: [&str; 5] = ["cold", "loop", "read-loop", "session", "ask"];

/// First line of the list.
const LIST_HEADER: &str =
    "# Functions of an everyday session, for the linker. Made by `cargo xtask awake`; not for editing.\n";

/// Prefix of the hash in legacy mangled names; the hash differs from build to build.
const LEGACY_HASH_PREFIX: &str = "17h";

/// Builds the engine without a link order, runs the scenarios under callgrind and writes the list.
pub(crate) fn run() -> Result<()> {
    ensure!(
        succeeds("valgrind", &["--version"]),
        "Watching an engine needs valgrind, which is not installed."
    );
    let watched = [("WHIMBREL_LAYOUT", "compiler"), ("CARGO_PROFILE_RELEASE_STRIP", "none")];
    run_args(&["cargo", "build", "--release", "--locked", "--package", "whimbrel-cli"], &watched)?;
    let folder = tempfile::tempdir().context("there is no room for temporary files")?;
    let program = folder.path().join("whimbrel");
    fs::copy(bench::release_program("whimbrel"), &program).context("the engine cannot be copied")?;
    let watcher = write_callgrind_wrapper(folder.path(), &program)?;
    let words = ["--engine", &watcher, "--runs", "1"].into_iter().chain(TYPICAL_SCENARIOS).map(String::from);
    bench::run(&words.collect::<Vec<_>>())?;

    let ran = executed_functions(folder.path())?;
    let program = program.to_str().context("the name of the temporary folder cannot be read")?;
    let symbols = command::output(&["nm", "--defined-only", program])?;
    let list = symbol_patterns(&ran, &symbols);
    ensure!(!list.is_empty(), "valgrind has seen no function of ours");
    let list: String = list.into_iter().map(|pattern| pattern + "\n").collect();
    fs::write(workspace_root().join("crates/cli/awake.txt"), LIST_HEADER.to_owned() + &list)?;
    Ok(())
}

/// Writes a script that runs the engine under callgrind, and returns its path.
fn write_callgrind_wrapper(folder: &Path, program: &Path) -> Result<String> {
    let path = folder.join("watched");
    let script = format!(
        "#!/bin/sh\nexec valgrind -q --tool=callgrind --demangle=no --callgrind-out-file={}/ran.%p {} \"$@\"\n",
        folder.display(),
        program.display()
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// Collects the names of all executed functions from the callgrind output.
fn executed_functions(folder: &Path) -> Result<BTreeSet<String>> {
    let mut ran = BTreeSet::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with("ran.") {
            ran.extend(
                fs::read_to_string(file.path())?.lines().filter_map(parse_function_name).map(str::to_owned),
            );
        }
    }
    Ok(ran)
}

/// Parses the name in `fn=(12) NAME`, which callgrind writes once per function. A recursion level after `'` is removed.
fn parse_function_name(line: &str) -> Option<&str> {
    let told = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?;
    let (_, name) = told.split_once(") ")?;
    Some(name.split_once('\'').map_or(name, |(name, _)| name))
}

/// Returns linker patterns for the executed functions under all names at their addresses: identical functions are
/// folded, and the linker chooses which name the section bears.
fn symbol_patterns(ran: &BTreeSet<String>, symbols: &str) -> BTreeSet<String> {
    let mut at: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in symbols.lines() {
        if let [address, "t" | "T" | "w" | "W", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
            at.entry(address).or_default().push(name);
        }
    }
    let awake = at.into_values().filter(|names| names.iter().any(|name| ran.contains(*name)));
    awake.flatten().map(symbol_pattern).collect()
}

/// Replaces the parts of a mangled name that differ between builds and compilers by `*`.
fn symbol_pattern(name: &str) -> String {
    if let Some(at) = name.starts_with("_ZN").then(|| name.rfind(LEGACY_HASH_PREFIX)).flatten() {
        return format!("{}*", &name[..at + LEGACY_HASH_PREFIX.len()]);
    }
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    // In v0 mangling every crate name is preceded by a hash: `Cs4fqI2P2rA04_4core`.
    let mut parts = name.split("Cs");
    let mut pattern = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_hash = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
        match part.split_once('_') {
            Some((hash, rest)) if is_hash(hash) => pattern.extend(["Cs*_", rest]),
            _ => pattern.extend(["Cs", part]),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executed_function_is_listed_under_all_its_names() {
        let told = "fl=(1) ???\nfn=(7) _ZN3our4work17h0123456789abcdefE'2\n12 3\ncfn=(8) memcpy\nfn=(7)\n";
        let ran: BTreeSet<String> = told.lines().filter_map(parse_function_name).map(str::to_owned).collect();
        let symbols = "01 t _ZN3our4work17h0123456789abcdefE\n01 t _ZN3our4same17hfedcba9876543210E\n\
                       02 t _ZN3our5sleep17h0123456789abcdefE\n03 r memcpy\n   U memcpy\n";
        let expected = ["_ZN3our4same17h*", "_ZN3our4work17h*"].map(String::from);
        assert_eq!(symbol_patterns(&ran, symbols), BTreeSet::from(expected));
    }

    #[test]
    fn pattern_matches_every_build() {
        assert_eq!(symbol_pattern("_RNvNtCs4fqI2P2rA04_4core3fmt5write"), "_RNvNtCs*_4core3fmt5write");
        assert_eq!(symbol_pattern("aws_lc_0_4_rand"), "aws_lc_0_4_rand");
    }
}
