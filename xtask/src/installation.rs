//! Dependencies of checks that are not Rust: installed below `.check/` with pinned versions, on the first run and whenever
//! the versions change.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{run_args, workspace_root};

/// Installs into a directory unless it already has exactly these packages, as noted in `installed.txt`. Removes an
/// older or broken installation first.
pub(crate) fn install_once(dir: &str, packages: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let marker = Path::new(dir).join("installed.txt");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == packages) {
        return Ok(());
    }
    if Path::new(dir).exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {dir}"))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {dir}"))?;
    install()?;
    fs::write(&marker, packages).with_context(|| format!("cannot write {}", marker.display()))
}

/// Installs what the lock file of a directory names into another directory, without running scripts of packages.
pub(crate) fn install_locked_npm(source: &str, dir: &str) -> Result<()> {
    let lock_file = format!("{source}/package-lock.json");
    let lock = fs::read_to_string(&lock_file).with_context(|| format!("cannot read {lock_file}"))?;
    install_once(dir, &lock, || {
        copy_package_files(source, dir)?;
        run_args(&["npm", "ci", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund"], &[])
    })
}

/// Copies what npm needs to install.
pub(crate) fn copy_package_files(source: &str, dir: &str) -> Result<()> {
    for file in ["package.json", "package-lock.json"] {
        let (from, to) = (format!("{source}/{file}"), format!("{dir}/{file}"));
        fs::copy(&from, to).with_context(|| format!("cannot copy {from}"))?;
    }
    Ok(())
}

/// The absolute path of a file in the workspace, or in the target directory.
pub(crate) fn workspace_path(path: &str) -> String {
    let target = std::env::var("CARGO_TARGET_DIR").ok();
    match (path.strip_prefix("target/"), target) {
        (Some(rest), Some(target)) => format!("{target}/{rest}"),
        _ => workspace_root().join(path).display().to_string(),
    }
}
