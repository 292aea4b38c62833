//! The suite that drives the built binary with the official SDKs for Python and TypeScript. What it needs is installed
//! below `.check/`, by name and version, the first time.

use std::path::Path;

use anyhow::Result;

use crate::command::{self, root, run_words};

/// What the Python side needs. The SDK is built from source: its wheel would bring an engine of its own.
const PYTHON: [&str; 2] = ["pytest==8.4.2", "pytest-timeout==2.4.0"];
const PYTHON_SDK: &str = "claude-agent-sdk==0.2.182";

/// Both generations of the TypeScript SDK.
const TYPESCRIPT: [&str; 2] = ["0.2.50", "0.3.325"];

/// Installs what is missing and runs the suite; further words go to pytest.
pub(crate) fn run(more: &[String]) -> Result<()> {
    command::run("cargo build --package whimbrel-cli --locked")?;
    python()?;
    for version in TYPESCRIPT {
        typescript(version)?;
    }
    let python = path(".check/venv/bin/python");
    let mut words = vec![python.as_str(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/sdk"];
    words.extend(more.iter().map(String::as_str));
    let (engine, check) = (path("target/debug/whimbrel"), path(".check"));
    run_words(&words, &[("WHIMBREL", &engine), ("WHIMBREL_CHECK", &check)])
}

fn python() -> Result<()> {
    let python = path(".check/venv/bin/python");
    if !Path::new(&python).exists() {
        run_words(&["python3", "-m", "venv", &path(".check/venv")], &[])?;
    }
    let install = [python.as_str(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run_words(&[&install[..], &PYTHON[..]].concat(), &[])?;
    run_words(&[&install[..], &["--no-binary", "claude-agent-sdk", PYTHON_SDK]].concat(), &[])
}

fn typescript(version: &str) -> Result<()> {
    let folder = path(&format!(".check/ts-{version}"));
    let package = format!("@anthropic-ai/claude-agent-sdk@{version}");
    run_words(
        &["npm", "install", "--prefix", &folder, "--omit=optional", "--no-audit", "--no-fund", "--no-save", &package, "zod@4.1.12"],
        &[],
    )
}

fn path(below: &str) -> String {
    let target = std::env::var("CARGO_TARGET_DIR").ok();
    match (below.strip_prefix("target/"), target) {
        (Some(rest), Some(target)) => format!("{target}/{rest}"),
        _ => root().join(below).display().to_string(),
    }
}

