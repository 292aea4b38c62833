//! The crates as they would be published: packed, unpacked beside each other, and built without the files of the
//! workspace.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::{run, run_args, target_dir, workspace_root};

/// Packs all crates, builds the packed files, and checks that they need no other versions than the lock file has. So
/// `cargo install --path crates/cli --locked` gets what the tests have seen.
pub(super) fn check(crates: &[&str]) -> Result<()> {
    run("cargo package --workspace --exclude xtask --locked --no-verify --allow-dirty --quiet")?;
    let packages = target_dir().join("package");
    let unpacked = packages.join("unpacked");
    let dirs = unpack(crates, &packages, &unpacked)?;
    fs::write(unpacked.join("Cargo.toml"), render_workspace(crates, &dirs))
        .context("cannot write the workspace of the packed crates")?;
    let lock = workspace_root().join("Cargo.lock");
    fs::copy(&lock, unpacked.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    let manifest = unpacked.join("Cargo.toml").display().to_string();
    run_args(&["cargo", "check", "--workspace", "--quiet", "--manifest-path", &manifest], &[])?;
    let (known, used) = (fs::read_to_string(lock)?, fs::read_to_string(unpacked.join("Cargo.lock"))?);
    let other = find_other_versions(&known, &used);
    ensure!(
        other.is_empty(),
        "the packed crates need versions that Cargo.lock does not have: {}",
        other.join(", ")
    );
    Ok(())
}

/// Unpacks the files of all crates; returns the names of their directories.
fn unpack(crates: &[&str], packages: &Path, unpacked: &Path) -> Result<Vec<String>> {
    if unpacked.exists() {
        fs::remove_dir_all(unpacked).context("cannot remove the packed crates of the last run")?;
    }
    fs::create_dir_all(unpacked).context("cannot create a directory for the packed crates")?;
    let version = env!("CARGO_PKG_VERSION");
    let unpack = |name: &&str| {
        let dir = format!("{name}-{version}");
        let file: PathBuf = packages.join(format!("{dir}.crate"));
        run_args(&["tar", "-xzf", &file.display().to_string(), "-C", &unpacked.display().to_string()], &[])?;
        Ok(dir)
    };
    crates.iter().map(unpack).collect()
}

/// A workspace in which the packed crates find each other.
fn render_workspace(crates: &[&str], dirs: &[String]) -> String {
    let mut text = format!("[workspace]\nresolver = \"3\"\nmembers = {dirs:?}\n\n[patch.crates-io]\n");
    for (name, dir) in crates.iter().zip(dirs) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {{ path = \"{dir}\" }}");
    }
    text
}

/// Packages of a lock file that another one does not have, as name and version.
fn find_other_versions(known: &str, used: &str) -> Vec<String> {
    let known = packages_of(known);
    packages_of(used).into_iter().filter(|package| !known.contains(package)).collect()
}

fn packages_of(lock: &str) -> BTreeSet<String> {
    let field = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")))?;
        line.strip_suffix('"').map(str::to_owned)
    };
    let name = |package: &str| Some(format!("{} {}", field(package, "name")?, field(package, "version")?));
    lock.split("[[package]]").filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_names_each_crate_and_its_place() {
        let expected = "[workspace]\nresolver = \"3\"\nmembers = [\"a-1.0.0\", \"b-1.0.0\"]\n\n[patch.crates-io]\n\
            a = { path = \"a-1.0.0\" }\nb = { path = \"b-1.0.0\" }\n";
        assert_eq!(render_workspace(&["a", "b"], &["a-1.0.0".into(), "b-1.0.0".into()]), expected);
    }

    #[test]
    fn versions_that_the_lock_file_lacks_are_named() {
        let package = |name: &str, version: &str| {
            format!(
                "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\ndependencies = [\n \"x\",\n]\n\n"
            )
        };
        let known = [package("serde", "1.0.1"), package("tokio", "1.2.0")].concat();
        assert_eq!(find_other_versions(&known, &package("serde", "1.0.1")), [""; 0]);
        let used = [package("serde", "1.0.2"), package("tokio", "1.2.0"), package("new", "0.1.0")].concat();
        assert_eq!(find_other_versions(&known, &used), ["new 0.1.0", "serde 1.0.2"]);
    }
}
