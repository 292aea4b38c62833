//! `cargo xtask dist`: builds the shipped binary and packages it. Records which functions a typical session executes and lets the
//! linker place them side by side (`crates/cli/build.rs`), so that a process touches few pages of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::bench;
use crate::command::{self, run_args, succeeds, target_dir};
use crate::package::package_release;

/// Benchmark scenarios of a typical session: prompts, streaming, commands, file reads, permission requests.
const TYPICAL_SCENARIOS: [&str; 5] = ["cold", "loop", "read-loop", "session", "permission-requests"];

/// Variable with the path of the link order, read by `crates/cli/build.rs`; empty for none.
const LINK_ORDER_VARIABLE: &str = "WHIMBREL_LINK_ORDER";

/// Prefix of the hash in legacy mangled names; the hash differs from build to build.
const LEGACY_HASH_PREFIX: &str = "17h";

/// Builds the engine without a link order, runs the scenarios under callgrind and builds the engine again.
pub(crate) fn run() -> Result<()> {
    for program in ["valgrind", "nm", "strip"] {
        ensure!(
            succeeds(program, &["--version"]),
            "{program} is not installed; install valgrind and binutils"
        );
    }
    build_engine("")?;
    let dir = tempfile::tempdir().context("cannot create a temporary directory")?;
    let program = dir.path().join("whimbrel");
    fs::copy(target_dir().join("dist/whimbrel"), &program).context("cannot copy the engine")?;
    let wrapper = write_callgrind_wrapper(dir.path(), &program)?;
    let args = ["--engine", &wrapper, "--runs", "1"].into_iter().chain(TYPICAL_SCENARIOS).map(String::from);
    bench::run(&args.collect::<Vec<_>>())?;

    let executed = executed_functions(dir.path())?;
    let program = program.to_str().context("the path of the temporary directory is not UTF-8")?;
    let symbols = command::stdout(&["nm", "--defined-only", program])?;
    let patterns = symbol_patterns(&executed, &symbols);
    ensure!(!patterns.is_empty(), "valgrind reported no function of the engine");
    let patterns: String = patterns.into_iter().map(|pattern| pattern + "\n").collect();
    let link_order = std::path::absolute(target_dir().join("dist/link-order.txt"))?;
    fs::write(&link_order, patterns).with_context(|| format!("cannot write {}", link_order.display()))?;
    build_engine(&link_order.display().to_string())?;
    let shipped = std::path::absolute(target_dir().join("dist/whimbrel"))?;
    run_args(&["strip", "--strip-all", &shipped.display().to_string()], &[])?;
    package_release(&shipped, &target_dir().join("dist/packages"))
}

/// Builds the engine with symbols: the first build needs them, and the second must not compile every dependency again
/// with another profile.
fn build_engine(link_order: &str) -> Result<()> {
    let env = [(LINK_ORDER_VARIABLE, link_order), ("CARGO_PROFILE_DIST_STRIP", "none")];
    run_args(&["cargo", "build", "--profile", "dist", "--locked", "--package", "whimbrel-cli"], &env)
}

/// Writes a script that runs the engine under callgrind, and returns its path.
fn write_callgrind_wrapper(dir: &Path, program: &Path) -> Result<String> {
    let path = dir.join("engine-under-callgrind");
    let script = format!(
        "#!/bin/sh\nexec valgrind -q --tool=callgrind --demangle=no --callgrind-out-file={}/ran.%p {} \"$@\"\n",
        dir.display(),
        program.display()
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// Collects the names of all executed functions from the callgrind output.
fn executed_functions(dir: &Path) -> Result<BTreeSet<String>> {
    let mut executed = BTreeSet::new();
    for file in fs::read_dir(dir)? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with("ran.") {
            executed.extend(
                fs::read_to_string(file.path())?.lines().filter_map(parse_function_name).map(str::to_owned),
            );
        }
    }
    Ok(executed)
}

/// Parses the name in `fn=(12) NAME`, which callgrind writes once per function. A recursion level after `'` is removed.
fn parse_function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?;
    let (_, name) = rest.split_once(") ")?;
    Some(name.split_once('\'').map_or(name, |(name, _)| name))
}

/// Returns linker patterns for the executed functions under all names at their addresses: identical functions are
/// folded, and the linker chooses which name the section bears.
fn symbol_patterns(executed: &BTreeSet<String>, symbols: &str) -> BTreeSet<String> {
    let mut names_by_address: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in symbols.lines() {
        if let [address, "t" | "T" | "w" | "W", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
            names_by_address.entry(address).or_default().push(name);
        }
    }
    let listed =
        names_by_address.into_values().filter(|names| names.iter().any(|name| executed.contains(*name)));
    listed.flatten().map(symbol_pattern).collect()
}

/// Replaces the parts of a mangled name that differ between builds and compilers by `*`.
fn symbol_pattern(name: &str) -> String {
    if let Some(hash_start) = name.starts_with("_ZN").then(|| name.rfind(LEGACY_HASH_PREFIX)).flatten() {
        return format!("{}*", &name[..hash_start + LEGACY_HASH_PREFIX.len()]);
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
        let output = "fl=(1) ???\nfn=(7) _ZN3our4work17h0123456789abcdefE'2\n12 3\ncfn=(8) memcpy\nfn=(7)\n";
        let executed: BTreeSet<String> =
            output.lines().filter_map(parse_function_name).map(str::to_owned).collect();
        let symbols = "01 t _ZN3our4work17h0123456789abcdefE\n01 t _ZN3our4same17hfedcba9876543210E\n\
                       02 t _ZN3our5sleep17h0123456789abcdefE\n03 r memcpy\n   U memcpy\n";
        let expected = ["_ZN3our4same17h*", "_ZN3our4work17h*"].map(String::from);
        assert_eq!(symbol_patterns(&executed, symbols), BTreeSet::from(expected));
    }

    #[test]
    fn pattern_matches_every_build() {
        assert_eq!(symbol_pattern("_RNvNtCs4fqI2P2rA04_4core3fmt5write"), "_RNvNtCs*_4core3fmt5write");
        assert_eq!(symbol_pattern("aws_lc_0_4_rand"), "aws_lc_0_4_rand");
    }
}
