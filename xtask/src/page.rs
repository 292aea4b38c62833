//! The page of `whimbrel serve`: builds it, checks that the committed bundle comes from the committed sources, and plays
//! the browser journeys against the built program.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::{run, run_args};
use crate::installation::{install_locked_npm, workspace_path};
use crate::system_packages::chromium;

const SOURCES: &str = "crates/host/page";
const WORK: &str = ".check/page";
const JOURNEYS: &str = "conformance/journeys";
const JOURNEYS_WORK: &str = ".check/journeys";

/// What a build needs besides the installed packages.
const BUILD_FILES: [&str; 3] = ["build.mjs", "test.mjs", "tsconfig.json"];

/// Checks types, runs the tests of the page, and writes the bundle.
pub(crate) fn build() -> Result<()> {
    build_in_work_dir()?;
    let (from, to) = (workspace_path(&format!("{WORK}/dist")), workspace_path(&format!("{SOURCES}/dist")));
    for name in file_names(&from)? {
        let path = format!("{to}/{name}");
        fs::copy(format!("{from}/{name}"), &path).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Builds the page again and compares the bundle byte by byte.
pub(crate) fn check() -> Result<()> {
    build_in_work_dir()?;
    let (built, committed) =
        (workspace_path(&format!("{WORK}/dist")), workspace_path(&format!("{SOURCES}/dist")));
    let (built_names, committed_names) = (file_names(&built)?, file_names(&committed)?);
    if built_names != committed_names {
        bail!(
            "{SOURCES}/dist has {committed_names:?}, the build has {built_names:?}; run `cargo xtask page`"
        );
    }
    for name in built_names {
        let read = |dir: &str| {
            fs::read(format!("{dir}/{name}")).with_context(|| format!("cannot read {dir}/{name}"))
        };
        if read(&built)? != read(&committed)? {
            bail!("{SOURCES}/dist/{name} was not built from the sources beside it; run `cargo xtask page`");
        }
    }
    Ok(())
}

/// Plays the journeys in Chromium; `args` are further arguments for node, such as `--test-name-pattern=J-03`.
pub(crate) fn run_journeys(args: &[String]) -> Result<()> {
    let browser = chromium()?;
    run("cargo build --package whimbrel-cli --locked")?;
    install_locked_npm(&workspace_path(JOURNEYS), &workspace_path(JOURNEYS_WORK))?;
    let modules = workspace_path(&format!("{JOURNEYS_WORK}/node_modules"));
    let program = workspace_path("target/debug/whimbrel");
    let tests = journey_files()?;
    let mut words = vec!["node", "--test", "--test-concurrency=2", "--test-reporter=spec"];
    words.extend(args.iter().map(String::as_str));
    words.extend(tests.iter().map(String::as_str));
    run_args(&words, &[("CHROMIUM", &browser), ("WHIMBREL", &program), ("JOURNEY_MODULES", &modules)])
}

fn journey_files() -> Result<Vec<String>> {
    let dir = workspace_path(JOURNEYS);
    let names = file_names(&dir)?.into_iter().filter(|name| name.ends_with(".test.mjs"));
    Ok(names.map(|name| format!("{dir}/{name}")).collect())
}

/// Copies the sources beside the installed packages, so that the source tree stays free of them, and builds there.
fn build_in_work_dir() -> Result<()> {
    let (source, work) = (workspace_path(SOURCES), workspace_path(WORK));
    install_locked_npm(&source, &work)?;
    for dir in ["src", "tests", "dist", "test-build"] {
        remove_dir(&format!("{work}/{dir}"))?;
    }
    copy_dir(Path::new(&source).join("src").as_path(), &Path::new(&work).join("src"))?;
    copy_dir(Path::new(&source).join("tests").as_path(), &Path::new(&work).join("tests"))?;
    for file in BUILD_FILES {
        fs::copy(format!("{source}/{file}"), format!("{work}/{file}"))
            .with_context(|| format!("cannot copy {file}"))?;
    }
    run_args(&["npm", "--prefix", &work, "run", "--silent", "all"], &[])
}

fn remove_dir(path: &str) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {path}"))
        }
        _ => Ok(()),
    }
}

fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

fn file_names(dir: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {dir}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {dir}"))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
