//! The suite that drives the built binary with the official SDKs for Python and TypeScript. What it needs is installed
//! below `.check/`, by name and version, the first time and whenever the versions change.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{self, workspace_root, run_args};

/// The Python SDK. It is built from source: its wheel would bring an engine of its own.
const PYTHON_SDK: &str = "claude-agent-sdk==0.2.182";

/// What the Python side needs besides, to the version.
const REQUIREMENTS: &str = "tests/sdk/requirements.txt";

/// Both generations of the TypeScript SDK.
const TYPESCRIPT_SDK_VERSIONS: [&str; 2] = ["0.2.50", "0.3.325"];

/// What the TypeScript SDKs cannot do without.
const ZOD: &str = "zod@4.1.12";

/// A reference server of the Model Context Protocol; others are among what the Python side needs.
const MCP_SERVER: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// Installs what is missing and runs the suite; further words go to pytest.
pub(crate) fn run(more: &[String]) -> Result<()> {
    command::run("cargo build --package whimbrel-cli --locked")?;
    command::run("cargo build --package whimbrel-store-sqlite --example serve_store --locked")?;
    install_python_sdk()?;
    for version in TYPESCRIPT_SDK_VERSIONS {
        install_typescript_sdk(version)?;
    }
    install_mcp_server()?;
    let python = workspace_path(".check/venv/bin/python");
    let mut words = vec![python.as_str(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/sdk"];
    words.extend(more.iter().map(String::as_str));
    let (engine, check) = (workspace_path("target/debug/whimbrel"), workspace_path(".check"));
    let store = workspace_path("target/debug/examples/serve_store");
    run_args(&words, &[("WHIMBREL", &engine), ("WHIMBREL_STORE", &store), ("WHIMBREL_CHECK", &check)])
}

fn install_python_sdk() -> Result<()> {
    let requirements = workspace_path(REQUIREMENTS);
    let pinned =
        fs::read_to_string(&requirements).with_context(|| format!("{requirements} cannot be read"))?;
    let folder = workspace_path(".check/venv");
    install_once(&folder, &format!("{PYTHON_SDK}\n{pinned}"), || {
        run_args(&["python3", "-m", "venv", &folder], &[])?;
        let python = format!("{folder}/bin/python");
        let install = [python.as_str(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run_args(&[&install[..], &["--requirement", &requirements]].concat(), &[])?;
        let from_source =
            ["--no-deps", "--no-build-isolation", "--no-binary", "claude-agent-sdk", PYTHON_SDK];
        run_args(&[&install[..], &from_source].concat(), &[])
    })
}

/// Installs two packages and nothing else: what is optional is an engine of hundreds of megabytes, and the peers are only
/// asked for by their types.
fn install_typescript_sdk(version: &str) -> Result<()> {
    let folder = workspace_path(&format!(".check/ts-{version}"));
    let sdk = format!("@anthropic-ai/claude-agent-sdk@{version}");
    install_once(&folder, &format!("{sdk} {ZOD}"), || {
        let install =
            ["npm", "install", "--prefix", &folder, "--omit=optional", "--omit=peer", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", &sdk, ZOD]].concat(), &[])
    })
}

fn install_mcp_server() -> Result<()> {
    let folder = workspace_path(".check/servers");
    install_once(&folder, MCP_SERVER, || {
        let install = ["npm", "install", "--prefix", &folder, "--omit=optional", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", MCP_SERVER]].concat(), &[])
    })
}

/// Installs into a folder unless just this is there already: a note in the folder says what was installed last. What an
/// older or broken installation has left is removed first.
fn install_once(folder: &str, what: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let note = Path::new(folder).join("installed.txt");
    if fs::read_to_string(&note).is_ok_and(|installed| installed == what) {
        return Ok(());
    }
    if Path::new(folder).exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{folder} cannot be removed"))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{folder} cannot be made"))?;
    install()?;
    fs::write(&note, what).with_context(|| format!("{} cannot be written", note.display()))
}

fn workspace_path(below: &str) -> String {
    let target = std::env::var("CARGO_TARGET_DIR").ok();
    match (below.strip_prefix("target/"), target) {
        (Some(rest), Some(target)) => format!("{target}/{rest}"),
        _ => workspace_root().join(below).display().to_string(),
    }
}
